//! How a server that is made of Python classes is called, and what all its calls share.
use super::call::Call;
use super::head::Heads;
use super::room;
use crate::context::{Entered, Variable};
use crate::ends::{self, Ends};
use crate::loops::{Beginning, Gateway, Places};
use crate::report::{Line, Reporter, as_environ};
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Attachment, Engine, Exchange, Stir};
use tricorn_proto::http1::Known;

/// A server that is made of Python classes.
#[pyclass(frozen, module = "tricorn._core")]
pub struct CallGateway {
    event_loop: Py<PyAny>,
    /// For the first request of a connection: what stands for it.
    connect: Py<PyAny>,
    /// Called with the call and its connection; returns whom to tell what happens to them.
    begin: Py<PyAny>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
    /// Called with the call before `begin`; returns `after`'s token, and the exception that a hook let out, if one did.
    before: Option<Py<PyAny>>,
    /// Called when the answer is complete.
    after: Option<Py<PyAny>>,
    /// Tells connections that would stay for ever to end.
    leave: Option<Py<PyAny>>,
    /// Seconds between a client's closing of its sending side and the end of its call.
    disconnect_grace: f64,
}

#[pymethods]
impl CallGateway {
    #[new]
    #[pyo3(signature = (event_loop, connect, begin, on_error, on_notice=None, *, before=None, after=None, leave=None,
                        disconnect_grace=0.0))]
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
        disconnect_grace: f64,
    ) -> CallGateway {
        CallGateway { event_loop, connect, begin, on_error, on_notice, before, after, leave, disconnect_grace }
    }
}

/// What is kept with a connection.
pub struct Kept {
    pub ends: Ends,
    connection: Option<Py<PyAny>>,
}

/// What was kept with this one.
pub fn kept(exchange: &Exchange) -> Option<&Kept> {
    exchange.client.attachment.as_ref().and_then(|kept| kept.downcast_ref())
}

/// What all calls of a loop stand on. Everything happens on the loop's thread; the locks are for Python code that lets go
/// of an object elsewhere.
pub struct Ground {
    pub engine: Arc<Engine>,
    pub reporter: Reporter,
    event_loop: Py<PyAny>,
    grace: f64,
    after: Option<Py<PyAny>>,
    heads: Mutex<Heads>,
    /// The calls that are under way.
    pub calls: Places<Py<Call>>,
    running: AtomicUsize,
    beginning: Beginning,
    scratch: Mutex<Vec<u8>>,
}

impl Ground {
    pub fn heads(&self) -> MutexGuard<'_, Heads> {
        lock(&self.heads)
    }

    pub fn scratch(&self) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.scratch)
    }

    /// Calls a function without arguments in the next turn of the loop.
    pub fn call_soon(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<()> {
        self.event_loop.call_method1(py, intern!(py, "call_soon"), (function,)).map(drop)
    }

    /// Calls a function without arguments when a client that has hung up has had its time; returns what can be cancelled.
    pub fn call_later(&self, py: Python<'_>, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.event_loop.call_method1(py, intern!(py, "call_later"), (self.grace, function))
    }

    /// The exchange is over, for the reactor.
    pub fn give_back(&self, exchange: Box<Exchange>) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.beginning.give_back(&self.engine, exchange);
    }

    pub fn log(&self, exchange: &Exchange) {
        if !self.reporter.has_access_log() {
            return;
        }
        let status = match exchange.is_elsewhere() {
            false => exchange.request.reply.status_code(),
            true if exchange.request.head.fields.iter().any(|field| field.known == Known::Upgrade) => 101,
            true => return, // what was answered over the socket is not known here
        };
        let remote = kept(exchange).map_or(b"".as_slice(), |kept| &kept.ends.remote);
        let environ = |key: &str| as_environ(exchange, remote, key);
        self.reporter.access(exchange, &Line { remote, status, sent: None, called: true, environ: &environ });
    }

    /// Calls `after(token, status, headers, sent, micros)`.
    pub fn after(&self, py: Python<'_>, exchange: &Exchange, token: Option<Py<PyAny>>) {
        let (Some(after), Some(token)) = (&self.after, token) else { return };
        self.reporter.after(py, exchange, |(status, headers, sent, micros)| {
            after.call1(py, (token, status, headers, sent, micros))
        });
    }
}

/// The gateway in a loop.
pub struct CallServer {
    ground: Arc<Ground>,
    gateway: Py<CallGateway>,
    /// Requests begin in copies of it,
    context: Py<PyAny>,
    /// in which this says which they are.
    variable: Variable,
}

impl CallServer {
    pub fn new(py: Python<'_>, gateway: &Bound<'_, CallGateway>, engine: Arc<Engine>) -> PyResult<CallServer> {
        let settings = gateway.get();
        let on_notice = settings.on_notice.as_ref().map(|on_notice| on_notice.clone_ref(py));
        let ground = Ground {
            reporter: Reporter::new(engine.clone(), settings.on_error.clone_ref(py), on_notice),
            engine,
            event_loop: settings.event_loop.clone_ref(py),
            grace: settings.disconnect_grace,
            after: settings.after.as_ref().map(|after| after.clone_ref(py)),
            heads: Mutex::new(Heads::new(py)),
            calls: Places::default(),
            running: AtomicUsize::new(0),
            beginning: Beginning::default(),
            scratch: Mutex::default(),
        };
        let context = py.import("contextvars")?.call_method0("copy_context")?.unbind();
        let variable = Variable::new(py, c"tricorn.call")?;
        Ok(CallServer { ground: Arc::new(ground), gateway: gateway.clone().unbind(), context, variable })
    }

    /// Calls the server. What it raises is the request's end, and nothing else's.
    fn start(&self, call: &Bound<'_, Call>) -> PyResult<()> {
        let (this, py) = (call.get(), call.py());
        let listener = {
            let _context = Entered::copy_of(py, Some(&self.context))?;
            self.variable.set(call)?;
            let settings = self.gateway.get();
            let begun = self.connection(call).and_then(|connection| {
                if let Some(before) = &settings.before {
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
        let Some(exchange) = &state.exchange else { return Ok(()) };
        self.ground.calls.put(exchange.slot(), call.clone().unbind());
        self.ground.engine.attend(exchange);
        state.attended = true;
        state.listener = Some(listener);
        Ok(())
    }

    /// What stands for the call's connection, as the server made it for its first request.
    fn connection(&self, call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
        let py = call.py();
        let known = call.get().with(|_, exchange| {
            if kept(exchange).is_none() {
                let ends = ends::make(py, &self.ground.engine, exchange)?;
                exchange.client.attachment = Some(Box::new(Kept { ends, connection: None }) as Attachment);
            }
            Ok(kept(exchange).and_then(|kept| kept.connection.as_ref()).map(|known| known.clone_ref(py)))
        })?;
        if let Some(known) = known {
            return Ok(known);
        }
        let made = self.gateway.get().connect.call1(py, (call,))?;
        call.get().with(|_, exchange| {
            let kept = exchange.client.attachment.as_mut().and_then(|kept| kept.downcast_mut::<Kept>());
            if let Some(kept) = kept {
                kept.connection = Some(made.clone_ref(py));
            }
            Ok(())
        })?;
        Ok(made)
    }
}

impl Gateway for CallServer {
    fn begin(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        if self.ground.after.is_some() {
            exchange.send_at_once(); // a callback may take long, and the client should not wait for it
        }
        let ground = &self.ground;
        ground.running.fetch_add(1, Ordering::Relaxed);
        ground
            .beginning
            .of(&ground.engine, exchange.slot(), || self.start(&Bound::new(py, Call::new(ground.clone(), exchange))?))
    }

    fn stirred(&self, py: Python<'_>, stir: Stir) -> PyResult<()> {
        self.ground.calls.get(py, stir.place).map_or(Ok(()), |call| room::stirred(call.bind(py), stir.what))
    }

    fn is_late(&self, py: Python<'_>, place: usize) -> PyResult<()> {
        self.ground.calls.get(py, place).map_or(Ok(()), |call| room::is_late(call.bind(py)))
    }

    /// What is called here goes on in tasks of its own, and those in copies of its context.
    fn current(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let call = self.variable.get(py)?;
        let place = call.and_then(|call| Some(call.cast::<Call>().ok()?.get().state().exchange.as_ref()?.slot()));
        Ok(place)
    }

    fn reporter(&self) -> &Reporter {
        &self.ground.reporter
    }

    fn running(&self, _py: Python<'_>) -> usize {
        self.ground.running.load(Ordering::Relaxed)
    }

    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.ground.calls.all(py).iter().try_for_each(|call| room::client_left(call.bind(py)))
    }

    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<()> {
        let Some(leave) = &self.gateway.get().leave else { return Ok(()) };
        if let Err(error) = leave.call1(py, (code,)) {
            self.ground.reporter.error(py, "Exception while WebSockets were closed".into(), error);
        }
        Ok(())
    }
}
