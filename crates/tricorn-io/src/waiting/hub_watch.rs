//! Whether the hub comes: what the monitor and the watchdog see of it.
//!
//! A hub that has nothing to do waits in its event loop, and so do its calls, for as long as they like. It is away if
//! something has happened to our descriptors and it does not come for it. Where nothing happens the hub is rung for from time to
//! time while calls are under way, so that a hub that never comes back is found although no client says anything. One that is
//! known to wait is rung for once in a heartbeat only: it says so when it goes on, unless another thread keeps the GIL.
use super::hub::Hub;
use super::loop_time::Absence;
use super::manner::Waiting;
use super::seen::{PREEMPTED, Seen};
use crate::config::{LONG_TICK, TICK};
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::processor;

/// How long a hub may let something wait before it is taken for away: it computes for a moment now and then. The time counts from the
/// look that first finds something waiting. With a look in each such time, a hub that is away is found after twice as long at most.
const PATIENCE: u64 = LONG_TICK;

/// What was seen of the hub the last time.
#[derive(Debug, Default)]
pub struct HubWatch {
    rounds: u64,
    /// Since when something has waited for it; 0: nothing does.
    awaited: u64,
    /// When it was last found to have come.
    came: u64,
    /// When it last came, or was last found to have been rung for.
    seen: u64,
    /// Since when a bell of ours waits for it; 0: none does.
    rung: u64,
    /// The arbiter was told that it is stuck.
    told: bool,
    worked: u64,
    /// Of a loop that does not say when it waits.
    absence: Absence,
}

impl HubWatch {
    /// Looks whether the hub has come since the last time, and rings for it if it has not been seen for long.
    pub fn look(&mut self, waiting: &Waiting, hub: &Hub, now: u64) -> Seen {
        let rounds = hub.rounds();
        let came = rounds.wrapping_sub(self.rounds);
        if came > 0 || self.seen == 0 {
            self.absence.ends(hub.thread(), waiting.board, now);
            *self = HubWatch { rounds, came: now, seen: now, ..HubWatch::default() };
        }
        self.look_for_it(waiting, hub, now);
        if self.is_missed(now) && !hub.time.is_kept() {
            hub.time.note_missed();
            self.absence.goes_on(hub.thread(), waiting.board, now);
        }
        let is_awaited = self.awaited > 0;
        Seen {
            is_stuck: self.is_away(hub, now),
            is_busy: is_awaited,
            is_calm: true,
            came: came > 0,
            is_at_rest: !is_awaited && came == 0,
        }
    }

    fn look_for_it(&mut self, waiting: &Waiting, hub: &Hub, now: u64) {
        if waiting.awaits_hub(hub) {
            if self.awaited == 0 {
                self.awaited = if self.rung > 0 { self.rung } else { now };
                self.worked = processor::time_of(hub.thread()).unwrap_or(0);
            }
            return;
        }
        (self.awaited, self.rung, self.absence) = (0, 0, Absence::default());
        if self.bell(waiting, hub, now).is_some_and(|bell| now >= bell) {
            (self.seen, self.rung) = (now, now);
            hub.ring();
        }
    }

    /// When the hub is rung for, if nothing happens until then.
    fn bell(&self, waiting: &Waiting, hub: &Hub, now: u64) -> Option<u64> {
        if waiting.board.get(Word::InFlight) == 0 {
            return None;
        }
        let after = waiting.ring_after();
        let waits = hub.time.waits_for(now).is_some_and(|waited| waited >= after);
        // What clients say on open sockets makes events. A developer is told of what holds up the loop in any case.
        let may_rest = waits || !(waiting.config.development || has_requests(waiting.board));
        Some(self.seen.saturating_add(if may_rest { waiting.beat().max(after) } else { after }))
    }

    /// Since when the hub is at the same: works without a wait, or has let something wait.
    pub fn held_up_since(&self, hub: &Hub) -> Option<u64> {
        if let Some(since) = hub.time.works_since() {
            // What comes to us in between is another call.
            return Some(since.max(self.came));
        }
        // One that keeps its time and has not ended its wait may need the GIL for that, which another thread holds.
        (self.awaited > 0).then_some(self.awaited)
    }

    /// The process was stopped until now: the hub could not come.
    pub fn resume(&mut self, now: u64) {
        self.seen = now;
        for since in [&mut self.awaited, &mut self.rung] {
            if *since > 0 {
                *since = now;
            }
        }
    }

    /// Something has waited for the hub for longer than a moment.
    fn is_missed(&self, now: u64) -> bool {
        self.awaited > 0 && now.saturating_sub(self.awaited) >= PATIENCE
    }

    /// Something has waited for the hub for so long that others should see to it. One that would come if it had a processor
    /// is waited for a little longer.
    fn is_away(&self, hub: &Hub, now: u64) -> bool {
        if !self.is_missed(now) {
            return false;
        }
        let age = now.saturating_sub(self.awaited);
        let computes = || processor::time_of(hub.thread()).unwrap_or(0).saturating_sub(self.worked) >= TICK;
        age >= PREEMPTED || computes() || !processor::is_wanted_by(hub.thread())
    }

    /// The hub has let something wait for as long as `timeout`, and the arbiter was not told: for how long.
    pub fn is_stuck(&mut self, waiting: &Waiting, now: u64) -> Option<u64> {
        let age = self.stuck_for(waiting, now)?;
        (!std::mem::replace(&mut self.told, true)).then_some(age)
    }

    /// How long the hub has not come, if that is longer than `timeout`.
    pub fn stuck_for(&self, waiting: &Waiting, now: u64) -> Option<u64> {
        let limit = waiting.config.timeout;
        let age = if self.awaited > 0 { now.saturating_sub(self.awaited) } else { 0 };
        (limit > 0 && age >= limit).then_some(age)
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, waiting: &Waiting, hub: &Hub, now: u64) -> Option<u64> {
        if self.awaited > 0 {
            let limit = waiting.config.timeout;
            return (limit > 0 && !self.told).then(|| (self.awaited + limit).saturating_sub(now).max(TICK));
        }
        self.bell(waiting, hub, now).map(|bell| bell.saturating_sub(now).max(TICK))
    }
}

/// Whether any call under way is at a request, and not at a socket that its client has open for as long as it likes.
fn has_requests(board: Scoreboard) -> bool {
    board.starts().any(|(slot, _)| !board.phase(slot).is_open_socket())
}
