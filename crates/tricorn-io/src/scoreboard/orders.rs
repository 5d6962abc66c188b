//! What the arbiter has ordered, as the core reads it; and how far a worker is with it.
use super::{Scoreboard, Word};

/// Orders: the readiness path answers 503; the core drains, though Python may never run again; others listen on the same
/// sockets, so that a drain takes no more connections; others serve on when this worker has left.
pub const NOT_READY: u64 = 1;
pub const DRAIN: u64 = 2;
pub const YIELD: u64 = 4;
pub const REPLACED: u64 = 8;

/// The states of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    Booting = 1,
    Serving = 2,
    Draining = 3,
    Stopped = 4,
}

impl Scoreboard {
    /// Whether this worker should be sent no requests, though it serves those that come.
    pub fn orders_not_ready(&self) -> bool {
        self.get(Word::Orders) & NOT_READY != 0
    }

    /// Whether the arbiter wants the core to drain.
    pub fn orders_drain(&self) -> bool {
        self.get(Word::Orders) & DRAIN != 0
    }

    /// Whether others serve on when this worker has left.
    pub fn orders_replaced(&self) -> bool {
        self.get(Word::Orders) & REPLACED != 0
    }

    /// Whether others serve the clients that connect from now on.
    pub fn orders_yield(&self) -> bool {
        self.get(Word::Orders) & YIELD != 0
    }
}
