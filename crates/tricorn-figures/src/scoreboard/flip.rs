//! Counts in two copies, of which one counts: how what a worker has counted moves to them, and no sum falls meanwhile.
//!
//! Which copy counts, and whose counts it has in it already, is one word. So what a reader sees belongs together wherever the
//! arbiter is preempted:
//!
//! ```text
//!   arbiter: the other copy = this one and the worker's ── flip: the other copy counts, without that worker's
//!            ── clear the worker's ── all workers' count again
//!   reader:  the word, the copy, all workers' but that one's, the word again; if that has changed, once more
//! ```
//!
//! There is one writer, the arbiter, and neither waits for the other: the word changes only if the arbiter has gone on.
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// How often a reader tries again to read what belongs together. Each time a worker has ended, or is buried, meanwhile.
const TRIES: usize = 16;
/// Bit 0: the copy. Bits 1 to 32: the worker whose counts are in it; 0: none. Above: how often this has changed.
const WHO: u64 = u32::MAX as u64;
const TURN: u32 = 33;

/// The word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flip<'a>(pub &'a AtomicU64);

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copy {
    First,
    Second,
}

impl Copy {
    fn of(word: u64) -> Copy {
        if word & 1 == 0 { Copy::First } else { Copy::Second }
    }

    pub fn other(self) -> Copy {
        if self == Copy::First { Copy::Second } else { Copy::First }
    }
}

impl Flip<'_> {
    /// `who` is gone. `fill` writes the copy that does not count, given the one that does; `clear` takes the counts off it.
    pub fn bury(self, who: u64, fill: impl FnOnce(Copy), clear: impl FnOnce()) {
        let before = self.0.load(Relaxed);
        fill(Copy::of(before));
        let turn = (before >> TURN).wrapping_add(1) << TURN;
        self.0.store(turn | (who & WHO) << 1 | (!before & 1), Release);
        // A reader that sees the worker's without its counts must see that they are not to be counted, too.
        fence(Release);
        clear();
        self.0.store(turn.wrapping_add(1 << TURN) | (!before & 1), Release);
    }

    /// What `read` makes of the copy that counts and of all workers' counts but those of one (0: of none). It may be called
    /// several times.
    pub fn read<T>(self, mut read: impl FnMut(Copy, u64) -> T) -> T {
        let mut once = |before: u64| read(Copy::of(before), before >> 1 & WHO);
        for _ in 0..TRIES {
            // Relaxed, and a fence: the memory may be mapped read-only (`outside.rs`).
            let before = self.0.load(Relaxed);
            fence(Acquire);
            let result = once(before);
            fence(Acquire);
            if self.0.load(Relaxed) == before {
                return result;
            }
        }
        let last = self.0.load(Relaxed);
        fence(Acquire);
        once(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_while_a_worker_was_buried_is_read_again() {
        let word = AtomicU64::new(0);
        let flip = Flip(&word);
        let mut tries = 0;
        let seen = flip.read(|copy, who| {
            tries += 1;
            if tries == 1 {
                flip.bury(3, |_| {}, || {});
            }
            (copy, who, tries)
        });
        assert_eq!(seen, (Copy::Second, 0, 2), "the copy that counts by then");
    }

    #[test]
    fn between_the_two_steps_of_a_burial_its_counts_are_in_the_copy_alone() {
        let word = AtomicU64::new(0);
        let flip = Flip(&word);
        let mut between = None;
        flip.bury(3, |counts| assert_eq!(counts, Copy::First), || between = Some(flip.read(|copy, who| (copy, who))));
        assert_eq!((between, flip.read(|copy, who| (copy, who))), (Some((Copy::Second, 3)), (Copy::Second, 0)));
    }
}
