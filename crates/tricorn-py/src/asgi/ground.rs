//! What all requests of one loop share, beside `loops::Shared`.
use super::parts::Departed;
use super::scope::Maker;
use crate::ends;
use crate::loops::{Ending, Remote, Shared, Tasks, Told};
use crate::report::Level;
use crate::sync::lock;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard};
use tricorn_io::{Exchange, WebSocketBuffers};
use tricorn_proto::websocket::deflate::Policy;

/// What all WebSockets of a gateway keep to.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes, after inflation.
    pub message: u64,
    /// Nanoseconds; 0: never.
    pub ping_interval: u64,
    pub ping_timeout: u64,
    pub deflate: Policy,
}

/// Everything happens on the loop's thread; the locks are for Python code that lets go of an object elsewhere.
pub struct Ground {
    pub shared: Shared,
    pub tasks: Tasks,
    pub application: Py<PyAny>,
    maker: Mutex<Maker>,
    pub limits: Limits,
    /// What WebSockets share; `None` while one of them works with it.
    buffers: Mutex<Option<Box<WebSocketBuffers>>>,
    /// The code with which WebSockets are told to go; 0: they may stay.
    leaving: AtomicU16,
    /// The worker's patience is over: it has cancelled what was under way, and said so.
    has_cancelled: AtomicBool,
}

impl Ground {
    pub fn new(shared: Shared, tasks: Tasks, maker: Maker, application: Py<PyAny>, limits: Limits) -> Ground {
        Ground {
            shared,
            tasks,
            application,
            maker: Mutex::new(maker),
            limits,
            buffers: Mutex::default(),
            leaving: AtomicU16::new(0),
            has_cancelled: AtomicBool::new(false),
        }
    }

    pub fn maker(&self) -> MutexGuard<'_, Maker> {
        lock(&self.maker)
    }

    /// WebSockets are told to go with this code, those that come later, too.
    pub fn dismiss(&self, code: u16) {
        self.leaving.store(code, Ordering::Relaxed);
    }

    pub fn leaving(&self) -> u16 {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Cancels all tasks, since the worker shuts down.
    pub fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.has_cancelled.store(true, Ordering::Relaxed);
        self.tasks.cancel_all(py)
    }

    /// Whether [`Ground::cancel_all`] was called.
    pub fn has_cancelled(&self) -> bool {
        self.has_cancelled.load(Ordering::Relaxed)
    }

    pub fn take_shelf(&self) -> Box<WebSocketBuffers> {
        lock(&self.buffers).take().unwrap_or_else(|| Box::new(WebSocketBuffers::new(REMEMBERING)))
    }

    pub fn give_shelf(&self, buffers: Box<WebSocketBuffers>) {
        *lock(&self.buffers) = Some(buffers);
    }

    /// The scope, if a hook or the access log will look into it, or its route is counted.
    pub fn kept(&self, scope: &Bound<'_, PyDict>) -> Option<Py<PyDict>> {
        let is_used = self.shared.has_after() || self.shared.reporter.makes_lines() || self.shared.routes.are_on();
        is_used.then(|| scope.clone().unbind())
    }

    /// Whether the grace period holds for every task whose client has left, as in gunicorn, since the setting was given. By default
    /// only those are cancelled whose response is read by no client any more.
    pub fn cancels_all(&self) -> bool {
        self.shared.grace().for_events
    }

    /// Whether a task is to be cancelled now that its grace is over. `is_unread`: its response has begun, and its client, which
    /// is gone, does not read it.
    pub fn cancels(&self, departed: Departed, is_unread: bool) -> bool {
        self.cancels_all() || is_unread && !departed.is_told
    }

    /// The log is told that a task is cancelled since its client has left.
    pub fn tell_of_cancellation(&self, py: Python<'_>, line: &str) {
        let seconds = self.shared.grace_seconds();
        let text = format!("{line}: cancelled: client disconnected {seconds} s ago (asgi_disconnect_grace_period)");
        self.shared.reporter.notify(py, Level::Info, text);
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
        self.shared.reporter.failed(py, &mut exchange, error, false);
        let scope = scope.and_then(|scope| self.kept(scope));
        self.end(py, exchange, Told { scope, token: None }, None, None);
        Ok(())
    }

    /// A request is over, with this status if that is not the reply's. The call, to be let go when nothing is locked.
    pub fn end(
        &self,
        py: Python<'_>,
        exchange: Box<Exchange>,
        told: Told,
        status: Option<u16>,
        sent: Option<u64>,
    ) -> Option<Py<PyAny>> {
        let remote = Remote::Of(|exchange| ends::known(exchange).map_or(b"", |ends| &ends.remote));
        self.shared.end(py, exchange, Ending { remote, status, sent, called: told.scope.is_some(), told }).call
    }
}

/// How many WebSockets may keep what their messages are compressed with: `deflate::DEFLATE_BYTES` each.
const REMEMBERING: usize = 64;
