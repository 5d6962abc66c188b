//! What the thread of a call had come to when the monitor first found that the call lasts.
//!
//! To read a thread's processor time is a system call. Short calls, which are most, get none: the monitor, which looks at calls
//! that last in any case, reads it for a call that was there at the look before, once, and the thread reads it again when the
//! call ends:
//!
//! ```text
//!   begins ──── look ──── look: mark ─────────────────────── ends: split
//!   counts as computed             delayed, blocked, computed: each as the system has it
//! ```
use crate::clock;
use crate::config::TICK;
use crate::sys::processor;
use crate::sys::signals::ThreadId;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use tricorn_proto::access_log::CallTime;

/// Written by the monitor, and read by the thread of the call.
#[derive(Debug, Default)]
pub struct Mark {
    /// The number of the call, which is odd; 0: none.
    call: AtomicU32,
    /// When it was looked at.
    at: AtomicU64,
    /// What the thread had computed until then, and wanted a processor in vain.
    computed: AtomicU64,
    delayed: AtomicU64,
}

impl Mark {
    /// For the monitor: this call of that thread lasts. Once for each call.
    pub fn set(&self, call: u32, thread: ThreadId) {
        let (Some(computed), Some(delayed)) = (processor::time_of(thread), processor::delay_of(thread)) else { return };
        self.call.store(0, Relaxed);
        fence(Release);
        self.at.store(clock::now(), Relaxed);
        self.computed.store(computed, Relaxed);
        self.delayed.store(delayed, Relaxed);
        self.call.store(call, Release);
    }

    /// For the thread that is at this call: what the call was used for. `None`: it has no mark, or the system does not tell.
    ///
    /// The monitor marks a call once, and no other one of this slot before this is over: the words are this call's.
    pub fn split(&self, call: u32, thread: ThreadId, started: u64) -> Option<CallTime> {
        if self.call.load(Acquire) != call {
            return None;
        }
        let since = |now: u64, word: &AtomicU64| now.saturating_sub(word.load(Relaxed));
        let computed = since(processor::time_of(thread)?, &self.computed);
        let now = clock::now();
        let lasted = since(now, &self.at);
        let rest = lasted.saturating_sub(computed);
        // A file of the system's is read only where there is something to be told apart.
        let delayed = if rest < TICK / 10 { 0 } else { since(processor::delay_of(thread)?, &self.delayed).min(rest) };
        let blocked = rest - delayed;
        let computed = now.saturating_sub(started).saturating_sub(rest);
        Some(CallTime { computed: micros(computed), blocked: micros(blocked), delayed: micros(delayed), yielded: 0 })
    }
}

fn micros(nanos: u64) -> u32 {
    u32::try_from(nanos / 1000).unwrap_or(u32::MAX)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::clock::MILLI;
    use crate::sys::signals::this_thread;
    use std::time::Duration;

    const LENGTH: u64 = 30 * MILLI;

    #[test]
    fn a_call_that_was_not_marked_is_not_split() {
        let mark = Mark::default();
        assert_eq!(mark.split(1, this_thread(), 0), None);
        mark.set(1, this_thread());
        assert!(mark.split(1, this_thread(), 0).is_some());
        assert_eq!(mark.split(3, this_thread(), 0), None, "that of the call before says nothing of this one");
    }

    #[test]
    fn what_came_before_the_mark_counts_as_computed_and_a_sleep_behind_it_as_blocked() {
        let (mark, started) = (Mark::default(), clock::now());
        std::thread::sleep(Duration::from_nanos(LENGTH));
        mark.set(1, this_thread());
        std::thread::sleep(Duration::from_nanos(2 * LENGTH));
        let split = mark.split(1, this_thread(), started).expect("a split");
        assert!(u64::from(split.computed) >= LENGTH / 1000, "{split:?}");
        assert!(u64::from(split.blocked) >= LENGTH / 1000, "{split:?}");
        let whole = clock::now() - started;
        let told = [split.computed, split.blocked, split.delayed].map(u64::from).iter().sum::<u64>();
        assert!(told <= whole / 1000, "{split:?} in {whole} ns");
    }

    #[test]
    fn a_thread_that_computes_is_not_blocked() {
        let (mark, started) = (Mark::default(), clock::now());
        mark.set(1, this_thread());
        let since = processor::time_of(this_thread()).expect("a time");
        while processor::time_of(this_thread()).is_some_and(|time| time < since + LENGTH) {}
        let split = mark.split(1, this_thread(), started).expect("a split");
        assert!(u64::from(split.computed) >= LENGTH / 1000 && u64::from(split.blocked) < LENGTH / 2000, "{split:?}");
    }
}
