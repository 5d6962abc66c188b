//! The descriptors that the reactor holds, or has lent to an exchange.
use super::Reactor;
use rustix::fd::{AsRawFd, RawFd};

impl Reactor {
    pub fn own_descriptors(&self, mut each: impl FnMut(RawFd)) {
        for listener in self.gate.listeners().iter().chain(self.admin.listeners()) {
            each(listener.socket.as_raw_fd());
        }
        self.conns.descriptors().chain(self.extra.sender.descriptors()).for_each(each);
    }
}
