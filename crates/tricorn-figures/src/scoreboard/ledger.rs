//! The ledger: what the workers that are gone have counted, and what the arbiter counts.
//!
//! A page begins at zero with each worker, so that a sum over the pages alone would fall when one is gone. The arbiter adds the
//! page of a dead worker to the ledger and takes it off the page, and a sum over both goes on ([`Ledger::bury`]). The ledger is a
//! page of the same layout; where a worker's page has its requests, this one has the arbiter's own words.
//!
//! The counts are there in two copies, of which one counts (`flip.rs`).

use super::bulletin::{self, Bulletin};
use super::flip::{Copy, Flip};
use super::history::{self, History};
use super::{CODES, COUNTERS, DISTINCT, QUEUE_TIME, Scoreboard, TABLE};
use std::sync::atomic::AtomicU64;

/// The arbiter's words, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum LedgerWord {
    /// Which copy counts, and the pid whose page it has in it (`flip.rs`).
    Sequence = TABLE,
    /// How many workers are wanted.
    Target = TABLE + 1,
    /// The generation in force.
    Generation = TABLE + 2,
    /// When the arbiter began: microseconds since 1970.
    Started = TABLE + 3,
    /// Workers that were started.
    Spawned = TABLE + 4,
    /// When the first certificate in force ends: seconds since 1970; 0: there is none.
    CertificateEnds = TABLE + 5,
    /// Memory of the arbiter in bytes, as a worker's page has that of the worker ([`super::Word::Pss`]).
    ArbiterPss = TABLE + 6,
    ArbiterUss = TABLE + 7,
    /// As many words as there are [`EXITS`], and as there are [`RELOADS`].
    Exits = TABLE + 8,
    Reloads = TABLE + 24,
    ArbiterShared = TABLE + 28,
    /// The same of all molds together.
    MoldPss = TABLE + 29,
    MoldUss = TABLE + 30,
    MoldShared = TABLE + 31,
}

/// Why workers have ended: the first that is true.
pub static EXITS: [&str; 12] = [
    "boot",
    "killed",
    "crash",
    "max_requests",
    "lifetime",
    "memory",
    "refork",
    "timeout",
    "reload",
    "scale",
    "shutdown",
    "asked",
];

/// The words of a process's memory: PSS, USS and what it shares.
pub type MemoryWords = [LedgerWord; 3];

pub static ARBITER: MemoryWords = [LedgerWord::ArbiterPss, LedgerWord::ArbiterUss, LedgerWord::ArbiterShared];
pub static MOLD: MemoryWords = [LedgerWord::MoldPss, LedgerWord::MoldUss, LedgerWord::MoldShared];

/// How reloads have ended.
pub static RELOADS: [&str; 3] = ["committed", "refused", "rolled_back"];

const _: () = assert!(LedgerWord::Exits as usize + EXITS.len() <= LedgerWord::Reloads as usize);
const _: () = assert!(LedgerWord::Reloads as usize + RELOADS.len() <= LedgerWord::ArbiterShared as usize);
const _: () = assert!((LedgerWord::MoldShared as usize) < super::PAGE_WORDS);

#[derive(Debug, Clone, Copy)]
pub struct Ledger {
    /// The arbiter's words, and one copy.
    page: Scoreboard,
    /// The other copy; behind it the history and the bulletin.
    other: Scoreboard,
}

/// Its length in bytes.
pub const LEDGER_BYTES: usize = 2 * COPY + (history::WORDS + bulletin::WORDS) * 8;
const COPY: usize = super::PAGE_WORDS * 8;
/// Where the bulletin begins, behind the history.
const BULLETIN: usize = super::PAGE_WORDS + history::WORDS;

impl Ledger {
    /// `None` if the memory is too short.
    ///
    /// # Safety
    /// As for [`Scoreboard::at`], with `bytes` in place of the length of a page.
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<Ledger> {
        if bytes < LEDGER_BYTES {
            return None;
        }
        // SAFETY: promised by the caller; there are as many bytes from there on.
        let (page, other) =
            unsafe { (Scoreboard::over(address, COPY)?, Scoreboard::over(address.add(COPY), LEDGER_BYTES - COPY)?) };
        Some(Ledger { page, other })
    }

    /// One of this process's own, for tests and embedders.
    pub fn private() -> Ledger {
        let other: Vec<AtomicU64> = (0..(LEDGER_BYTES - COPY) / 8).map(|_| AtomicU64::new(0)).collect();
        Ledger { page: Scoreboard::private(1), other: Scoreboard { words: Vec::leak(other) } }
    }

    /// What all workers did in the last minutes.
    pub fn history(&self) -> History {
        History::of(&self.other.words[super::PAGE_WORDS..BULLETIN])
    }

    /// What the arbiter says of the server.
    pub fn bulletin(&self) -> Bulletin {
        Bulletin::of(&self.other.words[BULLETIN..BULLETIN + bulletin::WORDS])
    }

    fn flip(&self) -> Flip<'_> {
        Flip(&self.page.words[LedgerWord::Sequence as usize])
    }

    fn copy(&self, which: Copy) -> Scoreboard {
        if which == Copy::First { self.page } else { self.other }
    }

    pub fn get(&self, word: LedgerWord) -> u64 {
        self.page.word(word as usize)
    }

    pub fn set(&self, word: LedgerWord, value: u64) {
        self.page.put(word as usize, value);
    }

    pub fn add(&self, word: LedgerWord, count: u64) {
        self.page.bump(word as usize, count);
    }

    /// A worker has ended for one of [`EXITS`]. Whether there is such a reason.
    pub fn exited(&self, reason: &str) -> bool {
        self.count(LedgerWord::Exits, &EXITS, reason)
    }

    /// A reload has ended as one of [`RELOADS`]. Whether there is such a result.
    pub fn reloaded(&self, result: &str) -> bool {
        self.count(LedgerWord::Reloads, &RELOADS, result)
    }

    /// What the arbiter has measured of itself, or of the molds; zeros: nothing.
    pub fn set_memory(&self, words: MemoryWords, bytes: [u64; 3]) {
        words.into_iter().zip(bytes).for_each(|(word, bytes)| self.set(word, bytes));
    }

    fn count(&self, first: LedgerWord, names: &[&str], name: &str) -> bool {
        let index = names.iter().position(|known| *known == name);
        index.inspect(|index| self.page.bump(first as usize + index, 1)).is_some()
    }

    /// Counts by name, of those that begin at this word.
    pub fn counts(
        self,
        first: LedgerWord,
        names: &'static [&'static str],
    ) -> impl Iterator<Item = (&'static str, u64)> {
        let page = self.page;
        names.iter().enumerate().map(move |(index, name)| (*name, page.word(first as usize + index)))
    }

    /// The worker of this page is gone. What it has counted becomes the ledger's, and no sibling counts on it any more.
    pub fn bury(&self, page: Scoreboard) {
        let copied = || COUNTERS.into_iter().chain(QUEUE_TIME..CODES);
        let fill = |which: Copy| {
            let (active, other) = (self.copy(which), self.copy(which.other()));
            for index in copied() {
                other.put(index, active.word(index).wrapping_add(page.word(index)));
            }
            for index in CODES..CODES + DISTINCT {
                other.put(index, active.word(index));
            }
            for (code, count) in page.codes() {
                other.count_code(code, count);
            }
        };
        let clear = || {
            copied().chain(CODES..TABLE).for_each(|index| page.put(index, 0));
            page.vacate();
        };
        self.flip().bury(page.pid(), fill, clear);
    }

    /// What `read` makes of the ledger's page and of others, none of which lost its counts to the ledger meanwhile. It is
    /// given the pid whose page the ledger's has in it already (0: none), and may be called several times.
    pub fn read<T>(&self, mut read: impl FnMut(Scoreboard, u64) -> T) -> T {
        self.flip().read(|which, pid| read(self.copy(which), pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{APP_TIME, State, TOTAL_TIME, Word};
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;
    use tricorn_proto::message::RefusalKind;

    /// Something of everything that is counted.
    fn work(page: Scoreboard) {
        COUNTERS.into_iter().for_each(|word| page.bump(word, 2));
        page.status(200);
        page.status(404);
        page.refused(RefusalKind::InternalError);
        page.observe(QUEUE_TIME, 1);
        page.observe(APP_TIME, 7_000_000);
        page.observe(TOTAL_TIME, u64::MAX / 8);
        page.observe_gil(5_000_000);
    }

    /// All that `work` changes.
    fn seen(page: Scoreboard) -> Vec<u64> {
        let words = COUNTERS.into_iter().chain(QUEUE_TIME..CODES);
        let mut codes: Vec<_> = page.codes().collect();
        codes.sort_unstable();
        let codes = codes.into_iter().flat_map(|(code, count)| [u64::from(code), count]);
        words.map(|word| page.word(word)).chain(codes).collect()
    }

    #[test]
    fn what_a_worker_has_counted_is_the_ledgers_when_it_is_gone_and_is_not_told_twice() {
        let (ledger, all, page) = (Ledger::private(), Scoreboard::private(1), Scoreboard::private(1));
        for round in 0..3 {
            page.begin(1);
            page.state(State::Serving);
            page.set(Word::Free, 1);
            (0..=round).for_each(|_| work(page));
            (0..=round).for_each(|_| work(all));
            ledger.bury(page);
            assert_eq!(ledger.read(|page, _| seen(page)), seen(all));
            assert!(seen(page).iter().all(|count| *count == 0));
            assert_eq!((page.state_name(), page.get(Word::Free)), ("stopped", 0));
        }
        ledger.bury(page);
        assert_eq!(ledger.read(|page, _| seen(page)), seen(all), "a page that is buried twice has nothing left");
    }

    #[test]
    fn all_that_is_counted_besides_the_arbiters_words_is_moved() {
        let (ledger, page) = (Ledger::private(), Scoreboard::private(1));
        let single = || (0..QUEUE_TIME).chain(CODES + DISTINCT..TABLE);
        single().for_each(|word| page.put(word, 5));
        ledger.bury(page);
        let moved: Vec<_> = single().filter(|word| ledger.read(|page, _| page.word(*word)) == 5).collect();
        assert_eq!(moved, COUNTERS);
        let left: Vec<_> = COUNTERS.into_iter().filter(|word| page.word(*word) != 0).collect();
        assert_eq!(left, [0usize; 0]);
    }

    #[test]
    fn the_arbiters_counts_have_names() {
        let ledger = Ledger::private();
        for (index, reason) in EXITS.iter().enumerate() {
            (0..=index).for_each(|_| assert!(ledger.exited(reason)));
        }
        assert!(ledger.reloaded("committed") && !ledger.reloaded("crash") && !ledger.exited(""));
        let exits: Vec<_> = ledger.counts(LedgerWord::Exits, &EXITS).collect();
        assert!(
            exits.iter().enumerate().all(|(index, (name, count))| (*name, *count) == (EXITS[index], index as u64 + 1))
        );
        let reloads: Vec<_> = ledger.counts(LedgerWord::Reloads, &RELOADS).collect();
        assert_eq!(reloads, [("committed", 1), ("refused", 0), ("rolled_back", 0)]);
    }

    /// Workers end all the time, each in the midst of what is read.
    #[test]
    fn a_reader_never_sees_a_sum_that_falls() {
        let (ledger, page, is_over) = (Ledger::private(), Scoreboard::private(1), AtomicBool::new(false));
        page.set(Word::Pid, 7);
        let sum = |board: Scoreboard| board.get(Word::Requests) + board.codes().map(|(_, count)| count).sum::<u64>();
        let total = |own: Scoreboard, pid: u64| sum(own) + if page.pid() == pid { 0 } else { sum(page) };
        let worker = || {
            for _ in 0..if cfg!(miri) { 5 } else { 5_000 } {
                for _ in 0..8 {
                    page.add(Word::Requests, 1);
                    page.status(200);
                }
                ledger.bury(page);
                // Not all workers end within one reading.
                (0..2_000).for_each(|_| std::hint::spin_loop());
            }
            is_over.store(true, Relaxed);
        };
        let reader = || {
            let (mut before, mut fallen) = (0, Vec::new());
            while !is_over.load(Relaxed) {
                let now = ledger.read(total);
                if now < before {
                    fallen.push((before, now));
                }
                before = now;
            }
            fallen
        };
        let fallen = std::thread::scope(|scope| {
            scope.spawn(worker);
            reader()
        });
        assert_eq!(fallen, []);
        assert_eq!(ledger.read(total), 16 * if cfg!(miri) { 5 } else { 5_000 });
    }

    #[test]
    fn an_arbiter_that_stops_in_the_midst_of_it_changes_no_sum() {
        let (ledger, page) = (Ledger::private(), Scoreboard::private(1));
        page.set(Word::Pid, 7);
        page.add(Word::Requests, 3);
        ledger.bury(page);
        page.add(Word::Requests, 4); // as if it were not yet cleared
        let word = ledger.get(LedgerWord::Sequence);
        ledger.set(LedgerWord::Sequence, word | 7 << 1);
        let total = |own: Scoreboard, pid| {
            own.get(Word::Requests) + if page.pid() == pid { 0 } else { page.get(Word::Requests) }
        };
        assert_eq!(ledger.read(total), 3);
        ledger.set(LedgerWord::Sequence, word);
        assert_eq!(ledger.read(total), 7);
    }
}
