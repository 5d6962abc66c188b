//! WSGI applications on the thread of an event loop: a call holds the loop up until it has returned and its response is sent.
//!
//! Its worker has the core buffer bodies as under `sync`: by default a call finds all of its body.
use super::server::{CallOptions, Server, WsgiGateway};
use super::wait::Wait;
use crate::loops::Gateway;
use crate::marks::BaseContext;
use crate::report::Reporter;
use pyo3::prelude::*;
use std::cell::Cell;
use tricorn_io::{Exchange, HubHandle, SlotReadiness};

pub struct OnLoop {
    hub: HubHandle,
    server: Server,
    /// The slot of the call that runs.
    slot: Cell<Option<usize>>,
}

impl OnLoop {
    pub fn new(py: Python<'_>, gateway: &Bound<'_, WsgiGateway>, hub: HubHandle, sendfile: bool) -> PyResult<OnLoop> {
        let context = BaseContext::current(py, &hub, None)?;
        let options = CallOptions { wait: Wait::Thread, context: Some(context) };
        let server = Server::new(py, gateway, hub.engine().clone(), sendfile, options)?;
        Ok(OnLoop { hub, server, slot: Cell::new(None) })
    }
}

impl Gateway for OnLoop {
    fn begin(&self, py: Python<'_>, exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        let outer = self.slot.replace(Some(exchange.slot()));
        let (exchange, outcome) = self.server.answer(py, exchange, |engine, slot| {
            engine.conclude_call(slot);
        });
        self.slot.set(outer);
        if let Err(error) = outcome {
            self.hub.give_back(exchange);
            return Err(error);
        }
        Ok(Some(exchange))
    }

    /// Nothing attends: a call has the thread until it ends.
    fn on_readiness(&self, _py: Python<'_>, _ready: SlotReadiness) -> PyResult<()> {
        Ok(())
    }

    /// The signal handler has ended it (`current`); the loop is here again.
    fn is_late(&self, _py: Python<'_>, _slot: usize) -> PyResult<()> {
        Ok(())
    }

    fn current(&self, _py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(self.slot.get())
    }

    fn reporter(&self) -> &Reporter {
        self.server.reporter()
    }

    fn most(&self) -> usize {
        1
    }

    fn running(&self, _py: Python<'_>) -> usize {
        usize::from(self.slot.get().is_some())
    }

    fn calls(&self, _py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        Vec::new() // one at a time, on the loop's thread
    }

    fn cancel_all(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    fn leave(&self, _py: Python<'_>, _code: u16) -> PyResult<usize> {
        Ok(0)
    }
}
