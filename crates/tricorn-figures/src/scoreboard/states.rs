//! What the arbiter orders, and how far a worker is with it: the numbers.

/// Orders: the readiness path answers 503; the core drains, though Python may never run again; others listen on the same
/// sockets, so that a drain takes no more connections; others serve on when this worker has left; each reply is the last of its
/// connection, so that clients connect anew and meet workers that were started since.
pub const NOT_READY: u64 = 1;
pub const DRAIN: u64 = 2;
pub const YIELD: u64 = 4;
pub const REPLACED: u64 = 8;
pub const RECONNECT: u64 = 16;

/// The states of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    Booting = 1,
    Serving = 2,
    Draining = 3,
    Stopped = 4,
}
