//! Slots: what the others see of each call under way, and the one of each app thread to be parked at.
use super::lateness::Lateness;
use super::mark::Mark;
use super::progress::Progress;
use crate::exchange::output::Watched;
use crate::sys::signals::{self, AtomicThreadId, ThreadId};
use std::ops::Index;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// The slots of calls. A thread has its own; under a hub a call has one while it lasts, and as few are made as calls were
/// ever under way at once.
pub struct Slots {
    places: Box<[OnceLock<Box<Slot>>]>,
    /// No slot from here on was ever taken.
    used: AtomicUsize,
}

impl Slots {
    pub fn new(most: usize) -> Slots {
        Slots { places: (0..most.max(1)).map(|_| OnceLock::new()).collect(), used: AtomicUsize::new(0) }
    }

    /// Makes all of them, so that a position of `iter` is that of a slot.
    pub fn all(most: usize) -> Slots {
        let slots = Slots::new(most);
        for slot in 0..slots.len() {
            slots.get(slot);
        }
        slots
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn get(&self, slot: usize) -> Option<&Slot> {
        Some(self.places.get(slot)?.get_or_init(|| self.make(slot)))
    }

    fn make(&self, slot: usize) -> Box<Slot> {
        self.used.fetch_max(slot + 1, Ordering::Release);
        Box::default()
    }

    /// Those that were made.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        let used = self.used.load(Ordering::Acquire);
        self.places[..used].iter().filter_map(|slot| slot.get().map(Box::as_ref))
    }
}

impl Index<usize> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, slot: usize) -> &Slot {
        self.places[slot].get_or_init(|| self.make(slot))
    }
}

/// One call's slot as the others see it.
#[derive(Default)]
pub struct Slot {
    /// Odd while the thread is inside the application; the same odd number twice a tick apart: it is stuck there.
    calls: AtomicU32,
    unparked: Mutex<bool>,
    unparked_signal: Condvar,
    /// The thread that has this slot; 0: none.
    thread: AtomicThreadId,
    /// The output of the call's connection, if the call has a time limit.
    output: Mutex<Watched>,
    pub lateness: Lateness,
    pub progress: Progress,
    /// What a call that lasts is split by.
    pub mark: Mark,
}

impl Slot {
    /// Under the baton. The barrier that the monitor's "may I sleep?" needs comes later, in `Waiting::call_began`.
    #[inline]
    pub fn enter(&self) {
        self.step();
    }

    /// Under the baton.
    #[inline]
    pub fn leave(&self) {
        self.step();
    }

    /// Under the baton: the connection of the call that begins here.
    pub fn set_output(&self, output: Watched) {
        *self.output.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }

    /// Under the baton: that of the call under way.
    pub fn output(&self) -> Watched {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// No other thread writes: an addition that is atomic would cost 5 ns.
    #[inline]
    fn step(&self) {
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }

    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// The calling thread takes this slot. Slots are taken and left under the baton.
    pub fn occupy(&self) {
        self.thread.store(signals::this_thread(), Ordering::Relaxed);
    }

    pub fn vacate(&self) {
        self.thread.store(0, Ordering::Relaxed);
    }

    pub fn is_taken(&self) -> bool {
        self.thread() != 0
    }

    pub fn thread(&self) -> ThreadId {
        self.thread.load(Ordering::Relaxed)
    }

    pub fn park(&self) {
        let mut unparked = self.unparked.lock().unwrap_or_else(PoisonError::into_inner);
        while !*unparked {
            unparked = self.unparked_signal.wait(unparked).unwrap_or_else(PoisonError::into_inner);
        }
        *unparked = false;
    }

    pub fn unpark(&self) {
        *self.unparked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.unparked_signal.notify_one();
    }
}

/// The slots of calls that are not taken; under the baton.
#[derive(Debug, Default)]
pub struct FreeSlots {
    free: Vec<usize>,
    next: usize,
}

impl FreeSlots {
    /// The slot that was given back last, or one that was never used.
    pub fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_given_back_last_is_taken_first() {
        let mut places = FreeSlots::default();
        assert_eq!((places.take(), places.take(), places.take()), (0, 1, 2));
        places.give(1);
        places.give(0);
        assert_eq!((places.take(), places.take(), places.take()), (0, 1, 3));
    }
}
