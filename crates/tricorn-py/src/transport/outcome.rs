//! What a write of the protocol comes to.

/// What came of a write.
pub enum Outcome {
    /// Nothing is to be done.
    Goes,
    /// The client is too far behind.
    Behind,
    /// Nothing had to be waited for, for long enough: the loop's other callbacks come first.
    GivesWay,
    /// The client was told to send its body, or another protocol begins.
    MayRead,
    Gone,
    /// The worker leaves, and the last event is complete.
    Closes,
    /// The response is complete.
    Complete,
    /// This is no response.
    Wrong(String),
}
