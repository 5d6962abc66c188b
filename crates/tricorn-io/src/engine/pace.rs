//! How long calls block: their length, without the time in which they waited for the GIL.
//!
//! A call that takes long may block (I/O), and another thread should lead meanwhile. Or it waits for the GIL, which others have:
//! then one more thread that wants it only makes all of them slower. Of a single call the two cannot be told apart from outside.
//! But where the process has used a processor all the time, the GIL was held, and calls waited for it.
use crate::clock::MILLI;

/// From here on it matters what a call was at.
const LONG: u64 = MILLI;
/// The processor time of the process is read once in so many rounds, and at each long call.
const ROUNDS: u64 = 64;

/// What is known of the calls of all threads.
#[derive(Debug, Default)]
pub struct Calls {
    /// How long they block of late.
    pub pace: Pace,
    /// How many have begun.
    pub begun: u64,
    /// How many are under way.
    pub running: usize,
}

#[derive(Debug, Default)]
pub struct Pace {
    /// Exponentially weighted mean, nanoseconds.
    usual: u64,
    /// The last reading: the time, and the processor time of the process.
    read: (u64, u64),
}

impl Pace {
    pub fn usual(&self) -> u64 {
        self.usual
    }

    /// A call of this length has ended now.
    #[inline]
    pub fn observe(&mut self, nanos: u64, rounds: u64, now: u64, cpu: impl FnOnce() -> u64) {
        let mut blocked = nanos;
        if nanos > LONG || rounds.is_multiple_of(ROUNDS) {
            let idle = self.idle_share(now, cpu());
            if nanos > LONG {
                blocked = (nanos as f64 * idle) as u64;
            }
        }
        self.usual = self.usual - self.usual / 8 + blocked / 8;
    }

    /// The share of the time since the last reading in which the process had no work for a processor.
    #[cold]
    fn idle_share(&mut self, now: u64, cpu: u64) -> f64 {
        let (then, before) = std::mem::replace(&mut self.read, (now, cpu));
        let (time, busy) = (now.saturating_sub(then), cpu.saturating_sub(before));
        if time == 0 { 1.0 } else { 1.0 - (busy as f64 / time as f64).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of this length one after another, while the process uses this share of a processor.
    fn usual(nanos: u64, share: f64) -> u64 {
        let (mut pace, mut now, mut busy) = (Pace::default(), 0, 0.0);
        for rounds in 1..100 {
            now += nanos;
            busy += nanos as f64 * share;
            pace.observe(nanos, rounds, now, || busy as u64);
        }
        pace.usual()
    }

    #[test]
    fn calls_that_wait_for_something_block_and_calls_that_wait_for_the_gil_do_not() {
        assert!(usual(20 * MILLI, 0.02) > 15 * MILLI);
        assert!(usual(20 * MILLI, 0.5) > 8 * MILLI);
        assert!(usual(20 * MILLI, 1.0) < MILLI);
        assert!(usual(20 * MILLI, 3.0) < MILLI, "native code without the GIL");
    }

    #[test]
    fn short_calls_are_as_long_as_they_are() {
        let short = usual(MILLI / 10, 1.0);
        assert!((MILLI / 12..=MILLI / 10).contains(&short), "{short}");
    }

    #[test]
    fn one_collection_among_short_calls_does_not_count() {
        let (mut pace, mut now) = (Pace::default(), 0);
        for rounds in 1..200 {
            let nanos = if rounds == 100 { 60 * MILLI } else { MILLI / 10 };
            now += nanos;
            pace.observe(nanos, rounds, now, || now);
            assert!(pace.usual() < MILLI);
        }
    }
}
