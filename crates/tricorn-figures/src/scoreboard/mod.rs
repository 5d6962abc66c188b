//! The scoreboard: one page of shared memory per worker, written by its core, read by anybody.
//!
//! Layout, version 8: words of 64 bits, native byte order. Words are written one at a time (no torn words), without
//! ordering between them but in the table of requests. `docs/internals/scoreboard.md` has the table; `reader` is what others than
//! the core do with a page.
//!
//! All words but `STATE` and those of responses are written under the baton or by the monitor, never by two threads at once, so that a counter
//! is a plain load and store. An entry of the table of requests is its call's. `ORDERS` is the arbiter's; so
//! are those of the call to be cancelled, until the monitor answers in them.
//!
//! The table of requests may be long and is mostly not used: ten thousand entries are more than a megabyte. Shared memory
//! is allocated by its reader, too. So no reader looks beyond the first `ENTRIES`, and what lies beyond was never
//! written: it is zero, and takes no memory.

pub mod buckets;
pub mod bulletin;
mod call;
mod cancel;
mod counts;
mod flip;
pub mod group;
pub mod handshakes;
pub mod history;
pub mod ledger;
mod orders;
pub mod outside;
mod reader;
pub mod routes;
mod session_places;
pub mod sessions;
mod share;
mod states;
mod words;

pub use buckets::{BUCKETS, COARSE, bucket, bucket_floor, coarse};
pub use call::{Call, Phase};
pub use cancel::{CancelOrder, Cancelled};
pub use share::Share;
pub use states::{DRAIN, NOT_READY, RECONNECT, REPLACED, State, YIELD};
pub use words::{COUNTERS, GAUGES, Role, Row, WORDS, Word, samples_of};

/// In one place, since tests put others there.
mod atomics {
    pub use std::sync::atomic::{AtomicU64, Ordering};
}

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};
use tricorn_proto::message::RefusalKind;
use tricorn_sys::fds;

const VERSION: u64 = 10;
/// "TRICORN\0" read as a big-endian number.
const MAGIC: u64 = 0x5452_4943_4f52_4e00;

pub const QUEUE_TIME: usize = 64;
pub const APP_TIME: usize = QUEUE_TIME + BUCKETS;
pub const TOTAL_TIME: usize = APP_TIME + BUCKETS;
/// Sums of these three histograms in nanoseconds, in the same order.
const SUMS: usize = TOTAL_TIME + BUCKETS;
/// Waits for the GIL with a request at hand: the sum, then a histogram of the exported buckets.
const GIL_WAIT: usize = SUMS + 3;
/// Refusals, a word for each kind.
const REFUSALS: usize = GIL_WAIT + 1 + COARSE;
/// Responses by status (`counts.rs`).
const CODES: usize = REFUSALS + KINDS;
/// Kinds of refusals, statuses that are told apart.
const KINDS: usize = RefusalKind::ALL.len();
const DISTINCT: usize = 20;

/// The requests with the application, one entry for each that can run at once: start (monotonic nanoseconds, 0: none), length of the
/// text and above it the phase (`call.rs`), text (`METHOD target`), and a word to spare.
pub const TABLE: usize = 480;
/// What was said of a worker before it began its page.
const KEPT: [Word; 9] = [
    Word::Orders,
    Word::LogLevel,
    Word::Databases,
    Word::OffloadCalls,
    Word::OffloadTime,
    Word::OffloadAbandoned,
    Word::OffloadThreads,
    Word::OffloadBusy,
    Word::OffloadWaiting,
];
pub const ENTRY: usize = 16;
/// Most bytes of a request's text.
pub const TEXT: usize = 104;

// Words, histograms and entries do not overlap.
const _: () = assert!(words::are_apart(QUEUE_TIME, CODES + DISTINCT, TABLE));
const _: () = assert!(CODES + DISTINCT <= TABLE);
const _: () = assert!(2 + TEXT / 8 < ENTRY && TEXT.is_multiple_of(8));

/// Words of a page with so many entries.
const fn length(entries: usize) -> usize {
    let entries = if entries == 0 { 1 } else { entries };
    (TABLE + entries * ENTRY).next_multiple_of(PAGE_WORDS)
}

/// Whole pages of the system, so that no two workers write to the same one.
const PAGE_WORDS: usize = 512;

/// Size of the page of a worker that runs so many requests at once.
pub const fn page_bytes(entries: usize) -> usize {
    length(entries) * 8
}

/// This worker's page.
#[derive(Debug, Clone, Copy)]
pub struct Scoreboard {
    words: &'static [AtomicU64],
}

impl Scoreboard {
    /// # Safety
    /// `address` is aligned to 8 bytes, and [`page_bytes`]`(entries)` bytes from it stay mapped and writable as long as a copy
    /// of the value is used.
    pub unsafe fn at(address: *mut u8, entries: usize) -> Scoreboard {
        // SAFETY: promised by the caller.
        Scoreboard { words: unsafe { fds::shared_words(address, length(entries)) } }
    }

    /// A page of this process's own, for tests and embedders.
    pub fn private(entries: usize) -> Scoreboard {
        let words: Vec<AtomicU64> = (0..length(entries)).map(|_| AtomicU64::new(0)).collect();
        Scoreboard { words: Vec::leak(words) }
    }

    /// A page of which every word is this, for tests of what is made of nonsense.
    #[cfg(test)]
    pub(crate) fn filled(value: u64) -> Scoreboard {
        let page = Scoreboard::private(1);
        page.words.iter().for_each(|word| word.store(value, Relaxed));
        page
    }

    /// Everything at its beginning, but for orders that the arbiter gave before the worker was up, and connections that the
    /// application opened while it was loaded.
    pub fn begin(&self, threads: usize) {
        let used = (self.entries() * ENTRY + TABLE).min(self.words.len());
        for (index, word) in self.words[..used].iter().enumerate() {
            if !KEPT.iter().any(|kept| *kept as usize == index) {
                word.store(0, Relaxed);
            }
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

    /// Any word, by index.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.words[index].load(Relaxed)
    }

    #[inline]
    pub fn add(&self, word: Word, count: u64) {
        self.bump(word as usize, count);
    }

    /// Adds to a gauge that more than one thread writes; what it was before.
    pub fn raise(&self, word: Word, count: u64) -> u64 {
        self.words[word as usize].fetch_add(count, Relaxed)
    }

    pub fn lower(&self, word: Word, count: u64) {
        self.words[word as usize].fetch_sub(count, Relaxed);
    }

    /// `histogram`: where it begins.
    #[inline]
    pub fn observe(&self, histogram: usize, nanos: u64) {
        self.bump(histogram + bucket(nanos), 1);
        self.bump(SUMS + (histogram - QUEUE_TIME) / BUCKETS, nanos);
    }

    /// How many entries were ever used: a reader looks at no more.
    fn entries(&self) -> usize {
        (self.get(Word::Entries) as usize).min((self.words.len() - TABLE) / ENTRY)
    }

    /// Notes which request a call is at. `text` is the request line's beginning, in up to three parts.
    #[inline]
    pub fn call_begins(&self, slot: usize, started: u64, text: [&[u8]; 3]) {
        let Some(entry) = self.entry(slot) else { return };
        if slot as u64 >= self.get(Word::Entries) {
            // Before the entry is written: what was written is counted, though the process may be killed in between.
            self.words[Word::Entries as usize].fetch_max(slot as u64 + 1, Relaxed);
        }
        let mut bytes = [0u8; TEXT];
        let mut length = 0;
        for part in text {
            let count = part.len().min(TEXT - length);
            bytes[length..length + count].copy_from_slice(&part[..count]);
            length += count;
        }
        // A reader that sees new text must not see the old start at both ends of its reading.
        fence(Release);
        entry[1].store(length as u64, Relaxed);
        for (word, bytes) in entry[2..].iter().zip(bytes.as_chunks::<8>().0).take(length.div_ceil(8)) {
            word.store(u64::from_ne_bytes(*bytes), Relaxed);
        }
        entry[0].store(started, Release);
    }

    /// What the call of this slot is at from now on. It is the call's own to say.
    pub fn call_is_at(&self, slot: usize, phase: Phase) {
        if let Some(entry) = self.used_entry(slot) {
            entry[1].store(call::joined(call::length(entry[1].load(Relaxed)), phase), Relaxed);
        }
    }

    #[inline]
    pub fn call_ends(&self, slot: usize) {
        if let Some(entry) = self.used_entry(slot) {
            entry[0].store(0, Relaxed);
        }
    }

    /// When the call at this place began; 0: there is none.
    #[inline]
    pub fn call_started(&self, slot: usize) -> u64 {
        self.used_entry(slot).map_or(0, |entry| entry[0].load(Acquire))
    }

    /// When each call began that is under way, by its place.
    pub fn starts(&self) -> impl Iterator<Item = (usize, u64)> {
        (0..self.entries()).map(|slot| (slot, self.call_started(slot))).filter(|(_, started)| *started != 0)
    }

    /// The text of the request at this place, and its length, without an allocation: for the thread that ends the call.
    pub fn call_line(&self, slot: usize) -> Option<([u8; TEXT], usize)> {
        let entry = self.used_entry(slot)?;
        let mut text = [0; TEXT];
        for (bytes, word) in text.as_chunks_mut::<8>().0.iter_mut().zip(&entry[2..]) {
            *bytes = word.load(Relaxed).to_ne_bytes();
        }
        Some((text, call::length(entry.get(1)?.load(Relaxed)).min(TEXT)))
    }

    /// The text of the request at this place; `None` if there is none or it changed meanwhile.
    pub fn call_text(&self, slot: usize) -> Option<Vec<u8>> {
        self.call(slot).map(|call| call.text)
    }

    /// What the call at this place is at; of none it is a call.
    pub fn phase(&self, slot: usize) -> Phase {
        self.used_entry(slot).map_or(Phase::Call, |entry| Phase::of(entry[1].load(Relaxed)))
    }

    /// All that is known of it.
    fn call(&self, slot: usize) -> Option<Call> {
        let entry = self.used_entry(slot)?;
        // Relaxed, and a fence: the page may be mapped read-only (`outside.rs`).
        let started = entry[0].load(Relaxed);
        fence(Acquire);
        let second = entry[1].load(Relaxed);
        let length = call::length(second).min(TEXT);
        let words = entry[2..2 + TEXT / 8].iter().map(|word| word.load(Relaxed).to_ne_bytes());
        let mut text: Vec<u8> = words.flatten().collect();
        text.truncate(length);
        fence(Acquire);
        let is_same = started != 0 && entry[0].load(Relaxed) == started;
        is_same.then(|| Call { slot, started, phase: Phase::of(second), text })
    }

    #[inline]
    fn used_entry(&self, slot: usize) -> Option<&[AtomicU64]> {
        if (slot as u64) < self.get(Word::Entries) { self.entry(slot) } else { None }
    }

    #[inline]
    fn entry(&self, slot: usize) -> Option<&[AtomicU64]> {
        self.words.get(TABLE + slot * ENTRY..)?.get(..ENTRY)
    }

    /// Sets any word, by index.
    #[inline]
    fn put(&self, index: usize, value: u64) {
        self.words[index].store(value, Relaxed);
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
    fn a_page_is_whole_pages_and_has_room_for_every_thread() {
        for threads in 0..300 {
            let bytes = page_bytes(threads);
            assert_eq!(bytes % 4096, 0);
            assert!((TABLE + threads * ENTRY) * 8 <= bytes);
        }
        assert_eq!((page_bytes(1), page_bytes(2), page_bytes(3)), (4096, 4096, 8192));
    }

    #[test]
    fn a_request_is_told_while_it_runs_cut_where_it_is_too_long() {
        let board = Scoreboard::private(2);
        board.begin(2);
        assert_eq!((board.call_started(1), board.call_text(1)), (0, None));
        board.call_begins(1, 7, [b"GET", b" ", &[b'x'; 200]]);
        assert_eq!(board.call_started(1), 7);
        assert_eq!(board.call_text(1), Some([b"GET ".as_slice(), &[b'x'; 100]].concat()));
        board.call_ends(1);
        board.call_begins(1, 8, [b"PUT /", b"", b""]);
        assert_eq!(board.call_text(1), Some(b"PUT /".to_vec()));
        board.call_ends(1);
        assert_eq!(board.call_text(1), None);
        // A thread that has no place in the page is not told, and does no harm.
        board.call_begins(10_000, 1, [b"", b"", b""]);
    }

    #[test]
    fn a_phase_leaves_the_text_and_ends_with_its_call() {
        let board = Scoreboard::private(2);
        board.begin(2);
        let seen = || board.calls().map(|call| (call.phase, call.text)).collect::<Vec<_>>();
        board.call_begins(1, 7, [b"GET", b" ", b"/x"]);
        for phase in [Phase::WebSocket, Phase::Body, Phase::Sending] {
            board.call_is_at(1, phase);
            assert_eq!(seen(), [(phase, b"GET /x".to_vec())]);
        }
        board.call_ends(1);
        board.call_begins(1, 8, [b"PUT /", b"", b""]);
        assert_eq!(seen(), [(Phase::Call, b"PUT /".to_vec())]);
        board.call_is_at(0, Phase::Body);
        board.call_is_at(9999, Phase::Body);
        assert_eq!(seen().len(), 1);
    }

    #[test]
    fn entries_are_counted_from_the_first_use_on_and_nothing_beyond_is_looked_at() {
        let board = Scoreboard::private(1000);
        board.begin(1000);
        assert_eq!(board.get(Word::Entries), 0);
        board.call_ends(700);
        assert_eq!((board.call_started(700), board.get(Word::Entries)), (0, 0));
        board.call_begins(2, 7, [b"GET /", b"", b""]);
        board.call_begins(0, 8, [b"GET /", b"", b""]);
        assert_eq!((board.call_started(2), board.get(Word::Entries)), (7, 3));
        board.words[TABLE + 3 * ENTRY].store(9, Relaxed);
        assert_eq!((board.call_started(3), board.call_text(3)), (0, None));
    }

    #[test]
    fn a_page_that_is_begun_anew_has_no_request_of_its_last_worker() {
        let board = Scoreboard::private(1000);
        board.begin(1000);
        for slot in 0..600 {
            board.call_begins(slot, 7, [b"GET /", b"", b""]);
        }
        board.begin(1000);
        assert_eq!(board.get(Word::Entries), 0);
        board.call_begins(599, 8, [b"GET /", b"", b""]);
        assert_eq!((0..1000).filter(|slot| board.call_started(*slot) != 0).count(), 1);
    }

    #[test]
    fn a_count_of_entries_that_is_none_harms_nobody() {
        let board = Scoreboard::private(1);
        board.set(Word::Entries, u64::MAX);
        assert_eq!(board.call_started(usize::MAX >> 8), 0);
        board.begin(1);
        assert_eq!(board.get(Word::Entries), 0);
    }

    #[test]
    fn what_was_told_before_the_page_was_begun_stands() {
        let board = Scoreboard::private(1);
        board.set(Word::Orders, DRAIN);
        board.set(Word::Databases, 3);
        board.order_log_level(10);
        board.set(Word::Requests, 3);
        board.begin(1);
        assert!(board.orders_drain());
        assert_eq!((board.get(Word::Databases), board.get(Word::Requests), board.log_level()), (3, 0, 10));
    }
}
