//! The slots whose calls stream: their corks are the monitor's to empty at each tick.
use super::slots::Slots;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Streams {
    slots: Mutex<Vec<usize>>,
    /// How many there are. With `Engine::cork` and the monitor's modes a store-load pair on both sides: all SeqCst.
    open: AtomicUsize,
}

impl Streams {
    /// Held by the monitor while it works at corks.
    pub fn slots(&self) -> MutexGuard<'_, Vec<usize>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cork of this slot is open.
    pub fn add(&self, slot: usize) {
        let mut slots = self.slots();
        if !slots.contains(&slot) {
            slots.push(slot);
        }
        self.open.store(slots.len(), Ordering::SeqCst);
    }

    pub fn any(&self) -> bool {
        self.open() > 0
    }

    /// How many streams are under way, or were at the monitor's last tick.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Sends what streams have gathered, and forgets those that are over.
    pub fn send_some(&self, slots: &Slots) {
        if !self.any() {
            return;
        }
        let mut streaming = self.slots();
        streaming.retain(|slot| {
            slots[*slot].cork.send_some();
            slots[*slot].cork.is_open()
        });
        self.open.store(streaming.len(), Ordering::SeqCst);
    }
}
