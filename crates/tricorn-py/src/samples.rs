//! Where requests wait that are on no thread's stack: Python is asked for the frames of greenlets and tasks when the hub comes.
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tricorn_io::clock;
use tricorn_io::{Engine, Frames, PyFrame};

/// `tricorn.workers.waiting.samples`, once a worker has said so.
pub struct Samples(PyOnceLock<Py<PyAny>>);

/// A place, and its frames as file, line and function.
type Found = Vec<(usize, Vec<(String, i32, String)>)>;

impl Samples {
    pub fn new() -> Samples {
        Samples(PyOnceLock::new())
    }

    pub fn tell_with(&self, py: Python<'_>, function: Py<PyAny>) {
        let _ = self.0.set(py, function);
    }

    /// Tells what was asked for, if something was.
    #[inline]
    pub fn tell(&self, py: Python<'_>, engine: &Engine, calls: impl FnOnce() -> Vec<(usize, Py<PyAny>)>) {
        if let Some(places) = engine.take_sample_order() {
            self.tell_these(py, engine, places, calls());
        }
    }

    #[cold]
    fn tell_these(&self, py: Python<'_>, engine: &Engine, places: Vec<usize>, calls: Vec<(usize, Py<PyAny>)>) {
        let Some(function) = self.0.get(py) else { return };
        let began = clock::thread_cpu();
        let found = function.bind(py).call1((places, calls)).and_then(|found| found.extract::<Found>());
        match found {
            Ok(found) => {
                let frame = |(file, line, function)| PyFrame { file, function, line };
                let frames = |frames: Vec<_>| frames.into_iter().map(frame).collect::<Frames>();
                let found = found.into_iter().map(|(place, stack)| (place, frames(stack))).collect();
                engine.tell_samples(found, clock::thread_cpu().saturating_sub(began));
            }
            Err(error) => error.write_unraisable(py, Some(function.bind(py))),
        }
    }
}
