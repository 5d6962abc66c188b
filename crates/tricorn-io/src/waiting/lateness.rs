//! Calls over `request_timeout`, calls that an operator has cancelled, and those that a worker which leaves does not wait
//! for: who was told, so that an exception meant for one call never meets the next.
//!
//! The monitor marks the call (`monitor/watchdog.rs`). Its thread sees that in the handler of a signal if it is the main thread
//! ([`crate::Engine::is_late`]); in other threads the main thread raises the exception
//! ([`crate::Engine::raise_in_late_calls`]). When the application has returned its thread says so
//! ([`crate::Engine::conclude_call`]): from then on nothing is raised, and what was raised too late to be seen is taken back.
//!
//! Everything changes under the baton: a call is marked, raised in and concluded as the call it was when it was looked at.
//! Without `request_timeout` only a thread with the GIL marks and raises, and a call is concluded with the GIL alone.
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32};

/// A call is neither marked nor concluded. Calls have odd numbers.
const NOT_LATE: u32 = 0;
const CONCLUDED: u32 = 2;

/// What is known of the call that one app thread is at.
#[derive(Debug, Default)]
pub struct Lateness {
    call: AtomicU32,
    raised: AtomicBool,
    /// It is an operator who wants it to end.
    cancelled: AtomicBool,
}

impl Lateness {
    /// A call begins.
    #[inline]
    pub fn reset(&self) {
        self.call.store(NOT_LATE, Relaxed);
        self.raised.store(false, Relaxed);
        self.cancelled.store(false, Relaxed);
    }

    /// Whether the call is late now that was not and is not concluded.
    pub fn mark(&self, call: u32) -> bool {
        self.call.compare_exchange(NOT_LATE, call, Relaxed, Relaxed).is_ok()
    }

    /// The same for a server that leaves, if the thread is inside a call.
    pub fn end(&self, call: u32) -> bool {
        !call.is_multiple_of(2) && self.mark(call)
    }

    /// The same, for an operator.
    pub fn cancel(&self, call: u32) -> bool {
        let marked = self.mark(call);
        if marked {
            self.cancelled.store(true, Relaxed);
        }
        marked
    }

    /// Whether an operator has cancelled the last call, concluded or not.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// An exception was raised in the call.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Relaxed)
    }

    pub fn set_raised(&self, raised: bool) {
        self.raised.store(raised, Relaxed);
    }

    /// The application has returned: whether an exception was raised.
    #[inline]
    pub fn conclude(&self) -> bool {
        self.call.store(CONCLUDED, Relaxed);
        let raised = self.is_raised();
        if raised {
            self.set_raised(false);
        }
        raised
    }

    /// Whether it is the call with this number that is late. Between two calls the number is even: there is none.
    pub fn is(&self, call: u32) -> bool {
        !call.is_multiple_of(2) && self.call.load(Relaxed) == call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_running_call_that_was_marked_and_not_concluded_is_late() {
        let lateness = Lateness::default();
        for number in 0..4 {
            assert!(!lateness.is(number));
        }
        assert!(lateness.mark(1) && lateness.is(1));
        assert!(!lateness.mark(1), "once");
        assert!(!lateness.is(2) && !lateness.is(3));
        lateness.call.store(CONCLUDED, Relaxed);
        assert!(!lateness.mark(1) && !lateness.is(1) && !lateness.is(2));
        lateness.reset();
        assert!(!lateness.is(3) && lateness.mark(3) && lateness.is(3));
        assert!(!lateness.end(3), "late already");
        lateness.reset();
        assert!(!lateness.end(4), "between two calls");
        assert!(lateness.end(5) && !lateness.end(5) && !lateness.mark(5));
        lateness.reset();
        assert!(!lateness.is_cancelled());
    }

    #[test]
    fn a_call_is_cancelled_once_and_not_when_it_is_late_already_and_the_next_call_is_not() {
        let lateness = Lateness::default();
        assert!(lateness.cancel(1) && lateness.is(1) && lateness.is_cancelled());
        assert!(!lateness.cancel(1) && !lateness.mark(1));
        lateness.conclude();
        assert!(lateness.is_cancelled() && !lateness.cancel(1), "for the log, which is told of it after the end");
        lateness.reset();
        assert!(!lateness.is_cancelled() && lateness.mark(3));
        assert!(!lateness.cancel(3) && !lateness.is_cancelled());
    }
}
