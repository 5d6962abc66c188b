//! The exchange's side of the claim to its reply (`claim.rs`).
use super::Exchange;
use super::buffers::Request;
use super::claim::{Claim, late_page};
use std::sync::Arc;

impl Exchange {
    /// From now on the monitor may answer, as long as nothing was sent.
    pub(crate) fn claim_reply(&mut self, claim: &Arc<Claim>) {
        self.lane.output_mut().open_claim(claim, self.request.head.kind);
    }

    /// The application is done with the exchange: whether the monitor answered in its place, with 504.
    pub fn settle(&mut self) -> bool {
        if self.lane.output_mut().end_claim() {
            let Request { head, reply, .. } = &mut *self.request;
            // Whatever the application said since, this is what the client got.
            reply.begin(head.kind, head.version, false);
            let _ = reply.status(b"504 Gateway Timeout");
            self.lane.output_mut().answered_for(late_page(self.wall.date(), head.kind, reply.request_id()).len());
        }
        self.lane.output().is_answered_for()
    }
}
