//! What calls that share a hub's thread have of its time: sums, for as long as the calls run.
//!
//! ```text
//!   the loop has worked for a tick (the monitor looks, once calls were seen to block) ──▶ whose call is the thread at?
//!       the same at the next look ──▶ what the thread has computed, waited and wanted in between is that call's
//!   the call ends ──▶ its sums, if there are any
//! ```
//!
//! Whose call it is tells `whereabouts.rs`, and the looks are those of `monitor/slicer.rs`. Tasks and greenlets that a call makes have
//! contexts of their own: what they do is not told, unless a variable names the call in them.
use super::whereabouts::Owner;
use crate::scoreboard::Scoreboard;
use crate::scoreboard::routes::Split;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls with sums that are not over, or were lost.
const MOST: usize = 1024;

/// Written by the monitor, and taken by the hub's thread.
#[derive(Default)]
pub struct Slices {
    /// How many sums there are.
    count: AtomicUsize,
    sums: Mutex<Vec<(Owner, Split)>>,
}

impl Slices {
    /// What was measured of the call, which is over.
    #[inline]
    pub fn take(&self, slot: usize, started: u64) -> Option<Split> {
        if self.count.load(Relaxed) == 0 { None } else { self.take_sum(Owner { slot, started }) }
    }

    #[cold]
    fn take_sum(&self, owner: Owner) -> Option<Split> {
        let mut sums = self.lock();
        let index = sums.iter().position(|(known, _)| *known == owner)?;
        let (_, split) = sums.swap_remove(index);
        self.count.store(sums.len(), Relaxed);
        Some(split)
    }

    pub fn add(&self, owner: Owner, part: Split, board: Scoreboard) {
        let mut sums = self.lock();
        // The slot has another call by now, or none: that one was lost.
        sums.retain(|(known, _)| board.call_started(known.slot) == known.started);
        if board.call_started(owner.slot) == owner.started {
            match sums.iter().position(|(known, _)| *known == owner) {
                Some(index) => sums[index].1.add(part),
                None if sums.len() < MOST => sums.push((owner, part)),
                None => {}
            }
        }
        self.count.store(sums.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Owner, Split)>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_calls_that_are_over_or_lost_are_forgotten() {
        let (slices, board) = (Slices::default(), Scoreboard::private(4));
        board.begin(4);
        for slot in 0..2 {
            board.call_begins(slot, 7 + slot as u64, [b"GET /", b"", b""]);
        }
        let part = Split { blocked: 1, ..Split::default() };
        slices.add(Owner { slot: 0, started: 7 }, part, board);
        board.call_ends(0);
        slices.add(Owner { slot: 1, started: 8 }, part, board);
        assert_eq!(slices.lock().len(), 1);
        slices.add(Owner { slot: 0, started: 7 }, part, board);
        assert_eq!(slices.lock().len(), 1, "a call that is over");
        assert_eq!((slices.take(1, 7), slices.take(1, 8)), (None, Some(part)));
        assert_eq!(slices.take(1, 8), None, "it was taken");
    }
}
