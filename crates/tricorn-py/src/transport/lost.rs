//! Protocols whose connections are lost: those of one turn of the loop are told together, in its next one.
//!
//! asyncio's transports call the loop for each. That is a function of Python's and an object of its own, in which some percent
//! of the time go that a connection of one request takes.
use crate::loops::Shared;
use crate::report::Reporter;
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Mutex;

struct Lost {
    protocol: Py<PyAny>,
    /// `None`: nothing is wrong.
    why: Option<PyErr>,
}

/// Those that are to be told; called by the loop.
#[pyclass(frozen, module = "tricorn._core")]
pub struct LostProtocols {
    waiting: Mutex<Vec<Lost>>,
    reporter: Reporter,
}

impl LostProtocols {
    pub fn new(py: Python<'_>, reporter: &Reporter) -> PyResult<Py<LostProtocols>> {
        Py::new(py, LostProtocols { waiting: Mutex::default(), reporter: reporter.clone_ref(py) })
    }

    /// This protocol is told `connection_lost` in the loop's next turn.
    pub fn tell_soon(slf: &Bound<'_, LostProtocols>, shared: &Shared, protocol: Py<PyAny>, why: Option<PyErr>) {
        let is_first = {
            let mut waiting = lock(&slf.get().waiting);
            waiting.push(Lost { protocol, why });
            waiting.len() == 1
        };
        if !is_first {
            return;
        }
        if let Err(error) = shared.call_soon(slf.as_any(), None) {
            drop(slf.get().take()); // the loop is closed
            error.write_unraisable(slf.py(), None);
        }
    }

    fn take(&self) -> Vec<Lost> {
        std::mem::take(&mut *lock(&self.waiting))
    }
}

#[pymethods]
impl LostProtocols {
    fn __call__(&self, py: Python<'_>) {
        for Lost { protocol, why } in self.take() {
            let why = why.map(|why| why.into_value(py));
            if let Err(error) = protocol.call_method1(py, intern!(py, "connection_lost"), (why,)) {
                self.reporter.error(py, "Error in a connection's protocol".into(), error);
            }
        }
    }
}
