//! The descriptors that the reactor holds, or has lent to an exchange.
use super::Reactor;
use crate::waiting::streams::Streams;
use rustix::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// Descriptors that clients hold beside those of their connections.
pub(super) struct Beside {
    /// Of bodies, and of replies that wait for their clients.
    files: usize,
    /// Each has one of its own.
    streams: Arc<Streams>,
}

impl Beside {
    pub fn new(streams: Arc<Streams>) -> Beside {
        Beside { files: 0, streams }
    }

    /// A file, if it is one.
    #[inline]
    pub fn opened(&mut self, is_file: bool) {
        self.files += usize::from(is_file);
    }

    #[inline]
    pub fn closed(&mut self, is_file: bool) {
        self.files -= usize::from(is_file);
    }

    #[inline]
    pub fn count(&self) -> usize {
        self.files + self.streams.open()
    }
}

impl Reactor {
    pub fn own_descriptors(&self, mut each: impl FnMut(RawFd)) {
        for listener in self.gate.listeners().iter().chain(self.admin.listeners()) {
            each(listener.socket.as_raw_fd());
        }
        self.conns.descriptors().for_each(each);
    }
}
