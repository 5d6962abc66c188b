//! How long a call may take, and what its thread does about it (`waiting/lateness.rs`, `waiting/progress.rs`).
use super::Engine;
use crate::clock::{self, SECOND};
use crate::exchange::Exchange;

impl Engine {
    /// The application has yielded or written something: it is not stuck.
    pub fn progressed(&self, exchange: &Exchange) {
        self.shared.waiting.slots[exchange.slot].progress.made(clock::now());
    }

    /// Seconds an application call may take; 0: as long as it likes.
    pub fn request_timeout(&self) -> f64 {
        self.config().request_timeout as f64 / SECOND as f64
    }

    /// Whether the call that the main thread is at is late, and the application at it still.
    pub fn is_late(&self) -> bool {
        self.late_main_slot().is_some()
    }

    /// The slot of that call.
    pub fn late_main_slot(&self) -> Option<usize> {
        self.shared.waiting.main_slot().filter(|slot| self.is_late_at(*slot))
    }

    /// Whether the last call of this slot was ended by an operator.
    pub fn was_cancelled(&self, slot: usize) -> bool {
        self.shared.waiting.slots.get(slot).is_some_and(|slot| slot.lateness.is_cancelled())
    }

    /// Calls `raise` with the slot of every late call that was not raised in yet, the main thread's excepted. It holds the
    /// baton, and the caller the GIL: `raise` must not run Python.
    pub fn raise_in_late_calls(&self, mut raise: impl FnMut(usize) -> bool) {
        if self.config().request_timeout == 0 {
            return;
        }
        let shared = &*self.shared;
        let guard = shared.baton.take();
        let main = shared.waiting.main_slot();
        for (index, slot) in shared.waiting.slots.iter().enumerate() {
            if Some(index) != main && slot.lateness.is(slot.calls()) && !slot.lateness.is_raised() {
                slot.lateness.set_raised(raise(index));
            }
        }
        drop(guard);
    }

    /// Calls `raise` with the slot of every call under way, the main thread's excepted, unless something was raised in it
    /// before. Returns how many it was raised in. The same conditions hold for `raise`.
    pub fn end_calls(&self, mut raise: impl FnMut(usize) -> bool) -> usize {
        let shared = &*self.shared;
        let guard = shared.baton.take();
        let main = shared.waiting.main_slot();
        shared.life.end_calls();
        let mut ended = 0;
        for (index, slot) in shared.waiting.slots.iter().enumerate() {
            if Some(index) != main && slot.lateness.end(slot.calls()) && raise(index) {
                slot.lateness.set_raised(true);
                ended += 1;
            }
        }
        drop(guard);
        ended
    }

    /// Whether the worker leaves and does not wait for calls (`end_calls`).
    pub fn ends_calls(&self) -> bool {
        self.shared.life.ends_calls()
    }

    /// The application has returned: whether an exception was raised in this thread that it may not have seen.
    ///
    /// Without `request_timeout` the monitor marks nothing, and what raises holds the GIL, as the caller does.
    #[inline]
    pub fn conclude_call(&self, slot: usize) -> bool {
        let shared = &*self.shared;
        let guard = (self.config().request_timeout > 0).then(|| shared.baton.take());
        let raised = shared.waiting.slots[slot].lateness.conclude();
        drop(guard);
        raised
    }
}
