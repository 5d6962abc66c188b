//! What the threads of a worker and its monitor share, and the questions whose answers differ with threads and a hub.
use super::capacity::Callers;
use super::entrance::Entrance;
use super::hub::{Began, Hub, ring_after};
use super::loop_time::LoopUse;
use super::progress::Silence;
use super::sampling::Sampling;
use super::sleeper::Sleeper;
use super::slots::{FreeSlots, Slots};
use super::streams::Streams;
use super::watch::Watch;
use crate::clock::{MILLI, SECOND};
use crate::config::{Config, TICK};
use crate::exchange::output::Watched;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::{Poller, ready};
use crate::sys::signals::{self, ThreadId};
use crate::sys::wake::{Alarm, WakePipe};
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use rustix::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use tricorn_diagnosis::sampling::Frames;

/// With `request_timeout`: how often the monitor looks, while calls are under way, for the order to cancel one.
pub const ORDERS: u64 = 250 * MILLI;

/// With `development`: bells in each `doctor_threshold`. What holds up a loop is seen that part of it later than it begins, twice at most.
const PROBES: u64 = 4;

/// Heartbeats come in this interval, or in a quarter of a longer `timeout`; of a shorter one so much is left for a late monitor.
const BEAT: u64 = 15 * SECOND;

fn beat(timeout: u64) -> u64 {
    if timeout == 0 { BEAT } else { timeout.saturating_sub(BEAT).clamp(TICK, BEAT).max(timeout / 4) }
}

pub struct Waiting {
    pub(super) config: Arc<Config>,
    pub(super) board: Scoreboard,
    pub(super) poller: Arc<Poller>,
    pub slots: Slots,
    /// The outputs that bytes were left in.
    pub streams: Streams,
    /// Where listeners are watched.
    pub entrance: Arc<Entrance>,
    /// Ends the wait of the polling thread.
    pub kick: Arc<Alarm>,
    /// Ends the wait of the monitor.
    pub alarm: Arc<Alarm>,
    /// The one of them that keeps the deadlines.
    pub sleeper: Arc<Sleeper>,
    pub signals: WakePipe,
    pub watch: Watch,
    /// Where the requests are that take long.
    pub sampling: Sampling,
    /// The slot of the main thread, if it is an app thread.
    main_slot: AtomicUsize,
    pub(super) manner: Manner,
}

pub(super) enum Manner {
    Threads,
    /// One thread has all the calls, and waits elsewhere.
    Hub(Arc<Hub>),
}

/// What a report of the watchdog is about, as long as the worker is at the same.
#[derive(Debug, Clone, Copy)]
pub enum Subject {
    Call(u32),
    /// The hub, since it came so many times.
    Hub(u64),
}

impl Waiting {
    pub fn new(config: Arc<Config>, board: Scoreboard, poller: Arc<Poller>) -> io::Result<Waiting> {
        let (kick, alarm) = (Arc::new(Alarm::new()?), Arc::new(Alarm::new()?));
        let (manner, slots, sleeper, entrance) = if config.hub {
            let entrance = Entrance::of_hub(poller.clone())?;
            (Manner::Hub(Arc::new(Hub::new(config.threads)?)), Slots::new(config.threads), alarm.clone(), entrance)
        } else {
            (Manner::Threads, Slots::all(config.threads), kick.clone(), Entrance::of_threads(poller.clone()))
        };
        let after = if config.profile.is_some() { config.profile_after } else { 0 };
        let sampling = Sampling::new(after)?;
        Ok(Waiting {
            config,
            board,
            poller,
            slots,
            streams: Streams::new()?,
            entrance: Arc::new(entrance),
            kick,
            alarm,
            sleeper: Arc::new(Sleeper::new(sleeper)),
            signals: WakePipe::new()?,
            watch: Watch::new(),
            sampling,
            main_slot: AtomicUsize::new(usize::MAX),
            manner,
        })
    }

    /// What runs the calls, for what counts them.
    pub fn callers(&self) -> Callers {
        match &self.manner {
            Manner::Threads => Callers::Threads,
            Manner::Hub(_) => Callers::Hub,
        }
    }

    /// The hub, if there is one.
    #[inline]
    pub fn hub(&self) -> Option<&Arc<Hub>> {
        match &self.manner {
            Manner::Threads => None,
            Manner::Hub(hub) => Some(hub),
        }
    }

    /// The hub's wake-up, which has to be made quiet in a child of the application.
    pub fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        self.hub().map(|hub| hub.wakeup())
    }

    /// The hub is to come soon. Threads are woken each in its own way.
    pub fn ring_hub(&self) {
        if let Manner::Hub(hub) = &self.manner {
            hub.ring();
        }
    }

    /// The slot of a call that begins in this thread.
    #[inline]
    pub fn take_slot(&self, free_slots: &mut FreeSlots, thread: usize) -> usize {
        match &self.manner {
            Manner::Threads => thread,
            Manner::Hub(_) => free_slots.take(),
        }
    }

    /// A call is noted in its slot and on the scoreboard: the monitor is to see it.
    #[inline]
    pub fn call_began(&self, slot: usize, started: u64) {
        if let Manner::Hub(hub) = &self.manner {
            self.hub_began(hub, slot, started);
        }
        // A thread that looks after calls, and slept, or was about to, when this call was not there yet does not know when to
        // look at it: the event that brought the request may be taken by now, and no other follows. Either it sees the call,
        // or this sees it lying down.
        fence(Ordering::SeqCst);
        match &self.manner {
            Manner::Threads => self.wake_monitor(),
            Manner::Hub(_) => self.sleeper.wake_by(started.saturating_add(self.look_after())),
        }
        self.sampling.began(started);
    }

    #[inline]
    fn hub_began(&self, hub: &Hub, slot: usize, started: u64) {
        hub.come();
        hub.last.store(slot, Ordering::Relaxed);
        hub.at.knows(slot, 0);
        if self.config.request_timeout > 0 {
            let call = self.slots[slot].calls();
            hub.begins(Began { slot, call, started }, |call| self.is_at(call));
        }
    }

    /// How long after its beginning a call is to be looked at for the first time.
    fn look_after(&self) -> u64 {
        match self.config.request_timeout {
            0 => self.ring_after(),
            limit => limit.min(self.ring_after()).min(ORDERS),
        }
    }

    /// The event loop works since now. A monitor that has found it to wait looks at it anew: what it is at may hold it up.
    #[inline]
    pub fn loop_works(&self, waited: u64, now: u64) {
        let after = self.ring_after();
        if waited >= after && self.board.get(Word::InFlight) > 0 {
            fence(Ordering::SeqCst); // it sees that the loop works, or this sees it lying down
            self.sleeper.wake_by(now.saturating_add(after));
        }
    }

    /// How long the monitor may be silent while calls are under way in which nothing happens.
    pub fn beat(&self) -> u64 {
        beat(self.config.timeout)
    }

    /// How long a hub with calls under way may be silent before it is rung for.
    pub(super) fn ring_after(&self) -> u64 {
        let config = &self.config;
        match config.doctor_threshold {
            // Some loops do not show when they wait: a bell for which they do not come does.
            threshold @ 1.. if config.development => (threshold / PROBES).max(TICK),
            _ => ring_after(config.timeout),
        }
    }

    /// A call is over. `is_shut`: nothing was accepted for want of room.
    #[inline]
    pub fn call_ended(&self, free_slots: &mut FreeSlots, slot: usize, is_shut: bool) {
        self.slots[slot].leave();
        match &self.manner {
            // It has lasted for so long that the monitor sleeps beside it, and what follows from its end is to be seen to.
            Manner::Threads => self.wake_monitor(),
            Manner::Hub(hub) => {
                hub.come();
                free_slots.give(slot);
                if is_shut {
                    hub.ring(); // it opens the doors, which it looked at when there was no room
                }
            }
        }
    }

    /// Bytes were left to the monitor here.
    pub fn bytes_wait(&self, output: Watched) {
        if self.streams.add(output) && self.watch.stream_began() {
            self.alarm.ring();
        }
    }

    /// A line of a log waits. A monitor that waits for events, or sleeps beside calls of threads, is told; a hub says so
    /// when it rests.
    pub fn line_waits(&self) {
        if self.watch.is_covering() || (self.calls_hold_threads() && self.watch.wake()) {
            self.alarm.ring();
        }
    }

    #[inline]
    pub fn wake_monitor(&self) {
        if self.watch.wake() {
            self.alarm.ring();
        }
    }

    /// Whether a call keeps its thread from waiting for events.
    #[inline]
    pub fn calls_hold_threads(&self) -> bool {
        matches!(self.manner, Manner::Threads)
    }

    /// The sleep of a monitor that keeps the deadlines; `None`: an app thread does.
    pub fn monitors_sleep(&self) -> Option<&Sleeper> {
        match &self.manner {
            Manner::Threads => None,
            Manner::Hub(_) => Some(&self.sleeper),
        }
    }

    /// How many slots the watchdog looks at in each tick: under a hub a call that merely waits is not stuck.
    pub fn watched_slots(&self) -> usize {
        match &self.manner {
            Manner::Threads => self.slots.len(),
            Manner::Hub(_) => 0,
        }
    }

    /// Whether `timeout` is about each call.
    pub fn times_calls(&self) -> bool {
        matches!(self.manner, Manner::Threads)
    }

    /// The next call that is known to be over `request_timeout` without a look at every slot.
    pub fn next_late(&self, now: u64) -> Option<Began> {
        let Manner::Hub(hub) = &self.manner else { return None };
        let mut began = hub.began();
        // All have the same limit: those that began first are late first.
        while let Some(first) = began.front().copied() {
            let runs = self.is_at(&first);
            if runs && now.saturating_sub(first.started) < self.config.request_timeout {
                return None;
            }
            began.pop_front();
            if runs {
                return Some(first);
            }
        }
        None
    }

    /// The call of this slot that began then, if it runs. It is not known to [`Waiting::next_late`] any more.
    pub fn take_begun(&self, slot: usize, started: u64) -> Option<Began> {
        match &self.manner {
            Manner::Threads if slot < self.slots.len() => {
                let (call, since) = self.running(slot)?;
                (since == started).then_some(Began { slot, call, started })
            }
            Manner::Threads => None,
            Manner::Hub(hub) => {
                let mut began = hub.began();
                let index = began.iter().position(|each| (each.slot, each.started) == (slot, started))?;
                began.remove(index).filter(|call| self.is_at(call))
            }
        }
    }

    /// When [`Waiting::next_late`] may have one.
    pub fn next_late_due(&self) -> Option<u64> {
        let limit = self.config.request_timeout;
        let Manner::Hub(hub) = &self.manner else { return None };
        let first = hub.began().front().copied().filter(|_| limit > 0)?;
        Some(first.started.saturating_add(limit))
    }

    /// The stack of a late call, if the hub has told it.
    pub fn take_stack(&self, slot: usize, of: Subject) -> Option<Frames> {
        match (of, &self.manner) {
            (Subject::Call(call), Manner::Hub(hub)) => hub.take_stack(slot, call),
            _ => None,
        }
    }

    /// The hub has yet to come to the call, and will tell its stack.
    pub fn will_tell_stack(&self, slot: usize, of: Subject) -> bool {
        match (of, &self.manner) {
            (Subject::Call(call), Manner::Hub(hub)) => hub.tells_stacks() && self.slots[slot].calls() == call,
            _ => false,
        }
    }

    /// The thread that is at what a report is about; under a hub a call that merely waits is on no thread's stack.
    pub fn thread_of(&self, slot: usize, of: Subject) -> Option<ThreadId> {
        match (of, &self.manner) {
            (Subject::Call(call), Manner::Threads) => {
                let is_there = self.running(slot).is_some_and(|(now_at, _)| now_at == call);
                is_there.then(|| self.slots[slot].thread())
            }
            (Subject::Hub(rounds), Manner::Hub(hub)) => (hub.rounds() == rounds).then(|| hub.thread()),
            (Subject::Call(_), Manner::Hub(_)) | (Subject::Hub(_), Manner::Threads) => None,
        }
    }

    /// Lets `RequestTimeout` be raised in the call: its thread does it where signals are handled, the main thread elsewhere.
    /// Under a hub the call may be waiting, or be what the hub is held up by.
    pub fn end_late_call(&self, began: Began) {
        let interrupt = |thread| signals::late_signal().is_some_and(|signal| signals::send(thread, signal));
        match &self.manner {
            Manner::Hub(hub) => {
                hub.late().push(began);
                interrupt(hub.thread());
                hub.ring();
            }
            Manner::Threads if self.main_slot() == Some(began.slot) => {
                interrupt(self.slots[began.slot].thread());
            }
            Manner::Threads => self.signals.kick(),
        }
    }

    /// The request that a hub has begun last, while it runs.
    pub fn last_begun(&self, hub: &Hub) -> Option<Vec<u8>> {
        self.board.call_text(hub.last.load(Ordering::Relaxed))
    }

    /// What the log calls the work that holds up the hub.
    pub fn name_of_stuck(&self, hub: &Hub) -> Vec<u8> {
        let mut text = self.last_begun(hub).unwrap_or_else(|| b"the event loop".to_vec());
        let others = self.board.get(Word::InFlight).saturating_sub(1);
        if others > 0 {
            text.extend_from_slice(format!(" (the last of {} requests under way to begin)", others + 1).as_bytes());
        }
        text
    }

    /// Whether something waits for the hub.
    pub(super) fn awaits_hub(&self, hub: &Hub) -> bool {
        let has_events = |fd| !ready(fd, PollFlags::IN, 0).is_empty();
        hub.is_rung() || has_events(self.poller.as_fd()) || self.entrance.accepts().is_some_and(has_events)
    }

    /// Adds to the scoreboard what a hub's event loop was used for since the last time.
    pub fn note_loop(&self, account: &mut LoopUse, now: u64) {
        if let Manner::Hub(hub) = &self.manner {
            account.look(&hub.time, hub.thread(), self.board, now);
        }
    }

    /// The call a slot is at: its number, and when it began.
    pub fn running(&self, slot: usize) -> Option<(u32, u64)> {
        let call = self.slots[slot].calls();
        if call.is_multiple_of(2) {
            return None;
        }
        // The start is taken back when a call ends and set after the next one began: it is this call's, or none.
        let started = self.board.call_started(slot);
        (started != 0 && self.slots[slot].calls() == call).then_some((call, started))
    }

    /// Whether this call still runs.
    pub fn is_at(&self, began: &Began) -> bool {
        self.slots[began.slot].calls() == began.call
    }

    /// Whether any call is under way.
    pub fn in_flight(&self) -> bool {
        self.slots.iter().any(|slot| slot.calls() % 2 == 1)
    }

    pub fn silence(&self, slot: usize, call: u32, started: u64) -> Silence {
        self.slots[slot].progress.silence(call, started)
    }

    pub fn main_slot(&self) -> Option<usize> {
        let slot = self.main_slot.load(Ordering::Relaxed);
        (slot < self.slots.len()).then_some(slot)
    }

    pub fn set_main_slot(&self, slot: Option<usize>) {
        self.main_slot.store(slot.unwrap_or(usize::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_comes_long_before_it_is_missed() {
        for (timeout, every) in [(0, 15), (4, 1), (20, 5), (24, 9), (30, 15), (120, 30)] {
            assert_eq!(beat(timeout * SECOND), every * SECOND, "{timeout}");
        }
    }
}
