//! The scoreboard: one page of shared memory per worker, written by its core, read by anybody.
//!
//! Layout, version 1: 512 words of 64 bits, native byte order. Words are written one at a time (no torn words), without
//! ordering between them. `docs/ARCHITECTURE.md` has the table; `tricorn.metrics.scoreboard` is a reader.
//!
//! All words but `STATE` are written under the baton or by the monitor, never by two threads at once, so that a counter
//! is a plain load and store.

use crate::sys::fds;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

pub const VERSION: u64 = 1;
pub const WORDS: usize = 512;
pub const PAGE_BYTES: usize = WORDS * 8;
/// "TRICORN\0" read as a big-endian number.
const MAGIC: u64 = 0x5452_4943_4f52_4e00;

/// Single words, by index.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub enum Word {
    Magic = 0,
    Version = 1,
    Pid = 2,
    /// See [`State`].
    State = 3,
    /// Monotonic nanoseconds at which the monitor last looked around; it sleeps while nothing is in flight.
    Heartbeat = 4,
    Threads = 5,
    // Gauges.
    Connections = 8,
    InFlight = 9,
    Queued = 10,
    BodyBytes = 11,
    // Counters.
    Accepted = 16,
    Requests = 17,
    Refused = 18,
    HeadTimeouts = 19,
    BodyTimeouts = 20,
    WriteTimeouts = 21,
    IdleCloses = 22,
    Evicted = 23,
    ClientGone = 24,
    Spooled = 25,
    AppErrors = 26,
    BytesIn = 27,
    BytesOut = 28,
    /// Times the monitor had to step in for app threads.
    Rescues = 29,
    /// Five words: responses with status 1xx … 5xx.
    StatusClass = 32,
}

pub const QUEUE_TIME: usize = 64;
pub const APP_TIME: usize = QUEUE_TIME + BUCKETS;
pub const TOTAL_TIME: usize = APP_TIME + BUCKETS;
/// Buckets per histogram.
pub const BUCKETS: usize = 128;

// Counters, classes and histograms do not overlap.
const _: () = assert!(Word::StatusClass as usize + 5 <= QUEUE_TIME && TOTAL_TIME + BUCKETS <= WORDS);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum State {
    Booting = 1,
    Serving = 2,
    Draining = 3,
    Stopped = 4,
}

/// The index of a log-linear bucket: four buckets per doubling, in microseconds. Values below 4 µs have one each.
#[inline]
pub fn bucket(nanos: u64) -> usize {
    let micros = nanos / 1000;
    if micros < 4 {
        return micros as usize;
    }
    let octave = 63 - micros.leading_zeros() as usize;
    (4 * (octave - 1) + ((micros >> (octave - 2)) & 3) as usize).min(BUCKETS - 1)
}

/// The lower edge of a bucket in microseconds; the inverse of [`bucket`].
pub fn bucket_floor(index: usize) -> u64 {
    if index < 4 {
        return index as u64;
    }
    let octave = index / 4 + 1;
    (4 + (index % 4) as u64) << (octave - 2)
}

/// This worker's page.
#[derive(Debug, Clone, Copy)]
pub struct Scoreboard {
    words: &'static [AtomicU64],
}

impl Scoreboard {
    /// # Safety
    /// `address` is aligned to 8 bytes, and [`PAGE_BYTES`] bytes from it stay mapped and writable for the rest of the process.
    pub unsafe fn at(address: *mut u8) -> Scoreboard {
        // SAFETY: promised by the caller.
        Scoreboard { words: unsafe { fds::shared_words(address, WORDS) } }
    }

    /// A page of this process's own, for tests and embedders.
    pub fn private() -> Scoreboard {
        let words: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Scoreboard { words: Vec::leak(words) }
    }

    pub fn begin(&self, threads: usize) {
        for word in self.words {
            word.store(0, Relaxed);
        }
        self.set(Word::Version, VERSION);
        self.set(Word::Pid, u64::from(std::process::id()));
        self.set(Word::Threads, threads as u64);
        self.state(State::Booting);
        self.set(Word::Magic, MAGIC);
    }

    pub fn state(&self, state: State) {
        self.set(Word::State, state as u64);
    }

    #[inline]
    pub fn set(&self, word: Word, value: u64) {
        self.words[word as usize].store(value, Relaxed);
    }

    #[inline]
    pub fn get(&self, word: Word) -> u64 {
        self.words[word as usize].load(Relaxed)
    }

    #[inline]
    pub fn add(&self, word: Word, count: u64) {
        self.bump(word as usize, count);
    }

    #[inline]
    pub fn status(&self, code: u16) {
        let class = (code / 100).clamp(1, 5) as usize;
        self.bump(Word::StatusClass as usize + class - 1, 1);
    }

    #[inline]
    pub fn observe(&self, histogram: usize, nanos: u64) {
        self.bump(histogram + bucket(nanos), 1);
    }

    #[inline]
    fn bump(&self, index: usize, count: u64) {
        let word = &self.words[index];
        word.store(word.load(Relaxed).wrapping_add(count), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_with_the_value_and_know_their_edges() {
        let mut last = 0;
        for micros in 0..100_000u64 {
            let index = bucket(micros * 1000);
            assert!(index == last || index == last + 1, "{micros} µs jumps from {last} to {index}");
            assert!(bucket_floor(index) <= micros);
            assert!(bucket_floor(index + 1) > micros);
            last = index;
        }
    }

    #[test]
    fn no_value_is_beyond_the_last_bucket() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
