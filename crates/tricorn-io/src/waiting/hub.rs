//! A hub, and what it and the monitor tell each other (`engine/hub.rs` has the picture).
use super::loop_time::LoopTime;
use super::rung::Rung;
use super::slices::Slices;
use super::whereabouts::Whereabouts;
use crate::clock::{self, MILLI};
use crate::sys::signals::{self, AtomicThreadId, ThreadId};
use crate::sys::wake::Alarm;
use rustix::fd::BorrowedFd;
use rustix::io;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tricorn_diagnosis::sampling::Frames;
use tricorn_diagnosis::stack_samples::StackSamples;

/// Most stacks that wait for the watchdog; it takes them at its next look.
const STACKS: usize = 64;

/// How often a hub with calls under way is rung for, at most and at least.
const RING: std::ops::RangeInclusive<u64> = 50 * MILLI..=1000 * MILLI;

/// A call as the watchdog finds it again: its slot, its number there, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    pub slot: usize,
    pub call: u32,
    pub started: u64,
}

/// What hub and monitor tell each other.
pub struct Hub {
    /// Makes the hub come although no descriptor of the poller is readable.
    wakeup: Alarm,
    rung: Rung,
    /// How often the hub came for something.
    rounds: AtomicU64,
    thread: AtomicThreadId,
    /// The slot of the call that began last.
    pub last: AtomicUsize,
    /// Which call its thread is at.
    pub at: Whereabouts,
    /// With `request_timeout`: calls in the order in which they began, some of them over.
    began: Mutex<VecDeque<Began>>,
    /// Calls that are late; in each of them an exception should be raised.
    late: Mutex<Vec<Began>>,
    /// Where late calls were when that was raised, for the watchdog's report.
    stacks: Mutex<Vec<Stack>>,
    tells_stacks: AtomicBool,
    /// How long its loop has waited and worked, if that is told.
    pub time: LoopTime,
    /// Where its calls wait.
    pub samples: StackSamples,
    /// What its calls have of its thread's time.
    pub slices: Slices,
}

/// The stack of a call.
#[derive(Debug)]
struct Stack {
    slot: usize,
    call: u32,
    frames: Frames,
}

impl Hub {
    /// For so many calls at once.
    pub fn new(slots: usize) -> io::Result<Hub> {
        Ok(Hub {
            wakeup: Alarm::new()?,
            rung: Rung::new(),
            rounds: AtomicU64::new(0),
            thread: AtomicThreadId::new(0),
            last: AtomicUsize::new(0),
            at: Whereabouts::new(slots),
            began: Mutex::default(),
            late: Mutex::default(),
            stacks: Mutex::default(),
            tells_stacks: AtomicBool::new(false),
            time: LoopTime::default(),
            samples: StackSamples::default(),
            slices: Slices::default(),
        })
    }

    pub fn wakeup(&self) -> BorrowedFd<'_> {
        self.wakeup.as_fd()
    }

    /// To be called when what the hub should see is there to be seen.
    pub fn ring(&self) {
        if self.rung.ring() {
            self.wakeup.ring();
        }
    }

    /// The hub has come and is about to look: a ring from here on to the end of this is for what it will see. Whether it was
    /// rung.
    pub fn answer(&self) -> bool {
        let rung = self.rung.is_set();
        if rung {
            self.wakeup.clear();
            self.rung.answer();
        }
        rung
    }

    pub fn is_rung(&self) -> bool {
        self.rung.is_set()
    }

    #[inline]
    pub fn come(&self) {
        self.rounds.store(self.rounds.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// The calling thread is the hub's.
    pub fn serve(&self) {
        self.thread.store(signals::this_thread(), Ordering::Relaxed);
    }

    pub fn thread(&self) -> ThreadId {
        self.thread.load(Ordering::Relaxed)
    }

    /// Calls with a time limit, the oldest first.
    pub fn began(&self) -> MutexGuard<'_, VecDeque<Began>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call with a time limit begins. Those that are over are left out before the list would grow: one that goes on for long keeps no
    /// other here.
    pub fn begins(&self, call: Began, runs: impl Fn(&Began) -> bool) {
        let mut began = self.began();
        if began.len() == began.capacity() {
            began.retain(runs);
            // A list that is still half full is cleared so often that it costs nothing only if it has as much room again.
            let length = began.len();
            began.reserve(length + 1);
        }
        began.push_back(call);
    }

    pub fn late(&self) -> MutexGuard<'_, Vec<Began>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stacks(&self) -> MutexGuard<'_, Vec<Stack>> {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the hub tells where late calls are; then it is worth a moment's wait.
    pub fn tells_stacks(&self) -> bool {
        self.tells_stacks.load(Ordering::Relaxed)
    }

    /// From now on the hub tells them.
    pub fn will_tell_stacks(&self) {
        self.tells_stacks.store(true, Ordering::Relaxed);
    }

    /// Keeps the stack of a late call, if there is room.
    pub fn keep_stack(&self, slot: usize, call: u32, frames: Frames) {
        let mut stacks = self.stacks();
        if stacks.len() < STACKS {
            stacks.push(Stack { slot, call, frames });
        }
    }

    /// The stack of a late call, if the hub has told it.
    pub fn take_stack(&self, slot: usize, call: u32) -> Option<Frames> {
        let mut stacks = self.stacks();
        let index = stacks.iter().position(|stack| (stack.slot, stack.call) == (slot, call))?;
        Some(stacks.swap_remove(index).frames)
    }
}

/// How long a hub with calls under way may be silent before it is rung for.
pub fn ring_after(timeout: u64) -> u64 {
    if timeout == 0 { clock::SECOND } else { (timeout / 10).clamp(*RING.start(), *RING.end()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::ready;
    use rustix::event::PollFlags;

    #[test]
    fn a_call_that_goes_on_for_long_keeps_no_other_in_the_list() {
        let hub = Hub::new(1).expect("an eventfd");
        let call = |number: u32| Began { slot: 0, call: number, started: 1 };
        for number in 0..100_000 {
            hub.begins(call(number), |each| each.call == 0);
        }
        let began = hub.began();
        assert_eq!(began.front(), Some(&call(0)));
        assert!(began.capacity() < 100, "{}", began.capacity());
    }

    #[test]
    fn a_bell_rings_once_until_it_is_answered() {
        let hub = Hub::new(1).expect("an eventfd");
        hub.ring();
        hub.ring();
        assert!(hub.is_rung());
        assert!(hub.answer() && !hub.answer());
        assert!(!hub.is_rung());
        assert_eq!(ready(hub.wakeup.as_fd(), PollFlags::IN, 0), PollFlags::empty());
    }
}
