//! The watchdog: which calls are older than a limit allows, and what is done about it. A part of the monitor.
//!
//! * No progress for `timeout` (`progress.rs`): the arbiter is told, with the thread's stack; it will replace the worker.
//! * Over `request_timeout`: the same, and `RequestTimeout` is raised in the call. A second later, if nothing was sent, the
//!   client gets its 504 from here.
//! * A call that an operator cancels (`scoreboard/cancel.rs`): the same at once, with `RequestCancelled`. Only with
//!   `request_timeout`: without it calls do not say when the application has returned.
//! * Under a hub `timeout` is the hub's, which must come when something waits for it (`hub_watch.rs`); a call that merely waits
//!   is late at `request_timeout` and at no other time.
//! * At `max_requests` the arbiter is told, once. With `closes_idle` it is told, too, when a worker that leaves has closed its
//!   idle connections (`part`).
//! * All threads over `timeout` and the worker draining: requests that wait behind them are turned away (`is_stranded`).
//!
//! A report to the arbiter is a line, then what faulthandler's signal handler writes on the thread in question, then a line
//! that ends it (`python/tricorn/workers/messages.py`). The stack comes in many small writes, so that one report is ended
//! before the next line of ours is begun. The pipe belongs to the arbiter: nothing here waits for it.
use crate::clock::{self, MILLI};
use crate::config::TICK;
use crate::engine::shared::Shared;
use crate::exchange::output::LateAnswer;
use crate::scoreboard::{Cancelled, Word};
use crate::sys::poll::ready;
use crate::sys::signals::{self, ThreadId};
use crate::waiting::hub::Began;
use crate::waiting::lateness::Lateness;
use crate::waiting::progress::Silence;
use crate::waiting::{Eye, ORDERS, Subject};
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::io;
use std::collections::VecDeque;
use tricorn_diagnosis::stack_lines::stack_lines;

/// How long a thread may take to write its stack. One that did not even begin, for want of a processor, gets more.
const STACK_TIME: u64 = 200 * MILLI;
const LONGEST_STACK_TIME: u64 = 2000 * MILLI;
/// Most lines that wait.
const NOTICES: usize = 32;
/// How long a call that is over `request_timeout` may take to clean up before its client is answered without it.
const GRACE: u64 = 1000 * MILLI;

pub struct Watchdog {
    /// Something is to be watched at all.
    watches: bool,
    slots: Vec<Watched>,
    /// Under a hub: the calls that are over `request_timeout`.
    late: Vec<(Began, Watched)>,
    reports: VecDeque<Report>,
    /// Lines that wait until the pipe takes them.
    notices: VecDeque<Vec<u8>>,
    /// The report whose stack is being written.
    open: Option<Open>,
    retired: bool,
    parting: Parting,
    /// When the process last went on after a pause (see [`Watchdog::resume`]).
    resumed: u64,
}

/// Whether the arbiter is told that idle connections are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parting {
    /// When the worker leaves.
    Later,
    /// As soon as it is so.
    Due,
    /// It has been, or does not ask for it.
    Over,
}

/// What was done about the call that a slot is at.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    call: u32,
    /// When it was told to end.
    late: Option<u64>,
    answered: bool,
    stuck: bool,
}

struct Open {
    slot: usize,
    /// The thread that was asked for its stack; `None`: none could be.
    writer: Option<ThreadId>,
    since: u64,
    /// When it is looked at again.
    due: u64,
}

impl Open {
    /// Whether there is no more to wait for. Other threads that want the processor may keep the writer from its signal.
    fn is_over(&mut self, now: u64) -> bool {
        if now < self.due {
            return false;
        }
        let waits = |thread| signals::stack_signal().is_some_and(|signal| signals::is_pending(thread, signal));
        if self.writer.is_some_and(waits) && now < self.since + LONGEST_STACK_TIME {
            self.due = now + STACK_TIME;
            return false;
        }
        true
    }
}

struct Report {
    limit: &'static str,
    slot: usize,
    of: Subject,
    age: u64,
    text: Vec<u8>,
    /// When it was found.
    noted: u64,
}

impl Watchdog {
    pub fn new(shared: &Shared) -> Watchdog {
        let config = &shared.config;
        Watchdog {
            watches: config.timeout > 0 || config.request_timeout > 0,
            slots: vec![Watched::default(); shared.waiting.watched_slots()],
            late: Vec::new(),
            reports: VecDeque::new(),
            notices: VecDeque::new(),
            open: None,
            retired: config.max_requests == 0 || config.messages.is_none(),
            parting: if config.closes_idle && config.messages.is_some() { Parting::Later } else { Parting::Over },
            resumed: 0,
        }
    }

    /// Looks at every call; in an ordinary tick that is a comparison or two for each.
    pub fn look(&mut self, shared: &Shared, now: u64) {
        if self.watches {
            for slot in 0..self.slots.len() {
                if let Some((call, started)) = shared.waiting.running(slot) {
                    let before = self.slots[slot];
                    let watched = if before.call == call { before } else { Watched { call, ..Watched::default() } };
                    self.slots[slot] = self.look_at(shared, slot, watched, started, now);
                }
            }
            self.look_at_late_calls(shared, now);
            self.look_for_order(shared, now);
        }
        if self.is_reporting() {
            self.report(shared, now);
        }
        if self.open.is_none() && self.notices.front().is_some_and(|line| tell(shared, line)) {
            self.notices.pop_front();
        }
        if !self.retired && self.open.is_none() && shared.board.get(Word::Requests) >= shared.config.max_requests {
            self.retired = tell(shared, b"retire max_requests\n");
        }
    }

    /// The worker leaves. With `closes_idle` the arbiter says that the new code serves when no idle connection leads to the old.
    pub fn part(&mut self, shared: &Shared, now: u64) {
        if self.parting == Parting::Over {
            return;
        }
        self.parting = Parting::Due;
        if self.open.is_none() && shared.baton.take().reactor.has_parted(now) && tell(shared, b"parted\n") {
            self.parting = Parting::Over;
        }
    }

    /// The process was stopped until now (SIGSTOP, a paused container): nothing could make progress.
    pub fn resume(&mut self, now: u64) {
        self.resumed = now;
    }

    /// Since when `timeout` counts for a call, if it does.
    fn silent_since(&self, shared: &Shared, slot: usize, (call, started): (u32, u64)) -> Option<u64> {
        match shared.waiting.silence(slot, call, started) {
            Silence::Since(since) => Some(since.max(self.resumed)),
            Silence::Client | Silence::Exempt => None,
        }
    }

    /// Something is to be said to the arbiter: the monitor must not sleep.
    pub fn is_reporting(&self) -> bool {
        self.open.is_some() || !self.reports.is_empty() || !self.notices.is_empty() || self.parting == Parting::Due
    }

    /// Tells the arbiter a line, unless many wait already.
    pub fn tell(&mut self, line: Vec<u8>) {
        if self.notices.len() < NOTICES {
            self.notices.push_back(line);
        }
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, shared: &Shared, now: u64) -> Option<u64> {
        if self.is_reporting() {
            return Some(TICK);
        }
        if !self.watches {
            return None;
        }
        let threads = self.slots.iter().enumerate().filter_map(|(slot, watched)| {
            let (call, started) = shared.waiting.running(slot)?;
            let done = if watched.call == call { *watched } else { Watched::default() };
            let silent = match shared.waiting.silence(slot, call, started) {
                Silence::Since(since) => Some(since.max(self.resumed)),
                Silence::Client => Some(now), // it may be back in a moment
                Silence::Exempt => None,
            };
            let timeout = shared.config.timeout;
            let silent = silent.filter(|_| timeout > 0 && !done.stuck).map(|since| since.saturating_add(timeout));
            [due_of_limit(shared, done, started), silent].into_iter().flatten().min()
        });
        let late = self.late.iter().filter_map(|(began, watched)| due_of_limit(shared, *watched, began.started));
        let order = (shared.config.request_timeout > 0 && shared.waiting.in_flight()).then(|| now + ORDERS);
        let due = threads.chain(late).chain(shared.waiting.next_late_due()).chain(order).min();
        due.map(|due| due.saturating_sub(now).max(TICK))
    }

    /// The calls of a hub that are over `request_timeout`.
    fn look_at_late_calls(&mut self, shared: &Shared, now: u64) {
        if shared.config.request_timeout == 0 {
            return;
        }
        while let Some(first) = shared.waiting.next_late(now) {
            self.late.push((first, Watched { call: first.call, ..Watched::default() }));
        }
        let mut late = std::mem::take(&mut self.late);
        late.retain_mut(|(began, watched)| {
            *watched = self.look_at(shared, began.slot, *watched, began.started, now);
            shared.waiting.is_at(began) && !watched.answered
        });
        self.late = late;
    }

    /// Ends the call that an operator has cancelled.
    fn look_for_order(&mut self, shared: &Shared, now: u64) {
        if shared.config.request_timeout == 0 {
            return;
        }
        let Some(order) = shared.board.cancel_order() else { return };
        let is_it =
            |began: &Began| (began.slot, began.started) == (order.slot, order.started) && shared.waiting.is_at(began);
        let answer = match shared.waiting.take_begun(order.slot, order.started) {
            Some(began) => self.cancel(shared, began, now),
            None if self.late.iter().any(|(began, _)| is_it(began)) => Cancelled::Over,
            None => Cancelled::Ended,
        };
        shared.board.answer_cancel(order, answer);
    }

    fn cancel(&mut self, shared: &Shared, began: Began, now: u64) -> Cancelled {
        let Began { slot, call, started } = began;
        let is_told = shared.mark(slot, call, Lateness::cancel);
        let before = self.slots.get(slot).copied().filter(|before| before.call == call).unwrap_or_default();
        let watched = Watched { call, late: before.late.or(is_told.then_some(now)), ..before };
        match self.slots.get_mut(slot) {
            Some(place) => *place = watched,
            None => self.late.push((began, watched)),
        }
        if !is_told {
            return Cancelled::Over;
        }
        self.note(shared, "cancel", (slot, call), now.saturating_sub(started), now);
        self.report(shared, now);
        shared.waiting.end_late_call(began);
        Cancelled::Told
    }

    /// The hub does not come though something waits for it.
    pub fn look_at_hub(&mut self, shared: &Shared, eye: &mut Eye, now: u64) {
        if let Some((of, text, age)) = eye.take_stuck_hub(&shared.waiting, now) {
            shared.board.add(Word::Stuck, 1);
            if shared.config.messages.is_some() {
                self.reports.push_back(Report { limit: "timeout", slot: 0, of, age, text, noted: now });
            }
        }
    }

    /// The worker is to leave, and no thread will come back to serve what waits: each is stuck in a call, serves a taken
    /// socket for longer than `timeout`, or has had nothing to do for `covered` and does not come, since one of the stuck
    /// calls holds the GIL.
    pub fn is_stranded(&self, shared: &Shared, covered: u64, now: u64) -> bool {
        let limit = shared.config.timeout;
        if limit == 0 || !shared.is_draining() || !shared.waiting.times_calls() {
            return false;
        }
        let mut stuck = false;
        for slot in (0..shared.waiting.slots.len()).filter(|slot| shared.waiting.slots[*slot].is_taken()) {
            match shared.waiting.running(slot) {
                Some((call, started)) => match shared.waiting.silence(slot, call, started) {
                    Silence::Since(since) if now.saturating_sub(since.max(self.resumed)) >= limit => stuck = true,
                    Silence::Exempt if now.saturating_sub(started) >= limit => stuck = true,
                    _ => return false,
                },
                None if covered >= GRACE => {}
                None => return false,
            }
        }
        stuck
    }

    /// Does what is due for a call; returns what has been done about it.
    fn look_at(&mut self, shared: &Shared, slot: usize, mut watched: Watched, started: u64, now: u64) -> Watched {
        let call = watched.call;
        let age = now.saturating_sub(started);
        let config = &shared.config;
        if config.request_timeout > 0 && watched.late.is_none() && age >= config.request_timeout {
            watched.late = Some(started.saturating_add(config.request_timeout));
            if shared.mark(slot, call, Lateness::mark) {
                shared.board.add(Word::Late, 1);
                self.note(shared, "request_timeout", (slot, call), age, now);
                // Before the call is ended: this says where it was.
                self.report(shared, now);
                shared.waiting.end_late_call(Began { slot, call, started });
            }
        }
        if watched.late.is_some_and(|late| now >= late.saturating_add(GRACE)) && !watched.answered {
            watched.answered = answer(shared, slot, call);
        }
        if shared.waiting.times_calls() && config.timeout > 0 && !watched.stuck && age >= config.timeout {
            // Only of a call that old it matters what it did meanwhile.
            if let Some(since) = self.silent_since(shared, slot, (call, started))
                && now.saturating_sub(since) >= config.timeout
            {
                watched.stuck = true;
                shared.board.add(Word::Stuck, 1);
                self.note(shared, "timeout", (slot, call), now.saturating_sub(since), now);
            }
        }
        watched
    }

    fn note(&mut self, shared: &Shared, limit: &'static str, (slot, call): (usize, u32), age: u64, now: u64) {
        if shared.config.messages.is_some() {
            let text = shared.board.call_text(slot).unwrap_or_default();
            self.reports.push_back(Report { limit, slot, of: Subject::Call(call), age, text, noted: now });
        }
    }

    /// Ends the report that is open, or begins the next one. A pipe that is full is asked again at the next tick.
    fn report(&mut self, shared: &Shared, now: u64) {
        if let Some(open) = &mut self.open {
            if !open.is_over(now) || !tell(shared, format!("stuck-end {}\n", open.slot).as_bytes()) {
                return;
            }
            self.open = None;
        }
        let Some(Report { limit, slot, of, age, text, noted }) = self.reports.front() else { return };
        let stack = shared.waiting.take_stack(*slot, *of);
        if stack.is_none() && shared.waiting.will_tell_stack(*slot, *of) && now < noted + STACK_TIME {
            return; // the hub tells it before it raises the exception, unless the call ends before
        }
        let mut line = format!("stuck {limit} {slot} {} ", age / MILLI).into_bytes();
        line.extend(text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        line.push(b'\n');
        if !tell(shared, &line) {
            return;
        }
        if let Some(frames) = stack {
            // As far as the pipe takes it: a stack without its end is better than none.
            stack_lines(&frames).all(|line| tell(shared, &line));
        }
        let asked = |thread: &ThreadId| signals::stack_signal().is_some_and(|signal| signals::send(*thread, signal));
        let writer = shared.waiting.thread_of(*slot, *of).filter(asked);
        let due = if writer.is_some() { now + STACK_TIME } else { now };
        self.open = Some(Open { slot: *slot, writer, since: now, due });
        self.reports.pop_front();
    }
}

/// When `request_timeout` wants the next step for a call about which so much has been done.
fn due_of_limit(shared: &Shared, done: Watched, started: u64) -> Option<u64> {
    let limit = shared.config.request_timeout;
    match done.late {
        _ if limit == 0 || done.answered => None,
        Some(late) => Some(late.saturating_add(GRACE)),
        None => Some(started.saturating_add(limit)),
    }
}

/// The call did not end though it was told to: its client is answered from here, unless the reply has begun. Whether that is decided.
fn answer(shared: &Shared, slot: usize, call: u32) -> bool {
    let mut guard = shared.baton.take();
    // The exchange is given back under the baton only: while this is held it stays what it is.
    if shared.waiting.slots[slot].calls() != call {
        return true;
    }
    let wall = guard.reactor.wall_mut();
    wall.refresh(clock::now());
    shared.waiting.slots[slot].output().answer_late(wall.date()) != LateAnswer::Busy
}

/// Writes a line into the pipe to the arbiter if that has room; whether it did. A pipe that is gone takes everything.
fn tell(shared: &Shared, line: &[u8]) -> bool {
    let Some(pipe) = &shared.config.messages else { return true };
    // A pipe that polls writable takes PIPE_BUF bytes, and a line is shorter (pipe(7)).
    !ready(pipe.as_fd(), PollFlags::OUT, 0).is_empty()
        && !matches!(io::write(pipe, line), Err(io::Errno::AGAIN | io::Errno::INTR))
}

impl Shared {
    /// Marks a call as late, if it still runs and the application has not answered yet.
    fn mark(&self, slot: usize, call: u32, mark: fn(&Lateness, u32) -> bool) -> bool {
        let guard = self.baton.take();
        let marked = self.waiting.slots[slot].calls() == call && mark(&self.waiting.slots[slot].lateness, call);
        drop(guard);
        marked
    }
}
