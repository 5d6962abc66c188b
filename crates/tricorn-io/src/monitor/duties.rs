//! What the monitor does at each look: a list of duties of one shape, each with the time when there is something to do for it again.
use super::diagnosis::Diagnosis;
use super::serve_io::serve_io;
use super::slicer::Slicer;
use super::usage::Usage;
use super::watchdog::Watchdog;
use crate::clock::{self, MILLI};
use crate::config::{MaxConcurrency, TICK};
use crate::engine::shared::Shared;
use crate::limiter::{GLANCE, Keeper};
use crate::scoreboard::Word;
use crate::waiting::{Eye, Seen};
use std::sync::atomic::Ordering;

/// How often it looks, while draining, whether what waits will ever be served.
const STRANDED: u64 = 100 * MILLI;

/// One look.
pub(super) struct Look {
    pub now: u64,
    /// Nanoseconds since the last one.
    pub elapsed: u64,
    /// How much later it comes than it was meant to, because the process was stopped.
    pub late: u64,
    /// The monitor watches the events.
    pub is_covering: bool,
    /// A socket that a stream had filled takes bytes again.
    pub has_room: bool,
    /// What was seen of the threads, or of the hub.
    pub seen: Seen,
    /// Jobs are left that no app thread does.
    pub has_jobs: bool,
}

/// What the duties remember from look to look.
pub(super) struct Duties {
    pub watchdog: Watchdog,
    pub eye: Eye,
    /// With `max_concurrency = auto`.
    keeper: Option<Keeper>,
    usage: Usage,
    diagnosis: Diagnosis,
    slicer: Slicer,
}

struct Duty {
    look: fn(&mut Duties, &Shared, &mut Look),
    /// In how many nanoseconds there may be something to do; `None`: whatever comes makes an event, or wakes the monitor.
    due: fn(&Duties, &Shared, u64) -> Option<u64>,
}

/// In this order: a later one may rest on what an earlier one has seen.
const DUTIES: [Duty; 14] = [
    // The heartbeat. The arbiter must see another one: calls under way may last beyond `timeout`.
    Duty {
        look: |_, shared, look| shared.board.set(Word::Heartbeat, look.now),
        due: |_, shared, _| (shared.config.timeout > 0 && shared.waiting.in_flight()).then(|| shared.waiting.beat()),
    },
    // Figures of the process.
    Duty {
        look: |duties, shared, look| duties.usage.look(&shared.waiting, shared.board, look.now),
        due: |duties, shared, now| if shared.waiting.in_flight() { duties.usage.due(now) } else { None },
    },
    // Lines of logs, and those that could not be written.
    Duty {
        look: |_, shared, look| {
            shared.logs.tend(look.now, shared.board, |text| shared.baton.take().reactor.notice(true, || text));
        },
        due: |_, shared, now| if shared.logs.need_a_look() { Some(TICK) } else { shared.logs.due_in(now) },
    },
    // Admin listeners, where requests follow one another so closely that no app thread looks at the events.
    Duty { look: |_, shared, look| serve_admin(shared, look), due: |_, _, _| None },
    // What streams have left in their outputs.
    Duty {
        look: |_, shared, look| shared.waiting.streams.send_some(&shared.responses.disks, look.has_room),
        due: |_, shared, _| shared.waiting.streams.any().then_some(TICK),
    },
    // Exchanges that were lost.
    Duty {
        look: |_, shared, _| {
            if shared.lost.any() {
                shared.reclaim(&mut shared.baton.take());
            }
        },
        due: |_, _, _| None,
    },
    // Handshakes that no app thread does.
    Duty { look: |_, shared, look| work_off(shared, look), due: |_, _, _| None },
    // Calls that take too long.
    Duty {
        look: |duties, shared, look| duties.watchdog.look(shared, look.now),
        due: |duties, shared, now| duties.watchdog.due(shared, now),
    },
    // Threads that are stuck, or the hub.
    Duty {
        look: |duties, shared, look| duties.look_at_callers(shared, look),
        due: |duties, shared, now| duties.eye.due(&shared.waiting, now),
    },
    // What slows down requests.
    Duty {
        look: |duties, shared, look| duties.diagnose(shared, look),
        due: |duties, shared, now| duties.diagnosis.due(shared, &duties.eye, now),
    },
    // Which call has the hub's time.
    Duty {
        look: |duties, shared, look| {
            if let Some(hub) = shared.waiting.hub() {
                duties.slicer.look(hub, shared.board, look.now);
            }
        },
        due: |duties, _, now| duties.slicer.due(now),
    },
    // What time brings, in place of a hub that is not woken for it.
    Duty { look: |_, shared, look| shared.tick_for(look.now, look.seen.came), due: |_, _, _| None },
    // The concurrency limit of all workers.
    Duty {
        look: |duties, shared, look| duties.keep_limit(shared, look.now),
        due: |duties, _, _| duties.keeper.is_some().then_some(GLANCE),
    },
    // The arbiter's order to drain. Whether a request is stranded is a question of time, too.
    Duty {
        look: |duties, shared, look| duties.drain(shared, look.now),
        due: |_, shared, _| (shared.is_draining() && shared.has_queued()).then_some(STRANDED),
    },
];

impl Duties {
    pub fn new(shared: &Shared) -> Duties {
        let siblings = shared.siblings.get().filter(|_| shared.config.max_concurrency == MaxConcurrency::Auto);
        Duties {
            watchdog: Watchdog::new(shared),
            eye: Eye::new(&shared.waiting),
            keeper: siblings.map(|siblings| Keeper::new(siblings.group, clock::now())),
            usage: Usage::default(),
            diagnosis: Diagnosis::new(shared),
            slicer: Slicer::default(),
        }
    }

    pub fn look(&mut self, shared: &Shared, look: &mut Look) {
        for duty in &DUTIES {
            (duty.look)(self, shared, look);
        }
    }

    /// In how many nanoseconds there may be something to do for one of them.
    pub fn due(&self, shared: &Shared, now: u64) -> Option<u64> {
        DUTIES.iter().filter_map(|duty| (duty.due)(self, shared, now)).min()
    }

    /// The process was stopped until now.
    pub fn resume(&mut self, now: u64) {
        self.watchdog.resume(now);
        self.eye.resume(now);
    }

    /// The workers that stay keep the concurrency limit.
    pub fn resign(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            keeper.resign();
        }
    }

    fn look_at_callers(&mut self, shared: &Shared, look: &mut Look) {
        look.seen = self.eye.look(&shared.waiting, look.now, look.elapsed, || shared.baton.take().rounds);
        self.watchdog.look_at_hub(shared, &mut self.eye, look.now);
    }

    fn diagnose(&mut self, shared: &Shared, look: &Look) {
        for line in self.diagnosis.look(shared, &self.eye, look.now, look.late) {
            self.watchdog.tell(line);
        }
    }

    fn keep_limit(&mut self, shared: &Shared, now: u64) {
        if let (Some(keeper), Some(siblings)) = (&mut self.keeper, shared.siblings.get()) {
            keeper.tick(siblings.pages().iter().copied(), now);
        }
    }

    fn drain(&mut self, shared: &Shared, now: u64) {
        if shared.is_draining() {
            self.resign();
            self.watchdog.part(shared, now);
        }
        if shared.board.orders_drain() && !shared.is_draining() {
            shared.drain(&mut shared.baton.take());
        }
    }
}

fn serve_admin(shared: &Shared, look: &Look) {
    if look.is_covering || !shared.has_admin.load(Ordering::Relaxed) {
        return;
    }
    let mut guard = shared.baton.take();
    if guard.reactor.is_admin_starved(clock::now()) && guard.polling.is_none() {
        serve_io(shared, &mut guard);
    }
}

fn work_off(shared: &Shared, look: &mut Look) {
    let patience = if look.is_covering || shared.waiting.hub().is_some() { 0 } else { TICK };
    look.has_jobs = shared.config.tls.is_some() && shared.work_off_in_place(patience);
}
