//! What the servers of hubs and of event loops share: their coming, their turns, and the end.
use crate::core::Core;
use crate::samples::Samples;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use tricorn_io::{Chores, HubHandle, HubServer};

/// An engine that is served by the thread that made this.
pub struct Service {
    pub core: Py<Core>,
    pub hub: HubHandle,
    pub samples: Samples,
    /// Called when the core has ended.
    done: Py<PyAny>,
    over: Cell<bool>,
    error: RefCell<Option<PyErr>>,
}

impl Service {
    /// The calling thread comes to serve, up to `most` calls at once. `done` is called once, when the core has ended.
    pub fn join(core: Py<Core>, hub: HubHandle, done: Py<PyAny>, most: usize) -> Service {
        hub.join(most);
        Service { core, hub, samples: Samples::new(), done, over: Cell::new(false), error: RefCell::default() }
    }

    /// Does what there is to do; the samples that are asked for first, out of the `calls` under way. Nothing once the core has ended.
    pub fn take_turn(
        &self,
        py: Python<'_>,
        calls: impl FnOnce() -> Vec<(usize, Py<PyAny>)>,
        server: &mut impl HubServer<Error = PyErr>,
    ) {
        if self.is_over() {
            return;
        }
        self.samples.answer(py, &self.hub, calls);
        match self.hub.take_turn(server) {
            Ok(true) => {}
            Ok(false) => self.end(py, None),
            Err(error) => self.end(py, Some(error)),
        }
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
        self.hub.leave();
        do_chores(self.hub.take_chores());
        match self.error.take() {
            Some(error) => Err(error),
            None if self.hub.is_broken() => {
                Err(PyRuntimeError::new_err("the core broke (this is a defect of tricorn); the worker must go"))
            }
            None => Ok(()),
        }
    }
}
