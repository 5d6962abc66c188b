//! When threads and greenlets end their streams, since the worker leaves: at the next piece behind a moment of their own.
//!
//! ```text
//!   close ──▶ resumable event streams, one slot after another, within `spread` ──▶ `last_call`: all that have no length
//! ```
use super::Exchange;
use std::sync::atomic::{AtomicU64, Ordering};

/// Monotonic nanoseconds; signal handlers write them, and every call reads them.
#[derive(Debug, Default)]
pub struct Closing {
    /// When the first stream is to end; 0: all may go on.
    begins: AtomicU64,
    /// How much later the last one is.
    spread: AtomicU64,
    last_call: AtomicU64,
}

impl Closing {
    /// Ends streams whose clients come again from `begins` on, within `spread`; others from `last_call` on.
    pub fn close(&self, begins: u64, spread: u64, last_call: u64) {
        self.spread.store(spread, Ordering::Relaxed);
        self.last_call.store(last_call, Ordering::Relaxed);
        self.begins.store(begins.max(1), Ordering::Release);
    }

    /// Whether this reply is to end, in a worker with so many slots.
    pub fn ends(&self, exchange: &Exchange, slots: usize, now: u64) -> bool {
        let begins = self.begins.load(Ordering::Acquire);
        if begins == 0 {
            return false;
        }
        let share = self.spread.load(Ordering::Relaxed) / slots.max(1) as u64 * exchange.slot() as u64;
        let is_its_turn = exchange.is_resumable() && now >= begins.saturating_add(share);
        is_its_turn || now >= self.last_call.load(Ordering::Relaxed) && exchange.is_open_ended()
    }
}
