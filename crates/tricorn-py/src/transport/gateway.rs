//! What all transports of one loop share.
use super::connection::Transport;
use crate::loops::{Gateway, Places};
use crate::report::{Line, Reporter, as_environ};
use crate::sync::lock;
use crate::text::latin1;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Attachment, Chores, Engine, Exchange, Stir};
use tricorn_proto::http1::target::percent_decode;
use tricorn_proto::http1::{Scheme, Version};

/// How the protocols of a library are made and told to leave.
#[pyclass(frozen, module = "tricorn._core")]
pub struct TransportGateway {
    /// Makes an `asyncio.Protocol` for a connection.
    factory: Py<PyAny>,
    event_loop: Py<PyAny>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
    /// Called once, in the loop, when the worker is to leave.
    on_leave: Option<Py<PyAny>>,
    /// Called with a scope before the protocol sees a request; what it returns is `after`'s token.
    before: Option<Py<PyAny>>,
    /// Called when a response is complete.
    after: Option<Py<PyAny>>,
    /// Seconds that a client is taken to listen which only closed its sending side.
    grace: f64,
}

#[pymethods]
impl TransportGateway {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "a record of what is told")]
    #[pyo3(signature = (factory, event_loop, on_error, on_notice=None, on_leave=None, before=None, after=None, disconnect_grace=3.0))]
    fn new(
        factory: Py<PyAny>,
        event_loop: Py<PyAny>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
        on_leave: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
        disconnect_grace: f64,
    ) -> TransportGateway {
        let grace = disconnect_grace;
        TransportGateway { factory, event_loop, on_error, on_notice, on_leave, before, after, grace }
    }
}

/// The gateway of one loop, shared by its transports. Everything happens on the loop's thread; the locks are for Python code
/// that lets go of an object elsewhere.
pub struct Ground {
    pub engine: Arc<Engine>,
    pub reporter: Reporter,
    pub event_loop: Py<PyAny>,
    factory: Py<PyAny>,
    on_leave: Mutex<Option<Py<PyAny>>>,
    before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
    /// Nanoseconds that a client is taken to listen which only closed its sending side.
    pub grace: u64,
    /// The transports whose requests are under way.
    calls: Places<Py<Transport>>,
    running: AtomicUsize,
    /// The worker leaves: a protocol gets no second request.
    leaves: AtomicBool,
    scratch: Mutex<Vec<u8>>,
}

/// What an exchange leaves for the logs.
#[derive(Default)]
pub struct Ending<'a> {
    /// The client's address in text.
    pub remote: &'a [u8],
    /// Bytes sent in another protocol.
    pub sent: Option<u64>,
    pub told: Option<Told>,
}

/// What `before` was told, and what it said.
pub struct Told {
    scope: Py<PyDict>,
    token: Py<PyAny>,
}

/// A transport that is kept with its connection between two requests.
struct Kept(Py<Transport>);

impl Ground {
    fn new(py: Python<'_>, settings: &TransportGateway, engine: Arc<Engine>) -> Ground {
        let copy = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.clone_ref(py));
        let reporter = Reporter::new(engine.clone(), settings.on_error.clone_ref(py), copy(&settings.on_notice));
        Ground {
            engine,
            reporter,
            event_loop: settings.event_loop.clone_ref(py),
            factory: settings.factory.clone_ref(py),
            on_leave: Mutex::new(copy(&settings.on_leave)),
            before: copy(&settings.before),
            after: copy(&settings.after),
            grace: (settings.grace.max(0.0) * 1e9) as u64,
            calls: Places::default(),
            running: AtomicUsize::new(0),
            leaves: AtomicBool::new(false),
            scratch: Mutex::default(),
        }
    }

    /// The one that belongs to this connection, or a new one.
    fn transport(self: &Arc<Ground>, py: Python<'_>, exchange: &mut Exchange) -> PyResult<Py<Transport>> {
        if let Some(Kept(transport)) = kept(exchange.client.attachment.as_ref())
            && transport.get().is_open()
        {
            return Ok(transport.clone_ref(py));
        }
        let protocol = self.factory.call0(py)?;
        let transport = Transport::open(py, self.clone(), exchange, protocol)?;
        exchange.client.attachment = Some(Box::new(Kept(transport.clone_ref(py))) as Attachment);
        Ok(transport)
    }

    /// From now on this transport is told what happens to its connection.
    pub fn attend(&self, exchange: &Exchange, transport: Py<Transport>) {
        self.calls.put(exchange.slot(), transport);
        self.running.fetch_add(1, Ordering::Relaxed);
        self.engine.attend(exchange);
    }

    pub fn is_leaving(&self) -> bool {
        self.leaves.load(Ordering::Relaxed)
    }

    /// Calls `before(scope)` if there is such a hook. What it raises, with what `after` is to be told then.
    pub fn tell_before(
        &self,
        py: Python<'_>,
        exchange: &Exchange,
        client: Option<SocketAddr>,
    ) -> Result<Option<Told>, (PyErr, Option<Told>)> {
        if self.before.is_none() && self.after.is_none() {
            return Ok(None);
        }
        let scope = scope_of(py, exchange, client).map_err(|error| (error, None))?;
        let told = |token| Some(Told { scope: scope.clone().unbind(), token });
        match self.before.as_ref().map(|before| before.call1(py, (&scope,))) {
            Some(Err(error)) => Err((error, told(py.None()))),
            Some(Ok(token)) => Ok(told(token)),
            None => Ok(told(py.None())),
        }
    }

    /// The exchange is over: the log, and the connection for the next request.
    pub fn conclude(&self, py: Python<'_>, exchange: Box<Exchange>, ending: Ending<'_>) {
        let transport = self.calls.take(exchange.slot());
        if transport.is_some() {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        self.give_back(py, exchange, ending);
    }

    fn give_back(&self, py: Python<'_>, mut exchange: Box<Exchange>, ending: Ending<'_>) {
        if exchange.timing.answered == 0 {
            exchange.answered();
        }
        self.engine.conclude_call(exchange.slot());
        exchange.settle();
        if self.reporter.has_access_log() {
            let Ending { remote, sent, .. } = ending;
            let status = exchange.request.reply.status_code();
            let environ = |key: &str| as_environ(&exchange, remote, key);
            self.reporter.access(&exchange, &Line { remote, status, sent, called: true, environ: &environ });
        }
        if let (Some(after), Some(Told { scope, token })) = (&self.after, ending.told) {
            self.reporter.after(py, &exchange, |(status, headers, sent, micros)| {
                after.call1(py, (scope, token, status, headers, sent, micros))
            });
        }
        self.engine.give_back(exchange);
    }

    /// Calls a bound method in the loop, soon.
    pub fn call_soon(&self, function: &Bound<'_, PyAny>, argument: Option<Py<PyAny>>) -> PyResult<()> {
        let py = function.py();
        let call_soon = intern!(py, "call_soon");
        match argument {
            Some(argument) => self.event_loop.call_method1(py, call_soon, (function, argument)),
            None => self.event_loop.call_method1(py, call_soon, (function,)),
        }
        .map(drop)
    }

    pub fn scratch(&self) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.scratch)
    }
}

/// What the loop's server knows of them.
pub struct Transports(Arc<Ground>);

impl Transports {
    pub fn new(py: Python<'_>, gateway: &TransportGateway, engine: Arc<Engine>) -> Transports {
        Transports(Arc::new(Ground::new(py, gateway, engine)))
    }
}

impl Gateway for Transports {
    fn begin(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        let ground = &self.0;
        exchange.send_at_once();
        match ground.transport(py, &mut exchange) {
            Ok(transport) => Transport::take(transport.bind(py), exchange)?,
            Err(error) => {
                ground.reporter.error(py, "Error making the protocol of a connection".into(), error);
                exchange.app_failed();
                exchange.answer_error(500, "");
                ground.give_back(py, exchange, Ending::default());
            }
        }
        Ok(None)
    }

    fn stirred(&self, py: Python<'_>, stir: Stir) -> PyResult<()> {
        match self.0.calls.get(py, stir.place) {
            Some(transport) => Transport::stirred(transport.bind(py), stir.what),
            None => Ok(()),
        }
    }

    fn is_late(&self, py: Python<'_>, place: usize) -> PyResult<()> {
        self.0.calls.get(py, place).map_or(Ok(()), |transport| transport.get().is_late(py))
    }

    /// The protocols of connections that are closed are told so.
    fn do_chores(&self, py: Python<'_>, chores: Chores) {
        for attachment in &chores.attachments {
            if let Some(Kept(transport)) = kept(Some(attachment)) {
                transport.get().lose(py, None);
            }
        }
        self.reporter().do_chores(py, chores);
    }

    /// What is called here goes on in tasks of its own.
    fn current(&self, _py: Python<'_>) -> PyResult<Option<usize>> {
        Ok(None)
    }

    fn reporter(&self) -> &Reporter {
        &self.0.reporter
    }

    fn running(&self, _py: Python<'_>) -> usize {
        self.0.running.load(Ordering::Relaxed)
    }

    /// Every connection with a request under way is lost for its protocol.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.0.calls.all(py).iter().try_for_each(|transport| transport.get().client_left(py))
    }

    fn leave(&self, py: Python<'_>, _code: u16) -> PyResult<()> {
        self.0.leaves.store(true, Ordering::Relaxed);
        let on_leave = lock(&self.0.on_leave).take();
        on_leave.map_or(Ok(()), |on_leave| on_leave.call0(py).map(drop))
    }
}

fn kept(attachment: Option<&Attachment>) -> Option<&Kept> {
    attachment.and_then(|kept| kept.downcast_ref::<Kept>())
}

/// A request for those who look on (ASGI HTTP specification, "HTTP Connection Scope").
fn scope_of<'py>(py: Python<'py>, exchange: &Exchange, client: Option<SocketAddr>) -> PyResult<Bound<'py, PyDict>> {
    let (head, bytes) = (&exchange.request.head, exchange.request.head_bytes());
    let scope = PyDict::new(py);
    scope.set_item("type", "http")?;
    scope.set_item("http_version", if head.version == Version::Http10 { "1.0" } else { "1.1" })?;
    scope.set_item("method", latin1(py, head.method.of(bytes))?)?;
    scope.set_item("scheme", if head.scheme == Scheme::Https { "https" } else { "http" })?;
    let mut path = Vec::new();
    percent_decode(head.path.of(bytes), &mut path);
    scope.set_item("path", String::from_utf8_lossy(&path))?;
    scope.set_item("raw_path", PyBytes::new(py, head.path.of(bytes)))?;
    scope.set_item("query_string", PyBytes::new(py, head.query.of(bytes)))?;
    scope.set_item("root_path", "")?;
    scope.set_item("client", client.map(|client| (client.ip().to_string(), client.port())))?;
    let headers = PyList::empty(py);
    for field in &head.fields {
        let name = PyBytes::new(py, &field.name.of(bytes).to_ascii_lowercase());
        headers.append((name, PyBytes::new(py, field.value.of(bytes))))?;
    }
    scope.set_item("headers", headers)?;
    Ok(scope)
}
