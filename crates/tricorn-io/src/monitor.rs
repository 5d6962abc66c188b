//! The monitor: a native thread that asks "the Python side is busy; what must still happen?".
//!
//! * Asleep while nothing is in flight: no timer runs in an idle worker.
//! * Ticking while application calls are: if a call did not end since the last tick and nobody waits for events, a parked
//!   app thread is woken to do so.
//! * Covering when no app thread is left: it reads and buffers requests, serves slow readers and keeps the deadlines,
//!   until an app thread comes back. It starts no request.
//!
//! It also sends what streams have gathered (`cork.rs`), and writes the access log and the heartbeat. It never meets the GIL.
use crate::baton::Core;
use crate::clock;
use crate::config::TICK;
use crate::engine::Shared;
use crate::reactor::Runner;
use crate::scoreboard::Word;
use crate::sys::signals;
use std::sync::atomic::Ordering;

/// Ticks without a call in flight before it sleeps: short enough to cost nothing, long enough not to be woken for each
/// of a stream of requests.
const IDLE_TICKS: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Asleep,
    Ticking,
    Covering,
}

pub fn run(shared: &Shared) {
    signals::block_all();
    let mut monitor = Monitor { shared, mode: Mode::Ticking, seen: vec![0; shared.slots.len()], idle: 0 };
    while !shared.closed.load(Ordering::SeqCst) {
        monitor.rest();
        monitor.look_around();
    }
}

struct Monitor<'s> {
    shared: &'s Shared,
    mode: Mode,
    /// Each slot's call count at the last tick.
    seen: Vec<u32>,
    idle: u32,
}

impl Monitor<'_> {
    /// Waits for as long as the mode allows.
    fn rest(&mut self) {
        let shared = self.shared;
        match self.mode {
            Mode::Asleep => {
                shared.monitor_asleep.store(true, Ordering::SeqCst);
                // A call that began before it saw the flag is seen here; one that begins later rings.
                if !self.in_flight() && !self.log_waits() {
                    shared.alarm.wait(None, None);
                }
                shared.monitor_asleep.store(false, Ordering::SeqCst);
                self.mode = Mode::Ticking;
                self.idle = 0;
            }
            Mode::Ticking => shared.alarm.wait(None, Some(TICK)),
            Mode::Covering => {
                let timeout = shared.baton.take().reactor.timeout(clock::now());
                let ticks = (self.log_waits() || self.has_streams()).then_some(TICK);
                let timeout = match (timeout, ticks) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                shared.alarm.wait(Some(shared.poller.as_fd()), timeout);
            }
        }
    }

    fn look_around(&mut self) {
        let shared = self.shared;
        shared.board.set(Word::Heartbeat, clock::now());
        if let Some(access) = &shared.access
            && access.has_pending()
        {
            access.write_some();
        }
        for slot in &shared.slots {
            slot.cork.send_some();
        }
        if self.mode == Mode::Covering {
            self.cover();
            return;
        }
        if self.is_a_call_stuck() {
            self.idle = 0;
            self.help();
        } else if self.in_flight() || self.log_waits() {
            self.idle = 0;
        } else {
            self.idle += 1;
            if self.idle >= IDLE_TICKS {
                self.mode = Mode::Asleep;
            }
        }
    }

    fn log_waits(&self) -> bool {
        self.shared.access.as_ref().is_some_and(|access| access.has_pending())
    }

    fn has_streams(&self) -> bool {
        self.shared.slots.iter().any(|slot| slot.cork.is_open())
    }

    fn in_flight(&self) -> bool {
        self.shared.slots.iter().any(|slot| slot.calls() % 2 == 1)
    }

    /// Whether some thread is in the same call as at the last tick.
    fn is_a_call_stuck(&mut self) -> bool {
        let mut stuck = false;
        for (slot, seen) in self.shared.slots.iter().zip(&mut self.seen) {
            let calls = slot.calls();
            stuck |= calls % 2 == 1 && calls == *seen;
            *seen = calls;
        }
        stuck
    }

    /// A call is stuck: somebody else must wait for events.
    fn help(&mut self) {
        let shared = self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        core.reactor.send_held();
        if core.polling.is_some() {
            return;
        }
        shared.board.add(Word::Rescues, 1);
        if core.followers.is_empty() {
            // Every app thread is in the application, or waits for the GIL that one of them holds.
            if shared.config.siblings {
                core.reactor.set_gate(false);
            }
            shared.covering.store(true, Ordering::Relaxed);
            self.mode = Mode::Covering;
            serve_io(shared, core);
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
        if !shared.covering.load(Ordering::Relaxed) {
            self.mode = Mode::Ticking;
            self.idle = 0;
            for (slot, seen) in shared.slots.iter().zip(&mut self.seen) {
                *seen = slot.calls();
            }
            return;
        }
        serve_io(shared, &mut guard);
    }
}

/// Reads, parses, queues, flushes; starts nothing.
fn serve_io(shared: &Shared, core: &mut Core) {
    core.reactor.pump(Runner::Monitor, 0);
    if shared.poller.wait(&mut core.spare, Some(0)).is_ok() {
        core.reactor.arrived(&mut core.spare, clock::now());
        core.reactor.pump(Runner::Monitor, 0);
    }
    if core.reactor.woken {
        // The wake-up stays noted for the next app thread; its descriptor must not stay readable, or the wait for
        // events would end at once until that thread is back.
        shared.take_wakeups(core);
    }
    shared.note_queued(core);
}
