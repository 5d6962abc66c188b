//! How the protocols of a library are made, told of requests, and told to leave.
use super::connection::{self, KeptTransport, Transport, kept};
use super::events;
use super::ground::Ground;
use crate::loops::{Callbacks, Ending, Gateway, LAST_PIECES, Remote, Row, Shared, Told};
use crate::report::Reporter;
use pyo3::prelude::*;
use std::sync::Arc;
use tricorn_io::{Attachment, Chores, Exchange, HubHandle, SlotReadiness};

#[pyclass(frozen, module = "tricorn._core")]
pub struct TransportGateway {
    /// `before` is called with a scope before the protocol sees a request.
    callbacks: Callbacks,
    /// Makes an `asyncio.Protocol`.
    factory: Py<PyAny>,
    /// Called once, in the loop, when the worker is to leave.
    on_leave: Option<Py<PyAny>>,
}

#[pymethods]
impl TransportGateway {
    /// `disconnect_grace`: seconds between a client's half-close and the end of its request.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "a record of what is told")]
    #[pyo3(signature = (factory, event_loop, on_error, on_notice=None, on_leave=None, before=None, after=None,
                        disconnect_grace=3.0, grace_is_given=false))]
    fn new(
        factory: Py<PyAny>,
        event_loop: Py<PyAny>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
        on_leave: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
        disconnect_grace: f64,
        grace_is_given: bool,
    ) -> TransportGateway {
        let callbacks =
            Callbacks { event_loop, on_error, on_notice, before, after, grace: disconnect_grace, grace_is_given };
        TransportGateway { callbacks, factory, on_leave }
    }
}

/// The gateway in a loop.
pub struct Transports {
    ground: Arc<Ground>,
    factory: Py<PyAny>,
    streams: Row<Py<Transport>>,
}

impl Transports {
    pub fn new(py: Python<'_>, gateway: &TransportGateway, hub: HubHandle) -> PyResult<Transports> {
        let shared = Shared::new(py, &gateway.callbacks, hub);
        let on_leave = gateway.on_leave.as_ref().map(|on_leave| on_leave.clone_ref(py));
        let ground = Arc::new(Ground::new(py, shared, on_leave)?);
        Ok(Transports { ground, factory: gateway.factory.clone_ref(py), streams: Row::default() })
    }

    /// The transport that belongs to this connection, or a new one.
    fn transport(&self, py: Python<'_>, exchange: &mut Exchange) -> PyResult<Py<Transport>> {
        if let Some(KeptTransport(transport)) = kept(exchange.client.attachment.as_ref())
            && transport.get().is_open()
        {
            return Ok(transport.clone_ref(py));
        }
        let transport = Transport::open(py, self.ground.clone(), exchange, &self.factory)?;
        exchange.client.attachment = Some(Box::new(KeptTransport(transport.clone_ref(py))) as Attachment);
        Ok(transport)
    }

    fn at<'py>(&self, py: Python<'py>, slot: usize) -> Option<Bound<'py, Transport>> {
        self.ground.shared.calls.get(py, slot)?.cast_into().ok()
    }
}

impl Gateway for Transports {
    fn begin(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        let (ground, shared) = (&*self.ground, &self.ground.shared);
        shared.beginning.of(&shared.engine, exchange.slot(), || match self.transport(py, &mut exchange) {
            Ok(transport) => events::begin(transport.bind(py), exchange),
            Err(error) => {
                shared.reporter.failed(py, &mut exchange, error, false);
                ground.end(
                    py,
                    exchange,
                    Ending { remote: Remote::Is(b""), status: None, sent: None, called: true, told: Told::default() },
                );
                Ok(())
            }
        })
    }

    fn on_readiness(&self, py: Python<'_>, ready: SlotReadiness) -> PyResult<()> {
        self.at(py, ready.slot).map_or(Ok(()), |transport| events::on_readiness(&transport, ready.readiness))
    }

    fn is_late(&self, py: Python<'_>, slot: usize) -> PyResult<()> {
        if let Some(transport) = self.at(py, slot) {
            transport.get().is_late(py, slot);
        }
        Ok(())
    }

    /// The protocols of connections that are closed are told so.
    fn do_chores(&self, py: Python<'_>, chores: Chores) {
        connection::do_chores(&self.ground, py, chores);
    }

    /// What is called here goes on in tasks of its own.
    fn current(&self, _py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(None)
    }

    fn reporter(&self) -> &Reporter {
        &self.ground.shared.reporter
    }

    fn running(&self, _py: Python<'_>) -> usize {
        self.ground.running()
    }

    fn calls(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        self.ground.shared.calls.entries(py)
    }

    /// Every connection with a request under way is lost for its protocol.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        for call in self.ground.shared.calls.all(py) {
            if let Ok(transport) = call.cast::<Transport>() {
                transport.get().client_left(py);
            }
        }
        Ok(())
    }

    /// WebSockets are the library's affair.
    fn leave(&self, py: Python<'_>, _code: u16) -> PyResult<usize> {
        self.ground.leave(py)?;
        Ok(self.streams.line_up(self.ground.shared.calls.of(py)))
    }

    fn dismiss(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        (0..most).try_for_each(|_| self.streams.tell_next(py))
    }

    fn last_call(&self, py: Python<'_>) -> PyResult<()> {
        self.streams.tell_rest(py, self.ground.shared.calls.of(py))
    }

    fn enforce(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        self.streams.enforce(py, if at_once { 0 } else { LAST_PIECES }, || self.ground.shared.calls.of(py))
    }

    fn closed(&self) -> (usize, usize) {
        self.streams.tally()
    }
}
