//! Looks at a hub's thread while calls block it, and sums up what each has of its time (`waiting/slices.rs`).
use crate::clock::{MILLI, SECOND};
use crate::config::TICK;
use crate::scoreboard::routes::Split;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::processor;
use crate::waiting::hub::Hub;
use crate::waiting::whereabouts::Owner;
use tricorn_doctor::{Memory, identities};

/// So much more blocked time of the loop makes its slices worth being measured, for so long.
const ENOUGH: u64 = 5 * MILLI;
const WORTH: u64 = 10 * SECOND;
/// Between two looks while they are.
const LOOKS: u64 = 2 * TICK;

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
    /// How many requests were over at the last look; when one was, or the loop worked.
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
        if std::mem::replace(&mut self.requests, requests) != requests || hub.time.works_since().is_some() {
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
        let memory = self.memory.as_ref()?;
        let owner = hub.at.call(board, |marks| identities(memory, marks))?;
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

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;
    use tricorn_doctor::Marks;

    fn hub() -> (Hub, Scoreboard) {
        let (hub, board) = (Hub::new(4).expect("descriptors"), Scoreboard::private(4));
        hub.serve();
        hub.time.begin(clock::now());
        board.begin(4);
        for slot in 0..3 {
            board.call_begins(slot, 7 + slot as u64, [b"GET /", b"", b""]);
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
        // A thread state of one word, and a context that no other one surrounds.
        let contexts = [[0_u64; 4], [0; 4]];
        let [ours, another] = [0, 1].map(|index: usize| &raw const contexts[index] as u64);
        let current = AtomicU64::new(ours);
        hub.at.mark_calls_with(Marks { state: &raw const current as u64, context: 0, variable: 0 });
        hub.at.knows(1, ours);
        hub.at.knows(2, 0xdef0);
        let began = clock::now();
        let mut slicer = slicer(&hub, board);
        std::thread::sleep(Duration::from_millis(20));
        slicer.look(&hub, board, clock::now());
        current.store(another, Relaxed); // another one's, of which nothing is known
        slicer.look(&hub, board, clock::now());
        let length = clock::now() - began;
        std::thread::sleep(Duration::from_millis(20));
        slicer.look(&hub, board, clock::now());
        let split = hub.slices.take(1, 8).expect("a split");
        let whole = split.computed + split.blocked + split.delayed;
        assert!(split.blocked >= 15 * MILLI && whole <= length, "{split:?} of {length}");
        assert_eq!((hub.slices.take(1, 8), hub.slices.take(2, 9)), (None, None));
    }

    #[test]
    fn a_call_that_begins_needs_no_context() {
        let (hub, board) = hub();
        hub.at.begins(Some(0));
        let mut slicer = slicer(&hub, board);
        // What a look waits for the processor behind its reading of the clock is taken from what it finds.
        for _ in 0..4 {
            std::thread::sleep(Duration::from_millis(10));
            slicer.look(&hub, board, clock::now());
        }
        hub.at.begins(None);
        slicer.look(&hub, board, clock::now());
        assert!(hub.slices.take(0, 7).is_some_and(|split| split.blocked >= 5 * MILLI));
    }

    #[test]
    fn nothing_is_measured_unless_the_loop_was_seen_to_block() {
        let (hub, board) = hub();
        hub.at.begins(Some(0));
        let mut slicer = Slicer::default();
        for _ in 0..3 {
            std::thread::sleep(Duration::from_nanos(2 * TICK));
            slicer.look(&hub, board, clock::now());
        }
        assert_eq!((hub.slices.take(0, 7), slicer.due(clock::now())), (None, None));
    }

    #[test]
    fn a_wait_of_the_loop_ends_a_slice() {
        let (hub, board) = hub();
        hub.at.begins(Some(0));
        let mut slicer = slicer(&hub, board);
        hub.time.wait_begins(clock::now());
        slicer.look(&hub, board, clock::now());
        hub.time.wait_ends(clock::now());
        std::thread::sleep(Duration::from_nanos(2 * TICK));
        slicer.look(&hub, board, clock::now());
        assert_eq!(hub.slices.take(0, 7), None, "two slices, of which nothing was seen twice");
        // The same without a look while it waited.
        hub.time.wait_begins(clock::now());
        hub.time.wait_ends(clock::now());
        std::thread::sleep(Duration::from_nanos(2 * TICK));
        slicer.look(&hub, board, clock::now());
        assert_eq!(hub.slices.take(0, 7), None, "work before the wait, and work behind it");
    }
}
