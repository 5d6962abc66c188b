//! The load generator for Python: `tricorn_bench.load`.
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::{Duration, Instant};
use tricorn_load::{Plan, Progress, Watcher, run};

/// Sends what the plan says, without the GIL. What a signal handler or `tick` raises is raised when the threads have ended;
/// what was measured until then is its attribute `outcome`.
#[pyfunction]
#[pyo3(signature = (plan, tick = None))]
pub fn load<'py>(py: Python<'py>, plan: &[u8], tick: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyBytes>> {
    let plan = Plan::from_json(plan).map_err(PyValueError::new_err)?;
    let mut caller = Caller { tick, raised: None, next_look: Instant::now() };
    let outcome = py.detach(|| run(&plan, &mut caller)).map_err(PyValueError::new_err);
    let bytes = outcome.map(|outcome| PyBytes::new(py, outcome.to_json().as_bytes()));
    match caller.raised {
        None => bytes,
        Some(error) => {
            if let Ok(bytes) = bytes {
                error.value(py).setattr("outcome", bytes)?;
            }
            Err(error)
        }
    }
}

struct Caller {
    tick: Option<Py<PyAny>>,
    raised: Option<PyErr>,
    next_look: Instant,
}

impl Caller {
    fn kept(&mut self, result: PyResult<bool>) -> bool {
        result.unwrap_or_else(|error| {
            self.raised.get_or_insert(error);
            false
        })
    }
}

impl Watcher for Caller {
    fn goes_on(&mut self) -> bool {
        if Instant::now() < self.next_look {
            return true;
        }
        self.next_look = Instant::now() + SIGNALS;
        let checked = Python::attach(|py| py.check_signals());
        self.kept(checked.map(|()| true))
    }

    fn tick(&mut self, progress: &Progress) -> bool {
        let called = Python::attach(|py| match &self.tick {
            None => Ok(true),
            Some(tick) => tick.call1(py, (PyBytes::new(py, progress.to_json().as_bytes()),))?.is_truthy(py),
        });
        self.kept(called)
    }
}

/// How often handlers of signals get a chance to run.
const SIGNALS: Duration = Duration::from_millis(50);
