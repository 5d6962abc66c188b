//! Calls over `request_timeout`: who was told, so that an exception meant for one call never meets the next.
//!
//! The monitor marks the call (`watchdog.rs`). Its thread sees that in the handler of a signal if it is the main thread
//! ([`Engine::is_late`]); in other threads the main thread raises the exception ([`Engine::raise_in_late_calls`]). When the
//! application has returned its thread says so ([`Engine::conclude_call`]): from then on nothing is raised, and what was
//! raised too late to be seen is taken back.
//!
//! Everything changes under the baton: a call is marked, raised in and concluded as the call it was when it was looked at.
use crate::engine::Engine;
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
}

impl Lateness {
    /// A call begins.
    pub fn reset(&self) {
        self.call.store(NOT_LATE, Relaxed);
        self.raised.store(false, Relaxed);
    }

    /// Whether the call is late now that was not and is not concluded.
    pub fn mark(&self, call: u32) -> bool {
        self.call.compare_exchange(NOT_LATE, call, Relaxed, Relaxed).is_ok()
    }

    /// Whether it is the call with this number that is late. Between two calls the number is even: there is none.
    pub fn is(&self, call: u32) -> bool {
        !call.is_multiple_of(2) && self.call.load(Relaxed) == call
    }
}

impl Engine {
    /// Seconds an application call may take; 0: as long as it likes.
    pub fn request_timeout(&self) -> f64 {
        self.config().request_timeout as f64 / crate::clock::SECOND as f64
    }

    /// Whether the call that the main thread is at is late, and the application at it still.
    pub fn is_late(&self) -> bool {
        let slot = self.shared.slots.get(self.shared.main_slot.load(Relaxed));
        slot.is_some_and(|slot| slot.lateness.is(slot.calls()))
    }

    /// Calls `raise` with the slot of every late call that was not raised in yet, the main thread's excepted. It holds the
    /// baton, and the caller the GIL: `raise` must not run Python.
    pub fn raise_in_late_calls(&self, mut raise: impl FnMut(usize) -> bool) {
        if self.config().request_timeout == 0 {
            return;
        }
        let shared = &*self.shared;
        let guard = shared.baton.take();
        let main = shared.main_slot.load(Relaxed);
        for (index, slot) in shared.slots.iter().enumerate() {
            if index != main && slot.lateness.is(slot.calls()) && !slot.lateness.raised.load(Relaxed) {
                slot.lateness.raised.store(raise(index), Relaxed);
            }
        }
        drop(guard);
    }

    /// The application has returned: whether an exception was raised in this thread that it may not have seen.
    #[inline]
    pub fn conclude_call(&self, slot: usize) -> bool {
        if self.config().request_timeout == 0 {
            return false;
        }
        let shared = &*self.shared;
        let guard = shared.baton.take();
        let lateness = &shared.slots[slot].lateness;
        lateness.call.store(CONCLUDED, Relaxed);
        let raised = lateness.raised.swap(false, Relaxed);
        drop(guard);
        raised
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
    }
}
