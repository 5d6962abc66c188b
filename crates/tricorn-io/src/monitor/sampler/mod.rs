//! The thread that looks at requests which take long, and at everything while a profile is taken. It sleeps while there is neither.
//!
//! * `reader.rs`: what is read from memory. `file.rs`: how reports get to the arbiter, and orders from it. `profiling.rs`: a profile.
mod profiling;
mod reader;

use crate::clock::{self, MILLI};
use crate::engine::shared::Shared;
use crate::scoreboard::Word;
use crate::sys::signals;
use crate::waiting::hub::Hub;
use crate::waiting::sampling::{REPORTS, SHARE, lock};
use profiling::Profiling;
use reader::{Call, HubIsAt, Reader};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io;
use std::collections::HashMap;
use tricorn_diagnosis::report_file::ReportFile;
pub use tricorn_diagnosis::report_file::Reports;
use tricorn_diagnosis::sampling::plan::{Plan, STEP};
use tricorn_diagnosis::sampling::{Frames, held_up, route};
use tricorn_diagnosis::stack_samples::Asker;

/// The shortest interval of a profile that is kept to.
const SHORTEST: u64 = MILLI;
/// A hub that is asked comes within this, unless something holds it up.
const LATE: u64 = 2 * STEP;

pub fn run(shared: &Shared) {
    signals::block_others();
    let Some(file) = shared.config.profile.as_deref() else { return };
    let mut sampler = Sampler::new(shared, ReportFile::new(file));
    let mut bell = shared.config.profile_bell.as_deref().map(AsFd::as_fd);
    while !shared.life.is_closed() {
        let sampling = &shared.waiting.sampling;
        let now = clock::now();
        sampler.take_answers();
        sampler.profile(now);
        let due = sampler.look(now);
        let dues = [due, sampler.profiling.as_ref().map(Profiling::due)].into_iter().flatten().min();
        sampling.alarm.wait([bell, None, None], None, dues.map(|due| due.saturating_sub(clock::now())));
        sampling.sleeper.get_up();
        bell = bell.filter(|&bell| silence(bell));
    }
}

/// Forgets rings. `false`: the arbiter has closed its end, at which the pipe would be readable for ever.
fn silence(bell: BorrowedFd<'_>) -> bool {
    let mut rings = [0; 64];
    loop {
        match io::read(bell, &mut rings) {
            Ok(count) if count == rings.len() => {}
            Ok(count) => return count > 0,
            Err(io::Errno::INTR) => {}
            Err(error) => return error == io::Errno::AGAIN,
        }
    }
}

struct Sampler<'s> {
    shared: &'s Shared,
    reader: Reader<'s>,
    file: ReportFile<'s>,
    plan: Plan,
    profiling: Option<Profiling>,
    /// The number of the last order.
    ordered: u64,
    /// Places of slow requests for which the hub was asked, and since when.
    asked: HashMap<usize, u64>,
    /// Processor time of the hub that is accounted for.
    spent: u64,
    /// When the last report on slow requests was written.
    reported: u64,
    /// Requests that had ended at the last look.
    ended: u64,
    /// Until then slow requests are not looked at: looks have cost their share of the time.
    rests_until: u64,
}

impl<'s> Sampler<'s> {
    fn new(shared: &'s Shared, file: ReportFile<'s>) -> Sampler<'s> {
        Sampler {
            shared,
            reader: Reader::new(shared),
            file,
            plan: Plan::new(shared.waiting.sampling.after),
            profiling: None,
            ordered: 0,
            asked: HashMap::new(),
            spent: 0,
            reported: 0,
            ended: 0,
            rests_until: 0,
        }
    }

    /// What the hub has found since.
    fn take_answers(&mut self) {
        let Some(hub) = self.shared.waiting.hub() else { return };
        for sample in hub.samples.answers(Asker::Sampler).unwrap_or_default() {
            if let Some(profiling) = &mut self.profiling {
                profiling.sampled(&sample);
            }
            if let Some(since) = self.asked.remove(&sample.slot) {
                // A hub that has not come for long was at something else, and where the request waits is no reason for that time.
                let is_late = sample.at.saturating_sub(since) > LATE;
                let frames = if is_late { Frames::new() } else { sample.frames };
                self.plan.sampled(sample.at, (sample.slot, sample.started), frames);
            }
        }
    }

    /// Takes an order, looks if that is due, and ends a profile that has lasted long enough.
    fn profile(&mut self, now: u64) {
        if let Some(mut order) = self.file.order().filter(|order| order.number != self.ordered) {
            self.ordered = order.number;
            order.interval = order.interval.max(SHORTEST);
            self.profiling = (order.end > now).then(|| Profiling::new(order, now));
        }
        let Some(mut profiling) = self.profiling.take() else { return };
        if now >= profiling.due() {
            let began = clock::thread_cpu();
            profiling.look(now, self.shared, &mut self.reader);
            profiling.report(now, &mut self.file);
            let cost = self.cost_since(began) + self.cost_of_hub();
            profiling.looked(clock::now(), cost);
        }
        if now < profiling.order.end {
            self.profiling = Some(profiling);
        }
    }

    /// Looks at slow requests. When to do so again, which requests that begin know, too.
    fn look(&mut self, now: u64) -> Option<u64> {
        let sleeper = &self.shared.waiting.sampling.sleeper;
        if now < self.rests_until {
            return Some(self.rests_until); // it has got up, so that no request rings for it
        }
        sleeper.lie_down();
        let began = clock::thread_cpu();
        let next = self.look_at_slow(now);
        let report = self.report(now);
        // What the hub did for it counts as well.
        let hub = if self.profiling.is_none() { self.cost_of_hub() } else { 0 };
        let cost = self.cost_since(began) + hub;
        let rest = if self.plan.changed || next.is_some() { cost * (SHARE - 1) } else { 0 };
        self.rests_until = now + rest;
        // While requests come and go this thread looks in time for those to come, and none of them has to ring for it.
        let before = std::mem::replace(&mut self.ended, self.shared.board.get(Word::Requests));
        let others = (self.ended != before).then_some(now + self.plan.after());
        let due = [next, report, others].into_iter().flatten().min().map(|due| due.max(self.rests_until));
        sleeper.sleep_until(due);
        due
    }

    /// Processor time of this thread, but for what is done once.
    fn cost_since(&mut self, began: u64) -> u64 {
        let once = std::mem::take(&mut self.reader.once);
        clock::thread_cpu().saturating_sub(began + once)
    }

    fn cost_of_hub(&mut self) -> u64 {
        let spent = self.shared.waiting.hub().map_or(0, |hub| hub.samples.spent());
        spent.saturating_sub(std::mem::replace(&mut self.spent, spent))
    }

    fn look_at_slow(&mut self, now: u64) -> Option<u64> {
        let (shared, board) = (self.shared, self.shared.board);
        self.plan.routes.fade(now, &shared.waiting.sampling.counts);
        let calls: Vec<Call> = board.starts().collect();
        // What is over by now has told its route before.
        lock(&shared.waiting.sampling.named).drain(..).for_each(|named| self.plan.named(named));
        // An open socket is not slow: its client keeps it for as long as it likes.
        let is_request = |(slot, _): &&Call| !board.phase(*slot).is_open_socket();
        let requests: Vec<Call> = calls.iter().filter(is_request).copied().collect();
        let due = self.plan.look(now, &requests, |slot| board.call_text(slot));
        let slots: Vec<Call> = due.slots.iter().filter_map(|slot| Some((*slot, self.plan.started(*slot)?))).collect();
        if !slots.is_empty() {
            match shared.waiting.hub() {
                Some(hub) => self.look_at_hub(hub, &calls, &slots),
                None => self.look_at_threads(&slots),
            }
        }
        due.next
    }

    fn look_at_threads(&mut self, slots: &[Call]) {
        let threads: HashMap<u32, _> = self.reader.threads().into_iter().map(|thread| (thread.tid, thread)).collect();
        for &call in slots {
            let tid = self.shared.waiting.slots[call.0].thread() as u32;
            let frames = threads.get(&tid).map_or_else(Frames::new, |thread| self.reader.call(thread, call));
            self.plan.sampled(clock::now(), call, frames);
        }
    }

    /// The call that the hub is at is read from memory, and the hub is asked for those that wait. A hub that has not come since it was
    /// asked keeps all of them from going on.
    fn look_at_hub(&mut self, hub: &Hub, calls: &[Call], slots: &[Call]) {
        let board = self.shared.board;
        let threads = self.reader.threads();
        let is_at = self.reader.hub(hub, &threads, calls);
        let now = clock::now();
        let mut waiting = slots.to_vec();
        if let HubIsAt::Work(served, frames) = is_at {
            if let Some(call) = served {
                waiting.retain(|each| *each != call);
                if slots.contains(&call) {
                    self.plan.sampled(now, call, frames.clone());
                }
            }
            if hub.samples.is_asked(Asker::Sampler) {
                let by = served.and_then(|call| board.call_text(call.0)).map(|line| route::name(&line));
                let held = held_up(&frames, &by.unwrap_or_default());
                for call in std::mem::take(&mut waiting) {
                    self.plan.sampled(now, call, held.clone());
                }
            }
        }
        if !waiting.is_empty() {
            for call in &waiting {
                self.asked.entry(call.0).or_insert(now);
            }
            hub.samples.ask(Asker::Sampler, waiting.into_iter().map(|call| call.0));
            hub.ring();
        }
    }

    /// Writes the report, if there is something new and the last one is old enough; or when that will be so.
    fn report(&mut self, now: u64) -> Option<u64> {
        if !self.plan.changed {
            return None;
        }
        if self.reported > 0 && now < self.reported + REPORTS {
            return Some(self.reported + REPORTS);
        }
        let text = self.plan.report(&self.shared.waiting.sampling.counts);
        let written = self.file.write_slow(&text);
        self.reported = now;
        if written.is_ok() {
            self.plan.changed = false;
        }
        written.err().map(|_| now + REPORTS)
    }
}
