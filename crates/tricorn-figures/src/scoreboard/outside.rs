//! Pages that another program reads: mapped read-only, of workers that may write anything into them.
//!
//! Every word is read by a relaxed load, which is the one access that the standard library permits in memory that is mapped
//! read-only (`std::sync::atomic`, "Atomic accesses to read-only memory"). No length and no place is taken from a page without
//! a bound, and each number is only a number: whether it can be true is for the caller to judge.

use super::buckets::EXPORTED;
use super::group::{GROUP_BYTES, Group, GroupWord};
use super::ledger::{EXITS, Ledger, LedgerWord, RELOADS};
use super::{APP_TIME, BUCKETS, Call, QUEUE_TIME, Scoreboard, TOTAL_TIME, bucket_floor};

/// A worker's page. Only what reads it can be called.
#[derive(Debug, Clone, Copy)]
pub struct PageReader(Scoreboard);

/// What one page has counted, or many have together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Every gauge and counter under its name. A sum of gauges has those of workers that are gone, as they last were.
    pub figures: Vec<(&'static str, u64)>,
    /// Responses with status 1xx to 5xx.
    pub statuses: [u64; 5],
    /// `queue`, `application`, `total`.
    pub durations: [[u64; BUCKETS]; 3],
    /// Waits for the GIL in the exported buckets.
    pub gil: [u64; EXPORTED.len() + 1],
}

impl PageReader {
    /// A page of so many bytes; `None` if no page is that short.
    ///
    /// # Safety
    /// `address` is aligned to 8 bytes, and `bytes` bytes from it stay mapped and readable as long as a copy of the value is used.
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<PageReader> {
        // SAFETY: promised by the caller, but for writing, which no method of this type does.
        unsafe { Scoreboard::over(address, bytes) }.map(PageReader)
    }

    pub fn is_begun(&self) -> Result<bool, u64> {
        self.0.is_begun()
    }

    pub fn state_name(&self) -> &'static str {
        self.0.state_name()
    }

    pub fn pid(&self) -> u64 {
        self.0.pid()
    }

    pub fn heartbeat(&self) -> u64 {
        self.0.heartbeat()
    }

    pub fn threads(&self) -> u64 {
        self.0.threads()
    }

    pub fn statuses(&self) -> [u64; 5] {
        self.0.statuses()
    }

    pub fn oldest(&self) -> Option<u64> {
        self.0.oldest()
    }

    pub fn figures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.figures()
    }

    pub fn calls(&self) -> impl Iterator<Item = Call> {
        self.0.calls()
    }

    pub fn counts(&self) -> Counts {
        Counts::of(self.0)
    }
}

impl From<Scoreboard> for PageReader {
    fn from(page: Scoreboard) -> PageReader {
        PageReader(page)
    }
}

impl Counts {
    fn of(page: Scoreboard) -> Counts {
        let times = |start: usize| std::array::from_fn(|index| page.word(start + index));
        Counts {
            figures: page.figures().collect(),
            statuses: page.statuses(),
            durations: [QUEUE_TIME, APP_TIME, TOTAL_TIME].map(times),
            gil: page.gil_waits().0,
        }
    }

    fn add(&mut self, other: Counts) {
        self.figures.iter_mut().zip(other.figures).for_each(|(sum, (_, count))| sum.1 = sum.1.wrapping_add(count));
        sum(&mut self.statuses, other.statuses);
        self.durations.iter_mut().zip(other.durations).for_each(|(into, counts)| sum(into, counts));
        sum(&mut self.gil, other.gil);
    }
}

fn sum<const N: usize>(into: &mut [u64; N], counts: [u64; N]) {
    into.iter_mut().zip(counts).for_each(|(total, count)| *total = total.wrapping_add(count));
}

/// The ledger. Only what reads it can be called.
#[derive(Debug, Clone, Copy)]
pub struct LedgerReader(Ledger);

impl LedgerReader {
    /// `None` if the memory is too short.
    ///
    /// # Safety
    /// As for [`PageReader::over`].
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<LedgerReader> {
        // SAFETY: promised by the caller, but for writing, which no method of this type does.
        unsafe { Ledger::over(address, bytes) }.map(LedgerReader)
    }

    /// What all workers have counted that ever were: the sums never fall.
    pub fn totals(&self, pages: &[PageReader]) -> Counts {
        self.0.read(|ledger, buried| {
            let mut counts = Counts::of(ledger);
            pages.iter().filter(|page| buried == 0 || page.pid() != buried).for_each(|page| counts.add(page.counts()));
            counts
        })
    }

    pub fn get(&self, word: LedgerWord) -> u64 {
        self.0.get(word)
    }

    /// Workers that have ended, by reason.
    pub fn exits(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.counts(LedgerWord::Exits, &EXITS)
    }

    /// Reloads by result.
    pub fn reloads(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.counts(LedgerWord::Reloads, &RELOADS)
    }
}

/// The lower edges of the buckets in nanoseconds, and what would be that of the next after the last.
pub fn edges() -> impl Iterator<Item = u64> {
    (0..=BUCKETS).map(bucket_floor)
}

/// The same for the exported buckets.
pub fn exported_edges() -> impl Iterator<Item = u64> {
    let longest = EXPORTED[EXPORTED.len() - 1].0;
    std::iter::once(0).chain(EXPORTED.iter().map(|(nanos, _)| *nanos)).chain(std::iter::once(2 * longest))
}

/// How many pages were ever in use, as the page of the group says; `None` if the memory is too short.
///
/// # Safety
/// As for [`PageReader::over`], for the time of the call.
pub unsafe fn pages_in_use(address: *mut u8, bytes: usize) -> Option<u64> {
    // SAFETY: promised by the caller; `get` does not write.
    (bytes >= GROUP_BYTES).then(|| unsafe { Group::at(address) }.get(GroupWord::Pages))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{ENTRY, TABLE, Word};

    #[test]
    fn what_workers_that_are_gone_have_counted_is_in_the_sum() {
        let (ledger, gone, there) = (Ledger::private(), Scoreboard::private(1), Scoreboard::private(1));
        for page in [gone, there] {
            page.begin(1);
            page.add(Word::Requests, 3);
            page.status(503);
            page.observe(QUEUE_TIME, 2_000);
            page.observe(TOTAL_TIME, u64::MAX / 4);
            page.observe_gil(5_000_000);
        }
        ledger.bury(gone);
        let totals = LedgerReader(ledger).totals(&[gone, there].map(PageReader));
        assert_eq!(totals.figures.iter().find(|(name, _)| *name == "requests"), Some(&("requests", 6)));
        assert_eq!(totals.statuses, [0, 0, 0, 0, 2]);
        assert_eq!((totals.durations[0][4], totals.durations[2][BUCKETS - 1], totals.gil[3]), (2, 2, 2));
        let own = PageReader(there).counts();
        assert_eq!((own.statuses, own.gil.iter().sum::<u64>()), ([0, 0, 0, 0, 1], 1));
    }

    #[test]
    fn pages_of_any_content_are_read_to_the_end() {
        for value in [u64::MAX, 1, 0x8000_0000_0000_0000, 0x0101_0101_0101_0101] {
            let page = Scoreboard::filled(value);
            let reader = PageReader(page);
            assert_eq!((reader.is_begun(), reader.pid(), reader.threads()), (Ok(false), value, value));
            assert!(reader.calls().count() <= (512 - TABLE) / ENTRY);
            assert_eq!(reader.figures().filter(|(_, figure)| *figure == value).count(), reader.figures().count());
            let totals = LedgerReader(Ledger::private()).totals(&[reader, reader]);
            assert_eq!(totals.statuses, [value.wrapping_add(value); 5]);
        }
    }

    #[test]
    fn buckets_have_an_edge_on_each_side() {
        let (all, exported): (Vec<_>, Vec<_>) = (edges().collect(), exported_edges().collect());
        assert_eq!((all.len(), exported.len()), (BUCKETS + 1, EXPORTED.len() + 2));
        assert!(all.is_sorted() && exported.is_sorted());
    }
}
