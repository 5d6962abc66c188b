//! When a request may go into the channel, and when the siblings are told of what lies there.
use super::siblings::{LoadSnapshot, Siblings};
use crate::config::{SHARE_TICK, TICK};
use crate::scoreboard::group::GroupWord;
use crate::sys::channel::Channel;
use rustix::io::IoSlice;

/// For how long after a worker said that requests wait the group is woken for it; what waits longer waits for long.
pub const RECENT: u64 = 4 * SHARE_TICK;
/// Whether one more request may go into the channel: a sibling is idle for which there is none yet; or this one waits
/// longest of all, and there is not one for each worker yet.
pub fn may_send(siblings: &Siblings, channel: &Channel, load: &LoadSnapshot, oldest: u64, now: u64) -> bool {
    if load.serving == 0 {
        return false;
    }
    let inside = siblings.in_channel(channel);
    if inside < load.idle {
        return true;
    }
    let is_first = load.oldest.is_none_or(|other| oldest <= other);
    inside <= load.serving && is_first && now.saturating_sub(oldest) > TICK
}

/// A worker became free, or took something: workers that have requests waiting should look again.
pub fn ring(siblings: &Siblings, channel: &Channel, now: u64) {
    if now.saturating_sub(siblings.group.get(GroupWord::Waiting)) < RECENT {
        channel.ring();
    }
}

/// A message lies in the channel although a sibling is idle: the worker that was woken for it is dead, or does not come. Another
/// message, an empty one, wakes another.
pub fn nudge(siblings: &Siblings, channel: &Channel, now: u64) {
    if siblings.is_something_sent() && channel.holds_any() && is_our_turn(siblings, now) {
        let _ = channel.post(&[IoSlice::new(b"!")], &[]);
    }
}

/// One worker at a time looks after what lies in the channel, and not all the time.
pub fn is_our_turn(siblings: &Siblings, now: u64) -> bool {
    let last = siblings.group.get(GroupWord::Nudged);
    now.saturating_sub(last) >= SHARE_TICK && siblings.group.compare_exchange(GroupWord::Nudged, last, now).is_ok()
}
