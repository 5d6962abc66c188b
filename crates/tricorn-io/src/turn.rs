//! How long one connection may keep a thread, however much more it has that is ready at once.
//!
//! What never ends by itself (messages of a client that does not pause, pipelined requests, a response whose client reads as fast as it is
//! written) gets a turn of about [`TURN`]; then everything else that is ready comes first. The loops that ask:
//!
//! * the reactor: connections with more to do wait for the next look at the events once the last one is a turn old (`reactor/connections/work.rs`);
//! * a WebSocket that is read (`websocket.rs`);
//! * the servers of event loops and hubs, between two requests or events;
//! * what calls read and send under a loop without ever having to wait ([`Streak`]).
use crate::clock::{self, MILLI};
use crate::config::{STEP_BYTES, STEPS};

/// The length of a turn in nanoseconds.
pub const TURN: u64 = MILLI;

/// Requests and events that a loop's server takes between two looks at the clock.
pub const IN_A_ROW: u32 = 16;

/// One turn, which has begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turn {
    end: u64,
}

impl Turn {
    #[inline]
    pub fn begin(now: u64) -> Turn {
        Turn { end: now.saturating_add(TURN) }
    }

    #[inline]
    pub fn is_over(self, now: u64) -> bool {
        now > self.end
    }
}

/// What calls do on a loop without waiting. An awaitable that is ready at once gives the loop to no other callback, so a streak that is
/// longer than a turn has to be interrupted, whichever call notices that.
///
/// Work is counted in the reactor's steps, and the clock is read at each [`STEPS`] of them: a short request never reads it. Whether the
/// loop has turned meanwhile, for a wait of the application's own, is not known; an interruption without need costs a call's way through
/// the loop, at most once in a turn.
#[derive(Debug, Default)]
pub struct Streak {
    steps: u32,
    turn: Option<Turn>,
    is_over: bool,
}

impl Streak {
    /// One more thing was done, which moved so many bytes.
    #[inline]
    pub fn goes_on(&mut self, bytes: usize) {
        self.steps = self.steps.saturating_add(1 + (bytes / STEP_BYTES) as u32);
        if self.steps >= STEPS {
            self.look(clock::now());
        }
    }

    fn look(&mut self, now: u64) {
        self.steps = 0;
        self.is_over = self.turn.get_or_insert_with(|| Turn::begin(now)).is_over(now);
    }

    /// Everything else is to come first now.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it is over; then another one begins, since the caller gives way.
    #[inline]
    pub fn gives_way(&mut self) -> bool {
        let is_over = self.is_over;
        if is_over {
            *self = Streak::default();
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streak_is_over_when_both_its_steps_and_its_turn_are() {
        let mut streak = Streak::default();
        streak.look(5 * TURN);
        streak.look(6 * TURN);
        assert!(!streak.is_over() && !streak.gives_way());
        streak.look(6 * TURN + 1);
        assert!(streak.is_over() && streak.gives_way());
        streak.look(9 * TURN);
        assert!(!streak.is_over(), "a new one begins");
    }

    #[test]
    fn the_clock_is_read_once_in_so_many_steps_or_bytes() {
        let mut streak = Streak::default();
        for _ in 1..STEPS {
            streak.goes_on(STEP_BYTES - 1);
        }
        assert!(streak.turn.is_none(), "not looked at yet");
        streak.goes_on(0);
        assert!(streak.turn.is_some() && streak.steps == 0);
        let mut streak = Streak::default();
        streak.goes_on(STEPS as usize * STEP_BYTES);
        assert!(streak.turn.is_some(), "a large piece is as much as many small ones");
    }
}
