//! What an event loop in Python tells of its waits: when each begins and ends.
use crate::core::Core;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use tricorn_io::Engine;

/// Keeps the time that the event loop of the calling thread waits and works.
#[pyclass(frozen, module = "tricorn._core")]
pub struct LoopClock {
    engine: Arc<Engine>,
}

#[pymethods]
impl LoopClock {
    #[new]
    fn new(core: &Bound<'_, Core>) -> LoopClock {
        LoopClock { engine: core.get().engine().clone() }
    }

    /// The loop works, and says from now on when it waits.
    fn begin(&self) {
        self.engine.keep_loop_time();
    }

    /// The loop is about to wait for events.
    fn waits(&self) {
        self.engine.loop_waits();
    }

    /// The loop has waited.
    fn works(&self) {
        self.engine.loop_works();
    }

    /// What waits for events, as something that keeps the time. It is called with a timeout.
    fn around(slf: &Bound<'_, LoopClock>, wait: Py<PyAny>) -> TimedWait {
        TimedWait { engine: slf.get().engine.clone(), wait }
    }
}

/// Calls what it was made of, and says how long that took.
#[pyclass(frozen, module = "tricorn._core")]
pub struct TimedWait {
    engine: Arc<Engine>,
    wait: Py<PyAny>,
}

#[pymethods]
impl TimedWait {
    #[pyo3(signature = (*arguments, **keywords))]
    fn __call__(
        &self,
        py: Python<'_>,
        arguments: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        self.engine.loop_waits();
        let result = self.wait.call(py, arguments, keywords);
        self.engine.loop_works();
        result
    }
}
