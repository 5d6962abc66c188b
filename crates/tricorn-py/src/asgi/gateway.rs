//! How an ASGI application is called.
use super::bound;
use super::call::{Call, Phase};
use super::ground::{Ground, Watched};
use super::scope::Maker;
use super::websocket::{self, Limits, Socket};
use crate::loops::{Gateway, Tasks, error_of, is_done};
use crate::report::Reporter;
use crate::sync::lock;
use crate::wsgi::is_ours_alone;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use tricorn_io::{Engine, Exchange, Stir, clock};
use tricorn_proto::websocket::deflate::Policy;
use tricorn_proto::websocket::handshake;

/// An ASGI application, and what it is called with.
#[pyclass(frozen, module = "tricorn._core")]
pub struct AsgiGateway {
    application: Py<PyAny>,
    event_loop: Py<PyAny>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
    /// Called with the scope before the application; what it returns is `after`'s token.
    before: Option<Py<PyAny>>,
    /// Called when the response is complete.
    after: Option<Py<PyAny>>,
    state: Option<Py<PyDict>>,
    root_path: String,
    disconnect_grace: f64,
    limits: Limits,
}

#[pymethods]
impl AsgiGateway {
    #[new]
    #[pyo3(signature = (application, event_loop, on_error, on_notice=None, *, before=None, after=None, state=None,
                        root_path="", disconnect_grace=0.0, websocket_max_message_size=16 << 20,
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
        let root_path = root_path.to_owned();
        AsgiGateway {
            application,
            event_loop,
            on_error,
            on_notice,
            before,
            after,
            state,
            root_path,
            disconnect_grace,
            limits,
        }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * clock::SECOND as f64) as u64
}

/// What is given to the application per request and, if it kept nothing of it, given to it again.
struct Kit {
    call: Py<Call>,
    receive: Py<PyAny>,
    send: Py<PyAny>,
}

/// Most kits kept for later.
const KITS: usize = 64;

impl Kit {
    fn new(py: Python<'_>, ground: &Arc<Ground>) -> PyResult<Kit> {
        let call = Py::new(py, Call::new(ground.clone()))?;
        let (receive, send) = bound::functions(py, &call)?;
        Ok(Kit { call, receive, send })
    }

    /// Whether the application kept none of it. The holders of the call: this kit and the two functions.
    fn is_unused(&self) -> bool {
        is_ours_alone(&self.receive, 1) && is_ours_alone(&self.send, 1) && is_ours_alone(&self.call, 3)
    }
}

/// The gateway in a loop.
pub struct Asgi {
    ground: Arc<Ground>,
    kits: Mutex<Vec<Kit>>,
}

impl Asgi {
    pub fn new(py: Python<'_>, gateway: &AsgiGateway, engine: Arc<Engine>) -> PyResult<Asgi> {
        let copy = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.clone_ref(py));
        let reporter = Reporter::new(engine.clone(), gateway.on_error.clone_ref(py), copy(&gateway.on_notice));
        let tasks = Tasks::new(py, gateway.event_loop.bind(py))?;
        let state = gateway.state.as_ref().map(|state| state.clone_ref(py));
        let ground = Ground::new(
            engine,
            reporter,
            tasks,
            Maker::new(py, &gateway.root_path, state)?,
            gateway.application.clone_ref(py),
            copy(&gateway.before),
            copy(&gateway.after),
            gateway.disconnect_grace,
            gateway.limits.clone(),
        );
        Ok(Asgi { ground: Arc::new(ground), kits: Mutex::default() })
    }

    fn take_kit(&self, py: Python<'_>) -> PyResult<Kit> {
        let kit = lock(&self.kits).pop();
        kit.map_or_else(|| Kit::new(py, &self.ground), Ok)
    }

    fn give_kit(&self, kit: Kit) {
        if kit.is_unused() {
            let mut kits = lock(&self.kits);
            if kits.len() < KITS {
                kits.push(kit);
                return;
            }
        }
        drop(kit);
    }

    fn at(&self, py: Python<'_>, place: usize) -> Option<Watched> {
        self.ground.calls.at(place, |watched| watched.clone_ref(py))
    }

    /// Calls the application and lets its task run as far as it comes.
    fn start(&self, py: Python<'_>, kit: &Kit, mut exchange: Box<Exchange>) -> PyResult<()> {
        let ground = &*self.ground;
        let call = kit.call.bind(py);
        let scope = ground.maker().http(py, &ground.engine, &mut exchange);
        let scope = match scope {
            Ok(scope) => scope,
            Err(error) => return ground.refuse(py, exchange, error, None),
        };
        if ground.after.is_some() {
            exchange.send_at_once(); // a callback may take long, and the client should not wait for it
        }
        let token = match &ground.before {
            None => None,
            Some(before) => match before.bind(py).call1((&scope,)) {
                Ok(token) => Some(token.unbind()),
                Err(error) => return ground.refuse(py, exchange, error, Some(&scope)),
            },
        };
        let keeps_scope = ground.after.is_some() || ground.reporter.has_access_log();
        call.get().reset(exchange, keeps_scope.then(|| scope.clone().unbind()), token);
        let begun = call_with(py, &ground.application, &[scope.as_ptr(), kit.receive.as_ptr(), kit.send.as_ptr()])
            .and_then(|coroutine| ground.tasks.begin(&coroutine));
        let task = match begun {
            Ok(task) => task,
            Err(error) => {
                let exchange = call.get().state().exchange.take();
                return exchange.map_or(Ok(()), |exchange| ground.refuse(py, exchange, error, Some(&scope)));
            }
        };
        if is_done(&task)? {
            let phase = call.get().state().response.phase;
            if phase != Phase::Done || error_of(&task).is_some() {
                call.get().finish(py, &task)?;
            }
            return Ok(());
        }
        Call::goes_on(call, &task)
    }
}

impl Gateway for Asgi {
    fn begin(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>> {
        match handshake::read(&exchange.request.head, exchange.request.head_bytes()) {
            Ok(None) => {}
            Ok(Some(asked)) => {
                websocket::start(py, &self.ground, exchange, asked)?;
                return Ok(None);
            }
            Err(wrong) => {
                websocket::refuse(py, &self.ground, exchange, wrong);
                return Ok(None);
            }
        }
        let kit = match self.take_kit(py) {
            Ok(kit) => kit,
            Err(error) => {
                exchange.answer_error(500, "");
                self.ground.engine.give_back(exchange);
                return Err(error);
            }
        };
        let ground = &*self.ground;
        let done = ground.beginning.of(&ground.engine, exchange.slot(), || self.start(py, &kit, exchange));
        self.give_kit(kit);
        done
    }

    fn stirred(&self, py: Python<'_>, stir: Stir) -> PyResult<()> {
        match self.at(py, stir.place) {
            Some(Watched::Http(call)) => Call::stirred(call.bind(py), stir.what),
            Some(Watched::WebSocket(socket)) => Socket::stirred(socket.bind(py), stir.what),
            None => Ok(()),
        }
    }

    fn is_late(&self, py: Python<'_>, place: usize) -> PyResult<()> {
        match self.at(py, place) {
            Some(Watched::Http(call)) => call.get().is_late(py),
            Some(Watched::WebSocket(socket)) => socket.get().is_late(py),
            None => Ok(()),
        }
    }

    fn current(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        if let Some(place) = self.ground.beginning.place() {
            return Ok(Some(place));
        }
        let task = self.ground.tasks.current(py)?;
        Ok(task.and_then(|task| self.ground.place_of(&task)))
    }

    fn reporter(&self) -> &Reporter {
        &self.ground.reporter
    }

    fn running(&self, py: Python<'_>) -> usize {
        self.ground.tasks.running(py)
    }

    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.ground.tasks.cancel_all(py)
    }

    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<()> {
        for socket in self.ground.dismiss(py, code) {
            Socket::leave(socket.bind(py), code)?;
        }
        Ok(())
    }
}

/// Calls with three arguments.
pub fn call_with<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    arguments: &[*mut ffi::PyObject; 3],
) -> PyResult<Bound<'py, PyAny>> {
    let mut all = [std::ptr::null_mut(), arguments[0], arguments[1], arguments[2]];
    // SAFETY: the callable and the arguments are alive; the slot before the first argument is ours, as
    // PY_VECTORCALL_ARGUMENTS_OFFSET promises; null carries the error.
    unsafe {
        let result = ffi::PyObject_Vectorcall(
            function.as_ptr(),
            all.as_mut_ptr().add(1),
            3 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, result)
    }
}
