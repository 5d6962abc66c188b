//! How an ASGI application is called.
use super::bound;
use super::call::{Call, Phase};
use super::ground::{Ground, Limits};
use super::opening;
use super::scope::Maker;
use super::websocket::Socket;
use crate::context::Entered;
use crate::functions::call_with;
use crate::holders::is_ours_alone;
use crate::loops::{Callbacks, Gateway, Row, Shared, Tasks, Told, error_of};
use crate::marks;
use crate::report::Reporter;
use crate::sync::lock;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use tricorn_io::{Exchange, HubHandle, SlotReadiness, clock};
use tricorn_proto::websocket::deflate::Policy;
use tricorn_proto::websocket::handshake;

/// An ASGI application, and what it is called with.
#[pyclass(frozen, module = "tricorn._core")]
pub struct AsgiGateway {
    application: Py<PyAny>,
    /// `before` is called with the scope.
    callbacks: Callbacks,
    state: Option<Py<PyDict>>,
    root_path: String,
    pathsend: bool,
    limits: Limits,
}

#[pymethods]
impl AsgiGateway {
    #[new]
    #[pyo3(signature = (application, event_loop, on_error, on_notice=None, *, before=None, after=None, state=None,
                        root_path="", disconnect_grace=0.0, grace_is_given=false, pathsend=false, websocket_max_message_size=16 << 20,
                        websocket_ping_interval=20.0, websocket_ping_timeout=20.0, websocket_compression=true))]
    #[expect(clippy::too_many_arguments, reason = "keywords, on the side that calls it")]
    fn new(
        application: Py<PyAny>,
        event_loop: Py<PyAny>,
        on_error: Py<PyAny>,
        on_notice: Option<Py<PyAny>>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
        state: Option<Py<PyDict>>,
        root_path: &str,
        disconnect_grace: f64,
        grace_is_given: bool,
        pathsend: bool,
        websocket_max_message_size: u64,
        websocket_ping_interval: f64,
        websocket_ping_timeout: f64,
        websocket_compression: bool,
    ) -> AsgiGateway {
        let limits = Limits {
            message: if websocket_max_message_size == 0 { u64::MAX } else { websocket_max_message_size },
            ping_interval: nanoseconds(websocket_ping_interval),
            ping_timeout: nanoseconds(websocket_ping_timeout),
            // Clients are asked to forget what they have compressed: to remember it would take more memory than all else that
            // an idle WebSocket has.
            deflate: Policy { enabled: websocket_compression, client_context_takeover: false, ..Policy::default() },
        };
        let callbacks =
            Callbacks { event_loop, on_error, on_notice, before, after, grace: disconnect_grace, grace_is_given };
        AsgiGateway { application, callbacks, state, root_path: root_path.to_owned(), pathsend, limits }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * clock::SECOND as f64) as u64
}

/// What is given to the application per request and, if it kept nothing of it, given to it again.
struct CallObjects {
    call: Py<Call>,
    receive: Py<PyAny>,
    send: Py<PyAny>,
}

/// Most call objects kept for later.
const KEPT_OBJECTS: usize = 64;

impl CallObjects {
    fn new(py: Python<'_>, ground: &Arc<Ground>) -> PyResult<CallObjects> {
        let call = Py::new(py, Call::new(ground.clone()))?;
        let (receive, send) = bound::functions(py, &call)?;
        Ok(CallObjects { call, receive, send })
    }

    /// Whether the application kept none of it. The holders of the call: these objects and the two functions.
    fn is_unused(&self) -> bool {
        is_ours_alone(&self.receive, 1) && is_ours_alone(&self.send, 1) && is_ours_alone(&self.call, 3)
    }
}

/// The gateway in a loop.
pub struct Asgi {
    ground: Arc<Ground>,
    kept: Mutex<Vec<CallObjects>>,
    /// While the worker leaves: the WebSockets that are still to be told so, the oldest last.
    staying: Mutex<Vec<(u64, Py<Socket>)>>,
    streams: Row<Py<Call>>,
}

impl Asgi {
    pub fn new(py: Python<'_>, gateway: &AsgiGateway, hub: HubHandle) -> PyResult<Asgi> {
        let tasks = Tasks::new(py, gateway.callbacks.event_loop.bind(py))?;
        let state = gateway.state.as_ref().map(|state| state.clone_ref(py));
        let maker = Maker::new(py, &gateway.root_path, state, gateway.pathsend)?;
        marks::tell(py, &hub, None)?;
        let shared = Shared::new(py, &gateway.callbacks, hub);
        let application = gateway.application.clone_ref(py);
        let ground = Ground::new(shared, tasks, maker, application, gateway.limits.clone());
        Ok(Asgi {
            ground: Arc::new(ground),
            kept: Mutex::default(),
            staying: Mutex::default(),
            streams: Row::default(),
        })
    }

    fn take_objects(&self, py: Python<'_>) -> PyResult<CallObjects> {
        let objects = lock(&self.kept).pop();
        objects.map_or_else(|| CallObjects::new(py, &self.ground), Ok)
    }

    fn keep_objects(&self, objects: CallObjects) {
        if objects.is_unused() {
            let mut kept = lock(&self.kept);
            if kept.len() < KEPT_OBJECTS {
                kept.push(objects);
                return;
            }
        }
        drop(objects);
    }

    /// The request cannot be given to the application: its answer, and the error once more.
    #[cold]
    fn not_begun(&self, mut exchange: Box<Exchange>, error: PyErr) -> PyErr {
        exchange.answer_error(500, "");
        self.ground.shared.engine.give_back(exchange);
        error
    }

    /// Calls the application and lets its task run as far as it comes.
    fn start(&self, py: Python<'_>, objects: &CallObjects, mut exchange: Box<Exchange>) -> PyResult<()> {
        let ground = &*self.ground;
        let call = objects.call.bind(py);
        let scope = ground.maker().http(py, &ground.shared.engine, &mut exchange);
        let scope = match scope {
            Ok(scope) => scope,
            Err(error) => return ground.refuse(py, exchange, error, None),
        };
        let token = match &ground.shared.before {
            None => None,
            Some(before) => match before.bind(py).call1((&scope,)) {
                Ok(token) => Some(token.unbind()),
                Err(error) => return ground.refuse(py, exchange, error, Some(&scope)),
            },
        };
        call.get().reset(exchange, Told { scope: ground.kept(&scope), token });
        let begun =
            call_with(py, &ground.application, &[scope.as_ptr(), objects.receive.as_ptr(), objects.send.as_ptr()])
                .and_then(|coroutine| ground.tasks.begin(&coroutine));
        let begun = match begun {
            Ok(begun) => begun,
            Err(error) => {
                let exchange = call.get().state().active.take();
                return exchange.map_or(Ok(()), |exchange| ground.refuse(py, exchange, error, Some(&scope)));
            }
        };
        if begun.is_done()? {
            let phase = call.get().state().response.phase;
            if phase != Phase::Done || error_of(&begun.task).is_some() {
                begun.inside(|| call.get().finish(py, &begun.task, Some(&scope)))?;
            }
            return Ok(());
        }
        Call::goes_on(call, &begun, scope)
    }
}

impl Gateway for Asgi {
    fn begin(&self, py: Python<'_>, exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        let entered = Entered::identified(py, exchange.request.reply.request_id());
        let _context = match entered {
            Ok(entered) => entered,
            Err(error) => return Err(self.not_begun(exchange, error)),
        };
        match handshake::read(&exchange.request.head, exchange.request.head_bytes()) {
            Ok(None) => {}
            Ok(Some(asked)) => {
                opening::start(py, &self.ground, exchange, asked)?;
                return Ok(None);
            }
            Err(wrong) => {
                opening::refuse(py, &self.ground, exchange, wrong);
                return Ok(None);
            }
        }
        let objects = match self.take_objects(py) {
            Ok(objects) => objects,
            Err(error) => return Err(self.not_begun(exchange, error)),
        };
        let shared = &self.ground.shared;
        let done = shared.beginning.of(&shared.engine, exchange.slot(), || self.start(py, &objects, exchange));
        self.keep_objects(objects);
        done
    }

    fn on_readiness(&self, py: Python<'_>, ready: SlotReadiness) -> PyResult<()> {
        let Some(call) = self.ground.shared.calls.get(py, ready.slot) else { return Ok(()) };
        match call.cast::<Call>() {
            Ok(call) => Call::on_readiness(call, ready.readiness),
            Err(_) => call.cast::<Socket>().map_or(Ok(()), |socket| Socket::on_readiness(socket, ready.readiness)),
        }
    }

    fn is_late(&self, py: Python<'_>, slot: usize) -> PyResult<()> {
        let Some(call) = self.ground.shared.calls.get(py, slot) else { return Ok(()) };
        match call.cast::<Call>() {
            Ok(call) => call.get().is_late(py),
            Err(_) => call.cast::<Socket>().map_or(Ok(()), |socket| socket.get().is_late(py)),
        }
    }

    fn current(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        if let Some(slot) = self.ground.shared.beginning.slot() {
            return Ok(Some(slot));
        }
        let Some(task) = self.ground.tasks.current(py)? else { return Ok(None) };
        let is_it = |call: &Bound<'_, PyAny>| call.cast::<Call>().is_ok_and(|call| call.get().is(&task));
        Ok(self.ground.shared.calls.find(py, is_it))
    }

    fn reporter(&self) -> &Reporter {
        &self.ground.shared.reporter
    }

    fn running(&self, py: Python<'_>) -> usize {
        self.ground.tasks.running(py)
    }

    fn calls(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        let task = |call: &Py<PyAny>| match call.bind(py).cast::<Call>() {
            Ok(call) => call.get().task(py),
            Err(_) => call.bind(py).cast::<Socket>().ok()?.get().task(py),
        };
        let entries = self.ground.shared.calls.entries(py);
        entries.into_iter().filter_map(|(slot, call)| Some((slot, task(&call)?))).collect()
    }

    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.ground.cancel_all(py)
    }

    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<usize> {
        if self.ground.leaving() == 0 {
            self.ground.dismiss(code);
            let calls = self.ground.shared.calls.all(py);
            let sockets = calls.into_iter().filter_map(|call| call.cast_into::<Socket>().ok());
            let mut staying: Vec<_> =
                sockets.filter_map(|socket| Some((socket.get().open_since()?, socket.unbind()))).collect();
            // The oldest comes last, where it is taken.
            staying.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
            let sockets = staying.len();
            drop(std::mem::replace(&mut *lock(&self.staying), staying));
            return Ok(sockets + self.streams.line_up(self.ground.shared.calls.of(py)));
        }
        Ok(0)
    }

    fn dismiss(&self, py: Python<'_>, most: usize) -> PyResult<()> {
        for _ in 0..most {
            let socket = {
                let mut staying = lock(&self.staying);
                let stream = self.streams.oldest();
                staying.pop_if(|(since, _)| stream.is_none_or(|stream| *since <= stream))
            };
            match socket {
                Some((_, socket)) => Socket::leave(socket.bind(py), self.ground.leaving())?,
                None => self.streams.tell_next(py)?,
            }
        }
        Ok(())
    }

    fn last_call(&self, py: Python<'_>) -> PyResult<()> {
        self.streams.tell_rest(py, self.ground.shared.calls.of(py))
    }

    fn enforce(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        let grace = if at_once { 0 } else { self.ground.shared.grace().nanos };
        self.streams.enforce(py, grace, || self.ground.shared.calls.of(py))
    }

    fn closed(&self) -> (usize, usize) {
        self.streams.tally()
    }
}
