//! When things happened to a request (monotonic nanoseconds; 0: not yet).

use tricorn_proto::access_log::CallTime;

#[derive(Debug, Clone, Copy, Default)]
pub struct Times {
    pub first_byte: u64,
    pub head_complete: u64,
    /// The request may begin: all of it is there, or as much as it needs.
    pub complete: u64,
    /// Since when it waits for the application (`Request::note_wait`).
    pub waits_since: u64,
    /// Length of the body when it last grew, and when that was.
    pub body_mark: (u64, u64),
    /// What the time of its call was used for. Here, since an exchange is not to grow.
    pub call: Option<CallTime>,
}
