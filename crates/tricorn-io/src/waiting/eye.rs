//! The monitor's eye on what has the calls: threads, or a hub.
use super::hub_watch::HubWatch;
use super::manner::{Manner, Subject, Waiting};
use super::seen::Seen;
use super::threads::ThreadsWatch;
use crate::sys::signals::ThreadId;

pub enum Eye {
    Threads(ThreadsWatch),
    Hub(HubWatch),
}

impl Eye {
    pub fn new(waiting: &Waiting) -> Eye {
        match &waiting.manner {
            Manner::Threads => Eye::Threads(ThreadsWatch::new(waiting.slots.len())),
            Manner::Hub(_) => Eye::Hub(HubWatch::default()),
        }
    }

    /// Looks what has happened in the `elapsed` nanoseconds since the last time. `rounds`: how often app threads came for
    /// requests, asked for only where that matters.
    pub fn look(&mut self, waiting: &Waiting, now: u64, elapsed: u64, rounds: impl FnOnce() -> u64) -> Seen {
        match (self, &waiting.manner) {
            (Eye::Threads(threads), _) => threads.look(waiting, now, elapsed, rounds),
            (Eye::Hub(watch), Manner::Hub(hub)) => watch.look(waiting, hub, now),
            (Eye::Hub(_), Manner::Threads) => Seen::default(),
        }
    }

    /// Whether what was seen at the last look is so still, as far as its change wakes no monitor that was awake.
    pub fn is_unchanged(&self, waiting: &Waiting) -> bool {
        match self {
            Eye::Threads(threads) => threads.is_unchanged(waiting),
            Eye::Hub(_) => true, // what happens to a hub makes events, and a call that begins is a deadline
        }
    }

    /// The monitor has covered until now: what was seen before is over.
    pub fn begin_anew(&mut self, waiting: &Waiting) {
        if let Eye::Threads(threads) = self {
            threads.begin_anew(waiting);
        }
    }

    /// The process was stopped until now.
    pub fn resume(&mut self, now: u64) {
        if let Eye::Hub(watch) = self {
            watch.resume(now);
        }
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, waiting: &Waiting, now: u64) -> Option<u64> {
        match (self, &waiting.manner) {
            (Eye::Hub(watch), Manner::Hub(hub)) => watch.due(waiting, hub, now),
            (Eye::Threads(_), _) | (Eye::Hub(_), Manner::Threads) => None,
        }
    }

    /// The calls that look stuck would go on if their threads had a processor.
    pub fn wants_processor_only(&mut self, waiting: &Waiting, now: u64) -> bool {
        match self {
            Eye::Threads(threads) => threads.wants_processor_only(waiting, now),
            Eye::Hub(_) => false, // a hub is waited for a little longer
        }
    }

    /// What has kept the hub from coming for longer than `timeout`, once: the report's subject, its text, and for how long.
    pub fn take_stuck_hub(&mut self, waiting: &Waiting, now: u64) -> Option<(Subject, Vec<u8>, u64)> {
        let (Eye::Hub(watch), Manner::Hub(hub)) = (self, &waiting.manner) else { return None };
        let age = watch.is_stuck(waiting, now)?;
        Some((Subject::Hub(hub.rounds()), waiting.name_of_stuck(hub), age))
    }

    /// Since when a hub is at the same, and its thread.
    pub fn held_up(&self, waiting: &Waiting) -> Option<(u64, ThreadId)> {
        let (Eye::Hub(watch), Manner::Hub(hub)) = (self, &waiting.manner) else { return None };
        Some((watch.held_up_since(hub)?, hub.thread()))
    }

    /// The request that a hub has begun last; empty: it is over.
    pub fn last_begun(&self, waiting: &Waiting) -> Vec<u8> {
        match &waiting.manner {
            Manner::Threads => Vec::new(),
            Manner::Hub(hub) => waiting.last_begun(hub).unwrap_or_default(),
        }
    }

    /// When what a hub was at at this moment was over, if that is known better than by looking.
    pub fn end_of(&self, waiting: &Waiting, moment: u64) -> Option<u64> {
        match &waiting.manner {
            Manner::Threads => None,
            Manner::Hub(hub) => hub.time.end_of(moment),
        }
    }

    /// Whether the hub has not come for longer than `timeout`.
    pub fn is_hub_stuck(&self, waiting: &Waiting, now: u64) -> bool {
        match self {
            Eye::Threads(_) => false,
            Eye::Hub(watch) => watch.stuck_for(waiting, now).is_some(),
        }
    }
}
