//! What looking at bytes came to.
use super::violation::Violation;
use crate::message::Refusal;
use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing can be said until more bytes come.
    NeedMore,
    /// The peer does not read what it is sent; nothing more is read until some of it was.
    Choked,
    /// A frame that concerns nothing but the connection was dealt with.
    Control,
    /// A request has begun; it stands in the `Request` given. Its stream is to be released when its call is over.
    Request { stream: u32, end: bool },
    /// Likewise, but it is to be answered with the refusal's status.
    Refused { stream: u32, refusal: Box<Refusal> },
    /// Content of a request: a range of the input given, empty only at its end.
    Body { stream: u32, range: Range<usize>, end: bool },
    /// The request is complete; its trailers stand in `Request::head`, whose other parts are another request's.
    Trailers { stream: u32 },
    /// The peer has given up a stream. It is still to be released.
    Reset { stream: u32, code: u32 },
    /// The peer has broken a rule, and its stream was reset. If its request was begun it is still to be released.
    Violated { stream: u32, violation: Violation },
    /// More may be sent on a stream; 0: on any.
    Room { stream: u32 },
    /// The peer begins no more streams.
    Goodbye { code: u32 },
    /// The connection ends: what is to be sent still is, then it is closed.
    Failed(Violation),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of the input are done with; the caller presents the rest again, with what came since.
    pub consumed: usize,
    pub step: Step,
}
