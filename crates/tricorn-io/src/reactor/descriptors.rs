//! The descriptors that the reactor holds, or has lent to an exchange.
use super::Reactor;
use rustix::fd::{AsRawFd, RawFd};

impl Reactor {
    pub fn own_descriptors(&self, mut each: impl FnMut(RawFd)) {
        for listener in self.gate.listeners() {
            each(listener.socket.as_raw_fd());
        }
        self.admin.descriptors().for_each(&mut each);
        let lent = self.extra.sender.descriptors().chain(self.gate.handshakes.descriptor());
        self.conns.descriptors().chain(lent).for_each(each);
    }
}
