//! What the sampler reads from memory: where threads are, and at which request a hub's thread is.
use crate::clock;
use crate::engine::shared::Shared;
use crate::waiting::hub::Hub;
use tricorn_diagnosis::sampling::Frames;
use tricorn_doctor::{Doctor, Doing, PyFrame, PyThread, Spot, inside_server};

/// A slot, and when the call there began.
pub type Call = (usize, u64);

pub struct Reader<'s> {
    shared: &'s Shared,
    doctor: Option<Doctor>,
    /// Processor time of what is done once: symbols are read from disk.
    pub once: u64,
}

/// What the thread of a hub is at.
#[derive(Debug)]
pub enum HubIsAt {
    /// It waits for events.
    Rest,
    /// A call, if it is known which.
    Work(Option<Call>, Frames),
    Unknown,
}

impl<'s> Reader<'s> {
    pub fn new(shared: &'s Shared) -> Reader<'s> {
        Reader { shared, doctor: None, once: 0 }
    }

    fn doctor(&mut self) -> Option<&mut Doctor> {
        if self.doctor.is_none() {
            let began = clock::thread_cpu();
            self.doctor = Doctor::open(std::process::id()).ok();
            self.once += clock::thread_cpu().saturating_sub(began);
        }
        self.doctor.as_mut()
    }

    /// The threads that Python knows.
    pub fn threads(&mut self) -> Vec<PyThread> {
        self.doctor().map(|doctor| doctor.python_threads()).unwrap_or_default()
    }

    pub fn spot(&mut self, thread: &PyThread) -> Option<Spot> {
        let began = clock::thread_cpu();
        let mut spot = self.doctor()?.spot(thread)?;
        // The frames that started the server are those of every stack on the main thread.
        let inside = inside_server(&spot.frames).len();
        spot.frames.truncate(inside);
        if spot.learned {
            self.once += clock::thread_cpu().saturating_sub(began);
        }
        Some(spot)
    }

    pub fn computes(&mut self, thread: &PyThread) -> bool {
        self.doctor().is_some_and(|doctor| doctor.computes(thread))
    }

    /// Where the call is that this thread makes. Empty: that could not be told, or it is over.
    pub fn call(&mut self, thread: &PyThread, (slot, started): Call) -> Frames {
        let frames = self.spot(thread).map(|spot| spot.frames).unwrap_or_default();
        // What was read is of this request if it runs still.
        if self.shared.board.call_started(slot) == started { frames } else { Frames::new() }
    }

    pub fn hub(&mut self, hub: &Hub, threads: &[PyThread], calls: &[Call]) -> HubIsAt {
        if hub.time.is_kept() && hub.time.works_since().is_none() {
            return HubIsAt::Rest;
        }
        let tid = hub.thread() as u32;
        let Some(thread) = threads.iter().find(|thread| thread.tid == tid) else { return HubIsAt::Unknown };
        let before = self.served(hub, calls);
        let Some(mut spot) = self.spot(thread) else { return HubIsAt::Unknown };
        if spot.doing == Doing::Rests {
            return HubIsAt::Rest;
        }
        if spot.frames.is_empty() {
            return HubIsAt::Unknown;
        }
        let after = self.served(hub, calls);
        without_loop(&mut spot.frames);
        HubIsAt::Work(before.filter(|before| Some(*before) == after), spot.frames)
    }

    /// The call that the thread of a hub is at.
    fn served(&mut self, hub: &Hub, calls: &[Call]) -> Option<Call> {
        let board = self.shared.board;
        let doctor = self.doctor()?;
        let owner = hub.at.call(board, |marks| doctor.identities(marks))?;
        Some((owner.slot, owner.started)).filter(|call| calls.contains(call))
    }
}

/// Takes away the frames of an event loop: those of a task that waits do not have them either.
fn without_loop(frames: &mut Frames) {
    let is_step = |frame: &PyFrame| frame.file.ends_with("/asyncio/events.py") && frame.function.ends_with("_run");
    let is_worker = |frame: &PyFrame| frame.file.ends_with("/tricorn/workers/event_loop.py");
    // The outermost step: a loop within a loop is the application's.
    let end = frames.iter().rposition(is_step).or_else(|| frames.iter().position(is_worker));
    if let Some(end) = end {
        frames.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(list: &[(&str, &str)]) -> Frames {
        list.iter().map(|&(file, function)| PyFrame { file: file.into(), function: function.into(), line: 1 }).collect()
    }

    #[test]
    fn frames_of_the_loop_are_taken_away_and_those_of_the_application_stay() {
        let own = [("/srv/a.py", "rare"), ("/srv/a.py", "work")];
        let asyncio = [
            ("/l/asyncio/events.py", "Handle._run"),
            ("/l/asyncio/base_events.py", "BaseEventLoop._run_once"),
            ("/s/tricorn/workers/event_loop.py", "run"),
        ];
        let uvloop = [("/s/tricorn/workers/event_loop.py", "run"), ("/s/tricorn/workers/base.py", "init_process")];
        for outer in [&asyncio[..], &uvloop[..], &[]] {
            let mut frames = stack(&[&own, outer].concat());
            without_loop(&mut frames);
            assert_eq!(frames, stack(&own));
        }
        let mut nested = stack(&[&own[..], &asyncio[..2], &[("/srv/b.py", "inner")], &asyncio[..]].concat());
        without_loop(&mut nested);
        assert_eq!(
            nested.last().map(|frame| frame.function.as_str()),
            Some("inner"),
            "a loop in a loop is the application's"
        );
    }
}
