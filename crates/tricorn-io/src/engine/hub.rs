//! The engine under a hub: one thread with an event loop of its own (gevent's, eventlet's, asyncio's) has many calls under
//! way at once.
//!
//! ```text
//!   hub waits ── the poller or the wake-up is readable ──▶ look ──▶ next, next, … ──▶ rest ──▶ hub waits
//!                                                       │         │ a call that waits gives control back to the hub,
//!                                                  reads, parses  ▼ which comes for the next one
//!                                                             Exchange
//! ```
//!
//! The hub does not wait in our poller, it watches the poller's descriptor, and new connections call it by the same name
//! (`waiting/entrance.rs`); so no thread waits here with a timeout, and what
//! time brings is the monitor's. Whether the hub is stuck cannot be told from the age of a call either, since most calls
//! merely wait: it is stuck when it does not come though something happened (`waiting/hub_watch.rs`).
use super::Engine;
use super::baton::Core;
use super::shared::Shared;
use crate::Frames;
use crate::clock::{self, MILLI};
use crate::config::{SHARE_TICK, TICK};
use crate::sys::fork::is_child;
use crate::turn::Turn;
use crate::waiting::entrance::Entrance;
use crate::waiting::hub::Hub;
use rustix::fd::{AsRawFd, RawFd};
use std::ops::Deref;
use std::sync::Arc;
use tricorn_diagnosis::stack_samples::{Asker, SampleRequest};
use tricorn_diagnosis::wait_sites::PoolWait;
use tricorn_doctor::Marks;

/// The longest job that a hub runs itself: its loop, and with it the application, waits meanwhile. The monitor runs longer ones, such
/// as signatures with an RSA key of 4,096 bits.
const LONGEST_JOB: u64 = MILLI / 2;

/// An engine whose calls run on a hub, for the hub's thread and its gateways.
#[derive(Clone)]
pub struct HubHandle {
    engine: Arc<Engine>,
    hub: Arc<Hub>,
}

impl Deref for HubHandle {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

/// The server of a hub, as [`HubHandle::take_turn`] calls it.
pub trait HubServer {
    type Error;

    /// Ends the call in this slot: it is over `request_timeout`.
    fn end_late(&mut self, slot: usize) -> Result<(), Self::Error>;

    /// Takes what there is from [`Engine::next`], until `turn` is over. Returns false if the engine has ended.
    fn serve(&mut self, turn: Turn) -> Result<bool, Self::Error>;

    /// Runs a job of the engine, without the GIL.
    fn run_job(&mut self, job: impl FnOnce() + Send);
}

impl Engine {
    /// The engine's handle for a hub; `None`: it was made for threads.
    pub fn hub(self: &Arc<Self>) -> Option<HubHandle> {
        let hub = self.shared.waiting.hub()?.clone();
        Some(HubHandle { engine: self.clone(), hub })
    }

    /// Whether the call in this slot is late, and the application at it still.
    pub fn is_late_at(&self, slot: usize) -> bool {
        self.shared.waiting.slots.get(slot).is_some_and(|slot| slot.lateness.is(slot.calls()))
    }

    fn has_things(&self, core: &mut Core) -> bool {
        self.has_ended(core) || core.reactor.has_work() || core.reactor.is_woken() || core.reactor.chores_weight() > 0
    }
}

impl HubHandle {
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Lets the calling thread serve, with up to `most` calls at once. It is the process's main thread: signals are its own.
    pub fn join(&self, most: usize) {
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        self.hub.serve();
        shared.watch_signals(&mut core);
        core.joined = shared.waiting.slots.len().min(most);
        let joined = core.joined;
        core.reactor.set_threads(joined);
        self.hub.ring();
    }

    /// The hub leaves: nothing more is begun.
    pub fn leave(&self) {
        if is_child() {
            return;
        }
        let mut core = self.shared.baton.take();
        core.reactor.send_held();
        core.joined = 0;
        core.reactor.set_threads(0);
        self.shared.leave_channel(&mut core);
        core.reactor.move_listeners(Entrance::detach);
    }

    /// The descriptors that the hub watches for reading: the poller's and the wake-up's.
    pub fn descriptors(&self) -> (RawFd, RawFd) {
        (self.shared.poller.as_fd().as_raw_fd(), self.hub.wakeup().as_raw_fd())
    }

    /// Does what there is to do until the hub's other callbacks are to have their turn. Returns false if the engine has ended.
    pub fn take_turn<S: HubServer>(&self, server: &mut S) -> Result<bool, S::Error> {
        let turn = Turn::begin(clock::now());
        loop {
            while self.look() {
                for slot in self.take_late() {
                    server.end_late(slot)?;
                }
                if !server.serve(turn)? {
                    return Ok(false);
                }
                if !self.was_batch() || turn.is_over(clock::now()) {
                    break;
                }
            }
            if !self.has_job(turn) {
                break;
            }
            server.run_job(|| self.shared.run_job());
        }
        if !self.rest() {
            self.ring();
        }
        Ok(true)
    }

    /// Looks for events without waiting. Whether there is anything to do.
    pub fn look(&self) -> bool {
        if is_child() {
            return false; // a child may go on with its hub, for what it does itself
        }
        let (shared, hub) = (&*self.shared, &*self.hub);
        hub.come();
        let rung = hub.answer();
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        let has_rested = std::mem::replace(&mut core.hub_rests, false);
        shared.reclaim(core);
        shared.stop_covering(core);
        core.reactor.sort_newcomer();
        // An unfinished batch is never replaced.
        if core.reactor.events().is_empty() {
            if rung {
                shared.settle(core);
            }
            shared.open_gate(core);
            if shared.see_events(core).is_err() {
                shared.end_now();
                return true;
            }
        }
        // The event loop has called: if for nothing, a listener may have a connection that no event tells of here (`Entrance`).
        self.has_things(core) || !hub.late().is_empty() || has_rested && !rung && core.reactor.look_at_listeners()
    }

    /// Whether there is something for `next`.
    pub fn has_more(&self) -> bool {
        !is_child() && self.has_things(&mut self.shared.baton.take())
    }

    /// Whether the last look brought more than one event: there are likely to be more by now.
    fn was_batch(&self) -> bool {
        self.shared.baton.take().reactor.events().was_batch()
    }

    /// Whether the hub, which has nothing else to do, should run a job before it rests. To wake the monitor and to be woken by it costs
    /// more than most jobs do.
    #[inline]
    fn has_job(&self, turn: Turn) -> bool {
        let shared = &*self.shared;
        if shared.config.tls.is_none() || is_child() {
            return false;
        }
        let core = shared.baton.take();
        core.reactor.has_short_job(LONGEST_JOB) && !core.reactor.has_work() && !turn.is_over(clock::now())
    }

    /// The hub is about to wait. False if there is something to do.
    pub fn rest(&self) -> bool {
        if is_child() {
            return true;
        }
        let shared = &*self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        let now = clock::now();
        shared.open_gate(core);
        shared.before_wait(core, now);
        if self.has_things(core) || core.reactor.has_leftovers() {
            return false;
        }
        if core.reactor.has_job() {
            shared.waiting.wake_monitor(); // the hub is not held up for it
        }
        let log_is_due = shared.logs.need_a_look();
        if shared.waiting.watch.is_asleep() {
            // What has to be done at some time is the monitor's.
            let due = [core.reactor.timeout(now), shared.queue_look(core, now)].into_iter().flatten().min();
            if log_is_due || due.is_some_and(|due| shared.waiting.sleeper.oversleeps(now.saturating_add(due))) {
                shared.waiting.alarm.ring();
            }
        }
        core.hub_rests = true;
        true
    }

    /// The event loop says from now on when it waits ([`HubHandle::loop_waits`]).
    pub fn keep_loop_time(&self) {
        self.hub.time.begin(clock::now());
    }

    /// Whether something has had to wait for the event loop.
    #[inline]
    pub fn was_missed(&self) -> bool {
        self.hub.time.is_missed()
    }

    /// The event loop begins to wait for events.
    #[inline]
    pub fn loop_waits(&self) {
        self.hub.time.wait_begins(clock::now());
    }

    /// The event loop has waited.
    #[inline]
    pub fn loop_works(&self) {
        let now = clock::now();
        let waited = self.hub.time.wait_ends(now);
        self.shared.waiting.loop_works(waited, now);
    }

    /// The hub is to come soon.
    pub fn ring(&self) {
        self.hub.ring();
    }

    /// Takes the slots of the calls in which an exception should be raised because they are late.
    fn take_late(&self) -> Vec<usize> {
        let late = std::mem::take(&mut *self.hub.late());
        late.into_iter().filter(|began| self.shared.waiting.is_at(began)).map(|began| began.slot).collect()
    }

    /// Takes the request for samples of calls, if there is one ([`HubHandle::answer_samples`]).
    #[inline]
    pub fn take_sample_request(&self) -> Option<SampleRequest> {
        self.hub.samples.take()
    }

    /// The hub's thread begins the call in this slot, or (`None`) has begun it.
    #[inline]
    pub fn begins_at(&self, slot: Option<usize>) {
        self.hub.at.begins(slot);
    }

    /// From now on the call in this slot is known by the context that it runs in, or by an object that a variable of that names.
    #[inline]
    pub fn knows_call_by(&self, slot: usize, address: u64) {
        self.hub.at.knows(slot, address);
    }

    /// How a call is told from another one by what its thread has in memory.
    pub fn mark_calls_with(&self, marks: Marks) {
        self.hub.at.mark_calls_with(marks);
    }

    /// Where the calls asked about wait: slots, frames (the innermost first) and pools; and how many nanoseconds it took to find that out.
    pub fn answer_samples(&self, asker: Asker, found: Vec<(usize, Frames, Option<PoolWait>)>, spent: u64) {
        self.hub.samples.answer(asker, self.shared.board, found, spent);
    }

    /// This hub knows where late calls are ([`HubHandle::tell_stack`]).
    pub fn tells_stacks(&self) {
        self.hub.will_tell_stacks();
    }

    /// Where a late call is, the innermost frame first. Told once, before an exception is raised in it.
    pub fn tell_stack(&self, slot: usize, frames: Frames) {
        if let (Some(call), true) = (self.shared.waiting.slots.get(slot), self.config().messages.is_some()) {
            self.hub.keep_stack(slot, call.calls(), frames);
        }
    }
}

impl Shared {
    /// Has a new connection wake this hub in its turn, if that is not so yet or no longer. The loop watches our descriptors when
    /// the wake-up comes for the first time; a loop that has exchanged its epoll is woken.
    fn settle(&self, core: &mut Core) {
        if core.reactor.is_unsettled() {
            self.leave_channel(core);
            core.reactor.move_listeners(Entrance::attach);
        }
    }

    /// Does what time has brought, in place of a hub that is not woken for it; the hub comes if there is more to do. One that
    /// `came` since the last tick and does not rest has its work in hand, and looks for more before it rests.
    pub fn tick_for(&self, now: u64, came: bool) {
        let Some(hub) = self.waiting.hub() else { return };
        let mut guard = self.baton.take();
        let core = &mut *guard;
        // A deadline is never told to be nearer than a tick.
        if core.reactor.timeout(now).is_some_and(|due| due <= TICK) {
            core.reactor.tick(now);
        }
        if core.reactor.queued() > 0 && !self.waiting.watch.is_covering() {
            self.look_after_queue(core);
        }
        let has_more = core.reactor.has_work() || core.reactor.has_leftovers() || core.reactor.chores_weight() > 0;
        let is_at_it = came && !core.hub_rests;
        if (has_more && !is_at_it) || core.reactor.is_drained() || self.baton.is_broken() {
            hub.ring();
        }
    }

    /// When the requests that wait have to be looked at again, in nanoseconds.
    pub fn queue_look(&self, core: &Core, now: u64) -> Option<u64> {
        let shares =
            self.channel().is_some_and(|(siblings, _)| core.reactor.queued() > 0 || siblings.is_something_sent());
        let due = core.reactor.queue_due().map(|due| due.saturating_sub(now));
        [due, shares.then_some(SHARE_TICK)].into_iter().flatten().min()
    }
}
