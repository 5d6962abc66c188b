//! Stack samples of calls that wait in a hub: native threads ask for them, and the hub's Python answers when it comes.
//!
//! ```text
//!   sampler, monitor ──ask, ring──▶ StackSamples ──take──▶ the hub's thread ──answer──▶ StackSamples ──answers──▶ who has asked
//! ```
//!
//! Greenlets and tasks that wait are on no thread's stack, so that Python alone knows where they are.
use super::sampling::Frames;
use crate::wait_sites::PoolWait;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tricorn_figures::scoreboard::Scoreboard;
use tricorn_sys::clock;

/// Calls that one asker may have asked about before the hub comes.
const MOST: usize = 256;

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    /// The sampler, for frames.
    Sampler,
    /// The monitor, for the pools in which calls wait for room.
    Census,
}

const ASKERS: [Asker; 2] = [Asker::Sampler, Asker::Census];

/// A request: the slots of the calls to be looked at.
#[derive(Debug, PartialEq, Eq)]
pub struct SampleRequest {
    pub asker: Asker,
    pub slots: Vec<usize>,
}

/// Where the call was that began then in this slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackSample {
    pub slot: usize,
    pub started: u64,
    /// When it was looked at.
    pub at: u64,
    pub frames: Frames,
    /// The pool in which it waits for room, as far as that was asked.
    pub pool: Option<PoolWait>,
}

#[derive(Debug, Default)]
pub struct StackSamples {
    desks: [Desk; ASKERS.len()],
    /// Nanoseconds that the hub has spent on frames.
    spent: AtomicU64,
}

/// What one asker and the hub have for each other.
#[derive(Debug, Default)]
struct Desk {
    asks: AtomicBool,
    wanted: Mutex<Vec<usize>>,
    samples: Mutex<Option<Vec<StackSample>>>,
}

impl StackSamples {
    /// For the asker, which rings the hub then.
    pub fn ask(&self, asker: Asker, slots: impl IntoIterator<Item = usize>) {
        let desk = &self.desks[asker as usize];
        let mut wanted = lock(&desk.wanted);
        for slot in slots {
            if wanted.len() < MOST && !wanted.contains(&slot) {
                wanted.push(slot);
            }
        }
        desk.asks.store(true, Ordering::Release);
    }

    /// Whether the hub has not come since it was asked.
    pub fn is_asked(&self, asker: Asker) -> bool {
        self.desks[asker as usize].asks.load(Ordering::Relaxed)
    }

    /// The hub has come: what it is to look at. One request at a time, the others keep.
    #[inline]
    pub fn take(&self) -> Option<SampleRequest> {
        let asker = ASKERS.into_iter().find(|asker| self.is_asked(*asker))?;
        Some(self.take_of(asker))
    }

    #[cold]
    fn take_of(&self, asker: Asker) -> SampleRequest {
        let desk = &self.desks[asker as usize];
        let mut wanted = lock(&desk.wanted);
        desk.asks.store(false, Ordering::Relaxed);
        SampleRequest { asker, slots: std::mem::take(&mut *wanted) }
    }

    /// What the hub has found, in so many nanoseconds: slots, frames and pools.
    pub fn answer(&self, asker: Asker, board: Scoreboard, found: Vec<(usize, Frames, Option<PoolWait>)>, spent: u64) {
        let at = clock::now();
        let sample = |(slot, frames, pool)| StackSample { slot, started: board.call_started(slot), at, frames, pool };
        lock(&self.desks[asker as usize].samples).get_or_insert_default().extend(found.into_iter().map(sample));
        if asker == Asker::Sampler {
            self.spent.fetch_add(spent, Ordering::Relaxed);
        }
    }

    /// What the hub has found since the last time; `None`: it has not answered.
    pub fn answers(&self, asker: Asker) -> Option<Vec<StackSample>> {
        lock(&self.desks[asker as usize].samples).take()
    }

    /// Nanoseconds that the hub has ever spent on frames.
    pub fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_so_is_the_answer() {
        let (samples, board) = (StackSamples::default(), Scoreboard::private(1));
        assert_eq!(samples.take(), None);
        samples.ask(Asker::Census, [3]);
        samples.ask(Asker::Census, [3, 4]);
        let request = SampleRequest { asker: Asker::Census, slots: vec![3, 4] };
        assert_eq!((samples.take(), samples.take()), (Some(request), None));
        assert_eq!(samples.answers(Asker::Census), None);
        samples.answer(Asker::Census, board, vec![(3, Frames::new(), None)], 5);
        assert_eq!(samples.answers(Asker::Sampler), None, "it has not asked");
        let count = samples.answers(Asker::Census).map(|samples| samples.len());
        assert_eq!((count, samples.answers(Asker::Census)), (Some(1), None));
    }

    #[test]
    fn one_asker_does_not_take_what_another_asks() {
        let samples = StackSamples::default();
        samples.ask(Asker::Census, [1]);
        samples.ask(Asker::Sampler, [2]);
        assert_eq!(samples.take().map(|request| (request.asker, request.slots)), Some((Asker::Sampler, vec![2])));
        assert!(samples.is_asked(Asker::Census) && !samples.is_asked(Asker::Sampler));
        assert_eq!(samples.take().map(|request| (request.asker, request.slots)), Some((Asker::Census, vec![1])));
    }

    #[test]
    fn no_more_is_asked_than_a_hub_can_be_held_up_for() {
        let samples = StackSamples::default();
        samples.ask(Asker::Sampler, 0..1000);
        assert_eq!(samples.take().map(|request| request.slots.len()), Some(MOST));
    }

    #[test]
    fn an_answer_goes_with_the_call_that_runs_then() {
        let (samples, board) = (StackSamples::default(), Scoreboard::private(1));
        board.begin(1);
        board.call_begins(0, 7, [b"GET", b" ", b"/a"]);
        samples.answer(Asker::Sampler, board, vec![(0, Frames::new(), None)], 5);
        let told = samples.answers(Asker::Sampler).unwrap_or_default();
        assert_eq!(told.iter().map(|sample| sample.started).collect::<Vec<_>>(), [7]);
        assert_eq!(samples.spent(), 5);
    }
}
