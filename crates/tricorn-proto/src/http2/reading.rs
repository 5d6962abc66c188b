//! How far the parts of a response were read (`parts.rs`).
use super::unsendable::Unsendable;

/// How far the response of a stream was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Reading {
    #[default]
    Between,
    /// A part of a part that is no content.
    Gathering(Vec<u8>),
    /// Content of which so much is to come.
    Content { left: u64 },
    /// Nothing more can be sent. What comes then begins anywhere in a part.
    Failed(Unsendable),
}
