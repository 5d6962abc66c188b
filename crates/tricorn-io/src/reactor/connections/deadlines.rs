//! Which connections are to be looked at because time has passed. The thread that waits is woken in time.
use super::lifetime::{Lifetime, NEVER};
use super::phase::{Change, Phase};
use super::timeouts::Timeouts;
use crate::config;
use crate::reactor::wheel::{Tick, Wheel, tick_at, time_of};
use crate::sys::poll::Token;
use crate::waiting::sleeper::Sleeper;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// The phase of a connection, and until when it may last.
#[derive(Debug, Default)]
pub(super) struct TimedPhase {
    phase: Phase,
    deadline: Tick,
    /// The earliest tick at which the wheel brings this connection up; 0: never.
    wheel_at: Tick,
}

impl TimedPhase {
    #[inline]
    pub fn get(&self) -> &Phase {
        &self.phase
    }

    /// For what the phase holds. Another phase is entered by [`TimedPhase::enter`].
    #[inline]
    pub fn get_mut(&mut self) -> &mut Phase {
        &mut self.phase
    }

    /// Goes on to the next phase, and leaves the deadline as it is. See [`Deadlines::enter`].
    #[inline]
    pub fn enter(&mut self, change: Change) {
        self.phase.enter(change);
    }

    #[inline]
    pub fn deadline(&self) -> Tick {
        self.deadline
    }
}

#[derive(Debug)]
pub(super) struct Deadlines {
    timeouts: Timeouts,
    lifetime: Lifetime,
    wheel: Wheel,
    /// Waits for the wheel.
    sleeper: Arc<Sleeper>,
    /// Those that have fired and were not acted upon.
    fired: VecDeque<(Tick, Token)>,
    /// Where in the table the connections begin whose idle time is not yet that of a worker that leaves.
    to_shorten: Option<usize>,
}

impl Deadlines {
    pub fn new(timeouts: Timeouts, lifetime: Lifetime, now: u64, sleeper: Arc<Sleeper>) -> Deadlines {
        Deadlines { timeouts, lifetime, wheel: Wheel::new(now), sleeper, fired: VecDeque::new(), to_shorten: None }
    }

    #[inline]
    pub fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    #[inline]
    pub fn lifetime(&mut self) -> &mut Lifetime {
        &mut self.lifetime
    }

    /// The worker leaves: what is set from now on is sooner, and what was set for idle connections is to be.
    pub fn drain(&mut self) {
        self.timeouts.drain();
        self.to_shorten = Some(0);
    }

    /// The next places of a table of so many, whose idle connections are to have the time of a worker that leaves.
    pub fn take_to_shorten(&mut self, places: usize) -> Range<usize> {
        let Some(start) = self.to_shorten.take() else { return 0..0 };
        let end = places.min(start + config::SWEEP);
        self.to_shorten = (end < places).then_some(end);
        start..end
    }

    /// The baton is to be let go of: idle connections from this place on wait for the next holder.
    pub fn leave_to_shorten(&mut self, place: usize) {
        self.to_shorten = Some(place);
    }

    /// Every connection that was idle when the worker began to leave has been looked at.
    pub fn has_shortened(&self) -> bool {
        self.timeouts.is_draining() && self.to_shorten.is_none()
    }

    /// A connection goes on to its next phase, whose deadline counts from now on.
    #[inline]
    pub fn enter(&mut self, token: Token, phase: &mut TimedPhase, change: Change, now: u64) {
        let until = self.timeouts.after(&change, now);
        phase.enter(change);
        if let Some(at) = until {
            self.set(token, phase, at);
        }
    }

    /// A connection is kept after a reply: it is idle until its time for that is over, or its age (`Lifetime::draw`). One that was
    /// promised to stay has the time of a request that is on its way.
    #[inline]
    pub fn keep(&mut self, token: Token, phase: &mut TimedPhase, last_from: Tick, now: u64) {
        self.enter(token, phase, Change::Kept, now);
        if last_from != NEVER {
            let at = time_of(last_from).max(now + config::LINGER);
            if tick_at(at) < phase.deadline {
                self.set(token, phase, at);
            }
        }
    }

    /// Moves a connection's deadline; only an earlier one than the wheel knows of costs more than a store.
    #[inline]
    pub fn set(&mut self, token: Token, phase: &mut TimedPhase, at: u64) {
        let due = tick_at(at);
        phase.deadline = due;
        if phase.wheel_at == 0 || due < phase.wheel_at {
            phase.wheel_at = self.wheel.insert(token, due);
            self.sleeper.wake_by(time_of(phase.wheel_at));
        }
    }

    /// For something else than a connection: the thread that waits for events comes by then.
    pub fn wake_by(&self, at: u64) {
        self.sleeper.wake_by(at);
    }

    /// Sees what has fired.
    pub fn advance(&mut self, now: u64) {
        self.wheel.advance(now, &mut self.fired);
    }

    /// The next that has fired.
    pub fn next_fired(&mut self) -> Option<(Tick, Token)> {
        let next = self.fired.pop_front();
        if next.is_none() && self.fired.capacity() > 0 {
            self.fired = VecDeque::new();
        }
        next
    }

    /// An entry has come out of the wheel: whether its connection's deadline has passed. It has not if an earlier entry was made
    /// since, or if the deadline was moved; and it does not count while the connection waits for the application.
    pub fn is_due(&mut self, token: Token, phase: &mut TimedPhase, tick: Tick) -> bool {
        if phase.wheel_at != tick {
            return false;
        }
        phase.wheel_at = 0;
        let counts = phase.phase.has_deadline();
        if counts && phase.deadline > tick {
            phase.wheel_at = self.wheel.insert(token, phase.deadline);
            return false;
        }
        counts // else it is set anew when it counts again
    }

    /// For how long nothing fires.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        if !self.fired.is_empty() || self.to_shorten.is_some() {
            return Some(0);
        }
        self.wheel.until_next(now)
    }
}
