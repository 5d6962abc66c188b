//! What the servers of hubs and of event loops share: their coming, the descriptors they wait for, and the end.
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use std::sync::Arc;
use tricorn_io::{Chores, Engine};

/// An engine that is served by the thread that made this.
pub struct Service {
    engine: Arc<Engine>,
    /// Called when the core has ended.
    done: Py<PyAny>,
    over: Cell<bool>,
    error: RefCell<Option<PyErr>>,
}

impl Service {
    /// The calling thread comes to serve, up to `most` calls at once. `done` is called once, when the core has ended.
    pub fn join(engine: Arc<Engine>, done: Py<PyAny>, most: usize) -> PyResult<Service> {
        if !engine.join_hub(most) {
            return Err(not_made_for_this());
        }
        Ok(Service { engine, done, over: Cell::new(false), error: RefCell::default() })
    }

    /// The descriptors to be watched for reading.
    pub fn descriptors(&self) -> PyResult<(RawFd, RawFd)> {
        self.engine.hub_descriptors().ok_or_else(not_made_for_this)
    }

    pub fn is_over(&self) -> bool {
        self.over.get()
    }

    /// The service ends, for the first of these errors if there was any.
    pub fn end(&self, py: Python<'_>, error: Option<PyErr>) {
        if let Some(error) = error {
            self.error.borrow_mut().get_or_insert(error);
        }
        if !self.over.replace(true)
            && let Err(error) = self.done.bind(py).call0()
        {
            error.write_unraisable(py, None);
        }
    }

    /// Leaves the core; what ended the service is raised. For when `done` was called, or in place of that.
    pub fn close(&self, do_chores: impl FnOnce(Chores)) -> PyResult<()> {
        self.over.set(true);
        self.engine.leave_hub();
        do_chores(self.engine.take_chores());
        match self.error.take() {
            Some(error) => Err(error),
            None if self.engine.is_broken() => {
                Err(PyRuntimeError::new_err("the core broke (this is a defect of tricorn); the worker must go"))
            }
            None => Ok(()),
        }
    }
}

fn not_made_for_this() -> PyErr {
    PyRuntimeError::new_err("this core was not made for a hub or an event loop (core option hub)")
}
