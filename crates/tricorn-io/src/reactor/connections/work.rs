//! What connections have still to do, what is held back, and how much may be done before the next look at the events.
use super::held::HeldAnswers;
use crate::clock;
use crate::config;
use crate::stream::Stream;
use crate::sys::poll::Token;
use crate::turn::Turn;
use std::collections::VecDeque;

/// Who runs the reactor decides what may be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runner {
    /// An app thread: the first complete request is its own.
    AppThread,
    /// The monitor: requests are read and queued, none is started.
    Monitor,
}

#[derive(Debug)]
pub struct Work {
    /// Connections to be looked at again without an event: more to read, or pipelined requests.
    again: VecDeque<Token>,
    /// Of those connections, which always have more: since the last look at the events.
    turn: Turn,
    /// The turn is over: those connections wait until the events have been looked at again.
    is_late: bool,
    /// Bytes that may be read and sent until then.
    bytes: usize,
    /// Steps that may be taken before the baton is let go of.
    steps: u32,
    /// The time, if it was read in this hold of the baton, and nothing was sent or read since; 0: it was not.
    cached_now: u64,
    /// Jobs at disks may have outcomes.
    disk_news: bool,
    runner: Runner,
    held: HeldAnswers,
}

impl Work {
    pub fn new() -> Work {
        Work {
            again: VecDeque::new(),
            turn: Turn::default(),
            is_late: false,
            bytes: config::TURN_BYTES,
            steps: config::STEPS,
            cached_now: 0,
            disk_news: false,
            runner: Runner::Monitor,
            held: HeldAnswers::default(),
        }
    }

    /// The events were looked at: another turn begins.
    pub fn begin_turn(&mut self, now: u64) {
        (self.turn, self.is_late, self.bytes) = (Turn::begin(now), false, config::TURN_BYTES);
    }

    /// The time was read.
    #[inline]
    pub fn set_now(&mut self, now: u64) {
        self.cached_now = now;
    }

    /// Something is done that takes a while.
    #[inline]
    pub fn invalidate_now(&mut self) {
        self.cached_now = 0;
    }

    /// The time at which something was done that took a while. A reading costs 20 ns, and requests have a few.
    #[inline]
    pub fn time(&mut self) -> u64 {
        match std::mem::take(&mut self.cached_now) {
            0 => clock::now(),
            now => now,
        }
    }

    pub fn begin(&mut self, runner: Runner) {
        self.runner = runner;
    }

    #[inline]
    pub fn runner(&self) -> Runner {
        self.runner
    }

    /// A connection has more to do than it may do now. `now`: the time.
    pub fn add_again(&mut self, token: Token, now: u64) {
        self.again.push_back(token);
        self.is_late |= self.turn.is_over(now);
    }

    /// A connection that is looked at again in this turn.
    #[inline]
    pub fn next_again(&mut self) -> Option<Token> {
        if self.goes_on() { self.again.pop_front() } else { None }
    }

    /// Connections are to be looked at again, in this turn or the next.
    #[inline]
    pub fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    /// Connections may be looked at again before the events are.
    #[inline]
    fn goes_on(&self) -> bool {
        self.bytes > 0 && !self.is_late
    }

    /// So many bytes of the turn are used up.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
        self.steps = self.steps.saturating_sub((bytes / config::STEP_BYTES) as u32);
    }

    /// Most bytes of a connection that are moved at a time.
    #[inline]
    pub fn burst(stream: &Stream) -> usize {
        if stream.is_secured() { config::SECURED_BURST } else { config::READ_BURST }
    }

    /// So many bytes of a connection were moved.
    #[inline]
    pub fn moved(&mut self, stream: &Stream, bytes: usize) {
        self.spend(stream.effort(bytes));
    }

    /// No more bytes are to be moved, in this turn or before the baton is let go of.
    #[inline]
    pub fn is_turn_over(&self) -> bool {
        self.bytes == 0 || self.steps == 0
    }

    /// The baton was taken.
    #[inline]
    pub fn begin_hold(&mut self) {
        self.steps = config::STEPS;
        self.invalidate_now();
    }

    /// Whether one more step may be taken before the baton is let go of.
    #[inline]
    pub fn takes_step(&mut self) -> bool {
        let may = self.steps > 0;
        self.steps = self.steps.saturating_sub(1);
        may
    }

    /// What was done took so many steps.
    #[inline]
    pub fn spend_steps(&mut self, steps: u32) {
        self.steps = self.steps.saturating_sub(steps);
    }

    /// The holder of the baton has done what it may.
    #[inline]
    pub fn is_hold_over(&self) -> bool {
        self.steps == 0
    }

    pub fn note_disk_news(&mut self, any: bool) {
        self.disk_news = any;
    }

    #[inline]
    pub fn has_disk_news(&self) -> bool {
        self.disk_news
    }

    /// Holds one more answer back. Whether all are to be sent now.
    pub fn hold(&mut self, token: Token, now: u64) -> bool {
        self.held.hold(token, now)
    }

    #[inline]
    pub fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    #[inline]
    pub fn next_held(&mut self) -> Option<Token> {
        self.held.next()
    }

    /// Something can be done before the next look at the events.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.has_again() && self.goes_on() || self.disk_news || !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::TURN;

    #[test]
    fn what_does_not_fit_the_turn_waits_for_the_next() {
        let mut work = Work::new();
        work.begin_turn(5 * TURN);
        work.add_again(7, 5 * TURN);
        work.spend(config::TURN_BYTES + 1);
        assert!(work.is_turn_over() && work.has_again() && !work.has_any());
        assert_eq!(work.next_again(), None);
        work.begin_turn(6 * TURN);
        assert!(work.has_any());
        assert_eq!((work.next_again(), work.has_again()), (Some(7), false));
    }

    #[test]
    fn a_connection_that_always_has_more_waits_for_the_events_after_a_turn() {
        let mut work = Work::new();
        work.begin_turn(5 * TURN);
        work.add_again(7, 6 * TURN);
        assert_eq!(work.next_again(), Some(7));
        work.add_again(7, 6 * TURN + 1);
        assert!(work.has_again() && !work.has_any() && !work.is_turn_over(), "events go on");
        assert_eq!(work.next_again(), None);
        work.begin_turn(7 * TURN);
        assert_eq!(work.next_again(), Some(7));
    }

    #[test]
    fn bytes_and_steps_use_up_the_same_hold() {
        let mut work = Work::new();
        work.spend((config::STEPS as usize - 2) * config::STEP_BYTES);
        assert!(work.takes_step() && !work.is_turn_over() && work.takes_step());
        assert!(work.is_hold_over() && work.is_turn_over() && !work.takes_step());
        work.begin_turn(0);
        work.add_again(7, 0);
        assert!(work.has_any(), "for the next holder");
        work.begin_hold();
        assert!(!work.is_hold_over() && work.takes_step());
    }

    #[test]
    fn a_time_is_used_once_and_in_the_same_hold() {
        let mut work = Work::new();
        work.set_now(7);
        assert_eq!(work.time(), 7);
        assert!(work.time() > 7, "it took a while");
        for goes_by in [Work::begin_hold, Work::invalidate_now] {
            work.set_now(7);
            goes_by(&mut work);
            assert!(work.time() > 7);
        }
    }
}
