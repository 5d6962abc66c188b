//! What was short, and which requests were turned away, until the log is told (`notices.rs`).
use rustix::io::Errno;

/// Counted since the log was last told.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    /// Times that a connection could not be accepted: no descriptor was left.
    pub descriptors: u64,
    /// Times that a connection was not accepted: all places were taken, and none could be freed.
    pub places: u64,
    /// Connections with unfinished heads that were closed to make room.
    pub heads: u64,
    /// Unfinished heads that were refused beyond `head_buffer_total`.
    pub memory: u64,
    /// Why a listener is not in the poller.
    pub unwatched: Option<Errno>,
    pub told: u64,
}

impl Shortage {
    pub fn is_none(&self) -> bool {
        self.descriptors + self.places + self.heads + self.memory == 0 && self.unwatched.is_none()
    }
}

/// Requests that were turned away and that the log has not been told of.
#[derive(Debug, Default)]
pub(super) struct Overload {
    pub full: u64,
    pub late: u64,
    pub told: u64,
}
