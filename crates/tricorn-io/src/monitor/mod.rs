//! The monitor: a native thread that asks "the Python side is busy; what must still happen?".
//!
//! * Asleep while nothing is in flight: no timer runs in an idle worker.
//! * Ticking while application calls are: if a call did not end since the last tick and no thread waits for events, a parked
//!   app thread is woken to do so.
//! * Covering when no app thread is left: it reads and buffers requests, serves slow readers and keeps the deadlines,
//!   until an app thread comes back. It starts no request.
//!
//! It also leaves when the arbiter dies (`orphan.rs`), sends what streams have gathered (`cork.rs`), writes the heartbeat, and
//! has the access log written. It never meets the GIL, and never waits for a disk.

mod census;
mod diagnosis;
mod examiner;
mod life;
mod orphan;
mod packages;
mod sampler;
mod saturation;
mod slicer;
mod slow;
mod stall_record;
mod stalls;
mod usage;
pub mod watchdog;

use crate::clock::{self, MILLI};
use crate::config::{Failpoint, LONG_TICK, MaxConcurrency, TICK};
use crate::engine::baton::Core;
use crate::engine::shared::Shared;
use crate::limiter::{GLANCE, Keeper};
use crate::reactor::Runner;
use crate::scoreboard::Word;
use crate::sys::signals;
use crate::waiting::sleeper::Sleeper;
use crate::waiting::{Eye, Seen};
use diagnosis::Diagnosis;
use rustix::fd::{AsFd, BorrowedFd};
use slicer::Slicer;
use std::sync::atomic::Ordering;
use usage::Usage;
use watchdog::Watchdog;

/// Ticks without a call in flight before it sleeps: short enough to cost nothing, long enough not to be woken for each
/// of a stream of requests. A long tick in which a hub rests counts as several.
const IDLE_TICKS: u64 = 4;

/// How often it looks, while draining, whether what waits will ever be served.
const STRANDED: u64 = 100 * clock::MILLI;

/// By how much a look may come late before the process is taken to have been stopped meanwhile.
const PAUSED: u64 = clock::SECOND;

/// A process that has computed for one part in so many of a time was not stopped for all of it.
const COMPUTES: u64 = 20;

/// Heartbeats of a covering monitor within `timeout`, after which the arbiter takes a silent worker for stuck.
const HEARTBEATS: u64 = 4;
/// How long it lets go of the baton while there is more to read, or another thread waits for the baton
/// (`Baton::is_wanted`). A thread that waits for a Mutex needs so long to wake up.
const BREATH: u64 = MILLI / 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Asleep,
    Ticking,
    Covering,
}

pub fn run(shared: &Shared) {
    signals::block_others();
    let watchdog = Watchdog::new(shared);
    let keeper = shared.siblings.get().filter(|_| shared.config.max_concurrency == MaxConcurrency::Auto);
    let keeper = keeper.map(|siblings| Keeper::new(siblings.group, clock::now()));
    let mut monitor = Monitor {
        shared,
        life: shared.config.life.as_ref().map(|pipe| pipe.as_fd()),
        keeper,
        mode: Mode::Ticking,
        idle: 0,
        calm: false,
        covering_since: 0,
        watchdog,
        eye: Eye::new(&shared.waiting),
        usage: Usage::default(),
        diagnosis: Diagnosis::new(shared),
        slicer: Slicer::default(),
        last: Last { looked: clock::now(), expected: u64::MAX, cpu: 0 },
        has_jobs: false,
    };
    while !shared.life.is_closed() {
        monitor.rest();
        monitor.look_around();
    }
    shared.board.set(Word::Cpu, clock::process_cpu());
    monitor.resign();
}

struct Monitor<'s> {
    shared: &'s Shared,
    /// The pipe that ends with the arbiter, until it has.
    life: Option<BorrowedFd<'s>>,
    mode: Mode,
    idle: u64,
    /// Calls follow one another so closely that a stuck one will be noticed after a long tick, too.
    calm: bool,
    /// When the last time of covering began.
    covering_since: u64,
    watchdog: Watchdog,
    /// What was seen of the threads, or of the hub.
    eye: Eye,
    /// With `max_concurrency = auto`.
    keeper: Option<Keeper>,
    usage: Usage,
    diagnosis: Diagnosis,
    slicer: Slicer,
    last: Last,
    /// Jobs are left that no app thread does.
    has_jobs: bool,
}

/// Its last look.
struct Last {
    /// When that was, and when the next one was meant to be.
    looked: u64,
    expected: u64,
    /// What the process had computed by then.
    cpu: u64,
}

impl Monitor<'_> {
    /// Waits for as long as the mode allows.
    fn rest(&mut self) {
        let shared = self.shared;
        match self.mode {
            Mode::Asleep => {
                shared.waiting.watch.lie_down();
                // A call that began before the word said so is seen here; one that begins later rings.
                match shared.waiting.monitors_sleep() {
                    None if self.in_flight() || self.is_app_thread_coming() || self.log_waits() => {}
                    Some(_) if self.has_jobs || shared.baton.take().reactor.has_job() => {}
                    None => self.wait([None; 2], self.log_retry()),
                    Some(sleep) => self.sleep_beside_hub(sleep),
                }
                shared.waiting.watch.get_up();
                self.mode = Mode::Ticking;
                self.idle = 0;
            }
            _ if self.has_jobs => self.wait([None; 2], Some(0)),
            Mode::Ticking if self.calm => self.rest_long(),
            Mode::Ticking => self.wait([None; 2], Some(TICK)),
            Mode::Covering => {
                let sleep = shared.waiting.monitors_sleep();
                if let Some(sleep) = sleep {
                    sleep.lie_down(); // a hub that is away may give exchanges back all the same
                }
                let now = clock::now();
                let timeout = self.queue_timeout(now);
                let ticks = (self.log_waits() || shared.waiting.streams.any()).then_some(TICK);
                // Whether a request is stranded is a question of time, too.
                let stranded = (shared.is_draining() && shared.has_queued()).then_some(STRANDED);
                let glance = self.keeper.is_some().then_some(GLANCE);
                let hub = [
                    self.eye.due(&shared.waiting, now),
                    self.diagnosis.due(shared, &self.eye, now),
                    self.slicer.due(now),
                ];
                let own = [self.heartbeat(), self.watchdog.due(shared, now), self.log_retry()];
                let timeout = [timeout, ticks, stranded, glance].into_iter().chain(hub).chain(own).flatten().min();
                if let Some(sleep) = sleep {
                    sleep.sleep_until(timeout.map(|timeout| now.saturating_add(timeout)));
                }
                self.wait(shared.events(), timeout);
                if let Some(sleep) = sleep {
                    sleep.get_up();
                }
            }
        }
    }

    /// A long tick, unless something must be done at each short one.
    fn rest_long(&mut self) {
        let shared = self.shared;
        shared.waiting.watch.rest();
        // A stream that begins before the word said so is seen here; one that begins later rings.
        let is_wanted = shared.waiting.streams.any() || self.is_app_thread_coming() || self.watchdog.is_reporting();
        self.wait([None; 2], Some(if is_wanted { TICK } else { LONG_TICK }));
        shared.waiting.watch.get_up();
    }

    /// In how many nanoseconds the arbiter must see another heartbeat: calls under way may last beyond `timeout`.
    fn heartbeat(&self) -> Option<u64> {
        let limit = self.shared.config.timeout;
        (limit > 0 && self.in_flight()).then(|| (limit / HEARTBEATS).max(TICK))
    }

    /// Sleeps until something happens to the hub's descriptors, or has to be done at its time.
    fn sleep_beside_hub(&mut self, sleep: &Sleeper) {
        let shared = self.shared;
        let now = clock::now();
        if self.log_waits() || shared.waiting.streams.any() || self.watchdog.is_reporting() {
            return;
        }
        sleep.lie_down();
        let glance = self.keeper.is_some().then_some(GLANCE);
        let dues = [
            self.queue_timeout(now),
            self.log_retry(),
            glance,
            self.watchdog.due(shared, now),
            self.eye.due(&shared.waiting, now),
            self.diagnosis.due(shared, &self.eye, now),
            self.slicer.due(now),
        ];
        let timeout = dues.into_iter().flatten().min();
        sleep.sleep_until(timeout.map(|timeout| now.saturating_add(timeout)));
        self.wait(shared.events(), timeout);
        sleep.get_up();
    }

    fn wait(&mut self, events: [Option<BorrowedFd<'_>>; 2], timeout: Option<u64>) {
        self.last.expected = timeout.map_or(u64::MAX, |timeout| self.last.looked.saturating_add(timeout));
        if self.shared.waiting.alarm.wait(events, self.life, timeout) {
            self.life = None;
            orphan::leave(self.shared);
        }
    }

    fn look_around(&mut self) {
        let shared = self.shared;
        let now = clock::now();
        shared.board.set(Word::Heartbeat, now);
        self.usage.look(&shared.waiting, shared.board, now);
        if now > self.last.expected.saturating_add(PAUSED) {
            self.watchdog.resume(now);
            self.eye.resume(now);
        }
        let elapsed = now.saturating_sub(std::mem::replace(&mut self.last.looked, now));
        let late = now.saturating_sub(std::mem::replace(&mut self.last.expected, u64::MAX));
        let cpu = clock::process_cpu();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.last.cpu, cpu));
        // One that has computed meanwhile was not stopped: others have had the monitor's processor.
        let late = if used >= late / COMPUTES { 0 } else { late };
        shared.logs.tend(now, shared.board, |text| shared.baton.take().reactor.notice(true, || text));
        if self.mode == Mode::Ticking && self.neglects_admin() {
            self.listen();
        }
        shared.waiting.streams.send_some(&shared.waiting.slots);
        if shared.lost.any() {
            shared.reclaim(&mut shared.baton.take());
        }
        if shared.config.fault == Some(Failpoint::MonitorPanics) && self.in_flight() {
            panic!("a test asked for it");
        }
        let patience = if self.mode == Mode::Covering || shared.waiting.hub().is_some() { 0 } else { TICK };
        self.has_jobs = shared.config.tls.is_some() && shared.work_off_in_place(patience);
        self.watchdog.look(shared, now);
        let seen = self.eye.look(&shared.waiting, now, elapsed, || shared.baton.take().rounds);
        self.calm = seen.is_calm;
        self.watchdog.look_at_hub(shared, &mut self.eye, now);
        for line in self.diagnosis.look(shared, &self.eye, now, late) {
            self.watchdog.tell(line);
        }
        if let Some(hub) = shared.waiting.hub() {
            self.slicer.look(hub, shared.board, now);
        }
        shared.tick_for(now, seen.came);
        if let (Some(keeper), Some(siblings)) = (&mut self.keeper, shared.siblings.get()) {
            keeper.tick(siblings.pages().iter().copied(), now);
        }
        if shared.is_draining() {
            self.resign();
            self.watchdog.part(shared, now);
        }
        if shared.board.orders_drain() && !shared.is_draining() {
            shared.drain(&mut shared.baton.take());
        }
        if self.mode == Mode::Covering {
            self.cover();
            return;
        }
        if self.shared.waiting.watch.take_cover_request() && self.takes_the_watch() {
            return;
        }
        let Seen { is_stuck, is_busy, is_at_rest, .. } = seen;
        if is_stuck {
            self.idle = 0;
            self.help();
        } else if is_busy || self.log_waits() || self.watchdog.is_reporting() || self.diagnosis.is_open() {
            self.idle = 0;
        } else {
            self.idle += if is_at_rest { (elapsed / TICK).max(1) } else { 1 };
            if self.idle >= IDLE_TICKS {
                self.mode = Mode::Asleep;
            }
        }
    }

    /// The workers that stay keep the concurrency limit.
    fn resign(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.resign();
        }
    }

    /// Lines are to be written now or, while nothing can wait for them to be due, at some time.
    fn log_waits(&self) -> bool {
        let covering = self.mode == Mode::Covering;
        self.shared.logs.need_a_look() || (covering && self.shared.logs.wait_for_writer())
    }

    /// When lines that could not be written are due again.
    fn log_retry(&self) -> Option<u64> {
        self.shared.logs.due_in(clock::now())
    }

    /// Requests follow one another so closely that no app thread looks at the events.
    fn neglects_admin(&self) -> bool {
        self.shared.has_admin.load(Ordering::Relaxed) && self.shared.baton.take().reactor.neglects_admin(clock::now())
    }

    fn listen(&self) {
        let mut guard = self.shared.baton.take();
        if guard.polling.is_none() {
            serve_io(self.shared, &mut guard);
        }
    }

    fn in_flight(&self) -> bool {
        self.shared.waiting.in_flight()
    }

    fn is_app_thread_coming(&self) -> bool {
        self.shared.waiting.watch.is_app_thread_coming()
    }

    /// In how many nanoseconds connections, or requests that wait, may want something.
    fn queue_timeout(&self, now: u64) -> Option<u64> {
        let shared = self.shared;
        let core = shared.baton.take();
        if core.reactor.has_job() {
            return Some(0);
        }
        if core.reactor.has_leftovers() || core.reactor.is_cut_short() {
            return Some(BREATH);
        }
        [core.reactor.timeout(now), shared.queue_look(&core, now)].into_iter().flatten().min()
    }

    /// The last free app thread has said that it will be away for long.
    fn takes_the_watch(&mut self) -> bool {
        let mut guard = self.shared.baton.take();
        let core = &mut *guard;
        if core.polling.is_some() || !core.followers.is_empty() || core.reactor.busy() < core.joined {
            return false;
        }
        self.begin_to_cover(core);
        true
    }

    /// Every app thread is in the application, or waits for the GIL that one of them holds.
    fn begin_to_cover(&mut self, core: &mut Core) {
        let shared = self.shared;
        shared.waiting.watch.cover();
        self.mode = Mode::Covering;
        self.covering_since = clock::now();
        core.reactor.set_stuck(true);
        // What an app thread was shown before is taken: no sibling was woken for it.
        core.reactor.pump(Runner::Monitor);
        shared.take_in_place(core);
        shared.leave_channel(core);
        shared.tend_gate(core);
        serve_io(shared, core);
        // What is read here makes no event any more, and the hub waits for one.
        shared.waiting.ring_hub();
    }

    /// A call is stuck: another thread must wait for events.
    fn help(&mut self) {
        let shared = self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        core.reactor.send_held();
        if core.polling.is_some() {
            if core.reactor.queued() > 0 {
                shared.look_after_queue(core);
            }
            return;
        }
        if shared.hands_over() && self.eye.wants_processor_only(&shared.waiting, clock::now()) {
            return;
        }
        shared.board.add(Word::Rescues, 1);
        if core.followers.is_empty() {
            self.begin_to_cover(core);
        } else {
            // All that waits is read first, so that all of it starts now and not one more per tick.
            serve_io(shared, core);
            let wanted = core.reactor.queued().max(1);
            shared.wake_followers(core, wanted);
        }
    }

    fn cover(&mut self) {
        let shared = self.shared;
        let mut guard = shared.baton.take();
        if !shared.waiting.watch.is_covering() {
            self.mode = Mode::Ticking;
            self.idle = 0;
            self.eye.begin_anew(&shared.waiting);
            return;
        }
        shared.tend_gate(&mut guard);
        serve_io(shared, &mut guard);
        while guard.reactor.is_cut_short() && !shared.baton.is_wanted() {
            drop(guard);
            guard = shared.baton.take();
            serve_io(shared, &mut guard);
        }
        let now = clock::now();
        let covered = now.saturating_sub(self.covering_since);
        let stranded = self.watchdog.is_stranded(shared, covered, now)
            || shared.is_draining() && self.eye.is_hub_stuck(&shared.waiting, now);
        while guard.reactor.queued() > 0 && stranded {
            guard.reactor.shed_stranded();
            shared.note_queued(&guard);
            drop(guard);
            guard = shared.baton.take();
        }
    }
}

/// Reads, parses, queues, flushes; starts nothing.
fn serve_io(shared: &Shared, core: &mut Core) {
    core.reactor.pump(Runner::Monitor);
    // An unfinished batch is never replaced.
    if core.reactor.events().is_empty() && shared.see_events(core).is_ok() {
        core.reactor.pump(Runner::Monitor);
    }
    shared.take_in_place(core);
    if core.reactor.is_woken() {
        // The wake-up stays noted for the next app thread; its descriptor must not stay readable, or the wait for
        // events would end at once until that thread is back.
        shared.take_wakeups(core);
        shared.waiting.ring_hub();
    }
    shared.look_after_queue(core);
}
