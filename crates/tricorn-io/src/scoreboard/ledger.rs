//! The ledger: what the workers that are gone have counted, and what the arbiter counts.
//!
//! A page begins at zero with each worker, so that a sum over the pages alone would fall when one is gone. The arbiter adds the
//! page of a dead worker to the ledger and takes it off the page, and a sum over both goes on ([`Ledger::bury`]). The ledger is a
//! page of the same layout; where a worker's page has its requests, this one has the arbiter's own words.
//!
//! Readers are kept from a state between the two steps by a sequence number, which is odd while counts move (a seqlock):
//!
//! ```text
//!   arbiter: odd ── add to the ledger, take off the page ── even
//!   reader:  number, all pages, the same number again: what it read belongs together
//! ```
//!
//! There is one writer, the arbiter, and readers never make it wait. An arbiter that is killed leaves its workers without a
//! successor of it, so that a number that stays odd costs a reader a few tries more and nothing else.

use super::{CODES, QUEUE_TIME, Scoreboard, TABLE, Word};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

/// How often a reader tries again to read what belongs together. A burial takes about a microsecond.
const TRIES: usize = 16;

/// The arbiter's words, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum LedgerWord {
    /// Odd while counts move from a page to the ledger.
    Sequence = TABLE,
    /// How many workers are wanted.
    Target = TABLE + 1,
    /// The generation in force.
    Generation = TABLE + 2,
    /// When the arbiter began: microseconds since 1970.
    Started = TABLE + 3,
    /// Workers that were started.
    Spawned = TABLE + 4,
    /// As many words as there are [`EXITS`], and as there are [`RELOADS`].
    Exits = TABLE + 8,
    Reloads = TABLE + 24,
}

/// Why workers have ended: the first that is true.
pub static EXITS: [&str; 11] = [
    "boot",
    "killed",
    "crash",
    "max_requests",
    "lifetime",
    "memory",
    "timeout",
    "reload",
    "scale",
    "shutdown",
    "asked",
];

/// How reloads have ended.
pub static RELOADS: [&str; 3] = ["committed", "refused", "rolled_back"];

const _: () = assert!(LedgerWord::Exits as usize + EXITS.len() <= LedgerWord::Reloads as usize);
const _: () = assert!(LedgerWord::Reloads as usize + RELOADS.len() <= super::PAGE_WORDS);

/// The single words that only grow. Besides them all from [`QUEUE_TIME`] to the table of requests does.
pub static COUNTERS: [Word; 28] = [
    Word::Accepted,
    Word::Requests,
    Word::Refused,
    Word::HeadTimeouts,
    Word::BodyTimeouts,
    Word::WriteTimeouts,
    Word::IdleCloses,
    Word::Evicted,
    Word::ClientGone,
    Word::Spooled,
    Word::AppErrors,
    Word::BytesIn,
    Word::BytesOut,
    Word::Rescues,
    Word::LogLost,
    Word::HandedOver,
    Word::TakenOver,
    Word::QueueFull,
    Word::QueueLate,
    Word::LeftQueue,
    Word::Leaving,
    Word::Stuck,
    Word::Late,
    Word::HeadsShed,
    Word::Unforwarded,
    Word::Cpu,
    Word::MessagesIn,
    Word::MessagesOut,
];

#[derive(Debug, Clone, Copy)]
pub struct Ledger {
    page: Scoreboard,
}

impl Ledger {
    /// `None` if the page is too short.
    ///
    /// # Safety
    /// As for [`Scoreboard::at`], with `bytes` in place of the length of a page.
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<Ledger> {
        // SAFETY: promised by the caller.
        let page = (bytes >= super::PAGE_WORDS * 8).then(|| unsafe { Scoreboard::over(address, bytes) });
        page.flatten().map(|page| Ledger { page })
    }

    /// One of this process's own, for tests and embedders.
    pub fn private() -> Ledger {
        Ledger { page: Scoreboard::private(1) }
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
        let sequence = self.get(LedgerWord::Sequence) & !1;
        self.set(LedgerWord::Sequence, sequence + 1);
        // A reader that sees a count that has moved must see the odd number, too.
        fence(Release);
        for word in COUNTERS.map(|word| word as usize).into_iter().chain(classes()).chain(QUEUE_TIME..CODES) {
            self.page.bump(word, page.word(word));
            page.put(word, 0);
        }
        for (code, count) in page.codes() {
            self.page.count_code(code, count);
        }
        (CODES..TABLE).for_each(|word| page.put(word, 0));
        page.vacate();
        self.page.words[LedgerWord::Sequence as usize].store(sequence + 2, Release);
    }

    /// What `read` makes of the ledger's page and of others, none of which lost its counts to the ledger meanwhile. It may be
    /// called several times.
    pub fn read<T>(&self, mut read: impl FnMut(Scoreboard) -> T) -> T {
        let sequence = &self.page.words[LedgerWord::Sequence as usize];
        for _ in 0..TRIES {
            let before = sequence.load(Acquire);
            let result = read(self.page);
            fence(Acquire);
            if before.is_multiple_of(2) && sequence.load(Relaxed) == before {
                return result;
            }
            std::hint::spin_loop();
        }
        read(self.page)
    }
}

fn classes() -> std::ops::Range<usize> {
    Word::StatusClass as usize..Word::StatusClass as usize + 5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{APP_TIME, State, TOTAL_TIME};
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use tricorn_proto::message::RefusalKind;

    /// Something of everything that is counted.
    fn work(page: Scoreboard) {
        COUNTERS.into_iter().for_each(|word| page.add(word, 2));
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
        let words = COUNTERS.map(|word| word as usize).into_iter().chain(classes()).chain(QUEUE_TIME..CODES);
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
            assert_eq!(ledger.read(seen), seen(all));
            assert!(seen(page).iter().all(|count| *count == 0));
            assert_eq!((page.state_name(), page.get(Word::Free)), ("stopped", 0));
        }
        ledger.bury(page);
        assert_eq!(ledger.read(seen), seen(all), "a page that is buried twice has nothing left");
    }

    #[test]
    fn all_that_is_counted_besides_the_arbiters_words_is_moved() {
        let (ledger, page) = (Ledger::private(), Scoreboard::private(1));
        let gauges = 0..QUEUE_TIME;
        gauges.for_each(|word| page.put(word, 5));
        ledger.bury(page);
        let kept: Vec<_> = (0..QUEUE_TIME).filter(|word| ledger.page.word(*word) == 0).collect();
        let gauges = reader_gauges();
        let unused = [7, 31, 37, 38, 39, 59, 60, 61, 62, 63];
        let mut expected: Vec<_> = gauges.chain(unused).collect();
        expected.sort_unstable();
        assert_eq!(kept, expected);
    }

    /// The words that are no counters.
    fn reader_gauges() -> impl Iterator<Item = usize> {
        let more = [Word::Entries, Word::HeadBytes, Word::DiskBytes, Word::Databases, Word::Slot, Word::Generation];
        (0..=6).chain(8..=15).chain(more.map(|word| word as usize))
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

    /// Workers end all the time, each in the midst of what is read, but not all within one reading.
    #[test]
    fn a_reader_never_sees_a_sum_that_falls() {
        let (ledger, page) = (Ledger::private(), Scoreboard::private(1));
        let (reads, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        let sum = |board: Scoreboard| board.get(Word::Requests) + board.codes().map(|(_, count)| count).sum::<u64>();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..if cfg!(miri) { 5 } else { 2_000 } {
                    for _ in 0..8 {
                        page.add(Word::Requests, 1);
                        page.status(200);
                    }
                    ledger.bury(page);
                    let before = reads.load(Relaxed);
                    while reads.load(Relaxed) == before {
                        std::thread::yield_now();
                    }
                }
                is_over.store(true, Relaxed);
            });
            let mut before = 0;
            while !is_over.load(Relaxed) {
                let now = ledger.read(|own| sum(own) + sum(page));
                assert!(now >= before, "{now} after {before}");
                before = now;
                reads.fetch_add(1, Relaxed);
            }
        });
    }

    #[test]
    fn an_arbiter_that_died_in_the_midst_of_it_stops_no_reader() {
        let ledger = Ledger::private();
        ledger.set(LedgerWord::Sequence, 7);
        assert_eq!(ledger.read(|page| page.get(Word::Requests)), 0);
        ledger.bury(Scoreboard::private(1));
        assert_eq!(ledger.get(LedgerWord::Sequence), 8);
    }
}
