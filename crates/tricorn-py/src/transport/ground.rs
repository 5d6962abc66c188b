//! What all transports of one loop share, beside `loops::Shared`.
use super::lost::LostProtocols;
use super::scope::scope_of;
use crate::loops::{Ending, Over, Shared, Told};
use crate::marks::BaseContext;
use crate::sync::lock;
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tricorn_io::Exchange;

pub struct Ground {
    pub shared: Shared,
    /// Called once, in the loop, when the worker is to leave.
    on_leave: Mutex<Option<Py<PyAny>>>,
    running: AtomicUsize,
    pub lost: Py<LostProtocols>,
    /// The worker leaves: a protocol gets no second request.
    leaves: AtomicBool,
    /// Connections are made in copies of it.
    context: BaseContext,
}

impl Ground {
    pub fn new(py: Python<'_>, shared: Shared, on_leave: Option<Py<PyAny>>) -> PyResult<Ground> {
        let (running, leaves) = (AtomicUsize::new(0), AtomicBool::new(false));
        let context = BaseContext::current(py, &shared.engine, Some(c"tricorn.transport"))?;
        let (on_leave, lost) = (Mutex::new(on_leave), LostProtocols::new(py, &shared.reporter)?);
        Ok(Ground { shared, on_leave, running, lost, leaves, context })
    }

    /// Runs what makes the protocol of a transport: tasks that it begins are known by the transport.
    pub fn inside<T>(&self, transport: &Bound<'_, PyAny>, make: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let _context = self.context.enter_for(transport)?;
        make()
    }

    /// Requests that are under way.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// From now on this transport is told what happens to its connection.
    pub fn attend(&self, exchange: &Exchange, transport: Py<PyAny>) {
        self.running.fetch_add(1, Ordering::Relaxed);
        self.shared.engine.knows_call_by(exchange.slot(), transport.as_ptr() as u64);
        self.shared.attend(exchange, transport);
    }

    pub fn is_leaving(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    /// The worker is to leave.
    pub fn leave(&self, py: Python<'_>) -> PyResult<()> {
        self.leaves.store(true, Ordering::Relaxed);
        let on_leave = lock(&self.on_leave).take();
        on_leave.map_or(Ok(()), |on_leave| on_leave.call0(py).map(drop))
    }

    /// Calls `before(scope)` if there is such a hook. What it raises, with what `after` is to be told then.
    pub fn tell_before(
        &self,
        py: Python<'_>,
        exchange: &Exchange,
        client: Option<SocketAddr>,
    ) -> Result<Told, (PyErr, Told)> {
        let before = self.shared.before.as_ref();
        if before.is_none() && !self.shared.has_after() {
            return Ok(Told::default());
        }
        let scope = scope_of(py, exchange, client).map_err(|error| (error, Told::default()))?;
        let told = |token| Told { scope: Some(scope.clone().unbind()), token };
        match before.map(|before| before.call1(py, (&scope,))) {
            Some(Err(error)) => Err((error, told(None))),
            Some(Ok(token)) => Ok(told(Some(token))),
            None => Ok(told(None)),
        }
    }

    /// The request is over. Whether there are chores that the server is not about to take.
    pub fn end(&self, py: Python<'_>, exchange: Box<Exchange>, ending: Ending<'_>) -> bool {
        let Over { call, has_chores } = self.shared.end(py, exchange, ending);
        if call.is_some() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        has_chores
    }
}
