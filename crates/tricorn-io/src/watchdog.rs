//! The watchdog: which calls are older than a limit allows, and what is done about it. A part of the monitor.
//!
//! * Over `timeout`: the arbiter is told, with the thread's stack; it will replace the worker.
//! * Over `request_timeout`: the same, and `RequestTimeout` is raised in the call. A second later, if nothing was sent, the
//!   client gets its 504 from here.
//! * At `max_requests` the arbiter is told, once.
//! * All threads over `timeout` and the worker draining: whoever waits behind them is turned away (`is_stranded`).
//!
//! A report to the arbiter is a line, then what faulthandler's signal handler writes on the thread in question, then a line
//! that ends it (`python/tricorn/workers/messages.py`). The stack comes in many small writes, so that one report is ended
//! before the next line of ours is begun. The pipe belongs to the arbiter: nothing here waits for it.
use crate::clock::MILLI;
use crate::config::TICK;
use crate::engine::Shared;
use crate::scoreboard::Word;
use crate::sys::signals;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::AsFd;
use rustix::io;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use tricorn_proto::exchange::error_page;

/// How long a thread may take to write its stack.
const STACK_TIME: u64 = 50 * MILLI;
/// How long a call that is over `request_timeout` may take to clean up before its client is answered without it.
const GRACE: u64 = 1000 * MILLI;

pub struct Watchdog {
    /// Something is to be watched at all.
    watches: bool,
    slots: Vec<Watched>,
    reports: VecDeque<Report>,
    /// The report whose stack is being written, and when it is over.
    open: Option<(usize, u64)>,
    retired: bool,
}

/// What was done about the call that a slot is at.
#[derive(Debug, Clone, Copy, Default)]
struct Watched {
    call: u32,
    late: bool,
    answered: bool,
    stuck: bool,
}

struct Report {
    limit: &'static str,
    slot: usize,
    call: u32,
    age: u64,
    text: Vec<u8>,
}

impl Watchdog {
    pub fn new(shared: &Shared) -> Watchdog {
        let config = &shared.config;
        Watchdog {
            watches: config.timeout > 0 || config.request_timeout > 0,
            slots: vec![Watched::default(); shared.slots.len()],
            reports: VecDeque::new(),
            open: None,
            retired: config.max_requests == 0 || config.messages.is_none(),
        }
    }

    /// Looks at every call; in an ordinary tick that is one comparison for each.
    pub fn look(&mut self, shared: &Shared, now: u64) {
        if self.watches {
            for slot in 0..self.slots.len() {
                if let Some((call, started)) = shared.running(slot) {
                    self.look_at(shared, slot, call, started, now);
                }
            }
        }
        if self.is_reporting() {
            self.report(shared, now);
        }
        if !self.retired && self.open.is_none() && shared.board.get(Word::Requests) >= shared.config.max_requests {
            self.retired = tell(shared, b"retire max_requests\n");
        }
    }

    /// Something is to be said to the arbiter: the monitor must not sleep.
    pub fn is_reporting(&self) -> bool {
        self.open.is_some() || !self.reports.is_empty()
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, shared: &Shared, now: u64) -> Option<u64> {
        if self.is_reporting() {
            return Some(TICK);
        }
        if !self.watches {
            return None;
        }
        let config = &shared.config;
        let mut due = u64::MAX;
        for (slot, watched) in self.slots.iter().enumerate() {
            let Some((call, started)) = shared.running(slot) else { continue };
            let done = if watched.call == call { *watched } else { Watched::default() };
            let steps = [
                (config.timeout, 0, done.stuck),
                (config.request_timeout, 0, done.late),
                (config.request_timeout, GRACE, done.answered),
            ];
            for (limit, more, _) in steps.into_iter().filter(|(limit, _, done)| *limit > 0 && !done) {
                due = due.min(started.saturating_add(limit + more));
            }
        }
        (due != u64::MAX).then(|| due.saturating_sub(now).max(TICK))
    }

    /// The worker is to leave, and no thread will come back to serve what waits: each is stuck in a call, or has had
    /// nothing to do for `covered` and does not come, since one of the stuck calls holds the GIL.
    pub fn is_stranded(&self, shared: &Shared, covered: u64, now: u64) -> bool {
        let limit = shared.config.timeout;
        if limit == 0 || !shared.is_draining() {
            return false;
        }
        let mut stuck = false;
        for slot in (0..shared.slots.len()).filter(|slot| shared.slots[*slot].is_taken()) {
            match shared.running(slot) {
                Some((_, started)) if now.saturating_sub(started) >= limit => stuck = true,
                Some(_) => return false,
                None if covered >= GRACE => {}
                None => return false,
            }
        }
        stuck
    }

    fn look_at(&mut self, shared: &Shared, slot: usize, call: u32, started: u64, now: u64) {
        let watched = &mut self.slots[slot];
        if watched.call != call {
            *watched = Watched { call, ..Watched::default() };
        }
        let age = now.saturating_sub(started);
        let config = &shared.config;
        let over = |limit: u64, more: u64, done: bool| limit > 0 && !done && age >= limit + more;
        if over(config.request_timeout, 0, watched.late) {
            watched.late = true;
            if shared.mark_late(slot, call) {
                self.note(shared, "request_timeout", slot, call, age);
                // Before the call is ended: this says where it was.
                self.report(shared, now);
                end_call(shared, slot);
            }
        }
        let watched = &mut self.slots[slot];
        if over(config.request_timeout, GRACE, watched.answered) {
            watched.answered = true;
            answer(shared, slot, call);
        }
        if over(config.timeout, 0, watched.stuck) {
            watched.stuck = true;
            self.note(shared, "timeout", slot, call, age);
        }
    }

    fn note(&mut self, shared: &Shared, limit: &'static str, slot: usize, call: u32, age: u64) {
        if shared.config.messages.is_some() {
            let text = shared.board.call_text(slot).unwrap_or_default();
            self.reports.push_back(Report { limit, slot, call, age, text });
        }
    }

    /// Ends the report that is open, or begins the next one. A pipe that is full is asked again at the next tick.
    fn report(&mut self, shared: &Shared, now: u64) {
        if let Some((slot, end)) = self.open {
            if now < end || !tell(shared, format!("stuck-end {slot}\n").as_bytes()) {
                return;
            }
            self.open = None;
        }
        let Some(Report { limit, slot, call, age, text }) = self.reports.front() else { return };
        let mut line = format!("stuck {limit} {slot} {} ", age / MILLI).into_bytes();
        line.extend(text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        line.push(b'\n');
        if !tell(shared, &line) {
            return;
        }
        let asked = shared.running(*slot).is_some_and(|(now_at, _)| now_at == *call)
            && signals::stack_signal().is_some_and(|signal| signals::send(shared.slots[*slot].thread(), signal));
        self.open = Some((*slot, if asked { now + STACK_TIME } else { now }));
        self.reports.pop_front();
    }
}

/// Lets `RequestTimeout` be raised in the call: its thread does it where signals are handled, the main thread elsewhere.
fn end_call(shared: &Shared, slot: usize) {
    if shared.main_slot() == Some(slot) {
        if let Some(signal) = signals::late_signal() {
            signals::send(shared.slots[slot].thread(), signal);
        }
    } else {
        shared.signals.kick();
    }
}

/// The call did not end though it was told to: its client is answered from here, unless the reply has begun.
fn answer(shared: &Shared, slot: usize, call: u32) {
    let guard = shared.baton.take();
    // The exchange is given back under the baton only: while this is held it stays what it is.
    if shared.slots[slot].calls() == call {
        shared.slots[slot].claim.take(&late_page());
    }
    drop(guard);
}

/// The answer to a request that took too long.
pub fn late_page() -> Vec<u8> {
    let mut page = Vec::new();
    error_page::write(&mut page, 504, "");
    page
}

/// Writes a line into the pipe to the arbiter if that has room; whether it did. A pipe that is gone takes everything.
fn tell(shared: &Shared, line: &[u8]) -> bool {
    let Some(pipe) = &shared.config.messages else { return true };
    let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)];
    let at_once = crate::sys::poll::timespec(0);
    match poll(&mut fds, Some(&at_once)) {
        // A pipe that polls writable takes PIPE_BUF bytes, and a line is shorter (pipe(7)).
        Ok(1) => !matches!(io::write(pipe, line), Err(io::Errno::AGAIN | io::Errno::INTR)),
        _ => false,
    }
}

impl Shared {
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

    /// Marks a call as late, if it still runs and the application has not answered yet.
    fn mark_late(&self, slot: usize, call: u32) -> bool {
        let guard = self.baton.take();
        let marked = self.slots[slot].calls() == call && self.slots[slot].lateness.mark(call);
        drop(guard);
        marked
    }

    fn main_slot(&self) -> Option<usize> {
        let slot = self.main_slot.load(Ordering::Relaxed);
        (slot < self.slots.len()).then_some(slot)
    }
}
