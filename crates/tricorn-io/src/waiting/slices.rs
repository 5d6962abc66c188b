//! Which call a hub's thread is at, and what it has used there: the slices of time of calls that share a thread.
//!
//! ```text
//!   a call begins ──▶ its context is noted (one store)
//!   the loop has worked for a tick (the monitor looks, once calls were seen to block) ──▶ whose context does the thread have?
//!       the same at the next look ──▶ what the thread has computed, waited and wanted in between is that call's
//!   the call ends ──▶ its sums, if there are any
//! ```
//!
//! A call of a greenlet or a task has a context of its own (`contextvars`), and the interpreter keeps the current one in a word
//! of the thread's state. That word is read through the kernel, as everything of Python's that is read from outside. Tasks and
//! greenlets that a call makes have contexts of their own: what they do is not told.
use super::hub::Hub;
use crate::clock::{MILLI, SECOND};
use crate::config::TICK;
use crate::scoreboard::routes::Split;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::processor;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tricorn_doctor::Memory;

/// So much more blocked time of the loop makes its slices worth being measured, for so long.
const ENOUGH: u64 = 5 * MILLI;
const WORTH: u64 = 10 * SECOND;
/// Between two looks while they are.
const LOOKS: u64 = 2 * TICK;
/// Calls with sums that are not over, or were lost.
const MOST: usize = 1024;

/// Written by the hub's thread, and read by the monitor; the sums the other way round.
pub struct Slices {
    /// Where the thread's state has the address of the current context; 0: that is not known.
    current: AtomicU64,
    /// The place of the call that begins now, and one.
    beginning: AtomicUsize,
    /// The address of each call's context, by place; 0: it is not known.
    contexts: Box<[AtomicU64]>,
    /// How many sums there are.
    count: AtomicUsize,
    sums: Mutex<Vec<(Owner, Split)>>,
}

/// A call by its place and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner {
    place: usize,
    started: u64,
}

impl Slices {
    pub fn new(places: usize) -> Slices {
        Slices {
            current: AtomicU64::new(0),
            beginning: AtomicUsize::new(0),
            contexts: (0..places).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicUsize::new(0),
            sums: Mutex::default(),
        }
    }

    /// The thread's state has the address of its current context there.
    pub fn tell_current(&self, address: u64) {
        self.current.store(address, Relaxed);
    }

    /// The call at this place has this context.
    #[inline]
    pub fn has_context(&self, place: usize, context: u64) {
        if let Some(word) = self.contexts.get(place) {
            word.store(context, Relaxed);
        }
    }

    /// The thread is at the beginning of this call, whatever its context; or (`None`) no longer.
    #[inline]
    pub fn begins(&self, place: Option<usize>) {
        self.beginning.store(place.map_or(0, |place| place + 1), Relaxed);
    }

    /// What was measured of the call, which is over.
    #[inline]
    pub fn take(&self, place: usize, started: u64) -> Option<Split> {
        if self.count.load(Relaxed) == 0 { None } else { self.take_sum(Owner { place, started }) }
    }

    #[cold]
    fn take_sum(&self, owner: Owner) -> Option<Split> {
        let mut sums = self.lock();
        let index = sums.iter().position(|(known, _)| *known == owner)?;
        let (_, split) = sums.swap_remove(index);
        self.count.store(sums.len(), Relaxed);
        Some(split)
    }

    fn add(&self, owner: Owner, part: Split, board: Scoreboard) {
        let mut sums = self.lock();
        // The place has another call by now, or none: that one was lost.
        sums.retain(|(known, _)| board.call_started(known.place) == known.started);
        if board.call_started(owner.place) == owner.started {
            match sums.iter().position(|(known, _)| *known == owner) {
                Some(index) => sums[index].1.add(part),
                None if sums.len() < MOST => sums.push((owner, part)),
                None => {}
            }
        }
        self.count.store(sums.len(), Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Owner, Split)>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that the thread is at.
    fn owner(&self, memory: &Memory, board: Scoreboard) -> Option<Owner> {
        let of = |place| {
            Some(board.call_started(place)).filter(|started| *started != 0).map(|started| Owner { place, started })
        };
        if let Some(place) = self.beginning.load(Relaxed).checked_sub(1) {
            return of(place);
        }
        let word = Some(self.current.load(Relaxed)).filter(|word| *word != 0)?;
        let context = memory.word(word).filter(|context| *context != 0)?;
        let is_its =
            |(place, _): &(usize, u64)| self.contexts.get(*place).is_some_and(|word| word.load(Relaxed) == context);
        board.starts().find(is_its).map(|(place, started)| Owner { place, started })
    }
}

/// A slice that goes on.
#[derive(Debug, Clone, Copy)]
struct Slice {
    owner: Owner,
    /// Since when the loop works without a wait.
    since: u64,
    at: u64,
    computed: u64,
    delayed: u64,
}

/// The monitor's look at them.
#[derive(Default)]
pub struct Slicer {
    memory: Option<Memory>,
    slice: Option<Slice>,
    /// The loop's blocked time when it was last seen to have grown.
    blocked: u64,
    /// Until when slices are measured.
    until: u64,
    /// How many requests were over at the last look, and when there was one.
    requests: u64,
    busy: u64,
}

impl Slicer {
    pub fn look(&mut self, hub: &Hub, board: Scoreboard, now: u64) {
        let blocked = board.get(Word::LoopBlocked);
        if blocked.saturating_sub(self.blocked) >= ENOUGH {
            (self.blocked, self.until) = (blocked, now + WORTH);
        }
        if now >= self.until {
            self.slice = None;
            return;
        }
        let requests = board.get(Word::Requests);
        if std::mem::replace(&mut self.requests, requests) != requests || board.get(Word::InFlight) > 0 {
            self.busy = now;
        }
        let slice = self.current(hub, board, now);
        if let (Some(before), Some(slice)) = (self.slice, slice)
            && (before.owner, before.since) == (slice.owner, slice.since)
        {
            hub.slices.add(slice.owner, slice.since_look(&before), board);
        }
        self.slice = slice;
    }

    fn current(&mut self, hub: &Hub, board: Scoreboard, now: u64) -> Option<Slice> {
        let since = hub.time.works_since()?;
        if now.saturating_sub(since) < TICK {
            return None;
        }
        if self.memory.is_none() {
            let probe = &raw const self.until as u64;
            self.memory = Memory::open(std::process::id(), probe).ok();
        }
        let owner = hub.slices.owner(self.memory.as_ref()?, board)?;
        let (computed, delayed) = (processor::time_of(hub.thread())?, processor::delay_of(hub.thread())?);
        Some(Slice { owner, since, at: now, computed, delayed })
    }

    /// In how many nanoseconds to look again. A call that begins does not ring for the monitor, so it looks on for a while.
    pub fn due(&self, now: u64) -> Option<u64> {
        (now < self.until && now < self.busy + SECOND).then_some(LOOKS)
    }
}

impl Slice {
    /// What its thread has used since an earlier look at it.
    fn since_look(&self, before: &Slice) -> Split {
        let length = self.at.saturating_sub(before.at);
        let computed = self.computed.saturating_sub(before.computed).min(length);
        let delayed = self.delayed.saturating_sub(before.delayed).min(length - computed);
        Split { computed, delayed, blocked: length - computed - delayed }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::clock;
    use std::time::Duration;

    fn hub() -> (Hub, Scoreboard) {
        let (hub, board) = (Hub::new(4).expect("descriptors"), Scoreboard::private(4));
        hub.serve();
        hub.time.begin(clock::now());
        board.begin(4);
        for place in 0..3 {
            board.call_begins(place, 7 + place as u64, [b"GET /", b"", b""]);
        }
        (hub, board)
    }

    /// A slicer for which the loop has just blocked.
    fn slicer(hub: &Hub, board: Scoreboard) -> Slicer {
        board.add(Word::LoopBlocked, ENOUGH);
        let mut slicer = Slicer::default();
        std::thread::sleep(Duration::from_nanos(2 * TICK));
        slicer.look(hub, board, clock::now());
        slicer
    }

    #[test]
    fn what_the_thread_waits_in_a_calls_context_is_that_calls() {
        let (hub, board) = hub();
        let current = AtomicU64::new(0xabc0);
        hub.slices.tell_current(&raw const current as u64);
        hub.slices.has_context(1, 0xabc0);
        hub.slices.has_context(2, 0xdef0);
        let mut slicer = slicer(&hub, board);
        std::thread::sleep(Duration::from_millis(20));
        slicer.look(&hub, board, clock::now());
        current.store(0x9990, Relaxed); // another one's, of which nothing is known
        slicer.look(&hub, board, clock::now());
        std::thread::sleep(Duration::from_millis(20));
        slicer.look(&hub, board, clock::now());
        let split = hub.slices.take(1, 8).expect("a split");
        let whole = split.computed + split.blocked + split.delayed;
        assert!(split.blocked >= 15 * MILLI && whole < 40 * MILLI, "{split:?}");
        assert_eq!((hub.slices.take(1, 8), hub.slices.take(2, 9)), (None, None));
    }

    #[test]
    fn a_call_that_begins_needs_no_context() {
        let (hub, board) = hub();
        hub.slices.begins(Some(0));
        let mut slicer = slicer(&hub, board);
        std::thread::sleep(Duration::from_millis(10));
        slicer.look(&hub, board, clock::now());
        hub.slices.begins(None);
        slicer.look(&hub, board, clock::now());
        assert!(hub.slices.take(0, 7).is_some_and(|split| split.blocked >= 5 * MILLI));
    }

    #[test]
    fn nothing_is_measured_unless_the_loop_was_seen_to_block() {
        let (hub, board) = hub();
        hub.slices.begins(Some(0));
        let mut slicer = Slicer::default();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_nanos(2 * TICK));
            slicer.look(&hub, board, clock::now());
        }
        assert_eq!((hub.slices.take(0, 7), slicer.due(clock::now())), (None, None));
    }

    #[test]
    fn a_wait_of_the_loop_ends_a_slice_and_what_was_lost_is_forgotten() {
        let (hub, board) = hub();
        hub.slices.begins(Some(0));
        let mut slicer = slicer(&hub, board);
        hub.time.wait_begins(clock::now());
        slicer.look(&hub, board, clock::now());
        hub.time.wait_ends(clock::now());
        std::thread::sleep(Duration::from_nanos(2 * TICK));
        slicer.look(&hub, board, clock::now());
        assert_eq!(hub.slices.take(0, 7), None, "two slices, of which nothing was seen twice");
        let part = Split { blocked: 1, ..Split::default() };
        hub.slices.add(Owner { place: 0, started: 7 }, part, board);
        board.call_ends(0);
        hub.slices.add(Owner { place: 1, started: 8 }, part, board);
        assert_eq!(hub.slices.lock().len(), 1);
        hub.slices.add(Owner { place: 0, started: 7 }, part, board);
        assert_eq!(hub.slices.lock().len(), 1, "a call that is over");
    }
}
