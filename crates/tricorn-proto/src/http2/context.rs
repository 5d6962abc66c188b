//! The surroundings of a step of reading.
use crate::http1::HeadPolicy;

/// What reading depends on besides the bytes.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Milliseconds.
    pub now: u64,
    pub policy: &'a HeadPolicy,
    /// The peer is a front end whose forwarded headers are believed.
    pub trusted: bool,
}
