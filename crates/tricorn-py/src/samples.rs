//! Where requests wait that are on no thread's stack: Python is asked for the frames of greenlets and tasks when the hub comes.
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tricorn_io::{Asker, Frames, HubHandle, PoolWait, PyFrame, SampleRequest, clock};

/// Takes samples by `tricorn.workers.roll.sample`, once a worker has said so.
pub struct Samples {
    sample: PyOnceLock<Py<PyAny>>,
}

/// File, line and function.
type Frame = (String, i32, String);

/// The pool's name and size, the frame of the library, and that of the application.
type Wait = (String, String, Frame, Option<Frame>);

/// A slot, its frames, and the pool where it waits for room.
type Found = Vec<(usize, Vec<Frame>, Option<Wait>)>;

impl Samples {
    pub fn new() -> Samples {
        Samples { sample: PyOnceLock::new() }
    }

    pub fn take_with(&self, py: Python<'_>, sample: Py<PyAny>) {
        let _ = self.sample.set(py, sample);
    }

    /// Takes samples of the calls that are asked about, if there are any.
    #[inline]
    pub fn answer(&self, py: Python<'_>, hub: &HubHandle, calls: impl FnOnce() -> Vec<(usize, Py<PyAny>)>) {
        if let Some(request) = hub.take_sample_request() {
            self.take(py, hub, request, calls());
        }
    }

    #[cold]
    fn take(&self, py: Python<'_>, hub: &HubHandle, request: SampleRequest, calls: Vec<(usize, Py<PyAny>)>) {
        let Some(function) = self.sample.get(py) else { return };
        let SampleRequest { asker, slots } = request;
        let began = clock::thread_cpu();
        let wants_pools = asker == Asker::Census;
        let found = function.bind(py).call1((slots, calls, wants_pools)).and_then(|found| found.extract::<Found>());
        match found {
            Ok(found) => {
                let of_call = |(slot, stack, wait): (usize, Vec<Frame>, Option<Wait>)| {
                    (slot, stack.into_iter().map(frame).collect::<Frames>(), wait.map(pool))
                };
                let found = found.into_iter().map(of_call).collect();
                hub.answer_samples(asker, found, clock::thread_cpu().saturating_sub(began));
            }
            Err(error) => error.write_unraisable(py, Some(function.bind(py))),
        }
    }
}

fn frame((file, line, function): Frame) -> PyFrame {
    PyFrame { file, function, line }
}

fn pool((pool, size, site, line): Wait) -> PoolWait {
    PoolWait { pool, size, site: frame(site), line: line.map(frame) }
}
