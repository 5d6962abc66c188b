//! One connection's receiving side: heads and bodies out of bytes, however they were split.
use super::{HeadPolicy, Refusal, RequestHead};
use std::ops::Range;

/// What the bytes looked at so far amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing can be said until more bytes come.
    NeedMore,
    /// A head is complete and stands in the `RequestHead` given; spans count from the first byte of the input.
    Head,
    /// Body bytes: a range of the input given.
    Body(Range<usize>),
    /// The request is complete, body and trailers included. Nothing more is read until `next_request`.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of the input are done with; the caller presents the rest again, with what came since.
    pub consumed: usize,
    pub step: Step,
}

/// The receiving state machine; small, one per connection.
#[derive(Debug, Default)]
pub struct Receiver {}

impl Receiver {
    /// Looks at `input` (all unconsumed bytes) and takes one step.
    pub fn advance(
        &mut self,
        _input: &mut [u8],
        _policy: &HeadPolicy,
        _trusted: bool,
        _head: &mut RequestHead,
    ) -> Result<Progress, Box<Refusal>> {
        todo!()
    }
    /// For a body of known length: how many bytes of it are still to come, so that the caller can read them straight
    /// to where they are wanted. `None` outside such a body.
    pub fn fixed_remaining(&self) -> Option<u64> {
        todo!()
    }
    /// Tells that `n` bytes of a fixed-length body were taken without `advance`.
    pub fn took_fixed(&mut self, _n: u64) {
        todo!()
    }
    /// Whether nothing of a request has been seen yet (between requests).
    pub fn is_idle(&self) -> bool {
        todo!()
    }
    /// The reply to the current request is done; the next head may be read.
    pub fn next_request(&mut self) {
        todo!()
    }
}
