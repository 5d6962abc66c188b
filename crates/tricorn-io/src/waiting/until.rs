//! Until when a thread sleeps: one word.
//!
//! ```text
//!   awake (0) ──lie_down──▶ about to sleep (MAX) ──sleep_until──▶ asleep until a time ──get_up──▶ awake
//! ```
//!
//! Rules:
//! * The sleeper lies down, then looks at the deadlines. Who sets a deadline enters it, has a full barrier between, and calls
//!   `wake_by`. These are store-load pairs: one of the two sides sees the other. `tests/wake_models.rs` tries every interleaving.
//! * The thread whose `wake_by` changes the word rings the alarm.
use super::atomics::{AtomicU64, Ordering, fence};

#[derive(Debug)]
pub struct Until(AtomicU64);

impl Until {
    pub fn new() -> Until {
        Until(AtomicU64::new(0))
    }

    /// To be called before the deadlines are looked at. A full barrier: one that is set unseen finds it lying down.
    pub fn lie_down(&self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// `None`: until it is woken.
    pub fn sleep_until(&self, at: Option<u64>) {
        self.0.store(at.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    pub fn get_up(&self) {
        self.0.store(0, Ordering::SeqCst);
    }

    /// Whether it sleeps beyond that time.
    pub fn is_beyond(&self, due: u64) -> bool {
        self.0.load(Ordering::SeqCst) > due
    }

    /// Something is to be done at that time. Whether the alarm is to be rung: once for one time.
    #[inline]
    #[must_use]
    pub fn wake_by(&self, due: u64) -> bool {
        let until = self.0.load(Ordering::SeqCst);
        until > due && self.0.compare_exchange(until, due, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}
