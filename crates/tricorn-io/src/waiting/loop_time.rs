//! How long a hub's event loop has waited and worked.
//!
//! The loop's thread says when it begins to wait and when it has waited. The monitor makes of that, once in a while, what the
//! time between was used for:
//!
//! ```text
//!   worked  = wall clock − time in which the loop waited for events
//!   blocked = worked − processor time of the thread − time in which it wanted a processor and got none
//! ```
//!
//! What is blocked waits inside a call that does not give way to others: a database driver in C, a lock, a file, the GIL.
//!
//! A loop that does not show when it waits (uvloop) is accounted for only while something of ours waits for it ([`Absence`]).
use crate::clock::MILLI;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::processor;
use crate::sys::signals::{self, ThreadId};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64, fence};

/// How often a reader looks again whose words were changed meanwhile.
const LOOKS: usize = 16;
/// Work without a wait that is remembered: shorter than any threshold that is of use.
const LONG: u64 = 10 * MILLI;
/// How often an absence is accounted for while it lasts.
const ACCOUNT: u64 = 100 * MILLI;

/// Written by the loop's thread alone, but for `missed`.
#[derive(Debug, Default)]
pub struct LoopTime {
    /// Something has waited for the loop for longer than a moment: its time is worth being kept.
    missed: AtomicBool,
    /// Odd while the words below change.
    version: AtomicU64,
    /// When the loop's time began to be kept; 0: it is not.
    begun: AtomicU64,
    /// What its thread had computed by then, and wanted a processor in vain.
    computed: AtomicU64,
    delayed: AtomicU64,
    /// Since when the loop waits; 0: it works.
    waits_since: AtomicU64,
    /// All waits that are over.
    waited: AtomicU64,
    /// The end of the last wait: since then it works, if it does.
    works_since: AtomicU64,
    /// The last time of work between two waits that was [`LONG`]: when it began, and how long it was.
    long_since: AtomicU64,
    long: AtomicU64,
}

impl LoopTime {
    /// The loop of the calling thread works from now on.
    pub fn begin(&self, now: u64) {
        let thread = signals::this_thread();
        self.write(|| {
            self.begun.store(now, Relaxed);
            self.computed.store(processor::time_of(thread).unwrap_or(0), Relaxed);
            self.delayed.store(processor::delay_of(thread).unwrap_or(0), Relaxed);
            self.waits_since.store(0, Relaxed);
            self.waited.store(0, Relaxed);
            self.works_since.store(now, Relaxed);
        });
    }

    pub fn note_missed(&self) {
        self.missed.store(true, Relaxed);
    }

    #[inline]
    pub fn is_missed(&self) -> bool {
        self.missed.load(Relaxed)
    }

    /// Whether the loop says when it waits.
    pub fn is_kept(&self) -> bool {
        self.begun.load(Relaxed) != 0
    }

    /// The loop begins to wait for events.
    #[inline]
    pub fn wait_begins(&self, now: u64) {
        let since = self.works_since.load(Relaxed);
        let length = now.saturating_sub(since);
        if length >= LONG && self.waits_since.load(Relaxed) == 0 {
            self.write(|| {
                self.long_since.store(since, Relaxed);
                self.long.store(length, Relaxed);
            });
        }
        self.waits_since.store(now, Relaxed);
    }

    /// The loop has waited, or was not waiting. For how long.
    #[inline]
    pub fn wait_ends(&self, now: u64) -> u64 {
        let since = self.waits_since.load(Relaxed);
        if since == 0 {
            return 0;
        }
        let length = now.saturating_sub(since);
        self.write(|| {
            self.waited.store(self.waited.load(Relaxed).wrapping_add(length), Relaxed);
            self.waits_since.store(0, Relaxed);
            self.works_since.store(now, Relaxed);
        });
        length
    }

    #[inline]
    fn write(&self, change: impl FnOnce()) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(1), Relaxed);
        fence(Release);
        change();
        self.version.store(version.wrapping_add(2), Release);
    }

    /// Since when the loop works without a wait. `None`: it waits, or does not say.
    pub fn works_since(&self) -> Option<u64> {
        let read = || (self.waits_since.load(Relaxed), self.works_since.load(Relaxed));
        let (waits, works) = self.read(read)?;
        (waits == 0 && works != 0).then_some(works)
    }

    /// For how long the loop has waited until now. `None`: it works, or does not say.
    pub fn waits_for(&self, now: u64) -> Option<u64> {
        let since = self.read(|| self.waits_since.load(Relaxed))?;
        (since != 0).then(|| now.saturating_sub(since))
    }

    /// When the work was over that was at hand at this moment, if that is remembered.
    pub fn end_of(&self, moment: u64) -> Option<u64> {
        let (since, long) = self.read(|| (self.long_since.load(Relaxed), self.long.load(Relaxed)))?;
        let end = since.saturating_add(long);
        (since != 0 && (since..end).contains(&moment)).then_some(end)
    }

    fn at_its_beginning(&self) -> Spent {
        Spent { worked: 0, computed: self.computed.load(Relaxed), delayed: self.delayed.load(Relaxed) }
    }

    /// How long the loop has worked until now. `None`: its time is not kept, or changes too fast to be read.
    pub fn worked(&self, now: u64) -> Option<u64> {
        let read = || (self.begun.load(Relaxed), self.waits_since.load(Relaxed), self.waited.load(Relaxed));
        let (begun, since, waited) = self.read(read)?;
        let waits = if since == 0 { 0 } else { now.saturating_sub(since) };
        (begun != 0).then(|| now.saturating_sub(begun).saturating_sub(waited.saturating_add(waits)))
    }

    /// What belongs together. `None`: it changes too fast to be read.
    fn read<T>(&self, read: impl Fn() -> T) -> Option<T> {
        for _ in 0..LOOKS {
            let version = self.version.load(Acquire);
            let found = read();
            fence(Acquire);
            if version.is_multiple_of(2) && self.version.load(Relaxed) == version {
                return Some(found);
            }
        }
        None
    }
}

/// What was seen of a loop the last time, in nanoseconds since its beginning.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Spent {
    worked: u64,
    computed: u64,
    /// Wanted a processor, and got none.
    delayed: u64,
}

impl Spent {
    /// What the thread has come to. `None` where the system does not tell.
    fn of(thread: ThreadId, worked: u64) -> Option<Spent> {
        Some(Spent { worked, computed: processor::time_of(thread)?, delayed: processor::delay_of(thread)? })
    }

    fn note(self, before: Spent, board: Scoreboard) {
        board.add(Word::LoopWorked, self.worked.saturating_sub(before.worked));
        board.add(Word::LoopBlocked, self.blocked_since(before));
    }

    /// Of what was worked since `before`, what the thread was blocked for.
    fn blocked_since(self, before: Spent) -> u64 {
        let of = |now: u64, then: u64| now.saturating_sub(then);
        let used = of(self.computed, before.computed).saturating_add(of(self.delayed, before.delayed));
        of(self.worked, before.worked).saturating_sub(used)
    }
}

/// The monitor's account of its hub's loop.
#[derive(Debug, Default)]
pub struct LoopUse {
    seen: Option<Spent>,
}

impl LoopUse {
    /// Adds what came since the last look to the scoreboard.
    pub fn look(&mut self, time: &LoopTime, thread: ThreadId, board: Scoreboard, now: u64) {
        let Some(worked) = time.worked(now) else { return };
        let Some(spent) = Spent::of(thread, worked) else { return };
        let before = self.seen.replace(spent).unwrap_or_else(|| time.at_its_beginning());
        spent.note(before, board);
    }
}

/// The account of a loop for which something waits that it does not come for.
#[derive(Debug, Default)]
pub struct Absence {
    /// What it had come to when the loop was first missed, or accounted for last.
    since: Option<Spent>,
}

impl Absence {
    /// The loop is still away.
    pub fn goes_on(&mut self, thread: ThreadId, board: Scoreboard, now: u64) {
        if self.since.is_none_or(|since| now >= since.worked.saturating_add(ACCOUNT)) {
            self.account(thread, board, now);
        }
    }

    /// The loop has come, if it was away.
    pub fn ends(&mut self, thread: ThreadId, board: Scoreboard, now: u64) {
        if self.since.is_some() {
            self.account(thread, board, now);
            self.since = None;
        }
    }

    fn account(&mut self, thread: ThreadId, board: Scoreboard, now: u64) {
        let Some(spent) = Spent::of(thread, now) else { return };
        if let Some(before) = self.since.replace(spent) {
            spent.note(before, board);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn what_is_not_waited_is_worked() {
        let time = LoopTime::default();
        assert_eq!(time.worked(50), None);
        time.begin(100);
        assert_eq!(time.worked(130), Some(30));
        time.wait_begins(130);
        assert_eq!(time.worked(190), Some(30));
        assert_eq!(time.waits_for(190), Some(60));
        assert_eq!((time.wait_ends(200), time.wait_ends(205)), (70, 0));
        assert_eq!(time.waits_for(205), None);
        assert_eq!(time.worked(210), Some(40));
        time.wait_begins(220);
        time.wait_begins(230);
        assert_eq!(time.worked(240), Some(60), "a wait that was begun twice begins the second time");
    }

    #[test]
    fn long_work_is_remembered_by_its_beginning() {
        let time = LoopTime::default();
        assert_eq!(time.works_since(), None);
        time.begin(MILLI);
        assert_eq!(time.works_since(), Some(MILLI));
        time.wait_begins(2 * MILLI);
        assert_eq!((time.works_since(), time.end_of(MILLI)), (None, None));
        time.wait_ends(3 * MILLI);
        assert_eq!(time.works_since(), Some(3 * MILLI));
        time.wait_begins(3 * MILLI + LONG);
        time.wait_begins(90 * MILLI);
        assert_eq!(time.end_of(3 * MILLI), Some(3 * MILLI + LONG));
        assert_eq!(time.end_of(4 * MILLI), Some(3 * MILLI + LONG));
        assert_eq!(time.end_of(2 * MILLI), None);
    }

    #[test]
    fn a_reader_sees_a_wait_as_begun_or_as_over() {
        const TURN: u64 = 1000;
        let (time, wait) = (LoopTime::default(), TURN - 10);
        time.begin(1);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for now in (TURN..2_000 * TURN).step_by(TURN as usize) {
                    time.wait_begins(now);
                    time.wait_ends(now + wait);
                }
            });
            while !writer.is_finished() {
                let turns = time.waited.load(Acquire) / wait;
                // What began since is later than this moment; what was over by then is counted, and once.
                if let Some(worked) = time.worked((turns + 1) * TURN) {
                    assert!(worked <= turns * 10 + TURN, "{worked} in {turns} turns");
                }
            }
        });
    }

    #[test]
    fn blocked_is_neither_computed_nor_kept_from_a_processor() {
        let before = Spent { worked: 1000, computed: 500, delayed: 10 };
        let after = Spent { worked: 1980, computed: 720, delayed: 60 };
        assert_eq!(after.blocked_since(before), 710);
        let waited_busily = Spent { worked: 1010, computed: 530, delayed: 10 };
        assert_eq!(waited_busily.blocked_since(before), 0);
    }

    /// One look after another, of a thread that sleeps in its work and of one that computes.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_sleeps_at_work_is_blocked_and_one_that_computes_is_not() {
        let (time, thread, board) = (LoopTime::default(), signals::this_thread(), Scoreboard::private(1));
        time.begin(clock::now());
        let mut account = LoopUse::default();
        std::thread::sleep(std::time::Duration::from_millis(60));
        account.look(&time, thread, board, clock::now());
        let blocked = board.get(Word::LoopBlocked);
        assert!(blocked >= 50 * MILLI, "{blocked}");
        assert!(board.get(Word::LoopWorked) >= blocked);

        let since = processor::time_of(thread).expect("a time");
        while processor::time_of(thread).is_some_and(|time| time < since + 30 * MILLI) {}
        account.look(&time, thread, board, clock::now());
        let more = board.get(Word::LoopBlocked) - blocked;
        assert!(more < 15 * MILLI, "{more}");
        time.wait_begins(clock::now());
        std::thread::sleep(std::time::Duration::from_millis(30));
        time.wait_ends(clock::now());
        account.look(&time, thread, board, clock::now());
        let waited = board.get(Word::LoopBlocked) - blocked - more;
        assert!(waited < 15 * MILLI, "{waited}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_loop_that_is_missed_is_accounted_for_until_it_comes() {
        let (thread, board, mut absence) = (signals::this_thread(), Scoreboard::private(1), Absence::default());
        absence.ends(thread, board, 5);
        let (began, delayed) = (clock::now(), processor::delay_of(thread).unwrap_or(0));
        absence.goes_on(thread, board, began);
        std::thread::sleep(std::time::Duration::from_millis(20));
        absence.goes_on(thread, board, began + ACCOUNT - 1);
        assert_eq!(board.get(Word::LoopWorked), 0, "not at each look");
        absence.goes_on(thread, board, began + ACCOUNT);
        assert_eq!(board.get(Word::LoopWorked), ACCOUNT);
        absence.ends(thread, board, began + ACCOUNT + 7);
        absence.ends(thread, board, began + ACCOUNT + 9);
        assert_eq!(board.get(Word::LoopWorked), ACCOUNT + 7, "what comes after its return is not");
        let delayed = processor::delay_of(thread).unwrap_or(0) - delayed;
        assert!(board.get(Word::LoopBlocked) + delayed >= 50 * MILLI);
    }
}
