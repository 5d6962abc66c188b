//! The thread that looks at requests which take long. It sleeps while none is under way.
use crate::clock;
use crate::engine::shared::Shared;
use crate::scoreboard::Word;
use crate::sys::signals;
use crate::waiting::tails::plan::Plan;
use crate::waiting::tails::{Frames, REPORTS, SHARE, lock};
use rustix::fd::OwnedFd;
use rustix::io;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use tricorn_doctor::Doctor;

/// Where the report begins in its file: two of them take turns, and the first words say which counts.
const AREA: u64 = 256 << 10;
const HEAD: u64 = 4096;

pub fn run(shared: &Shared) {
    signals::block_others();
    let Some(file) = shared.config.profile.as_deref() else { return };
    let after = shared.waiting.tails.after;
    let mut sampler = Sampler { shared, plan: Plan::new(after), doctor: None, opening: 0, reported: 0, turn: 0 };
    let (mut spent, mut ended) = (0, 0);
    while !shared.life.is_closed() {
        let (tails, began) = (&shared.waiting.tails, clock::thread_cpu());
        tails.sleeper.lie_down();
        let now = clock::now();
        let next = sampler.look(now);
        let report = sampler.report(now, file);
        // What the hub did for it counts as well.
        let hub = tails.spent.load(Ordering::Relaxed);
        let began = began + std::mem::take(&mut sampler.opening);
        let cost = clock::thread_cpu().saturating_sub(began) + hub.saturating_sub(std::mem::replace(&mut spent, hub));
        let rest = if sampler.plan.changed || next.is_some() { cost * (SHARE - 1) } else { 0 };
        // While requests come and go this thread looks in time for those to come, and none of them has to ring for it.
        let before = std::mem::replace(&mut ended, shared.board.get(Word::Requests));
        let others = (ended != before).then_some(now + after);
        let dues = [next, report, others].into_iter().flatten().min().map(|due| due.max(now + rest));
        tails.sleeper.sleep_until(dues);
        tails.alarm.wait([None; 2], None, dues.map(|due| due.saturating_sub(clock::now())));
        tails.sleeper.get_up();
    }
}

struct Sampler<'s> {
    shared: &'s Shared,
    plan: Plan,
    doctor: Option<Doctor>,
    /// Processor time of making it, once: symbols are read from disk.
    opening: u64,
    reported: u64,
    turn: u64,
}

impl Sampler<'_> {
    /// When to look again.
    fn look(&mut self, now: u64) -> Option<u64> {
        let (shared, board) = (self.shared, self.shared.board);
        for told in lock(&shared.waiting.tails.told).drain(..) {
            self.plan.sampled(told.at, (told.place, told.started), told.frames);
        }
        self.plan.routes.fade(now, &shared.waiting.tails.counts);
        let calls: Vec<(usize, u64)> = board.starts().collect();
        // What is over by now has told its route before.
        lock(&shared.waiting.tails.named).drain(..).for_each(|named| self.plan.named(named));
        let due = self.plan.look(now, &calls, |place| board.call_text(place));
        if !due.places.is_empty() {
            match shared.waiting.hub() {
                Some(hub) => {
                    *lock(&shared.waiting.tails.wanted) = due.places;
                    shared.waiting.tails.asks.store(true, Ordering::Relaxed);
                    hub.ring();
                }
                None => self.read(&due.places),
            }
        }
        due.next
    }

    /// Reads where the threads at these places are.
    fn read(&mut self, places: &[usize]) {
        if self.doctor.is_none() {
            let began = clock::thread_cpu();
            self.doctor = Doctor::open(std::process::id()).ok();
            self.opening = clock::thread_cpu().saturating_sub(began);
        }
        let Some(doctor) = &mut self.doctor else { return };
        let threads: HashMap<u32, _> = doctor.python_threads().into_iter().map(|thread| (thread.tid, thread)).collect();
        for &place in places {
            let Some(started) = self.plan.started(place) else { continue };
            let tid = self.shared.waiting.slots[place].thread() as u32;
            let walked = threads.get(&tid).and_then(|thread| doctor.frames_of(thread)).unwrap_or_default();
            // What was read is of this request if it runs still.
            let frames: Frames =
                if self.shared.board.call_started(place) == started { walked.frames } else { Vec::new() };
            self.plan.sampled(clock::now(), (place, started), frames);
        }
    }

    /// Writes the report, if there is something new and the last one is old enough; or when that will be so.
    fn report(&mut self, now: u64, file: &OwnedFd) -> Option<u64> {
        if !self.plan.changed {
            return None;
        }
        if self.reported > 0 && now < self.reported + REPORTS {
            return Some(self.reported + REPORTS);
        }
        let text = self.plan.report(&self.shared.waiting.tails.counts);
        let turn = self.turn + 1;
        let mut head = turn.to_ne_bytes().to_vec();
        head.extend((text.len() as u64).to_ne_bytes());
        let written = write(file, &text, HEAD + turn % 2 * AREA).and_then(|()| write(file, &head, 0));
        self.reported = now;
        if written.is_ok() {
            self.turn = turn;
            self.plan.changed = false;
        }
        written.err().map(|_| now + REPORTS)
    }
}

fn write(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = io::retry_on_intr(|| io::pwrite(file, bytes, at))?;
        if count == 0 {
            return Err(io::Errno::NOSPC);
        }
        bytes = &bytes[count..];
        at += count as u64;
    }
    Ok(())
}
