//! Progress of a call: since when its application has done nothing, which is the time that `timeout` limits.
//!
//! ```text
//!              made, client_is_back            waits_for_client
//!   Since(t) ────────────────────▶ Since(now)  ────────────────▶ Client ──client_is_back──▶ Since(now)
//!      │ taken
//!      └──────▶ Exempt, until the call is over
//! ```
//!
//! A call that streams is not stuck, however long the stream is. Time in which a thread waits for its client is limited by
//! `write_timeout`. A call that serves a socket it has taken does what the server cannot see, so that no limit applies.
//!
//! Both notes are numbers of calls. Numbers do not come again, so that a new call resets nothing: its start is later than
//! the progress of the call before it, and the notes are not its own.
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What the watchdog has to know about the call of one app thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Monotonic nanoseconds of the last progress, in this call or an earlier one.
    last: AtomicU64,
    /// The call whose thread waits for its client; 0: none.
    waiting: AtomicU32,
    /// The call whose application has taken the socket; 0: none.
    exempt: AtomicU32,
}

/// Whether, and since when, `timeout` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// The application has done nothing since then.
    Since(u64),
    /// The thread waits for its client.
    Client,
    /// The application has the socket for itself.
    Exempt,
}

impl Progress {
    #[inline]
    pub fn made(&self, now: u64) {
        self.last.store(now, Relaxed);
    }

    pub fn waits_for_client(&self, call: u32) {
        self.waiting.store(call, Relaxed);
    }

    pub fn client_is_back(&self, now: u64) {
        self.last.store(now, Relaxed);
        // After the time: a watchdog that sees the end of the wait sees when that was.
        self.waiting.store(0, Release);
    }

    pub fn exempt(&self, call: u32) {
        self.exempt.store(call, Relaxed);
    }

    /// What `timeout` has to count for the call with this number, which began then.
    pub fn silence(&self, call: u32, started: u64) -> Silence {
        if self.exempt.load(Relaxed) == call {
            Silence::Exempt
        } else if self.waiting.load(Acquire) == call {
            Silence::Client
        } else {
            Silence::Since(started.max(self.last.load(Relaxed)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_with_the_call_or_its_last_progress() {
        let progress = Progress::default();
        assert_eq!(progress.silence(1, 10), Silence::Since(10));
        progress.made(15);
        assert_eq!(progress.silence(1, 10), Silence::Since(15));
        assert_eq!(progress.silence(3, 20), Silence::Since(20), "an earlier call's progress is none of this one");
    }

    #[test]
    fn time_of_the_client_is_not_counted_and_a_taken_socket_is_exempt() {
        let progress = Progress::default();
        progress.waits_for_client(1);
        assert_eq!(progress.silence(1, 10), Silence::Client);
        assert_eq!(progress.silence(3, 10), Silence::Since(10));
        progress.client_is_back(20);
        assert_eq!(progress.silence(1, 10), Silence::Since(20));
        progress.exempt(1);
        assert_eq!(progress.silence(1, 10), Silence::Exempt);
        assert_eq!(progress.silence(3, 30), Silence::Since(30));
    }
}
