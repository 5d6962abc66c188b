//! The engine under a hub: one thread with an event loop of its own (gevent's, eventlet's, asyncio's) has many calls under
//! way at once.
//!
//! ```text
//!   hub waits ── the poller or the bell is readable ──▶ look ──▶ next, next, … ──▶ rest ──▶ hub waits
//!                                                       │         │ a call that waits gives control back to the hub,
//!                                                  reads, parses  ▼ which comes for the next one
//!                                                             Exchange
//! ```
//!
//! The hub does not wait in our poller, it watches the poller's descriptor; so nobody waits here with a timeout, and what
//! time brings is the monitor's. Whether the hub is stuck cannot be told from the age of a call either, since most calls
//! merely wait: it is stuck when it does not come though something happened ([`crate::monitor::hub_watch`]).
use crate::clock;
use crate::config::TICK;
use crate::engine::baton::Core;
use crate::engine::{Engine, Shared};
use crate::monitor::hub_watch;
use crate::sys::fork::is_child;
use crate::sys::poll::ready;
use crate::sys::signals::{self, AtomicThreadId, ThreadId};
use crate::sys::wake::Alarm;
use rustix::event::PollFlags;
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most stacks that wait for the watchdog; it takes them at its next look.
const STACKS: usize = 64;

/// A call as the watchdog finds it again: its place, its number there, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Began {
    pub place: usize,
    pub call: u32,
    pub started: u64,
}

/// What hub and monitor tell each other.
pub struct Hub {
    /// Makes the hub come although no descriptor of the poller is readable.
    bell: Alarm,
    rung: AtomicBool,
    /// How often the hub came for something.
    rounds: AtomicU64,
    thread: AtomicThreadId,
    /// The place of the call that began last.
    pub last: AtomicUsize,
    /// With `request_timeout`: calls in the order in which they began, some of them over.
    began: Mutex<VecDeque<Began>>,
    /// Calls that are late; in each of them an exception should be raised.
    late: Mutex<Vec<Began>>,
    /// Where late calls were when that was raised, for the watchdog's report.
    stacks: Mutex<Vec<Stack>>,
    tells_stacks: AtomicBool,
}

/// The stack of a call, in faulthandler's lines.
#[derive(Debug)]
struct Stack {
    place: usize,
    call: u32,
    lines: Vec<u8>,
}

/// The places of calls that are not taken; under the baton.
#[derive(Debug, Default)]
pub struct Places {
    free: Vec<usize>,
    next: usize,
}

impl Places {
    /// The place that was given back last, or one that was never used.
    pub fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    pub fn give(&mut self, place: usize) {
        self.free.push(place);
    }
}

impl Hub {
    pub fn new() -> io::Result<Hub> {
        Ok(Hub {
            bell: Alarm::new()?,
            rung: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            thread: AtomicThreadId::new(0),
            last: AtomicUsize::new(0),
            began: Mutex::default(),
            late: Mutex::default(),
            stacks: Mutex::default(),
            tells_stacks: AtomicBool::new(false),
        })
    }

    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// To be called when what the hub should see is there to be seen.
    pub fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.bell.ring();
        }
    }

    /// The hub has come and is about to look: a ring from here on to the end of this is for what it will see. (The other
    /// way round a ring in between would be cleared and still count as under way: the bell would be dumb for ever.)
    fn answer(&self) {
        if self.rung.load(Ordering::SeqCst) {
            self.bell.clear();
            self.rung.store(false, Ordering::SeqCst);
        }
    }

    pub fn is_rung(&self) -> bool {
        self.rung.load(Ordering::SeqCst)
    }

    #[inline]
    pub fn come(&self) {
        self.rounds.store(self.rounds.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    pub fn thread(&self) -> ThreadId {
        self.thread.load(Ordering::Relaxed)
    }

    /// Calls with a time limit, the oldest first.
    pub fn began(&self) -> MutexGuard<'_, VecDeque<Began>> {
        self.began.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The stack of a late call, if the hub has told it.
    pub fn take_stack(&self, place: usize, call: u32) -> Option<Vec<u8>> {
        let mut stacks = self.stacks();
        let index = stacks.iter().position(|stack| (stack.place, stack.call) == (place, call))?;
        Some(stacks.swap_remove(index).lines)
    }
}

impl Engine {
    /// The calling thread's hub comes to serve, up to `most` calls at once. It is the process's main thread: signals are
    /// its own.
    pub fn join_hub(&self, most: usize) -> bool {
        let shared = &*self.shared;
        let Some(hub) = &shared.hub else { return false };
        let mut core = shared.baton.take();
        hub.thread.store(signals::this_thread(), Ordering::Relaxed);
        shared.watch_signals(&mut core);
        core.joined = shared.slots.len().min(most);
        let joined = core.joined;
        core.reactor.staff(joined);
        hub.ring();
        true
    }

    /// The hub leaves: nothing more is begun.
    pub fn leave_hub(&self) {
        if is_child() {
            return;
        }
        let mut core = self.shared.baton.take();
        core.reactor.send_held();
        core.joined = 0;
        core.reactor.staff(0);
    }

    /// The descriptors that the hub watches for reading: the poller's and the bell's.
    pub fn hub_descriptors(&self) -> Option<(RawFd, RawFd)> {
        let hub = self.shared.hub.as_ref()?;
        Some((self.shared.poller.as_fd().as_raw_fd(), hub.bell.as_fd().as_raw_fd()))
    }

    /// Looks for events without waiting. Whether there is anything to do.
    pub fn look(&self) -> bool {
        let shared = &*self.shared;
        let Some(hub) = &shared.hub else { return false };
        if is_child() {
            return false; // a child may go on with its hub, for what it does itself
        }
        hub.come();
        hub.answer();
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        shared.reclaim(core);
        shared.stop_covering(core);
        // An unfinished batch is never replaced.
        if core.reactor.events.is_empty() {
            shared.open_doors(core);
            if shared.poller.wait(&mut core.spare, Some(0)).is_err() {
                shared.end_now();
                return true;
            }
            core.reactor.arrived(&mut core.spare, clock::now());
        }
        self.has_things(core) || !hub.late().is_empty()
    }

    /// Whether there is something for `next`.
    pub fn has_more(&self) -> bool {
        !is_child() && self.has_things(&mut self.shared.baton.take())
    }

    fn has_things(&self, core: &mut Core) -> bool {
        self.has_ended(core) || core.reactor.has_work() || core.reactor.woken || core.reactor.chores.weight() > 0
    }

    /// Whether the last look brought more than one event: there are likely to be more by now.
    pub fn was_batch(&self) -> bool {
        self.shared.baton.take().reactor.events.was_batch()
    }

    /// The hub is about to wait. False if there is something to do.
    pub fn rest(&self) -> bool {
        let shared = &*self.shared;
        if shared.hub.is_none() || is_child() {
            return true;
        }
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        let now = clock::now();
        shared.open_doors(core);
        shared.before_wait(core, now);
        if self.has_things(core) || core.reactor.has_leftovers() {
            return false;
        }
        let log_is_due = shared.access.as_ref().is_some_and(|access| access.is_due());
        if shared.monitor_asleep.load(Ordering::SeqCst) {
            // What has to be done at some time is the monitor's.
            let due = [core.reactor.timeout(now), shared.queue_look(core, now)].into_iter().flatten().min();
            if log_is_due || due.is_some_and(|due| shared.sleeper.oversleeps(now.saturating_add(due))) {
                shared.alarm.ring();
            }
        }
        true
    }

    /// The hub is to come soon.
    pub fn ring_hub(&self) {
        self.shared.ring_hub();
    }

    /// The calls in which an exception should be raised because they are late: their places.
    pub fn take_late(&self) -> Vec<usize> {
        let Some(hub) = &self.shared.hub else { return Vec::new() };
        let late = std::mem::take(&mut *hub.late());
        late.into_iter().filter(|began| self.shared.is_at(began)).map(|began| began.place).collect()
    }

    /// This hub knows where late calls are ([`Engine::tell_stack`]).
    pub fn tells_stacks(&self) {
        if let Some(hub) = &self.shared.hub {
            hub.tells_stacks.store(true, Ordering::Relaxed);
        }
    }

    /// Where a late call is: lines as faulthandler writes them. Told once, before an exception is raised in it.
    pub fn tell_stack(&self, place: usize, lines: Vec<u8>) {
        if let (Some(hub), Some(slot), true) =
            (&self.shared.hub, self.shared.slots.get(place), self.config().messages.is_some())
        {
            let mut stacks = hub.stacks();
            if stacks.len() < STACKS {
                stacks.push(Stack { place, call: slot.calls(), lines });
            }
        }
    }

    /// Whether the call at this place is late, and the application at it still.
    pub fn is_late_at(&self, place: usize) -> bool {
        self.shared.slots.get(place).is_some_and(|slot| slot.lateness.is(slot.calls()))
    }
}

impl Shared {
    pub fn ring_hub(&self) {
        if let Some(hub) = &self.hub {
            hub.ring();
        }
    }

    /// Whether something waits for the hub.
    pub fn awaits_hub(&self, hub: &Hub) -> bool {
        if hub.is_rung() {
            return true;
        }
        !ready(self.poller.as_fd(), PollFlags::IN, 0).is_empty()
    }

    /// Whether this call still runs.
    pub fn is_at(&self, began: &Began) -> bool {
        self.slots[began.place].calls() == began.call
    }

    /// A call begins under the hub.
    #[inline]
    pub fn note_began(&self, hub: &Hub, place: usize, started: u64) {
        hub.come();
        hub.last.store(place, Ordering::Relaxed);
        if self.config.request_timeout > 0 {
            let call = self.slots[place].calls();
            hub.began().push_back(Began { place, call, started });
        }
        // A monitor that slept, or was about to, when this call was not there yet does not know when to look at it: the event
        // that brought the request may be taken by now, and no other follows.
        fence(Ordering::SeqCst);
        self.sleeper.wake_by(started.saturating_add(self.look_after()));
    }

    /// How long after its beginning a call is to be looked at for the first time.
    fn look_after(&self) -> u64 {
        match self.config.request_timeout {
            0 => hub_watch::ring_after(self),
            limit => limit.min(hub_watch::ring_after(self)),
        }
    }

    /// Does what time has brought, in place of a hub that nobody wakes for it; the hub comes if there is more to do.
    pub fn tick_for(&self, hub: &Hub, now: u64) {
        let mut guard = self.baton.take();
        let core = &mut *guard;
        // A deadline is never told to be nearer than a tick.
        if core.reactor.timeout(now).is_some_and(|due| due <= TICK) {
            core.reactor.tick(now);
        }
        if core.reactor.queued() > 0 && !self.covering.load(Ordering::Relaxed) {
            self.look_after_queue(core);
        }
        let has_more = core.reactor.has_work() || core.reactor.has_leftovers() || core.reactor.chores.weight() > 0;
        if has_more || core.reactor.is_drained() || self.baton.is_broken() {
            hub.ring();
        }
    }

    /// When the requests that wait have to be looked at again, in nanoseconds.
    pub fn queue_look(&self, core: &Core, now: u64) -> Option<u64> {
        let shares =
            self.channel().is_some_and(|(siblings, _)| core.reactor.queued() > 0 || siblings.is_something_sent());
        let due = core.reactor.queue_due().map(|due| due.saturating_sub(now));
        [due, shares.then_some(crate::config::SHARE_TICK)].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_given_back_last_is_taken_first() {
        let mut places = Places::default();
        assert_eq!((places.take(), places.take(), places.take()), (0, 1, 2));
        places.give(1);
        places.give(0);
        assert_eq!((places.take(), places.take(), places.take()), (0, 1, 3));
    }

    #[test]
    fn a_bell_rings_once_until_it_is_answered() {
        let hub = Hub::new().expect("an eventfd");
        hub.ring();
        hub.ring();
        assert!(hub.is_rung());
        hub.answer();
        assert!(!hub.is_rung());
        assert_eq!(ready(hub.bell.as_fd(), PollFlags::IN, 0), PollFlags::empty());
    }
}
