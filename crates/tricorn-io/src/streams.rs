//! The places whose calls stream: their corks are the monitor's to empty at each tick.
use crate::baton::Slots;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Streams {
    places: Mutex<Vec<usize>>,
    any: AtomicBool,
}

impl Streams {
    fn places(&self) -> MutexGuard<'_, Vec<usize>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cork of this place is open.
    pub fn add(&self, place: usize) {
        let mut places = self.places();
        if !places.contains(&place) {
            places.push(place);
        }
        self.any.store(true, Ordering::Release);
    }

    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
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
        self.any.store(!places.is_empty(), Ordering::Release);
    }
}
