//! What slows down the requests of this worker, as far as its monitor can tell: one of four findings, each with a file of its own.
//!
//! | | |
//! |---|---|
//! | `stalls.rs` | one call holds up an event loop |
//! | `census.rs` | requests wait for room in a pool |
//! | `saturation.rs` | the worker has more to do than it can |
//! | `slow.rs` | a request on a thread takes long |
use crate::clock;
use crate::engine::shared::Shared;
use crate::scoreboard::Word;
use crate::sys::{processor, signals};
use crate::waiting::Eye;
use crate::waiting::progress::Silence;
use tricorn_diagnosis::census::Census;
use tricorn_diagnosis::examiner::{Answer, Asked, Examiner, Means};
use tricorn_diagnosis::saturation::{Sample, Saturation};
use tricorn_diagnosis::slow::{Clerk, Silent, Slow};
use tricorn_diagnosis::stack_samples::Asker;
use tricorn_diagnosis::stalls::{Scene, Stalls, Witness};

#[derive(Debug)]
pub(super) struct Diagnosis {
    examiner: Examiner,
    stalls: Stalls,
    census: Census,
    saturation: Saturation,
    slow: Slow,
}

impl Diagnosis {
    pub fn new(shared: &Shared) -> Diagnosis {
        let config = &shared.config;
        let told = config.messages.is_some();
        let threshold = if told { config.doctor_threshold } else { 0 };
        let has_threads = shared.waiting.times_calls();
        Diagnosis {
            examiner: Examiner::new(Means {
                sites: config.wait_sites.clone(),
                call_file: config.call_file.clone(),
                deep: config.doctor_deep,
            }),
            stalls: Stalls::new(threshold),
            census: Census::new(threshold),
            saturation: Saturation::new(threshold),
            slow: Slow::new(if told && has_threads { config.doctor_slow_request } else { 0 }),
        }
    }

    /// Lines for the arbiter. `late`: how much later than it meant to the monitor looks.
    pub fn look(&mut self, shared: &Shared, eye: &Eye, now: u64, late: u64) -> Vec<Vec<u8>> {
        if !is_warm(shared) {
            return Vec::new();
        }
        let seeing = Seeing { eye, shared };
        let in_flight = shared.board.get(Word::InFlight);
        self.take_answers(shared, now);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        lines.extend(self.stalls.look(scene(shared, eye, now, late), &seeing, &mut self.examiner));
        let asked = self.census.look(now, in_flight, || calls(shared));
        if !asked.is_empty() {
            self.ask(shared, &asked);
        }
        lines.extend(self.census.tell(now));
        lines.extend(self.slow.look(now, |limit| silent(shared, now, limit), &seeing, &mut self.examiner));
        if self.saturation.is_due(now) {
            let explained = self.stalls.is_on(now) || self.census.is_on();
            lines.extend(self.saturation.look(now, sample(shared, now, explained)));
        }
        lines
    }

    fn take_answers(&mut self, shared: &Shared, now: u64) {
        let board = shared.board;
        let in_flight = board.get(Word::InFlight);
        while let Some(answer) = self.examiner.take() {
            match answer {
                Answer::Found(finding) if shared.waiting.times_calls() => self.slow.found(*finding),
                Answer::Found(finding) if finding.imports() && !has_served(shared) => {}
                Answer::Found(finding) => self.stalls.found(*finding),
                Answer::Census(mut found) => {
                    // What was read of a thread is of that call if it runs still.
                    found.retain(|sample| board.call_started(sample.slot) == sample.started);
                    self.census.told(now, in_flight, found);
                }
            }
        }
        if let Some(found) = shared.waiting.hub().and_then(|hub| hub.samples.answers(Asker::Census)) {
            self.census.told(now, in_flight, found);
        }
    }

    fn ask(&mut self, shared: &Shared, asked: &[(usize, u64)]) {
        match shared.waiting.hub() {
            Some(hub) => {
                hub.samples.ask(Asker::Census, asked.iter().map(|(slot, _)| *slot));
                hub.ring();
            }
            None => {
                let of_thread = |&(slot, started): &(usize, u64)| {
                    let thread = shared.waiting.slots.get(slot)?.thread();
                    Some(Asked { slot, started, thread })
                };
                self.examiner.ask_census(asked.iter().filter_map(of_thread).collect());
            }
        }
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, shared: &Shared, eye: &Eye, now: u64) -> Option<u64> {
        if !is_warm(shared) {
            return None;
        }
        let in_flight = shared.board.get(Word::InFlight);
        [
            self.stalls.due(scene(shared, eye, now, 0)),
            self.census.due(now, in_flight),
            self.saturation.due(now),
            self.slow.due(now, || progress(shared).collect()),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}

/// What is told of a hub and of requests.
struct Seeing<'m> {
    eye: &'m Eye,
    shared: &'m Shared,
}

impl Witness for Seeing<'_> {
    fn end_of(&self, moment: u64) -> Option<u64> {
        self.eye.end_of(&self.shared.waiting, moment)
    }

    fn request(&self) -> (String, bool) {
        let text = self.eye.last_begun(&self.shared.waiting);
        (String::from_utf8_lossy(&text).into_owned(), self.shared.board.get(Word::InFlight) == 1)
    }

    fn used(&self, thread: signals::ThreadId) -> Option<(u64, u64)> {
        Some((processor::time_of(thread)?, processor::delay_of(thread)?))
    }
}

impl Clerk for Seeing<'_> {
    fn text(&self, slot: usize) -> String {
        String::from_utf8_lossy(&self.shared.board.call_text(slot).unwrap_or_default()).into_owned()
    }

    fn runs(&self, slot: usize, call: u32) -> bool {
        self.shared.waiting.slots.get(slot).is_some_and(|slot| slot.calls() == call)
    }

    fn queued(&self) -> u64 {
        self.shared.board.get(Word::Queued)
    }
}

/// The first request may take its time. A developer wants to know nevertheless, unless modules are imported for it.
fn is_warm(shared: &Shared) -> bool {
    shared.config.development || has_served(shared)
}

fn has_served(shared: &Shared) -> bool {
    shared.board.get(Word::Requests) > 0
}

fn scene(shared: &Shared, eye: &Eye, now: u64, late: u64) -> Scene {
    let board = shared.board;
    let held_up = eye.held_up(&shared.waiting);
    Scene { now, held_up, requests: board.get(Word::InFlight).saturating_add(board.get(Word::Queued)), late }
}

/// The calls under way that may wait for a pool: of an open connection the application may wait for anything.
fn calls(shared: &Shared) -> Vec<(usize, u64)> {
    shared.board.starts().filter(|(slot, _)| !shared.board.phase(*slot).is_open_socket()).collect()
}

/// The calls on threads that have made no progress for so long.
fn silent(shared: &Shared, now: u64, limit: u64) -> Vec<Silent> {
    let is_silent = |(_, since): &(Silent, u64)| now.saturating_sub(*since) >= limit;
    progress(shared).filter(is_silent).map(|(silent, _)| silent).collect()
}

/// The calls on threads, and since when each has made no progress.
fn progress(shared: &Shared) -> impl Iterator<Item = (Silent, u64)> {
    let waiting = &shared.waiting;
    (0..waiting.slots.len()).filter_map(|slot| {
        let (call, started) = waiting.running(slot)?;
        match waiting.silence(slot, call, started) {
            Silence::Since(since) => {
                Some((Silent { slot, call, started, thread: waiting.slots[slot].thread() }, since))
            }
            Silence::Client | Silence::Exempt => None,
        }
    })
}

/// Whose times are read twice a second.
const MOST_THREADS: usize = 64;

fn sample(shared: &Shared, now: u64, explained: bool) -> Sample {
    let (board, waiting) = (shared.board, &shared.waiting);
    let hub = waiting.hub();
    let threads: Vec<_> = match hub {
        Some(hub) => vec![hub.thread()],
        None => {
            waiting.slots.iter().filter(|slot| slot.is_taken()).take(MOST_THREADS).map(|slot| slot.thread()).collect()
        }
    };
    let oldest = board.get(Word::Oldest);
    Sample {
        hub: hub.is_some(),
        worked: hub.and_then(|hub| hub.time.worked(now)),
        computed: threads.iter().filter_map(|thread| processor::time_of(*thread)).sum(),
        queued: threads.iter().filter_map(|thread| processor::delay_of(*thread)).sum(),
        process: clock::process_cpu(),
        requests: board.get(Word::Requests),
        in_flight: board.get(Word::InFlight),
        waiting: board.get(Word::Queued),
        oldest: if oldest == 0 { 0 } else { now.saturating_sub(oldest) },
        free: board.get(Word::Free),
        explained,
    }
}
