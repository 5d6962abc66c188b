//! Which requests of a hub wait for room in a pool: the monitor asks, and Python tells it when the hub comes.
//!
//! Greenlets and tasks that wait are on no thread's stack, so that Python alone knows where they are.
use crate::wait_sites::PoolWait;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where one request was that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seat {
    pub slot: usize,
    pub started: u64,
    /// `None`: it is elsewhere.
    pub wait: Option<PoolWait>,
}

#[derive(Debug, Default)]
pub struct Roll {
    asks: AtomicBool,
    wanted: Mutex<Vec<usize>>,
    told: Mutex<Option<Vec<Seat>>>,
}

impl Roll {
    /// For the monitor, which rings the hub then.
    pub fn ask(&self, slots: Vec<usize>) {
        *lock(&self.wanted) = slots;
        self.asks.store(true, Ordering::Release);
    }

    /// For the hub: the slots that are asked about, if any are.
    #[inline]
    pub fn take_order(&self) -> Option<Vec<usize>> {
        self.asks.load(Ordering::Relaxed).then(|| self.take_places())
    }

    #[cold]
    fn take_places(&self) -> Vec<usize> {
        self.asks.store(false, Ordering::Relaxed);
        std::mem::take(&mut *lock(&self.wanted))
    }

    pub fn tell(&self, seats: Vec<Seat>) {
        *lock(&self.told) = Some(seats);
    }

    /// What the hub has told since the last time.
    pub fn take(&self) -> Option<Vec<Seat>> {
        lock(&self.told).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_taken_once_and_so_is_the_answer() {
        let roll = Roll::default();
        assert_eq!(roll.take_order(), None);
        roll.ask(vec![3]);
        assert_eq!((roll.take_order(), roll.take_order()), (Some(vec![3]), None));
        assert_eq!(roll.take(), None);
        roll.tell(vec![Seat { slot: 3, started: 7, wait: None }]);
        assert_eq!((roll.take().map(|seats| seats.len()), roll.take()), (Some(1), None));
    }
}
