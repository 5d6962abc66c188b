//! What all requests of one loop stand on.
use super::call::Call;
use super::scope::Maker;
use super::websocket::{Limits, Socket};
use crate::loops::Tasks;
use crate::report::{Line, Reporter, as_environ, request_line};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tricorn_io::{Engine, Exchange, Shelf, clock};

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
    /// The calls whose connections are attended, by their places.
    calls: Mutex<Vec<Option<Watched>>>,
    /// An exchange that was concluded while its call began: the server goes on with it. Else it is given back at once.
    done: Mutex<Option<Box<Exchange>>>,
    /// The place of the call that begins, and one.
    begins: AtomicUsize,
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
    fn clone_ref(&self, py: Python<'_>) -> Watched {
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
            calls: Mutex::default(),
            done: Mutex::default(),
            begins: AtomicUsize::new(0),
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

    /// What is concluded from now on, the server takes by `begun`.
    pub fn begin(&self, place: usize) {
        self.begins.store(place + 1, Ordering::Relaxed);
    }

    /// The place of the call that begins.
    pub fn beginning(&self) -> Option<usize> {
        self.begins.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The place of the call that is this task.
    pub fn place_of(&self, task: &Bound<'_, PyAny>) -> Option<usize> {
        lock(&self.calls).iter().position(|watched| match watched {
            Some(Watched::Http(call)) => call.get().is(task),
            Some(Watched::WebSocket(_)) | None => false,
        })
    }

    pub fn begun(&self) -> Option<Box<Exchange>> {
        self.begins.store(0, Ordering::Relaxed);
        lock(&self.done).take()
    }

    /// The exchange is over, for the reactor.
    pub fn give_back(&self, exchange: Box<Exchange>) {
        if self.beginning().is_some() {
            let before = lock(&self.done).replace(exchange);
            if let Some(before) = before {
                self.engine.give_back(before);
            }
        } else {
            self.engine.give_back(exchange);
        }
    }

    /// From now on this call is told what happens to its connection.
    pub fn attend(&self, place: usize, call: Watched) {
        let mut calls = lock(&self.calls);
        if calls.len() <= place {
            calls.resize_with(place + 1, || None);
        }
        calls[place] = Some(call);
    }

    pub fn at(&self, py: Python<'_>, place: usize) -> Option<Watched> {
        lock(&self.calls).get(place).and_then(|call| call.as_ref().map(|call| call.clone_ref(py)))
    }

    pub fn leave(&self, place: usize) -> Option<Watched> {
        lock(&self.calls).get_mut(place).and_then(Option::take)
    }

    /// WebSockets are told to go with this code, those that come later, too. All that there are.
    pub fn dismiss(&self, py: Python<'_>, code: u16) -> Vec<Py<Socket>> {
        self.leaving.store(code, Ordering::Relaxed);
        let sockets = |watched: &Option<Watched>| match watched {
            Some(Watched::WebSocket(socket)) => Some(socket.clone_ref(py)),
            _ => None,
        };
        lock(&self.calls).iter().filter_map(sockets).collect()
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

    /// The application could not be called.
    #[cold]
    pub fn refuse(&self, py: Python<'_>, mut exchange: Box<Exchange>, error: PyErr) -> PyResult<()> {
        exchange.app_failed();
        exchange.answer_error(500, "");
        let line = request_line(&exchange);
        self.reporter.error(py, format!("Error handling request {line}"), error);
        self.log(&exchange, None, 500);
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
        let remote = super::ends::known(exchange).map_or(b"".as_slice(), |ends| &ends.remote);
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
        let told = || -> PyResult<()> {
            let reply = &exchange.request.reply;
            let status = crate::text::latin1(py, reply.status_line())?;
            let headers: Bound<'_, PyList> = crate::wsgi::sent_headers(py, reply.fields())?;
            let micros = exchange.micros(clock::now());
            after.bind(py).call1((scope, token, status, headers, reply.body_sent(), micros)).map(drop)
        };
        if let Err(error) = told() {
            self.reporter.error(py, "Exception in post_request hook".into(), error);
        }
    }
}

/// How many WebSockets may keep what their messages are compressed with: `deflate::DEFLATE_BYTES` each.
const REMEMBERING: usize = 64;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
