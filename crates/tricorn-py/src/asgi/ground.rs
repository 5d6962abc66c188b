//! What all requests of one loop stand on.
use super::call::Call;
use super::scope::Maker;
use super::websocket::{Limits, Socket};
use crate::ends;
use crate::loops::{Beginning, Places, Tasks};
use crate::report::{Line, Reporter, as_environ, request_line};
use crate::sync::lock;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Engine, Exchange, Shelf};

/// The gateway of one loop, shared by its calls. Everything happens on the loop's thread; the locks are for Python code
/// that lets go of an object elsewhere.
pub struct Ground {
    pub engine: Arc<Engine>,
    pub reporter: Reporter,
    pub tasks: Tasks,
    pub application: Py<PyAny>,
    pub before: Option<Py<PyAny>>,
    pub after: Option<Py<PyAny>>,
    /// Seconds between a client's leaving and the cancellation of its request.
    pub grace: f64,
    maker: Mutex<Maker>,
    /// The calls whose connections are attended.
    pub calls: Places<Watched>,
    pub beginning: Beginning,
    scratch: Mutex<Vec<u8>>,
    pub limits: Limits,
    /// What WebSockets share; `None` while one of them works with it.
    shelf: Mutex<Option<Box<Shelf>>>,
    /// The code with which WebSockets are told to go; 0: they may stay.
    leaving: AtomicU16,
}

/// Who is told what happens to a connection.
pub enum Watched {
    Http(Py<Call>),
    WebSocket(Py<Socket>),
}

impl Watched {
    pub fn clone_ref(&self, py: Python<'_>) -> Watched {
        match self {
            Watched::Http(call) => Watched::Http(call.clone_ref(py)),
            Watched::WebSocket(socket) => Watched::WebSocket(socket.clone_ref(py)),
        }
    }
}

impl Ground {
    #[expect(clippy::too_many_arguments, reason = "a record of what a gateway was given")]
    pub fn new(
        engine: Arc<Engine>,
        reporter: Reporter,
        tasks: Tasks,
        maker: Maker,
        application: Py<PyAny>,
        before: Option<Py<PyAny>>,
        after: Option<Py<PyAny>>,
        grace: f64,
        limits: Limits,
    ) -> Ground {
        Ground {
            engine,
            reporter,
            tasks,
            application,
            before,
            after,
            grace,
            maker: Mutex::new(maker),
            calls: Places::default(),
            beginning: Beginning::default(),
            scratch: Mutex::default(),
            limits,
            shelf: Mutex::default(),
            leaving: AtomicU16::new(0),
        }
    }

    pub fn maker(&self) -> MutexGuard<'_, Maker> {
        lock(&self.maker)
    }

    pub fn scratch(&self) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.scratch)
    }

    /// The place of the call that is this task.
    pub fn place_of(&self, task: &Bound<'_, PyAny>) -> Option<usize> {
        self.calls.find(|watched| matches!(watched, Watched::Http(call) if call.get().is(task)))
    }

    /// The exchange is over, for the reactor.
    pub fn give_back(&self, exchange: Box<Exchange>) {
        self.beginning.give_back(&self.engine, exchange);
    }

    /// WebSockets are told to go with this code, those that come later, too. All that there are.
    pub fn dismiss(&self, py: Python<'_>, code: u16) -> Vec<Py<Socket>> {
        self.leaving.store(code, Ordering::Relaxed);
        self.calls.each(|watched| match watched {
            Watched::WebSocket(socket) => Some(socket.clone_ref(py)),
            Watched::Http(_) => None,
        })
    }

    pub fn leaving(&self) -> u16 {
        self.leaving.load(Ordering::Relaxed)
    }

    pub fn take_shelf(&self) -> Box<Shelf> {
        lock(&self.shelf).take().unwrap_or_else(|| Box::new(Shelf::new(REMEMBERING)))
    }

    pub fn give_shelf(&self, shelf: Box<Shelf>) {
        *lock(&self.shelf) = Some(shelf);
    }

    /// The application could not be called. With a scope the hooks know of the request, and are told how it ended.
    #[cold]
    pub fn refuse(
        &self,
        py: Python<'_>,
        mut exchange: Box<Exchange>,
        error: PyErr,
        scope: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        exchange.app_failed();
        exchange.answer_error(500, "");
        let line = request_line(&exchange);
        self.reporter.error(py, format!("Error handling request {line}"), error);
        self.log(&exchange, scope, 500);
        self.after(py, &exchange, scope, None);
        self.give_back(exchange);
        Ok(())
    }

    /// A line in the access log; `%({key}e)s` looks into the scope.
    pub fn log(&self, exchange: &Exchange, scope: Option<&Bound<'_, PyDict>>, status: u16) {
        self.log_sent(exchange, scope, status, None);
    }

    /// The same, with the bytes that were sent behind the head.
    pub fn log_sent(&self, exchange: &Exchange, scope: Option<&Bound<'_, PyDict>>, status: u16, sent: Option<u64>) {
        if !self.reporter.has_access_log() {
            return;
        }
        let remote = ends::known(exchange).map_or(b"".as_slice(), |ends| &ends.remote);
        let lookup = |key: &str| -> Option<Vec<u8>> {
            let Some(value) = scope?.get_item(key).ok().flatten() else { return as_environ(exchange, remote, key) };
            value.str().ok().map(|text| text.to_string_lossy().into_owned().into_bytes())
        };
        self.reporter.access(exchange, &Line { remote, status, sent, called: scope.is_some(), environ: &lookup });
    }

    /// Calls `after(scope, token, status, headers, sent, micros)`.
    pub fn after(
        &self,
        py: Python<'_>,
        exchange: &Exchange,
        scope: Option<&Bound<'_, PyDict>>,
        token: Option<Py<PyAny>>,
    ) {
        let (Some(after), Some(scope)) = (&self.after, scope) else { return };
        self.reporter.after(py, exchange, |(status, headers, sent, micros)| {
            after.call1(py, (scope, token, status, headers, sent, micros))
        });
    }
}

/// How many WebSockets may keep what their messages are compressed with: `deflate::DEFLATE_BYTES` each.
const REMEMBERING: usize = 64;
