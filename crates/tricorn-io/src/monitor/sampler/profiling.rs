//! A profile while it is taken: at each look, whose time the time since the last one was.
//!
//! ```text
//!   threads   a request has its thread: its frames are read
//!   a hub     one request has the thread: read. The others wait: the hub is asked, and its answer stands for the time since it was.
//!             A hub that does not answer until the next look is at something else, and so are they
//!   besides   what the hub's thread is at without a request, and threads that compute
//! ```
use super::reader::{Call, HubIsAt, Reader};
use crate::clock::SECOND;
use crate::engine::shared::Shared;
use crate::waiting::hub::Hub;
use crate::waiting::sampling::SHARE_OF_PROFILE;
use std::collections::HashMap;
use tricorn_diagnosis::report_file::{Order, ReportFile};
use tricorn_diagnosis::sampling::profile::{Of, Profile, Span};
use tricorn_diagnosis::sampling::{Frames, held_up, route};
use tricorn_diagnosis::stack_samples::{Asker, StackSample};
use tricorn_doctor::PyThread;

/// Calls that wait at a hub of which the frames are wanted at once.
const MOST_AT_ONCE: usize = 32;
/// Between two reports while the profile is taken: what there is if the worker ends.
const REPORTS: u64 = SECOND;

pub struct Profiling {
    pub order: Order,
    profile: Profile,
    begun: u64,
    last: u64,
    next: u64,
    reported: u64,
    cost: u64,
    /// The owners of the calls under way.
    owners: HashMap<Call, usize>,
    /// What the hub was asked for, and the time that its answer stands for.
    asked: HashMap<Call, u64>,
    /// Where to go on among calls of which not all are asked for.
    turn: usize,
}

impl Profiling {
    pub fn new(order: Order, now: u64) -> Profiling {
        Profiling {
            order,
            profile: Profile::default(),
            begun: now,
            last: now,
            next: now + order.interval,
            reported: now,
            cost: 0,
            owners: HashMap::new(),
            asked: HashMap::new(),
            turn: 0,
        }
    }

    /// When to look, or to end.
    pub fn due(&self) -> u64 {
        self.next.min(self.order.end)
    }

    pub fn look(&mut self, now: u64, shared: &Shared, reader: &mut Reader<'_>) {
        let elapsed = now.saturating_sub(self.last);
        self.last = now;
        self.profile.looked(elapsed, self.order.interval);
        let calls: Vec<Call> = shared.board.starts().collect();
        self.meet(&calls, shared);
        let threads = reader.threads();
        match shared.waiting.hub() {
            Some(hub) => self.look_at_hub(elapsed, reader, (hub, &calls, &threads)),
            None => self.look_at_calls(elapsed, shared, reader, (&calls, &threads)),
        }
    }

    /// The look is over, and has cost so much processor time.
    pub fn looked(&mut self, now: u64, cost: u64) {
        self.cost += cost;
        self.next = (self.last + self.order.interval).max(now + cost * (SHARE_OF_PROFILE - 1));
    }

    /// Who is new, and who is gone.
    fn meet(&mut self, calls: &[Call], shared: &Shared) {
        for &call in calls {
            if self.owners.contains_key(&call) {
                continue;
            }
            if let Some(line) = shared.board.call_text(call.0) {
                let owner = self.profile.owner(Of::Request, &route::name(&line));
                self.profile.met(owner);
                self.owners.insert(call, owner);
            }
        }
        let runs = |call: &Call| calls.contains(call);
        for (call, weight) in self.asked.extract_if(|call, _| !runs(call)) {
            // It has gone on before the hub came to it.
            if let Some(&owner) = self.owners.get(&call) {
                self.profile.add(owner, &[], weight);
            }
        }
        self.owners.retain(|call, _| runs(call));
    }

    fn look_at_calls(&mut self, elapsed: u64, shared: &Shared, reader: &mut Reader<'_>, of: (&[Call], &[PyThread])) {
        let (calls, threads) = of;
        let at = |call: &Call| (shared.waiting.slots[call.0].thread() as u32, *call);
        let by_thread: HashMap<u32, Call> = calls.iter().map(at).collect();
        let app: Vec<u32> = shared.waiting.slots.iter().map(|slot| slot.thread() as u32).collect();
        for thread in threads {
            match by_thread.get(&thread.tid) {
                Some(call) => {
                    let frames = reader.call(thread, *call);
                    self.add(*call, &frames, elapsed);
                }
                None if app.contains(&thread.tid) => {} // it waits for a request
                None => self.look_at_other(elapsed, reader, thread),
            }
        }
    }

    /// A thread that is at no request counts while it computes.
    fn look_at_other(&mut self, elapsed: u64, reader: &mut Reader<'_>, thread: &PyThread) {
        if reader.computes(thread)
            && let Some(spot) = reader.spot(thread)
        {
            let owner = self.profile.owner(Of::Thread, "threads");
            self.profile.add(owner, &spot.frames, elapsed);
        }
    }

    fn look_at_hub(
        &mut self,
        elapsed: u64,
        reader: &mut Reader<'_>,
        (hub, calls, threads): (&Hub, &[Call], &[PyThread]),
    ) {
        let is_at = reader.hub(hub, threads, calls);
        let (served, frames) = match is_at {
            HubIsAt::Work(served, frames) => (served, Some(frames)),
            HubIsAt::Rest | HubIsAt::Unknown => (None, None),
        };
        match (served, &frames) {
            (Some(call), Some(frames)) => self.add(call, frames, elapsed),
            (None, Some(frames)) => {
                let owner = self.profile.owner(Of::Loop, "event loop");
                self.profile.add(owner, frames, elapsed);
            }
            (_, None) => {}
        }
        let others: Vec<Call> = calls.iter().copied().filter(|call| Some(*call) != served).collect();
        let chosen: Vec<Call> =
            others.iter().cycle().skip(self.turn).take(others.len().min(MOST_AT_ONCE)).copied().collect();
        if !chosen.is_empty() {
            self.turn = (self.turn + chosen.len()) % others.len();
            let weight = elapsed * others.len() as u64 / chosen.len() as u64;
            self.ask(weight, hub, (served, frames), &chosen);
        }
        for thread in threads.iter().filter(|thread| thread.tid != hub.thread() as u32) {
            self.look_at_other(elapsed, reader, thread);
        }
    }

    /// Asks the hub for calls that wait. If it has not come since it was asked last, they wait for what it is at.
    fn ask(&mut self, weight: u64, hub: &Hub, (served, frames): (Option<Call>, Option<Frames>), calls: &[Call]) {
        for call in calls {
            *self.asked.entry(*call).or_default() += weight;
        }
        match frames.filter(|_| hub.samples.is_asked(Asker::Sampler)) {
            Some(frames) => {
                let by = served.and_then(|call| self.owners.get(&call)).map_or("", |owner| self.profile.name(*owner));
                let held = held_up(&frames, by);
                for (call, weight) in std::mem::take(&mut self.asked) {
                    self.add(call, &held, weight);
                }
            }
            None => hub.samples.ask(Asker::Sampler, calls.iter().map(|call| call.0)),
        }
        hub.ring();
    }

    /// What the hub has found.
    pub fn sampled(&mut self, sample: &StackSample) {
        let call = (sample.slot, sample.started);
        if let Some(weight) = self.asked.remove(&call) {
            self.add(call, &sample.frames, weight);
        }
    }

    fn add(&mut self, call: Call, frames: &[tricorn_doctor::PyFrame], weight: u64) {
        if let Some(&owner) = self.owners.get(&call) {
            self.profile.add(owner, frames, weight);
        }
    }

    /// Writes what there is, from time to time and at the end. What cannot be written is not there for the reader, who says so.
    pub fn report(&mut self, now: u64, file: &mut ReportFile<'_>) {
        let ended = now >= self.order.end;
        if ended || now >= self.reported + REPORTS {
            self.reported = now;
            let length = now.min(self.order.end).saturating_sub(self.begun);
            let span = Span { length, interval: self.order.interval, cost: self.cost, ended };
            let _ = file.write_profile(&self.profile.report(span, self.order.most), self.order.number);
        }
    }
}
