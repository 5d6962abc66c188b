//! The monitor: a native thread that asks "the Python side is busy; what must still happen?".
//!
//! * Asleep while nothing happens: no timer runs in an idle worker, nor beside calls that wait while an app thread waits for
//!   events. It wakes for a call that begins or ends, for that thread when it comes back, and for what is due.
//! * Ticking while calls begin and end: if a call did not end since the last tick and no thread waits for events, a parked
//!   app thread is woken to do so.
//! * Covering when no app thread is left: it reads and buffers requests, serves slow readers and keeps the deadlines,
//!   until an app thread comes back. It starts no request.
//!
//! It also leaves when the arbiter dies (`orphan.rs`), sends what streams have left (`exchange/turn.rs`), writes the heartbeat, and
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
mod stack_lines;
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
use crate::waiting::{Eye, Seen};
use diagnosis::Diagnosis;
use rustix::fd::{AsFd, BorrowedFd};
pub use sampler::Reports;
use slicer::Slicer;
use std::sync::atomic::Ordering;
use usage::Usage;
use watchdog::Watchdog;

/// Ticks in which nothing happens before it sleeps, whatever calls go on: short enough to cost nothing, long enough not to be
/// woken for each of a stream of requests. A long tick in which a hub rests counts as several.
const IDLE_TICKS: u64 = 4;

/// How often it looks, while draining, whether what waits will ever be served.
const STRANDED: u64 = 100 * clock::MILLI;

/// By how much a look may come late before the process is taken to have been stopped meanwhile.
const PAUSED: u64 = clock::SECOND;

/// A process that has computed for one part in so many of a time was not stopped for all of it.
const COMPUTES: u64 = 20;

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
        has_room: false,
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
    /// A socket that a stream had filled takes bytes again.
    has_room: bool,
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
                // What began before the word said so is seen here; what begins later rings.
                if self.may_sleep() {
                    self.sleep();
                }
                shared.waiting.watch.get_up();
                self.mode = Mode::Ticking;
                self.idle = 0;
            }
            _ if self.has_jobs => self.wait([None; 2], Some(0)),
            Mode::Ticking if self.calm => self.rest_long(),
            Mode::Ticking => self.wait([None; 2], Some(TICK)),
            Mode::Covering => self.sleep(),
        }
    }

    /// Whether whatever happens next makes an event that it waits for, or wakes it.
    fn may_sleep(&self) -> bool {
        let waiting = &self.shared.waiting;
        if self.has_jobs
            || self.log_waits()
            || waiting.streams.any()
            || self.is_app_thread_coming()
            || self.watchdog.is_reporting()
            || !self.eye.is_unchanged(waiting)
        {
            return false;
        }
        let needs_a_leader = waiting.calls_hold_threads() && waiting.in_flight();
        let core = self.shared.baton.take();
        // An app thread that leaves the wait for events while calls are under way wakes the monitor.
        !core.reactor.has_job() && (core.polling.is_some() || !needs_a_leader)
    }

    /// Waits in the kernel: for events, unless an app thread does, and until there is something to do at its time.
    fn sleep(&mut self) {
        let shared = self.shared;
        let sleeper = shared.waiting.monitors_sleep();
        if let Some(sleeper) = sleeper {
            sleeper.lie_down(); // a hub that is away may give exchanges back all the same
        }
        let watches = sleeper.is_some() || self.mode == Mode::Covering;
        let now = clock::now();
        let timeout = self.due(watches, now);
        if let Some(sleeper) = sleeper {
            sleeper.sleep_until(timeout.map(|timeout| now.saturating_add(timeout)));
        }
        self.wait(if watches { shared.events() } else { [None; 2] }, timeout);
        if let Some(sleeper) = sleeper {
            sleeper.get_up();
        }
    }

    /// In how many nanoseconds there is something to do. `watches`: in place of the app threads, too.
    fn due(&self, watches: bool, now: u64) -> Option<u64> {
        let shared = self.shared;
        let of_connections = if watches { self.queue_timeout(now) } else { None };
        let ticks = (self.log_waits() || shared.waiting.streams.any()).then_some(TICK);
        // Whether a request is stranded is a question of time, too.
        let stranded = (shared.is_draining() && shared.has_queued()).then_some(STRANDED);
        let glance = self.keeper.is_some().then_some(GLANCE);
        let of_calls = [
            self.heartbeat(),
            self.watchdog.due(shared, now),
            self.eye.due(&shared.waiting, now),
            self.diagnosis.due(shared, &self.eye, now),
            self.slicer.due(now),
            if self.in_flight() { self.usage.due(now) } else { None },
        ];
        [of_connections, ticks, stranded, glance, self.log_retry()].into_iter().chain(of_calls).flatten().min()
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
        (self.shared.config.timeout > 0 && self.in_flight()).then(|| self.shared.waiting.beat())
    }

    fn wait(&mut self, events: [Option<BorrowedFd<'_>>; 2], timeout: Option<u64>) {
        self.last.expected = timeout.map_or(u64::MAX, |timeout| self.last.looked.saturating_add(timeout));
        let waiting = &self.shared.waiting;
        let [poller, entrance] = events;
        let woken = waiting.alarm.wait([poller, entrance, Some(waiting.streams.room())], self.life, timeout);
        let [.., has_room] = woken.readable;
        self.has_room = has_room;
        if woken.orphaned {
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
        shared.waiting.streams.send_some(self.has_room);
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
        let is_watched = !seen.is_stuck || self.help();
        if self.mode == Mode::Ticking {
            self.grow_idle(seen, is_watched, elapsed);
        }
    }

    /// Lies down after some ticks in which nothing has happened. `is_watched`: what comes next is seen without the monitor.
    fn grow_idle(&mut self, seen: Seen, is_watched: bool, elapsed: u64) {
        let is_busy = seen.is_busy || self.shared.waiting.streams.any() || self.watchdog.is_reporting();
        if !is_watched || is_busy || self.log_waits() {
            self.idle = 0;
            return;
        }
        self.idle += if seen.is_at_rest { (elapsed / TICK).max(1) } else { 1 };
        if self.idle >= IDLE_TICKS {
            self.mode = Mode::Asleep;
        }
    }

    /// The workers that stay keep the concurrency limit.
    fn resign(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.resign();
        }
    }

    /// Lines are to be written now.
    fn log_waits(&self) -> bool {
        self.shared.logs.need_a_look()
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

    /// A call goes on, or a thread does not come: another one must wait for events. Whether one does.
    fn help(&mut self) -> bool {
        let shared = self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        core.reactor.send_held();
        if core.polling.is_some() {
            if core.reactor.queued() > 0 {
                shared.look_after_queue(core);
            }
            return core.reactor.queued() == 0;
        }
        if shared.hands_over() && self.eye.wants_processor_only(&shared.waiting, clock::now()) {
            return false;
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
        false
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
