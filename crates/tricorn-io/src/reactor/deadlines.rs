//! When connections are to be looked at because time has passed. The thread that waits is woken in time.
use super::conn::Conn;
use super::wheel::{Tick, Wheel, tick_at, time_of};
use crate::sys::poll::Token;
use crate::waiting::sleeper::Sleeper;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Deadlines {
    wheel: Wheel,
    /// Waits for the wheel.
    sleeper: Arc<Sleeper>,
    /// Room for those that have fired.
    fired: Vec<(Tick, Token)>,
}

impl Deadlines {
    pub fn new(now: u64, sleeper: Arc<Sleeper>) -> Deadlines {
        Deadlines { wheel: Wheel::new(now), sleeper, fired: Vec::new() }
    }

    /// Moves a connection's deadline; only an earlier one than the wheel knows of costs more than a store.
    #[inline]
    pub fn set(&mut self, token: Token, conn: &mut Conn, at: u64) {
        let due = tick_at(at);
        conn.deadline = due;
        if conn.wheel_at == 0 || due < conn.wheel_at {
            conn.wheel_at = self.wheel.insert(token, due);
            self.sleeper.wake_by(time_of(conn.wheel_at));
        }
    }

    /// For something else than a connection: whoever waits comes by then.
    pub fn wake_by(&self, at: u64) {
        self.sleeper.wake_by(at);
    }

    /// Takes all that have fired. To be given back when they are done with.
    pub fn take_fired(&mut self, now: u64) -> Vec<(Tick, Token)> {
        let mut fired = std::mem::take(&mut self.fired);
        self.wheel.advance(now, &mut fired);
        fired
    }

    pub fn give_back(&mut self, mut fired: Vec<(Tick, Token)>) {
        fired.clear();
        self.fired = fired;
    }

    /// An entry has come out of the wheel: whether its connection's deadline has passed. It has not if an earlier entry was made
    /// since, or if the deadline was moved; and it does not count (`counts`) while the connection waits for the application.
    pub fn is_due(&mut self, token: Token, conn: &mut Conn, tick: Tick, counts: bool) -> bool {
        if conn.wheel_at != tick {
            return false;
        }
        conn.wheel_at = 0;
        if counts && conn.deadline > tick {
            conn.wheel_at = self.wheel.insert(token, conn.deadline);
            return false;
        }
        counts // else it is set anew when it counts again
    }

    /// For how long nothing fires.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        self.wheel.until_next(now)
    }
}
