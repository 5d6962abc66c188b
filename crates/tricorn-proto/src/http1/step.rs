//! What looking at bytes came to.
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
