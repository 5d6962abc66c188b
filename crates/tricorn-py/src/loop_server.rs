//! The core in an event loop.
//!
//! ```text
//!   loop: a descriptor is readable ──▶ poll: look ──▶ begin, begin, …, ready, … ──▶ rest ──▶ loop
//! ```
use crate::asgi::{Asgi, AsgiGateway};
use crate::call::{CallGateway, CallServer};
use crate::core::Core;
use crate::loops::Gateway;
use crate::panics::{self, Panicked};
use crate::service::Service;
use crate::transport::{TransportGateway, Transports};
use crate::wsgi::{OnLoop, WsgiGateway};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::os::fd::RawFd;
use tricorn_io::{HubServer, IN_A_ROW, Turn, Wake, clock};

/// Serves requests in the event loop of the calling thread until the core is drained or stopped.
#[pyclass(frozen, unsendable, module = "tricorn._core")]
pub struct LoopServer {
    gateway: Box<dyn Gateway>,
    service: Service,
}

#[pymethods]
impl LoopServer {
    /// `done` is called once, in the loop, when the core has ended.
    #[new]
    fn new(
        py: Python<'_>,
        core: &Bound<'_, Core>,
        gateway: &Bound<'_, PyAny>,
        done: Py<PyAny>,
    ) -> PyResult<LoopServer> {
        let hub = core.get().hub()?;
        let gateway: Box<dyn Gateway> = if let Ok(asgi) = gateway.cast::<AsgiGateway>() {
            Box::new(Asgi::new(py, asgi.get(), hub.clone())?)
        } else if let Ok(calls) = gateway.cast::<CallGateway>() {
            Box::new(CallServer::new(py, calls, hub.clone())?)
        } else if let Ok(transports) = gateway.cast::<TransportGateway>() {
            Box::new(Transports::new(py, transports.get(), hub.clone())?)
        } else if let Ok(wsgi) = gateway.cast::<WsgiGateway>() {
            Box::new(OnLoop::new(py, wsgi, hub.clone(), core.get().sendfile())?)
        } else {
            return Err(PyTypeError::new_err(format!("a gateway for event loops is wanted, not {gateway:?}")));
        };
        let service = Service::join(core.clone().unbind(), hub, done, gateway.most());
        Ok(LoopServer { gateway, service })
    }

    /// The descriptors to be watched for reading.
    #[getter]
    fn descriptors(&self) -> (RawFd, RawFd) {
        self.service.hub.descriptors()
    }

    /// Calls that have not ended; some of them may have answered.
    fn running(&self, py: Python<'_>) -> usize {
        self.gateway.running(py)
    }

    /// What calls under way are known by, with their slots: a task, or an object of the gateway.
    fn calls(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        self.gateway.calls(py)
    }

    /// What tells where tasks wait.
    fn sample_with(&self, py: Python<'_>, sample: Py<PyAny>) {
        self.service.samples.take_with(py, sample);
    }

    /// What is to be raised in the call that the loop is at if that is late: asked in a signal handler.
    fn late_call(&self, py: Python<'_>) -> PyResult<Option<Py<PyType>>> {
        let late = self.gateway.current(py)?.filter(|slot| self.service.hub.is_late_at(*slot));
        Ok(late.and_then(|slot| self.service.core.get().late_error(py, slot)))
    }

    /// Cancels every call that has not ended.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.gateway.cancel_all(py)
    }

    /// WebSockets and event streams are to end, WebSockets with this close code: those that open from now on are told at once,
    /// the others by `dismiss`. How many of these there are.
    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<usize> {
        self.gateway.leave(py, code)
    }

    /// Tells so many of them, the oldest first.
    fn dismiss(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        self.gateway.dismiss(py, most)
    }

    /// Tells all responses to end that are under way and have no length.
    fn last_call(&self, py: Python<'_>) -> PyResult<()> {
        self.gateway.last_call(py)
    }

    /// Ends responses that were told to end and have had their time, or that have none.
    #[pyo3(signature = (at_once = false))]
    fn enforce(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        self.gateway.enforce(py, at_once)
    }

    /// How many responses were told to end, and how many of them did not in time.
    fn closed(&self) -> (usize, usize) {
        self.gateway.closed()
    }

    /// Does what there is to do; called in the loop whenever a descriptor is readable.
    fn poll(&self, py: Python<'_>) {
        self.service.take_turn(py, || self.gateway.calls(py), &mut AtGateway { py, server: self });
    }

    /// What ended the service is raised. Called when `done` was, or in its place.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.service.close(|chores| self.gateway.do_chores(py, chores))
    }
}

/// The server in its turn.
struct AtGateway<'py, 'a> {
    py: Python<'py>,
    server: &'a LoopServer,
}

impl HubServer for AtGateway<'_, '_> {
    type Error = PyErr;

    fn end_late(&mut self, slot: usize) -> PyResult<()> {
        self.server.gateway.is_late(self.py, slot)
    }

    fn serve(&mut self, turn: Turn) -> PyResult<bool> {
        self.server.serve(self.py, turn)
    }

    fn run_job(&mut self, job: impl FnOnce() + Send) {
        self.py.detach(job);
    }
}

impl LoopServer {
    /// Takes what there is, until the loop's other callbacks are to have their turn. Returns false if the core has ended.
    fn serve(&self, py: Python<'_>, turn: Turn) -> PyResult<bool> {
        let hub = &self.service.hub;
        let mut done = None;
        for taken in 1u32.. {
            match hub.next(0, done.take()) {
                Wake::Request(exchange) => match panics::caught(|| self.gateway.begin(py, exchange)) {
                    Ok(begun) => done = begun?,
                    Err(Panicked(text)) => self.gateway.reporter().panicked(py, text),
                },
                Wake::Ready(ready) => match panics::caught(|| self.gateway.on_readiness(py, ready)) {
                    Ok(on_readiness) => on_readiness?,
                    Err(Panicked(text)) => self.gateway.reporter().panicked(py, text),
                },
                Wake::Chores => self.gateway.do_chores(py, hub.take_chores()),
                Wake::Signal => py.check_signals()?,
                Wake::Nothing => return Ok(true),
                Wake::Ended => return Ok(false),
            }
            if taken.is_multiple_of(IN_A_ROW) && turn.is_over(clock::now()) {
                break;
            }
        }
        if let Some(done) = done {
            hub.hand_in(done);
        }
        Ok(true)
    }
}
