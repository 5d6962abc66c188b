//! Who writes the first byte of a response: its exchange, or the monitor, which has answered for it (`claim.rs`).
use super::Output;
use crate::exchange::claim::{Claim, HeldClaim};
use crate::exchange::link::Loss;
use std::sync::Arc;
use tricorn_proto::message::Method;

impl Output {
    pub fn open_claim(&mut self, claim: &Arc<Claim>, method: Method) {
        self.claim = Some(HeldClaim::open(claim, &self.stream, method));
    }

    /// The request got its id, for what the monitor may answer.
    pub fn name_claim(&self, request_id: &[u8]) {
        if let Some(claim) = &self.claim {
            claim.name(request_id);
        }
    }

    /// Only the exchange writes from now on; false if the monitor has.
    #[inline]
    pub fn may_write(&self) -> bool {
        self.claim.as_ref().is_none_or(HeldClaim::begin)
    }

    /// All that was written was no answer yet: the monitor may still give one.
    pub fn reopen_claim(&self) {
        if let Some(claim) = self.claim.as_ref().filter(|_| self.outbox.is_empty()) {
            claim.reopen();
        }
    }

    /// Nothing more is written: whether the monitor has answered.
    #[inline]
    pub fn end_claim(&mut self) -> bool {
        self.claim.take().is_some_and(|claim| claim.was_taken())
    }

    /// The client got an answer of so many bytes from the monitor.
    #[cold]
    pub fn answered_for(&mut self, length: usize) {
        self.sent += length as u64;
        self.lose(Loss::AnsweredFor);
    }

    #[inline]
    pub fn is_answered_for(&self) -> bool {
        self.link.loss() == Some(Loss::AnsweredFor)
    }
}
