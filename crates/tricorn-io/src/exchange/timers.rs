//! The deadlines of one exchange on an event loop: a slot for each kind of wait.
//!
//! ```text
//!             Body      Room      HalfClose  Ping
//!   slots   [ t1     |  t2     |  -        | -   ]     set, stop: one slot, never another
//!               └────────┴── earliest ──▶ armed ──▶ the reactor's wheel (one deadline per connection)
//! ```
//!
//! Rules: a wait sets and stops its own slot only. The wheel is told of an earlier deadline at once, of a later one when the
//! armed one has come: stopping a timer, and moving it on, cost a store.
//! Nothing is armed for an exchange that never waits.

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timer {
    /// More of the request's body.
    Body,
    /// Room for output: the client has to take some of it.
    Room,
    /// The end of a client that closed its sending side.
    HalfClose,
    /// What a WebSocket does at its time: a ping, the answer to one, the answer to a Close frame. Or the comment in a silent
    /// event stream.
    Ping,
}

const COUNT: usize = 4;

/// Monotonic nanoseconds; 0 stands for "not set".
#[derive(Debug, Clone, Copy, Default)]
pub struct Timers {
    slots: [u64; COUNT],
    armed: u64,
}

/// The timers that have come, all at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Due(u8);

impl Due {
    pub fn has(self, timer: Timer) -> bool {
        self.0 & 1 << timer as u8 != 0
    }
}

impl Timers {
    /// Sets a timer, or moves it. The time for which the wheel is to be armed, if that is earlier than before.
    #[must_use]
    pub fn set(&mut self, timer: Timer, at: u64) -> Option<u64> {
        self.slots[timer as usize] = at.max(1);
        self.arm()
    }

    pub fn stop(&mut self, timer: Timer) {
        self.slots[timer as usize] = 0;
    }

    /// Takes the timers that have come by now, after the armed time. And the time for which the wheel is to be armed again.
    #[must_use]
    pub fn expire(&mut self, now: u64) -> (Due, Option<u64>) {
        self.armed = 0;
        let mut due = 0;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if (1..=now).contains(slot) {
                *slot = 0;
                due |= 1 << index;
            }
        }
        (Due(due), self.arm())
    }

    /// The earliest timer, if the wheel does not know of one as early.
    fn arm(&mut self) -> Option<u64> {
        let earliest = self.slots.iter().copied().filter(|at| *at > 0).min()?;
        if self.armed > 0 && self.armed <= earliest {
            return None;
        }
        self.armed = earliest;
        Some(earliest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_one_wait_does_not_end_another() {
        let mut timers = Timers::default();
        assert_eq!(timers.set(Timer::Room, 30), Some(30));
        assert_eq!(timers.set(Timer::Body, 20), Some(20));
        timers.stop(Timer::Body);
        let (due, next) = timers.expire(20);
        assert_eq!((due, next), (Due::default(), Some(30)));
        let (due, next) = timers.expire(30);
        assert!(due.has(Timer::Room) && !due.has(Timer::Body));
        assert_eq!(next, None);
    }

    #[test]
    fn only_an_earlier_deadline_is_told_to_the_wheel() {
        let mut timers = Timers::default();
        assert_eq!(timers.set(Timer::Body, 20), Some(20));
        assert_eq!(timers.set(Timer::Room, 30), None);
        assert_eq!(timers.set(Timer::Body, 25), None, "moved on");
        assert_eq!(timers.set(Timer::Ping, 20), None, "as early as the armed one");
        assert_eq!(timers.set(Timer::Ping, 10), Some(10));
    }

    #[test]
    fn what_comes_at_once_is_taken_at_once_and_only_once() {
        let mut timers = Timers::default();
        for (timer, at) in [(Timer::Body, 10), (Timer::HalfClose, 15), (Timer::Ping, 20), (Timer::Room, 21)] {
            let _ = timers.set(timer, at);
        }
        let (due, next) = timers.expire(20);
        assert_eq!([Timer::Body, Timer::HalfClose, Timer::Ping].map(|timer| due.has(timer)), [true; 3]);
        assert!(!due.has(Timer::Room));
        assert_eq!(next, Some(21));
        assert_eq!(timers.expire(20), (Due::default(), Some(21)), "armed again however often it is asked");
    }

    #[test]
    fn a_wheel_that_comes_for_nothing_is_armed_for_what_is_left() {
        let mut timers = Timers::default();
        let _ = timers.set(Timer::Body, 10);
        timers.stop(Timer::Body);
        assert_eq!(timers.set(Timer::Body, 40), None);
        assert_eq!(timers.expire(10), (Due::default(), Some(40)));
        timers.stop(Timer::Body);
        assert_eq!(timers.expire(40), (Due::default(), None));
    }

    #[test]
    fn a_time_of_zero_is_one_that_has_come() {
        let mut timers = Timers::default();
        assert_eq!(timers.set(Timer::Ping, 0), Some(1));
        assert!(timers.expire(5).0.has(Timer::Ping));
    }
}
