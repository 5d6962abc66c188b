//! The thread that keeps the deadlines, while it sleeps; and what wakes it for an earlier one.
//!
//! ```text
//!   worker class of threads     the app thread in `Engine::wait`     woken through the poller (`kick`)
//!   under a hub                 the monitor, beside the hub          woken by its `alarm`
//! ```
//!
//! It sleeps until the deadline that was the earliest when it lay down. Any other thread may set an earlier one meanwhile: that
//! wakes it. A request on a kept connection does not: its idle deadline is as far away as those that the sleeper waits for.
use super::until::Until;
use crate::sys::wake::Alarm;
use std::sync::Arc;

#[derive(Debug)]
pub struct Sleeper {
    /// When it wakes by itself (monotonic nanoseconds).
    until: Until,
    alarm: Arc<Alarm>,
}

impl Sleeper {
    pub fn new(alarm: Arc<Alarm>) -> Sleeper {
        Sleeper { until: Until::new(), alarm }
    }

    /// To be called before the deadlines are looked at.
    pub fn lie_down(&self) {
        self.until.lie_down();
    }

    /// `None`: until it is woken.
    pub fn sleep_until(&self, at: Option<u64>) {
        self.until.sleep_until(at);
    }

    pub fn get_up(&self) {
        self.until.get_up();
    }

    /// Whether it sleeps beyond that time.
    pub fn oversleeps(&self, due: u64) -> bool {
        self.until.is_beyond(due)
    }

    /// Something is to be done at that time: wakes it if it sleeps beyond.
    #[inline]
    pub fn wake_by(&self, due: u64) {
        if self.until.wake_by(due) {
            self.alarm.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::ready;
    use rustix::event::PollFlags;

    fn rings(alarm: &Alarm) -> bool {
        let rang = !ready(alarm.as_fd(), PollFlags::IN, 0).is_empty();
        alarm.clear();
        rang
    }

    #[test]
    fn only_an_earlier_deadline_wakes_and_only_once() {
        let alarm = Arc::new(Alarm::new().expect("an eventfd"));
        let sleeper = Sleeper::new(alarm.clone());
        sleeper.wake_by(5);
        assert!(!rings(&alarm), "it is awake");
        sleeper.lie_down();
        sleeper.sleep_until(Some(100));
        for (due, wakes) in [(200, false), (100, false), (99, true), (99, false), (150, false), (50, true)] {
            sleeper.wake_by(due);
            assert_eq!(rings(&alarm), wakes, "{due}");
        }
        sleeper.get_up();
        sleeper.wake_by(1);
        assert!(!rings(&alarm));
    }

    #[test]
    fn a_deadline_set_while_it_lies_down_is_not_missed() {
        let alarm = Arc::new(Alarm::new().expect("an eventfd"));
        let sleeper = Sleeper::new(alarm.clone());
        sleeper.lie_down();
        sleeper.wake_by(50);
        sleeper.sleep_until(None);
        assert!(rings(&alarm), "the sleep ends at once");
    }
}
