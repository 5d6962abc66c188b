//! Whether the threads get on: what the monitor sees of their calls.
use super::manner::Waiting;
use super::seen::{PREEMPTED, Seen, is_calm, is_young};
use super::slots::Slot;
use crate::config::TICK;
use crate::sys::processor;

/// What was seen of each slot at the last tick.
pub struct ThreadsWatch {
    /// Its call count.
    seen: Vec<u32>,
    /// Its processor time when its call, by its number, was last found stuck.
    worked: Vec<(u32, u64)>,
    /// The call that was marked last (`mark.rs`).
    marked: Vec<u32>,
    /// The count of rounds, if an app thread was expected then.
    rounds: Option<u64>,
}

impl ThreadsWatch {
    pub fn new(slots: usize) -> ThreadsWatch {
        ThreadsWatch { seen: vec![0; slots], worked: vec![(0, 0); slots], marked: vec![0; slots], rounds: None }
    }

    /// Whether some thread is in the same call as at the last tick, or has not got to what it came back for.
    pub fn look(&mut self, waiting: &Waiting, now: u64, elapsed: u64, rounds: impl FnOnce() -> u64) -> Seen {
        let mut found = Seen::default();
        let (mut ended, mut all_young) = (0, true);
        for (index, slot) in waiting.slots.iter().enumerate().take(self.seen.len()) {
            let calls = slot.calls();
            let before = std::mem::replace(&mut self.seen[index], calls);
            ended += u64::from(calls.wrapping_sub(before) / 2);
            found.is_busy |= calls != before;
            if calls % 2 == 1 {
                if calls == before {
                    found.is_stuck = true;
                    self.mark(index, slot, calls);
                }
                all_young &= waiting.running(index).is_none_or(|(_, started)| is_young(now.saturating_sub(started)));
            }
        }
        found.is_calm = all_young && is_calm(ended, elapsed);
        let is_coming = waiting.watch.is_app_thread_coming();
        found.is_busy |= is_coming;
        found.is_stuck |= self.waits_for_gil(is_coming, rounds);
        found
    }

    /// Whether no call has begun or ended since the last look. A monitor that sleeps then is woken by the next that does.
    pub fn is_unchanged(&self, waiting: &Waiting) -> bool {
        waiting.slots.iter().zip(&self.seen).all(|(slot, seen)| slot.calls() == *seen)
    }

    /// Notes what the thread of a call that lasts has come to, once.
    fn mark(&mut self, index: usize, slot: &Slot, call: u32) {
        if std::mem::replace(&mut self.marked[index], call) != call {
            slot.mark.set(call, slot.thread());
        }
    }

    /// An app thread came back from the wait for events a tick ago, and has not got to them.
    fn waits_for_gil(&mut self, is_coming: bool, rounds: impl FnOnce() -> u64) -> bool {
        if !is_coming {
            self.rounds = None;
            return false;
        }
        let rounds = rounds();
        self.rounds.replace(rounds) == Some(rounds)
    }

    pub fn begin_anew(&mut self, waiting: &Waiting) {
        for (slot, seen) in waiting.slots.iter().zip(&mut self.seen) {
            *seen = slot.calls();
        }
    }

    /// The stuck calls would go on if their threads had a processor. Those to whom their requests could be handed over
    /// have none either.
    pub fn wants_processor_only(&mut self, waiting: &Waiting, now: u64) -> bool {
        let (mut any, mut all) = (false, true);
        for (index, slot) in waiting.slots.iter().enumerate() {
            let Some((call, started)) = waiting.running(index) else { continue };
            let worked = processor::time_of(slot.thread()).unwrap_or(0);
            let before = std::mem::replace(&mut self.worked[index], (call, worked));
            let is_computing = before.0 == call && worked.saturating_sub(before.1) >= TICK / 2;
            let is_recent = now.saturating_sub(started) < PREEMPTED;
            any = true;
            all &= is_recent && !is_computing && processor::is_wanted_by(slot.thread());
        }
        any && all
    }
}
