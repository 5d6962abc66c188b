//! Where a process that the application forked comes back to us. `tricorn.forked` says how it ends.
use pyo3::prelude::*;

/// The application has returned, or let `error` out. Returns in a worker; not in its child.
#[inline]
pub fn leave_if_child<T>(py: Python<'_>, outcome: &PyResult<T>) {
    if tricorn_io::is_child() {
        leave(py, outcome.as_ref().err().map(|error| error.clone_ref(py)))
    }
}

#[cold]
fn leave(py: Python<'_>, error: Option<PyErr>) -> ! {
    let error = error.map(|error| error.into_value(py));
    end(py.import("tricorn.forked").and_then(|forked| forked.call_method1("leave", (error,))))
}

/// A task has come as far as it can without its loop, which is the parent's.
#[cold]
pub fn leave_task(py: Python<'_>, task: PyResult<Bound<'_, PyAny>>) -> ! {
    match task {
        Ok(task) => end(py.import("tricorn.forked").and_then(|forked| forked.call_method1("leave_task", (task,)))),
        Err(error) => leave(py, Some(error)),
    }
}

/// Those functions do not return.
fn end(left: PyResult<Bound<'_, PyAny>>) -> ! {
    if let Err(error) = left {
        Python::attach(|py| error.write_unraisable(py, None));
    }
    tricorn_io::exit_at_once(1)
}
