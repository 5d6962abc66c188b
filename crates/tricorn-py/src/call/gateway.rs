//! How a server that is made of Python classes is called.
use super::call::Call;
use super::ground::{Ground, OfConnection, kept};
use crate::ends;
use crate::loops::{Callbacks, Gateway, LAST_PIECES, Row, Shared};
use crate::marks::BaseContext;
use crate::report::Reporter;
use pyo3::prelude::*;
use std::cell::Cell;
use std::sync::Arc;
use tricorn_io::{Attachment, Exchange, HubHandle, SlotReadiness};

/// A server that is made of Python classes.
#[pyclass(frozen, module = "tricorn._core")]
pub struct CallGateway {
    /// `before` is called with the call before `begin`; it returns `after`'s token, and the exception that a hook let out, if
    /// one did.
    callbacks: Callbacks,
    /// For the first request of a connection: what stands for it.
    connect: Py<PyAny>,
    /// Called with the call and its connection; returns the listener that is told what happens to them.
    begin: Py<PyAny>,
    /// Called with a code when connections that would stay for ever are to end: how many there are.
    leave: Option<Py<PyAny>>,
    /// Called with a number: tells so many of them.
    dismiss: Option<Py<PyAny>>,
}

#[pymethods]
impl CallGateway {
    /// `disconnect_grace`: seconds between a client's half-close and the end of its call.
    #[new]
    #[pyo3(signature = (event_loop, connect, begin, on_error, on_notice=None, *, before=None, after=None, leave=None,
                        dismiss=None, disconnect_grace=0.0, grace_is_given=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords, on the side that calls it")]
    fn new(
        event_loop: Py<PyAny>,
        connect: Py<PyAny>,
        begin: Py<PyAny>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
        leave: Option<Py<PyAny>>,
        dismiss: Option<Py<PyAny>>,
        disconnect_grace: f64,
        grace_is_given: bool,
    ) -> CallGateway {
        let callbacks =
            Callbacks { event_loop, on_error, on_notice, before, after, grace: disconnect_grace, grace_is_given };
        CallGateway { callbacks, connect, begin, leave, dismiss }
    }
}

/// The gateway in a loop.
pub struct CallServer {
    ground: Arc<Ground>,
    gateway: Py<CallGateway>,
    context: BaseContext,
    streams: Row<Py<Call>>,
    /// While the worker leaves: connections that the application's classes have, and are still to be told.
    others: Cell<usize>,
    /// How many of the streams are still to be told.
    staying: Cell<usize>,
}

impl CallServer {
    pub fn new(py: Python<'_>, gateway: &Bound<'_, CallGateway>, hub: HubHandle) -> PyResult<CallServer> {
        let context = BaseContext::current(py, &hub, Some(c"tricorn.call"))?;
        let ground = Ground::new(py, Shared::new(py, &gateway.get().callbacks, hub));
        Ok(CallServer {
            ground: Arc::new(ground),
            gateway: gateway.clone().unbind(),
            context,
            streams: Row::default(),
            others: Cell::new(0),
            staying: Cell::new(0),
        })
    }

    /// Calls the server. What it raises is the request's end, and nothing else's.
    fn start(&self, call: &Bound<'_, Call>) -> PyResult<()> {
        let (this, py) = (call.get(), call.py());
        let listener = {
            let mut context = self.context.enter_for(call)?;
            let id = this.state().active.exchange().map(|exchange| exchange.request.reply.request_id().to_vec());
            context.identify(py, &id.unwrap_or_default())?;
            let settings = self.gateway.get();
            let begun = self.connection(call).and_then(|connection| {
                if let Some(before) = &settings.callbacks.before {
                    let (token, error) = before.call1(py, (call,))?.extract::<(Py<PyAny>, Option<Py<PyAny>>)>(py)?;
                    this.state().token = Some(token);
                    if let Some(error) = error {
                        return Err(PyErr::from_value(error.into_bound(py)));
                    }
                }
                settings.begin.call1(py, (call, connection))
            });
            match begun {
                Ok(listener) => listener,
                Err(error) => return this.failed(py, error),
            }
        };
        let mut state = this.state();
        let Some(exchange) = state.active.exchange() else { return Ok(()) };
        self.ground.shared.attend(exchange, call.clone().into_any().unbind());
        self.ground.shared.engine.knows_call_by(exchange.slot(), call.as_ptr() as u64);
        state.listener = Some(listener);
        Ok(())
    }

    fn at<'py>(&self, py: Python<'py>, slot: usize) -> Option<Bound<'py, Call>> {
        self.ground.shared.calls.get(py, slot)?.cast_into().ok()
    }

    /// What stands for the call's connection, as the server made it for its first request.
    fn connection(&self, call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
        let py = call.py();
        let known = call.get().with(|_, exchange| {
            if kept(exchange).is_none() {
                let ends = ends::make(py, &self.ground.shared.engine, exchange)?;
                exchange.client.attachment = Some(Box::new(OfConnection { ends, connection: None }) as Attachment);
            }
            Ok(kept(exchange).and_then(|kept| kept.connection.as_ref()).map(|known| known.clone_ref(py)))
        })?;
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.gateway.get().connect.call1(py, (call,))?;
        call.get().with(|_, exchange| {
            let kept = exchange.client.attachment.as_mut().and_then(|kept| kept.downcast_mut::<OfConnection>());
            if let Some(kept) = kept {
                kept.connection = Some(made.clone_ref(py));
            }
            Ok(())
        })?;
        Ok(made)
    }
}

impl Gateway for CallServer {
    fn begin(&self, py: Python<'_>, exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        let (ground, shared) = (&self.ground, &self.ground.shared);
        ground.begin();
        let slot = exchange.slot();
        let begin = || self.start(&Bound::new(py, Call::new(ground.clone(), exchange))?);
        shared.beginning.of(&shared.engine, slot, begin)
    }

    fn on_readiness(&self, py: Python<'_>, ready: SlotReadiness) -> PyResult<()> {
        self.at(py, ready.slot).map_or(Ok(()), |call| Call::on_readiness(&call, ready.readiness))
    }

    fn is_late(&self, py: Python<'_>, slot: usize) -> PyResult<()> {
        self.at(py, slot).map_or(Ok(()), |call| call.get().is_late(py, slot))
    }

    /// What is called here goes on in tasks of its own, and those in copies of its context.
    fn current(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let call = self.context.named(py)?;
        Ok(call.and_then(|call| call.cast::<Call>().ok()?.get().slot()))
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

    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        let calls = self.ground.shared.calls.all(py);
        calls.iter().filter_map(|call| call.cast::<Call>().ok()).try_for_each(Call::client_left)
    }

    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<usize> {
        let leave = self.gateway.get().leave.as_ref();
        self.others.set(leave.map_or(Ok(0), |leave| leave.call1(py, (code,))?.extract(py))?);
        self.staying.set(self.streams.line_up(self.ground.shared.calls.of(py)));
        Ok(self.others.get() + self.staying.get())
    }

    /// The classes do not tell how old their connections are: of both kinds the same share is told, each in its order.
    fn dismiss(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        let mut others = 0;
        for _ in 0..most {
            let (sockets, streams) = (self.others.get(), self.staying.get());
            if streams > 0 && streams >= sockets {
                self.staying.set(streams - 1);
                self.streams.tell_next(py)?;
            } else if sockets > 0 {
                self.others.set(sockets - 1);
                others += 1;
            }
        }
        let Some(dismiss) = self.gateway.get().dismiss.as_ref().filter(|_| others > 0) else { return Ok(()) };
        if let Err(error) = dismiss.call1(py, (others,)) {
            self.reporter().error(py, "Exception while closing WebSockets".into(), error);
        }
        Ok(())
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
