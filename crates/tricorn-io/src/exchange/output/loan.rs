//! The sender's side of an output: what waits in files.
use super::sending::{Rest, Shared};
use crate::exchange::outbox::{Flush, Outbox, SharedBytes};
use rustix::fd::{AsRawFd, RawFd};
use std::sync::Arc;

/// What waits for a client, with the thread that sends files. It keeps the connection open.
pub struct Loan {
    pub(super) shared: Arc<Shared>,
    pub(super) rest: Box<Rest>,
    /// Bytes that the thread has sent.
    pub sent: u64,
    /// What came of it; `None`: more can be sent.
    pub flush: Option<Flush>,
}

impl Loan {
    /// Sends until the socket takes no more, or about `most` bytes were sent.
    pub fn send(&mut self, most: usize) {
        let Rest { outbox, spent, .. } = &mut *self.rest;
        let before = outbox.sent();
        self.flush = outbox.flush_some(&self.shared.stream, spent, most);
        self.sent = outbox.sent() - before;
    }

    /// The number of the connection's descriptor.
    pub fn descriptor(&self) -> RawFd {
        self.shared.stream.socket().as_raw_fd()
    }

    pub fn take_spent(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.rest.spent)
    }

    /// Nothing of it is sent any more.
    pub fn into_outbox(self) -> Outbox {
        self.rest.outbox
    }
}
