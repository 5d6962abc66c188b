//! What the monitor sees of threads and of a hub alike, and by what it judges that.
use crate::clock::MILLI;
use crate::config::TICK;

/// As many calls in a tick of one thread are short ones.
const BRISK: u64 = 4;

/// For how long a thread that gets no processor is not taken for stuck, nor a hub for away.
pub const PREEMPTED: u64 = 20 * MILLI;

/// What was seen in one look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Others have to see to what waits.
    pub is_stuck: bool,
    /// Something happens that may come to that: a call of a thread has begun or ended, or something waits for a hub. A call that
    /// merely goes on is none of that.
    pub is_busy: bool,
    /// The next look may come after a long tick: calls follow one another so closely that one that is stuck will be noticed then,
    /// too. Of a hub always: one that is away is not taken for it before (`PATIENCE` of `hub_watch.rs`).
    pub is_calm: bool,
    /// Under a hub: it has come since the last look.
    pub came: bool,
    /// Under a hub: it has nothing to come for, and has not come since the last look.
    pub is_at_rest: bool,
}

/// Whether so many calls in so many nanoseconds are short ones, one after the other.
pub(super) fn is_calm(calls: u64, elapsed: u64) -> bool {
    calls >= BRISK * elapsed.div_ceil(TICK)
}

/// Whether a call that began so long ago may be a short one.
pub(super) fn is_young(age: u64) -> bool {
    age < TICK / BRISK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LONG_TICK;

    #[test]
    fn a_long_tick_follows_only_short_calls_whatever_the_last_tick_took() {
        for (calls, elapsed, calm) in [
            (4, TICK, true),
            (3, TICK, false),
            (4, TICK + 1, false), // a late look, or one of two ticks
            (8, 2 * TICK, true),
            (12, LONG_TICK, true),
            (11, LONG_TICK, false),
            (0, 0, true), // at once again: whether anything is under way is asked elsewhere
        ] {
            assert_eq!(is_calm(calls, elapsed), calm, "{calls} calls in {elapsed} ns");
        }
    }
}
