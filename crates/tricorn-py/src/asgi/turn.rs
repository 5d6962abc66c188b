//! When a task that reads a body gives the event loop to others.
use tricorn_io::clock::MILLI;

/// How long pieces are given to a task one after another.
const TURN: u64 = MILLI;

/// A body that comes as fast as it is read never makes its task wait: the task gives the loop to others now and then.
#[derive(Debug, Default)]
pub struct Fairness {
    /// When the first of these pieces was read; 0: the task has waited since.
    began: u64,
    /// The task does not get the next piece before others had their turn.
    is_over: bool,
}

impl Fairness {
    /// Another piece was read.
    pub fn read(&mut self, now: u64) {
        if self.began == 0 {
            self.began = now;
        }
        self.is_over = now.saturating_sub(self.began) > TURN;
    }

    /// The task waits.
    pub fn end(&mut self) {
        *self = Fairness::default();
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }
}
