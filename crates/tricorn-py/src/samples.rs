//! Where requests wait that are on no thread's stack: Python is asked for the frames of greenlets and tasks when the hub comes.
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tricorn_io::clock;
use tricorn_io::{Engine, Frames, PoolWait, PyFrame};

/// `tricorn.workers.waiting.samples` and `tricorn.workers.roll.roll`, once a worker has said so.
pub struct Samples {
    samples: PyOnceLock<Py<PyAny>>,
    roll: PyOnceLock<Py<PyAny>>,
}

/// File, line and function.
type Frame = (String, i32, String);

/// A slot, and its frames.
type Found = Vec<(usize, Vec<Frame>)>;

/// A slot, and the pool where it waits for room: its name, its size, the frame of the library, that of the application.
type Seats = Vec<(usize, Option<(String, String, Frame, Option<Frame>)>)>;

impl Samples {
    pub fn new() -> Samples {
        Samples { samples: PyOnceLock::new(), roll: PyOnceLock::new() }
    }

    pub fn tell_with(&self, py: Python<'_>, samples: Py<PyAny>, roll: Py<PyAny>) {
        let _ = self.samples.set(py, samples);
        let _ = self.roll.set(py, roll);
    }

    /// Tells what was asked for, if something was.
    #[inline]
    pub fn tell(&self, py: Python<'_>, engine: &Engine, calls: impl FnOnce() -> Vec<(usize, Py<PyAny>)>) {
        if let Some(slots) = engine.take_sample_order() {
            self.tell_these(py, engine, slots, calls());
        } else if let Some(slots) = engine.take_roll_order() {
            // One of the two at a time: the other one's order keeps.
            self.tell_roll(py, engine, slots, calls());
        }
    }

    #[cold]
    fn tell_roll(&self, py: Python<'_>, engine: &Engine, slots: Vec<usize>, calls: Vec<(usize, Py<PyAny>)>) {
        let Some(function) = self.roll.get(py) else { return };
        let found = function.bind(py).call1((slots, calls)).and_then(|found| found.extract::<Seats>());
        let frame = |(file, line, function): Frame| PyFrame { file, function, line };
        let seat = |(pool, size, site, line): (String, String, Frame, Option<Frame>)| PoolWait {
            pool,
            size,
            site: frame(site),
            line: line.map(frame),
        };
        match found {
            Ok(found) => engine.tell_roll(found.into_iter().map(|(slot, wait)| (slot, wait.map(seat))).collect()),
            Err(error) => error.write_unraisable(py, Some(function.bind(py))),
        }
    }

    #[cold]
    fn tell_these(&self, py: Python<'_>, engine: &Engine, slots: Vec<usize>, calls: Vec<(usize, Py<PyAny>)>) {
        let Some(function) = self.samples.get(py) else { return };
        let began = clock::thread_cpu();
        let found = function.bind(py).call1((slots, calls)).and_then(|found| found.extract::<Found>());
        match found {
            Ok(found) => {
                let frame = |(file, line, function): Frame| PyFrame { file, function, line };
                let frames = |frames: Vec<_>| frames.into_iter().map(frame).collect::<Frames>();
                let found = found.into_iter().map(|(slot, stack)| (slot, frames(stack))).collect();
                engine.tell_samples(found, clock::thread_cpu().saturating_sub(began));
            }
            Err(error) => error.write_unraisable(py, Some(function.bind(py))),
        }
    }
}
