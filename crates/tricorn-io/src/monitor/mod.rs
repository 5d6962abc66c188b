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

mod diagnosis;
mod duties;
mod life;
mod orphan;
mod sampler;
mod serve_io;
mod slicer;
mod usage;
pub mod watchdog;

use crate::clock::{self, MILLI};
use crate::config::{Failpoint, LONG_TICK, TICK};
use crate::engine::baton::Core;
use crate::engine::shared::Shared;
use crate::reactor::Runner;
use crate::scoreboard::Word;
use crate::sys::signals;
use crate::waiting::Seen;
use duties::{Duties, Look};
use rustix::fd::{AsFd, BorrowedFd};
pub use sampler::Reports;
use serve_io::serve_io;

/// Ticks in which nothing happens before it sleeps, whatever calls go on: short enough to cost nothing, long enough not to be
/// woken for each of a stream of requests. A long tick in which a hub rests counts as several.
const IDLE_TICKS: u64 = 4;

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
    let mut monitor = Monitor {
        shared,
        life: shared.config.life.as_ref().map(|pipe| pipe.as_fd()),
        mode: Mode::Ticking,
        idle: 0,
        calm: false,
        covering_since: 0,
        duties: Duties::new(shared),
        last: Last { looked: clock::now(), expected: u64::MAX, cpu: 0 },
        has_jobs: false,
        has_room: false,
    };
    while !shared.life.is_closed() {
        monitor.rest();
        monitor.look_around();
    }
    shared.board.set(Word::Cpu, clock::process_cpu());
    monitor.duties.resign();
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
    duties: Duties,
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
            || self.duties.watchdog.is_reporting()
            || !self.duties.eye.is_unchanged(waiting)
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
        let of_connections = if watches { self.queue_timeout(now) } else { None };
        [of_connections, self.duties.due(self.shared, now)].into_iter().flatten().min()
    }

    /// A long tick, unless something must be done at each short one.
    fn rest_long(&mut self) {
        let shared = self.shared;
        shared.waiting.watch.rest();
        // A stream that begins before the word said so is seen here; one that begins later rings, unless a tick comes anyway.
        let is_wanted =
            shared.waiting.streams.any() || self.is_app_thread_coming() || self.duties.watchdog.is_reporting();
        self.wait([None; 2], Some(if is_wanted { TICK } else { LONG_TICK }));
        shared.waiting.watch.get_up();
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
        if self.shared.config.fault == Some(Failpoint::MonitorPanics) && self.shared.waiting.in_flight() {
            panic!("a test asked for it");
        }
        let mut look = self.begin_look(clock::now());
        self.duties.look(self.shared, &mut look);
        self.has_jobs = look.has_jobs;
        self.calm = look.seen.is_calm;
        if self.mode == Mode::Covering {
            self.cover();
            return;
        }
        if self.shared.waiting.watch.take_cover_request() && self.takes_the_watch() {
            return;
        }
        let is_watched = !look.seen.is_stuck || self.help();
        if self.mode == Mode::Ticking {
            self.grow_idle(look.seen, is_watched, look.elapsed);
        }
    }

    fn begin_look(&mut self, now: u64) -> Look {
        let elapsed = now.saturating_sub(std::mem::replace(&mut self.last.looked, now));
        let late = now.saturating_sub(std::mem::replace(&mut self.last.expected, u64::MAX));
        let cpu = clock::process_cpu();
        let used = cpu.saturating_sub(std::mem::replace(&mut self.last.cpu, cpu));
        if late > PAUSED {
            self.duties.resume(now);
        }
        // One that has computed meanwhile was not stopped: others have had the monitor's processor.
        let late = if used >= late / COMPUTES { 0 } else { late };
        let (is_covering, has_room) = (self.mode == Mode::Covering, self.has_room);
        Look { now, elapsed, late, is_covering, has_room, seen: Seen::default(), has_jobs: false }
    }

    /// Lies down after some ticks in which nothing has happened. `is_watched`: what comes next is seen without the monitor.
    fn grow_idle(&mut self, seen: Seen, is_watched: bool, elapsed: u64) {
        let is_busy = seen.is_busy || self.shared.waiting.streams.any() || self.duties.watchdog.is_reporting();
        if !is_watched || is_busy || self.log_waits() {
            self.idle = 0;
            return;
        }
        self.idle += if seen.is_at_rest { (elapsed / TICK).max(1) } else { 1 };
        if self.idle >= IDLE_TICKS {
            self.mode = Mode::Asleep;
        }
    }

    /// Lines are to be written now.
    fn log_waits(&self) -> bool {
        self.shared.logs.need_a_look()
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
        if shared.hands_over() && self.duties.eye.wants_processor_only(&shared.waiting, clock::now()) {
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
            self.duties.eye.begin_anew(&shared.waiting);
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
        let stranded = self.duties.watchdog.is_stranded(shared, covered, now)
            || shared.is_draining() && self.duties.eye.is_hub_stuck(&shared.waiting, now);
        while guard.reactor.queued() > 0 && stranded {
            guard.reactor.shed_stranded();
            shared.note_queued(&guard);
            drop(guard);
            guard = shared.baton.take();
        }
    }
}
