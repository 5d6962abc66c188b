//! The group page: one page of shared memory that all workers of a group read and write.
//!
//! Unlike a scoreboard it has many writers, so that its words change by atomic operations only. Each word stands alone:
//! nothing may be concluded from the order in which two of them change, but that a change made by
//! [`Group::fetch_add`] or [`Group::compare_exchange`] is seen after everything its maker did before.
//!
//! The page outlives workers and generations of them: a word is right again after any of them was killed at any point, or
//! is checked by its reader.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use tricorn_sys::fds;

/// Size of the page in bytes.
pub const GROUP_BYTES: usize = 4096;
const WORDS: usize = GROUP_BYTES / 8;

/// Words of the page, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum GroupWord {
    /// Messages ever sent into the channel.
    Sent = 0,
    /// Messages ever taken from it.
    Taken = 1,
    /// The highest index of a scoreboard page in use, plus one.
    Pages = 2,
    /// The most application calls that may run at once in all workers; 0: no limit.
    Limit = 3,
    /// Pid of the worker whose monitor keeps the limit; 0: none.
    LimitLeader = 4,
    /// The application's minimum latency as the limiter knows it, in nanoseconds; 0: not measured.
    MinLatency = 5,
    /// When a worker last had requests waiting that it could not pass on: monotonic nanoseconds.
    Waiting = 6,
    /// When a worker last looked after what lies in the channel: monotonic nanoseconds.
    Nudged = 7,
    /// When the leader last worked on the limit: monotonic nanoseconds.
    LimitUpdated = 8,
    /// What the next leader goes on with: the limit without what a probe pins it to, the octiles of the minimum latency in
    /// nanoseconds, when that was measured and when the next probe is due.
    SavedLimit = 9,
    Octile1 = 10,
    Octile2 = 11,
    Octile3 = 12,
    Octile4 = 13,
    Octile5 = 14,
    Octile6 = 15,
    Octile7 = 16,
    MeasuredAt = 17,
    ProbeAt = 18,
    /// The load report (`metrics/load/`): when its last sample was taken, in monotonic nanoseconds; 0: none was.
    LoadTurn = 19,
    /// How many samples were ever taken.
    LoadSamples = 20,
    /// Since when more waits than should; 0: it does not.
    LoadOverSince = 21,
    /// The weight that is told, and the one that the speed alone gives: thousandths of a point; 0: there is none yet.
    LoadWeight = 22,
    LoadSpeedWeight = 23,
    /// What has come, and the time it kept workers busy: sums that never fall.
    LoadArrived = 24,
    LoadBusy = 25,
    /// What calls cost lately: busy nanoseconds and calls, each less the longer ago; bits of an f64.
    LoadRecentBusy = 26,
    LoadRecentCalls = 27,
    /// The last samples, [`LOAD_SAMPLES`] times [`LOAD_SAMPLE`] words.
    LoadRing = 32,
    /// The best speed of each minute of the last hour, [`LOAD_MINUTES`] words.
    LoadBest = 96,
}

/// Samples that are kept, and words of one.
pub(crate) const LOAD_SAMPLES: usize = 8;
pub(crate) const LOAD_SAMPLE: usize = 8;
/// Minutes of which the best speed is kept.
pub(crate) const LOAD_MINUTES: usize = 60;

const _: () = assert!(GroupWord::LoadRing as usize + LOAD_SAMPLES * LOAD_SAMPLE <= GroupWord::LoadBest as usize);
const _: () = assert!(GroupWord::LoadBest as usize + LOAD_MINUTES <= WORDS);

#[derive(Debug, Clone, Copy)]
pub struct Group {
    words: &'static [AtomicU64],
}

impl Group {
    /// # Safety
    /// `address` is aligned to 8 bytes, and [`GROUP_BYTES`] bytes from it stay mapped and writable for the rest of the
    /// process, accessed by everybody as atomic words.
    pub unsafe fn at(address: *mut u8) -> Group {
        // SAFETY: promised by the caller.
        Group { words: unsafe { fds::shared_words(address, WORDS) } }
    }

    /// A page of this process's own, for tests and embedders.
    pub fn private() -> Group {
        Group { words: Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect()) }
    }

    #[inline]
    pub fn get(&self, word: GroupWord) -> u64 {
        self.words[word as usize].load(Relaxed)
    }

    #[inline]
    pub fn set(&self, word: GroupWord, value: u64) {
        self.words[word as usize].store(value, Relaxed);
    }

    /// A word of several, by its distance from the first.
    #[inline]
    pub(crate) fn word(&self, first: GroupWord, index: usize) -> &AtomicU64 {
        &self.words[first as usize + index]
    }

    /// Raises a word that never falls to this value, if that is more; what it is then.
    pub(crate) fn raise_to(&self, word: GroupWord, value: u64) -> u64 {
        self.words[word as usize].fetch_max(value, AcqRel).max(value)
    }

    /// Adds to a word; returns what it was before.
    #[inline]
    pub fn fetch_add(&self, word: GroupWord, count: u64) -> u64 {
        self.words[word as usize].fetch_add(count, AcqRel)
    }

    /// Sets a word if it is still `current`; otherwise returns what it is.
    #[inline]
    pub fn compare_exchange(&self, word: GroupWord, current: u64, new: u64) -> Result<u64, u64> {
        self.words[word as usize].compare_exchange(current, new, AcqRel, Acquire)
    }

    /// The most application calls that may run at once in all workers; `None`: no limit.
    #[inline]
    pub fn limit(&self) -> Option<u64> {
        match self.get(GroupWord::Limit) {
            0 => None,
            limit => Some(limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_changed_only_by_whoever_knows_it() {
        let group = Group::private();
        assert_eq!(group.fetch_add(GroupWord::Sent, 2), 0);
        assert_eq!(group.compare_exchange(GroupWord::Sent, 1, 7), Err(2));
        assert_eq!(group.compare_exchange(GroupWord::Sent, 2, 7), Ok(2));
        assert_eq!(group.get(GroupWord::Sent), 7);
    }

    #[test]
    fn no_limit_is_no_number() {
        let group = Group::private();
        assert_eq!(group.limit(), None);
        group.set(GroupWord::Limit, 3);
        assert_eq!(group.limit(), Some(3));
    }
}
