//! The places whose calls stream: their corks are the monitor's to empty at each tick.
use super::slots::Slots;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Streams {
    places: Mutex<Vec<usize>>,
    /// How many there are. With `Engine::cork` and the monitor's modes a store-load pair on both sides: all SeqCst.
    open: AtomicUsize,
}

impl Streams {
    /// Held by the monitor while it works at corks.
    pub fn places(&self) -> MutexGuard<'_, Vec<usize>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cork of this slot is open.
    pub fn add(&self, place: usize) {
        let mut places = self.places();
        if !places.contains(&place) {
            places.push(place);
        }
        self.open.store(places.len(), Ordering::SeqCst);
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
        let mut places = self.places();
        places.retain(|place| {
            slots[*place].cork.send_some();
            slots[*place].cork.is_open()
        });
        self.open.store(places.len(), Ordering::SeqCst);
    }
}
