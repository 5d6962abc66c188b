//! Responses that wait for slow clients: what all of them hold.
use super::overflow::Held;
use crate::scoreboard::Scoreboard;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What an engine knows of responses that wait.
#[derive(Debug)]
pub struct Responses {
    pub held: Arc<Held>,
    /// When the log was last told that a file could not be written.
    pub told: AtomicU64,
}

impl Responses {
    pub fn new(board: Scoreboard) -> Responses {
        Responses { held: Arc::new(Held::new(board)), told: AtomicU64::new(0) }
    }
}
