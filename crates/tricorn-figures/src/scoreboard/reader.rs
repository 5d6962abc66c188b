//! What others than its core do with a page. They read it, also after its worker was killed, and write a few words.
//!
//! A page is read without stopping its writer, so that figures that belong together may be a request apart.
use super::call::Call;
use super::{
    APP_TIME, BUCKETS, ENTRY, MAGIC, QUEUE_TIME, Scoreboard, State, TABLE, TOTAL_TIME, VERSION, WORDS, Word,
    bucket_floor,
};
use std::sync::atomic::Ordering::Relaxed;
use tricorn_sys::clock::now;
use tricorn_sys::fds;

impl Scoreboard {
    /// A page of so many bytes; `None` if no page is that short.
    ///
    /// # Safety
    /// As for [`Scoreboard::at`].
    pub unsafe fn over(address: *mut u8, bytes: usize) -> Option<Scoreboard> {
        // SAFETY: promised by the caller; no more words than there are bytes.
        (bytes / 8 >= TABLE).then(|| Scoreboard { words: unsafe { fds::shared_words(address, bytes / 8) } })
    }

    /// Whether a worker has begun this page. An error names the layout, if it is another one than ours.
    pub fn is_begun(&self) -> Result<bool, u64> {
        match (self.get(Word::Magic), self.get(Word::Version)) {
            (MAGIC, VERSION) => Ok(true),
            (MAGIC, other) => Err(other),
            _ => Ok(false),
        }
    }

    /// The state of the worker in a word.
    pub fn state_name(&self) -> &'static str {
        let state = self.get(Word::State);
        STATES.iter().find(|(known, _)| *known as u64 == state).map_or("unknown", |(_, name)| name)
    }

    pub fn pid(&self) -> u64 {
        self.get(Word::Pid)
    }

    pub fn heartbeat(&self) -> u64 {
        self.get(Word::Heartbeat)
    }

    pub fn threads(&self) -> u64 {
        self.get(Word::Threads)
    }

    /// Every figure under its name.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        WORDS.iter().filter(|row| !row.figure.is_empty()).map(|row| (row.figure, self.get(row.word)))
    }

    /// Responses with status 1xx to 5xx.
    pub fn statuses(&self) -> [u64; 5] {
        std::array::from_fn(|class| self.word(Word::StatusClass as usize + class))
    }

    /// Nanoseconds at which the request that waits longest began to wait; `None`: no request waits.
    pub fn oldest(&self) -> Option<u64> {
        Some(self.get(Word::Oldest)).filter(|&moment| moment != 0)
    }

    /// The buckets that are in use of a histogram: lower edge in nanoseconds, count. `None`: there is no such histogram.
    pub fn histogram(&self, name: &str) -> Option<impl Iterator<Item = (u64, u64)>> {
        let &(_, start) = HISTOGRAMS.iter().find(|(known, _)| *known == name)?;
        let buckets = (0..BUCKETS).map(move |index| (bucket_floor(index), self.word(start + index)));
        Some(buckets.filter(|&(_, count)| count > 0))
    }

    /// The calls that are under way.
    pub fn calls(&self) -> impl Iterator<Item = Call> {
        (0..self.entries()).filter_map(|slot| self.call(slot))
    }

    /// When the call began that is under way for longest, of the first thousand; `None`: there is none.
    pub fn oldest_call(&self) -> Option<u64> {
        (0..self.entries().min(1000)).map(|slot| self.call_started(slot)).filter(|started| *started != 0).min()
    }

    /// Replaces the orders by these, which are added up.
    pub fn order(&self, orders: u64) {
        self.set(Word::Orders, orders);
    }

    /// The level of the log that its Python is to take; 0: as configured.
    pub fn order_log_level(&self, level: u64) {
        self.set(Word::LogLevel, level);
    }

    pub fn log_level(&self) -> u64 {
        self.get(Word::LogLevel)
    }

    /// How many connections to databases the worker holds, as far as it can tell.
    pub fn databases(&self) -> u64 {
        self.get(Word::Databases)
    }

    /// PSS, USS and shared memory of the worker, as the arbiter has measured them.
    pub fn set_memory(&self, bytes: [u64; 3]) {
        [Word::Pss, Word::Uss, Word::Shared].into_iter().zip(bytes).for_each(|(word, bytes)| self.set(word, bytes));
    }

    pub fn count_databases(&self, count: u64) {
        self.set(Word::Databases, count);
    }

    /// A call of a greenlet or a coroutine waits for its turn to be made by a native thread, or does so no longer.
    pub fn offload_waits(&self, change: i64) {
        self.raise(Word::OffloadWaiting, change.cast_unsigned());
    }

    pub fn offload_begins(&self) {
        self.lower(Word::OffloadWaiting, 1);
        self.raise(Word::OffloadBusy, 1);
        self.raise(Word::OffloadCalls, 1);
    }

    pub fn offload_ends(&self, nanoseconds: u64) {
        self.lower(Word::OffloadBusy, 1);
        self.raise(Word::OffloadTime, nanoseconds);
    }

    /// Its caller has left in the middle of it.
    pub fn offload_abandoned(&self) {
        self.raise(Word::OffloadAbandoned, 1);
    }

    /// How many threads there are for such calls has changed.
    pub fn offload_threads(&self, change: i64) {
        self.raise(Word::OffloadThreads, change.cast_unsigned());
    }

    /// How many requests the worker has begun.
    pub fn begun(&self) -> u64 {
        if self.get(Word::Magic) == MAGIC { self.get(Word::Requests) + self.get(Word::InFlight) } else { 0 }
    }

    /// For a worker without a core, which says nothing of its load. One request counts as in flight, so that the arbiter looks
    /// at the heartbeat.
    pub fn begin_without_core(&self, pid: u64) {
        self.begin(1);
        self.set(Word::Pid, pid);
        self.state(State::Serving);
        self.set(Word::InFlight, 1);
        self.beat();
    }

    /// The heartbeat of a worker without a core.
    pub fn beat(&self) {
        self.set(Word::Heartbeat, now());
    }

    /// Makes a page that a worker had one that was never begun. What no worker used is not touched.
    pub fn clear(&self) {
        for word in &self.words[..TABLE + self.entries() * ENTRY] {
            word.store(0, Relaxed);
        }
    }

    /// The worker of this page is gone: no other counts on its threads, or waits for those that waited there.
    pub fn vacate(&self) {
        let threads = [Word::OffloadThreads, Word::OffloadBusy, Word::OffloadWaiting];
        for word in [Word::Free, Word::Oldest, Word::Databases].into_iter().chain(threads) {
            self.set(word, 0);
        }
        if self.get(Word::Magic) == MAGIC {
            self.state(State::Stopped);
        }
    }
}

static STATES: [(State, &str); 4] = [
    (State::Booting, "booting"),
    (State::Serving, "serving"),
    (State::Draining, "draining"),
    (State::Stopped, "stopped"),
];

static HISTOGRAMS: [(&str, usize); 3] = [("queue", QUEUE_TIME), ("application", APP_TIME), ("total", TOTAL_TIME)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::call::Phase;
    use std::collections::HashSet;

    #[test]
    fn every_figure_is_read_from_its_own_word() {
        let board = Scoreboard::private(1);
        let figures = || WORDS.iter().filter(|row| !row.figure.is_empty());
        for (row, value) in figures().zip(1..) {
            board.set(row.word, value);
        }
        assert!(board.figures().map(|(_, value)| value).eq(1..=figures().count() as u64));
        let names: HashSet<_> = board.figures().map(|(name, _)| name).collect();
        assert_eq!(names.len(), figures().count(), "no two have one name");
    }

    #[test]
    fn a_page_is_that_of_a_worker_when_it_was_begun_in_our_layout() {
        let board = Scoreboard::private(1);
        assert_eq!((board.is_begun(), board.state_name()), (Ok(false), "unknown"));
        board.begin(1);
        assert_eq!((board.is_begun(), board.state_name()), (Ok(true), "booting"));
        board.set(Word::Version, 999);
        assert_eq!(board.is_begun(), Err(999));
    }

    #[test]
    fn a_histogram_is_told_by_the_edges_of_its_buckets() {
        let board = Scoreboard::private(1);
        for nanos in [0, 1_000, 5_001, 9_000] {
            board.observe(QUEUE_TIME, nanos);
        }
        let queue: Vec<_> = board.histogram("queue").into_iter().flatten().collect();
        assert_eq!(queue, [(0, 2), (5_000, 1), (7_500, 1)]);
        assert_eq!(board.histogram("total").into_iter().flatten().count(), 0);
        assert!(board.histogram("other").is_none());
    }

    #[test]
    fn calls_are_told_as_far_as_the_page_goes() {
        let board = Scoreboard::private(2);
        board.begin(2);
        board.call_begins(1, 7, [b"GET", b" /", b""]);
        board.set(Word::Entries, u64::MAX);
        let call = Call { slot: 1, started: 7, phase: Phase::Call, text: b"GET /".to_vec() };
        assert_eq!(board.calls().collect::<Vec<_>>(), [call]);
        board.call_ends(1);
        assert_eq!(board.calls().count(), 0);
    }

    #[test]
    fn a_cleared_page_is_one_that_was_never_begun() {
        let board = Scoreboard::private(8);
        board.begin(8);
        board.call_begins(3, 7, [b"GET", b" /", b""]);
        board.order(2);
        board.observe(TOTAL_TIME, 5_000);
        board.clear();
        assert!(board.words.iter().all(|word| word.load(Relaxed) == 0));
    }

    #[test]
    fn a_worker_that_is_gone_is_not_counted_on_and_what_it_did_stays() {
        let board = Scoreboard::private(1);
        board.vacate();
        assert_eq!(board.is_begun(), Ok(false));
        board.begin(1);
        for word in [Word::Free, Word::Oldest, Word::Databases, Word::Queued] {
            board.set(word, 5);
        }
        board.call_begins(0, 7, [b"GET", b" /", b""]);
        board.vacate();
        assert_eq!((board.get(Word::Free), board.oldest(), board.databases()), (0, None, 0));
        assert_eq!((board.get(Word::Queued), board.calls().count(), board.state_name()), (5, 1, "stopped"));
    }
}
