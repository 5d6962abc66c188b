//! `RequestTimeout`, `RequestCancelled` and `SystemExit` in threads that do not handle signals: the main thread raises it
//! there (`PyThreadState_SetAsyncExc`).
use pyo3::exceptions::PySystemExit;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::os::raw::c_long;
use std::sync::atomic::{AtomicU64, Ordering};
use tricorn_io::Engine;

/// A thread as Python names it (`threading.get_ident`).
#[derive(Debug, Clone, Copy)]
pub struct Thread(u64);

impl Thread {
    pub fn current(py: Python<'_>) -> PyResult<Thread> {
        py.import("threading")?.call_method0("get_ident")?.extract().map(Thread)
    }

    /// Takes back what was raised in this thread and not seen yet. Called on it.
    pub fn forget_raised(self, _py: Python<'_>) {
        // SAFETY: the GIL is held; null takes a pending exception back (C API, "PyThreadState_SetAsyncExc").
        unsafe { ffi::PyThreadState_SetAsyncExc(self.0 as c_long, std::ptr::null_mut()) };
    }
}

/// What is raised in calls that are over `request_timeout`, and in those that an operator has cancelled.
pub struct Errors {
    pub late: Py<PyType>,
    pub cancelled: Py<PyType>,
}

/// The app threads by slot, and what to raise in them.
pub struct Raiser {
    threads: Vec<AtomicU64>,
    pub errors: PyOnceLock<Errors>,
}

impl Raiser {
    pub fn new(threads: usize) -> Raiser {
        let threads = (0..threads.max(1)).map(|_| AtomicU64::new(0)).collect();
        Raiser { threads, errors: PyOnceLock::new() }
    }

    /// Remembers who has a slot.
    pub fn join(&self, slot: usize, thread: Thread) -> Thread {
        if let Some(place) = self.threads.get(slot) {
            place.store(thread.0, Ordering::Relaxed);
        }
        thread
    }

    /// What is raised in the call at this slot, which is late.
    pub fn error_of(&self, py: Python<'_>, engine: &Engine, slot: usize) -> Option<&Py<PyType>> {
        let errors = self.errors.get(py)?;
        Some(if engine.was_cancelled(slot) { &errors.cancelled } else { &errors.late })
    }

    /// Raises in every call that the monitor found late since the last time.
    pub fn raise_in_late_calls(&self, py: Python<'_>, engine: &Engine) {
        engine.raise_in_late_calls(|slot| {
            self.error_of(py, engine, slot).is_some_and(|error| self.raise(slot, error.bind(py)))
        });
    }

    /// Raises `SystemExit` in every call that other threads are at. Whether there was one.
    pub fn end_calls(&self, py: Python<'_>, engine: &Engine) -> bool {
        let exit = py.get_type::<PySystemExit>();
        engine.end_calls(|slot| self.raise(slot, &exit)) > 0
    }

    /// Raises in the thread that has this slot. Whether there is one. No Python code runs in here: the exception is noted for
    /// the thread, which raises it between two of its instructions.
    fn raise(&self, slot: usize, error: &Bound<'_, PyType>) -> bool {
        let Some(thread) = self.threads.get(slot).map(|place| place.load(Ordering::Relaxed)) else { return false };
        // SAFETY: the GIL is held, as `error` shows, which is a live class.
        unsafe { ffi::PyThreadState_SetAsyncExc(thread as c_long, error.as_ptr()) > 0 }
    }
}
