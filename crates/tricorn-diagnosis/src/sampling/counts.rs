//! How many requests of each route ended early: every so-manieth is counted, by the hash of its route.
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// One of so many is counted, and stands for all of them. A prime, so that clients that take turns are not met in step.
pub const ONE_IN: u64 = 13;
/// Routes that are told apart.
const PLACES: usize = 256;
/// Places that are tried for a route.
const TRIES: usize = 8;

/// Written by one thread at a time (under the baton), read by another.
pub struct Counts([(AtomicU64, AtomicU64); PLACES]);

impl Default for Counts {
    fn default() -> Counts {
        Counts(std::array::from_fn(|_| Default::default()))
    }
}

impl Counts {
    pub fn add(&self, hash: u64) {
        for (key, count) in self.places(hash) {
            let there = key.load(Relaxed);
            if there == 0 {
                key.store(hash, Relaxed);
            }
            if there == 0 || there == hash {
                count.store(count.load(Relaxed) + 1, Relaxed);
                return;
            }
        }
    }

    /// About how many ended early.
    pub fn of(&self, hash: u64) -> u64 {
        let found = self.places(hash).find(|(key, _)| key.load(Relaxed) == hash);
        found.map_or(0, |(_, count)| count.load(Relaxed) * ONE_IN)
    }

    fn places(&self, hash: u64) -> impl Iterator<Item = &(AtomicU64, AtomicU64)> {
        (0..TRIES).map(move |step| &self.0[(hash as usize).wrapping_add(step) % PLACES])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hash_has_its_count_and_there_is_an_end_to_them() {
        let counts = Counts::default();
        for hash in [7, 7 + PLACES as u64, 7] {
            counts.add(hash);
        }
        assert_eq!((counts.of(7), counts.of(7 + PLACES as u64), counts.of(9)), (2 * ONE_IN, ONE_IN, 0));
        for hash in 0..10 * PLACES as u64 {
            counts.add(1 + hash);
        }
        let sum: u64 = counts.0.iter().map(|(_, count)| count.load(Relaxed)).sum();
        assert!(sum <= 3 + PLACES as u64, "what has no place is not counted");
    }
}
