//! Responses that wait for slow clients: what all of them hold, and what one exchange has to give up.
use super::Exchange;
use super::outbox::SharedBytes;
use super::overflow::{Held, Overflow};
use crate::config::Config;
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

impl Exchange {
    /// What the outbox may hold.
    pub(crate) fn bound(&mut self, config: &Config) {
        (self.mark, self.low) = (config.response_buffer_size, config.response_buffer_size / 4);
    }

    /// The client has not taken all of a reply that is complete; it was not held back for others either.
    #[inline]
    pub fn has_rest(&self) -> bool {
        !self.outbox.is_empty() && !self.hold
    }

    /// The file of a response whose client has caught up. To be dropped without the GIL: closing a long file takes its time.
    pub fn take_idle_file(&mut self) -> Option<Box<Overflow>> {
        self.idle_file.take()
    }

    /// Owners of bytes that are sent or on disk, to be dropped by a thread that holds the GIL.
    pub fn take_spent(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.spent)
    }
}
