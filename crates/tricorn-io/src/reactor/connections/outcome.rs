//! What comes of looking at a connection that concerns others.
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A request is complete.
    Complete(RequestId),
    /// The client of a request that waits has left.
    LeftQueue(RequestId),
    /// A request that waits was answered: what has come of its body is wrong.
    Unqueued(RequestId),
    /// Something has happened that the exchange of this request is to be told.
    Ready(RequestId),
    /// Something of a handshake has come.
    Handshake(Token),
}
