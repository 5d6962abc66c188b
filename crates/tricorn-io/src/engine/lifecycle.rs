//! The life of an engine: one word, which only moves on.
//!
//! ```text
//!   New ──start──▶ Serving ──drain──▶ Draining ──stop──▶ Stopping ──close──▶ Closed
//! ```
//!
//! | stage | connections | app threads | monitor |
//! |---|---|---|---|
//! | `Serving` | accepted | begin calls | runs |
//! | `Draining` | served to their end | begin what waits here, leave when nothing does | runs |
//! | `Stopping` | as they are | leave at once | runs |
//! | `Closed` | closed | have left | leaves |
//!
//! A stage may be left out: an engine can be stopped before it drains, or before it serves.
use crate::scoreboard::{Scoreboard, State};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Stage {
    New,
    Serving,
    Draining,
    Stopping,
    Closed,
}

#[derive(Debug)]
pub struct Lifecycle {
    stage: AtomicU8,
    /// Calls under way are not waited for.
    ends_calls: AtomicBool,
    /// Siblings and the arbiter read there what begins no calls.
    board: Scoreboard,
}

impl Lifecycle {
    pub fn new(board: Scoreboard) -> Lifecycle {
        Lifecycle { stage: AtomicU8::new(Stage::New as u8), ends_calls: AtomicBool::new(false), board }
    }

    /// Moves on to a stage, if it is a later one. Whether it was.
    pub fn reach(&self, stage: Stage) -> bool {
        let is_later = self.stage.fetch_max(stage as u8, Ordering::SeqCst) < stage as u8;
        match stage {
            Stage::Serving if is_later => self.board.state(State::Serving),
            Stage::Draining if is_later => self.board.state(State::Draining),
            _ => {}
        }
        is_later
    }

    #[inline]
    fn has_reached(&self, stage: Stage) -> bool {
        self.stage.load(Ordering::Relaxed) >= stage as u8
    }

    /// No connection is accepted any more.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.has_reached(Stage::Draining)
    }

    /// No call is begun any more.
    #[inline]
    pub fn is_stopping(&self) -> bool {
        self.has_reached(Stage::Stopping)
    }

    /// Calls under way are told to end from now on.
    pub fn end_calls(&self) {
        self.ends_calls.store(true, Ordering::Relaxed);
    }

    pub fn ends_calls(&self) -> bool {
        self.ends_calls.load(Ordering::Relaxed)
    }

    /// The monitor is to leave.
    pub fn is_closed(&self) -> bool {
        self.has_reached(Stage::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Word;

    #[test]
    fn a_life_only_moves_on_and_may_skip_stages() {
        let board = Scoreboard::private(1);
        let life = Lifecycle::new(board);
        assert!(life.reach(Stage::Serving));
        assert_eq!(board.get(Word::State), State::Serving as u64);
        assert!(!life.is_draining());
        assert!(life.reach(Stage::Stopping));
        assert!(life.is_draining() && life.is_stopping() && !life.is_closed());
        assert!(!life.reach(Stage::Draining), "a worker that stops does not begin to drain");
        assert_eq!(board.get(Word::State), State::Serving as u64);
        assert!(life.reach(Stage::Closed) && !life.reach(Stage::Closed));
        assert!(life.is_closed());
    }
}
