//! Why nothing was sent.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsendable {
    /// The stream is over, was reset, or is not known.
    Closed,
    /// No head was sent, or a second one would be.
    Order,
}

impl std::fmt::Display for Unsendable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Unsendable::Closed => "the stream is closed",
            Unsendable::Order => "the head of a response comes once, before its body",
        })
    }
}

impl std::error::Error for Unsendable {}
