//! The history: what all workers together did in the last ten minutes, one sample every two seconds.
//!
//! A ring of samples behind the ledger, in the same memory. The arbiter writes it: a worker may be gone tomorrow, and its monitor
//! rests while nothing happens. Workers read it for who looks at the page of the admin listener.
//!
//! ```text
//!   0        how many samples were ever written
//!   8 …      SAMPLES times SAMPLE words, in turn
//! ```
//!
//! A reader leaves out the oldest sample, which the next one overwrites.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// How many samples there are, and words of one.
pub const SAMPLES: usize = 301;
pub const SAMPLE: usize = 64;
/// Milliseconds from one to the next.
pub const INTERVAL: u64 = 2000;

const FIRST: usize = 8;
pub(super) const WORDS: usize = FIRST + SAMPLES * SAMPLE;

pub type Sample = [u64; SAMPLE];

#[derive(Debug, Clone, Copy)]
pub struct History {
    words: &'static [AtomicU64],
}

impl History {
    /// There are [`WORDS`] of them.
    pub(super) fn of(words: &'static [AtomicU64]) -> History {
        History { words }
    }

    /// Writes the next sample.
    pub fn note(&self, sample: &Sample) {
        let written = self.words[0].load(Relaxed);
        let place = FIRST + written as usize % SAMPLES * SAMPLE;
        for (word, value) in self.words[place..place + SAMPLE].iter().zip(sample) {
            word.store(*value, Relaxed);
        }
        self.words[0].store(written.wrapping_add(1), Release);
    }

    /// The samples there are, the oldest first.
    pub fn samples(&self) -> impl Iterator<Item = Sample> {
        let written = self.words[0].load(Acquire) as usize;
        (written - written.min(SAMPLES - 1)..written).map(|index| {
            let place = FIRST + index % SAMPLES * SAMPLE;
            std::array::from_fn(|word| self.words[place + word].load(Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        History::of(Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect()))
    }

    #[test]
    fn the_last_ten_minutes_are_kept() {
        let history = history();
        assert_eq!(history.samples().count(), 0);
        for round in 0..2 * SAMPLES as u64 {
            history.note(&[round; SAMPLE]);
            let first = (round + 1).saturating_sub(SAMPLES as u64 - 1);
            assert!(history.samples().map(|sample| sample[SAMPLE - 1]).eq(first..=round));
        }
        assert!((SAMPLES as u64 - 1) * INTERVAL >= 600_000);
    }

    #[test]
    fn a_count_that_is_none_harms_no_reader() {
        let history = history();
        history.words[0].store(u64::MAX, Relaxed);
        assert_eq!(history.samples().count(), SAMPLES - 1);
    }
}
