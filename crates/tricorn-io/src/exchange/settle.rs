//! The exchange's side of the claim to its reply (`claim.rs`).
use super::Exchange;
use super::buffers::Request;
use super::claim::{Claim, Held, late_page};
use rustix::fd::AsFd;
use std::sync::Arc;

impl Exchange {
    /// From now on the monitor may answer, as long as nothing was sent.
    pub(crate) fn claim_reply(&mut self, claim: &Arc<Claim>) {
        self.claim = Some(Held::open(claim, self.socket.as_fd(), self.request.head.kind));
    }

    /// The application is done with the exchange: whether the monitor answered in its place, with 504.
    pub fn settle(&mut self) -> bool {
        if self.claim.take().is_some_and(|claim| claim.was_taken()) {
            self.answered_for = true;
            let Request { head, reply, .. } = &mut *self.request;
            // Whatever the application said since, this is what the client got.
            reply.begin(head.kind, head.version, false);
            let _ = reply.status(b"504 Gateway Timeout");
            self.timing.sent += late_page(self.wall.date(), head.kind).len() as u64;
            self.lost();
        }
        self.answered_for
    }

    /// Nobody else may write from now on; false if the monitor has.
    #[inline]
    pub(crate) fn may_write(&self) -> bool {
        self.claim.as_ref().is_none_or(Held::begin)
    }
}
