//! One WebSocket under way (ASGI WebSocket specification 2.5): its state, and what happens to it from outside.
//!
//! ```text
//!   Asked ──websocket.accept──▶ Open ──websocket.close──▶ Closed
//!     ├──websocket.close (403), an error (500)──────────▶ Closed
//!     └──websocket.http.response.start──▶ Denying ──body──▶ Closed
//! ```
//!
//! `send.rs` and `deny.rs` move it, `receive.rs` hands out events. The connection may be over before that is told to the
//! application, or the application before the connection: the last Close frame is waited for without it. Python is never
//! run while something is locked: what is worked on is taken out meanwhile.
mod deny;
mod receive;
mod send;

pub use receive::receive;
pub use send::send;

use super::bound;
use super::call::is_cancelled;
use super::gateway::call_with;
use super::ground::{Ground, Watched};
use super::parts::{Hooks, Run, Waits};
use crate::loops::{Bell, Ring, error_of, is_done};
use crate::report::request_line;
use crate::sync::lock;
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Desk, Exchange, WebSocket, What};
use tricorn_proto::websocket::close::ABNORMAL;
use tricorn_proto::websocket::deflate::Policy;
use tricorn_proto::websocket::handshake::{Asked, Wrong};

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

/// A message as an event; `None`: there was no memory for it.
type Event = Option<Py<PyAny>>;
type Link = WebSocket<Event>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Asked,
    Open,
    Denying,
    /// By the application, or refused.
    Closed,
}

#[derive(Default)]
struct State {
    /// While the connection lives.
    exchange: Option<Box<Exchange>>,
    /// Once it is accepted; longer than the connection, for what was not received yet.
    link: Option<Box<Link>>,
    asked: Option<Box<Asked>>,
    phase: Phase,
    /// `websocket.connect` was received.
    is_connected: bool,
    /// The client left before it was answered, or was refused.
    has_left: bool,
    waits: Waits<Bell>,
    /// For whoever waits next.
    bell: Option<Py<Bell>>,
    hooks: Hooks,
    run: Run,
    /// The application has closed, or refused.
    is_closed_by_application: bool,
    is_attended: bool,
    /// The loop was asked to call `flush`.
    is_flushed_soon: bool,
}

/// A WebSocket as `receive` and `send` are bound to it.
#[pyclass(frozen, module = "tricorn._core", name = "WebSocketCall")]
pub struct Socket {
    ground: Arc<Ground>,
    state: Mutex<State>,
}

#[pymethods]
impl Socket {
    /// The task has ended.
    fn ended(slf: &Bound<'_, Socket>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().ground.tasks.forget(task)?;
        Socket::finish(slf, task)
    }

    /// The connection has ended some time ago.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.state().run.timer = None;
        self.cancel(py)
    }

    /// Sends what was held back.
    fn flush(slf: &Bound<'_, Socket>) -> PyResult<()> {
        slf.get().state().is_flushed_soon = false;
        Socket::flush_held(slf).map(drop)
    }
}
/// Calls the application for a handshake, and lets its task run as far as it comes.
pub fn start(py: Python<'_>, ground: &Arc<Ground>, mut exchange: Box<Exchange>, asked: Asked) -> PyResult<()> {
    exchange.send_at_once();
    let names = PyList::new(py, &asked.wanted.protocols)?;
    let scope = match ground.maker().websocket(py, &ground.engine, &mut exchange, names) {
        Ok(scope) => scope,
        Err(error) => return ground.refuse(py, exchange, error, None),
    };
    let token = match &ground.before {
        None => None,
        Some(before) => match before.bind(py).call1((&scope,)) {
            Ok(token) => Some(token.unbind()),
            Err(error) => return ground.refuse(py, exchange, error, None),
        },
    };
    let keeps_scope = ground.after.is_some() || ground.reporter.has_access_log();
    let state = State {
        exchange: Some(exchange),
        asked: Some(Box::new(asked)),
        hooks: Hooks { scope: keeps_scope.then(|| scope.clone().unbind()), token },
        ..State::default()
    };
    let socket = Bound::new(py, Socket { ground: ground.clone(), state: Mutex::new(state) })?;
    let (receive, send) = bound::functions(py, socket.as_unbound())?;
    let begun = call_with(py, &ground.application, &[scope.as_ptr(), receive.as_ptr(), send.as_ptr()])
        .and_then(|coroutine| ground.tasks.begin(&coroutine));
    drop((scope, receive, send));
    match begun {
        Ok(task) if is_done(&task)? => Socket::finish(&socket, &task),
        Ok(task) => {
            ground.tasks.hold(&task, &socket.getattr(intern!(py, "ended"))?)?;
            socket.get().state().run.task = Some(task.unbind());
            socket.get().attend(&socket);
            Ok(())
        }
        Err(error) => {
            let exchange = socket.get().state().exchange.take();
            exchange.map_or(Ok(()), |exchange| ground.refuse(py, exchange, error, None))
        }
    }
}

/// A handshake that is wrong: told, and logged.
#[cold]
pub fn refuse(py: Python<'_>, ground: &Ground, mut exchange: Box<Exchange>, wrong: Wrong) {
    exchange.answer_error_with(wrong.status(), wrong.message(), wrong.fields());
    let text = format!("Invalid request from ip={}: {}", exchange.client.peer, wrong.message());
    ground.reporter.notify(py, true, text);
    ground.log(&exchange, None, wrong.status());
    ground.give_back(exchange);
}

impl Socket {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Works on the connection, which is elsewhere meanwhile. `None`: it is over, or not accepted.
    fn with<T>(slf: &Bound<'_, Socket>, work: impl FnOnce(&mut Desk<'_>, &mut Link) -> T) -> PyResult<Option<T>> {
        Socket::with_ring(slf, Ring::Soon, work)
    }

    /// The same; those who have waited for what comes of it go on `when`.
    fn with_ring<T>(
        slf: &Bound<'_, Socket>,
        when: Ring,
        work: impl FnOnce(&mut Desk<'_>, &mut Link) -> T,
    ) -> PyResult<Option<T>> {
        let (this, ground) = (slf.get(), &slf.get().ground);
        let (mut exchange, mut link) = {
            let mut state = this.state();
            match (state.exchange.take(), state.link.take()) {
                (Some(exchange), Some(link)) => (exchange, link),
                (exchange, link) => {
                    (state.exchange, state.link) = (exchange, link);
                    return Ok(None);
                }
            }
        };
        let mut shelf = ground.take_shelf();
        let result = work(&mut Desk { engine: &ground.engine, exchange: &mut exchange, shelf: &mut shelf }, &mut link);
        ground.give_shelf(shelf);
        let is_over = link.session().is_over();
        let futures = {
            let mut state = this.state();
            let mut futures = Vec::new();
            if link.session().has_messages() || link.goodbye().is_some() {
                futures.append(&mut state.waits.receivers);
            }
            if is_over || !link.is_full(&exchange) {
                futures.append(&mut state.waits.senders);
            }
            state.link = Some(link);
            if !is_over {
                state.exchange = Some(exchange);
                drop(state);
                ring(slf.py(), futures, when)?;
                return Ok(Some(result));
            }
            futures
        };
        // Before they go on: they may find that it is over.
        Socket::conclude(slf, exchange, 101)?;
        ring(slf.py(), futures, when)?;
        Ok(Some(result))
    }

    /// Whether there was something to be sent.
    fn flush_held(slf: &Bound<'_, Socket>) -> PyResult<bool> {
        let is_held = slf.get().state().link.as_ref().is_some_and(|link| link.is_held());
        if is_held {
            Socket::with(slf, |desk, link| link.flush(desk))?;
        }
        Ok(is_held)
    }

    /// Something has happened to the connection.
    pub fn stirred(slf: &Bound<'_, Socket>, what: What) -> PyResult<()> {
        let py = slf.py();
        let worked = Socket::with_ring(slf, Ring::Now, |desk, link| {
            if link.stirred(desk, what) {
                link.read(desk, |kind, data| receive::event(py, kind, data));
            }
        })?;
        if worked.is_none() {
            let is_broken = deny::stirred(slf, what)? || what.broken;
            if is_broken || what.hangup {
                return Socket::left_early(slf, is_broken);
            }
        }
        Ok(())
    }

    /// The client has left before it was answered.
    #[cold]
    fn left_early(slf: &Bound<'_, Socket>, is_broken: bool) -> PyResult<()> {
        let futures = {
            let mut state = slf.get().state();
            let Some(exchange) = &mut state.exchange else { return Ok(()) };
            if is_broken {
                exchange.client_left();
            }
            state.has_left = true;
            state.waits.patience = None;
            state.waits.take_all()
        };
        ring(slf.py(), futures, Ring::Now)?;
        Socket::begin_grace(slf)
    }

    /// From now on the connection is watched.
    fn attend(&self, slf: &Bound<'_, Socket>) {
        let mut state = self.state();
        if !state.is_attended
            && let Some(exchange) = &state.exchange
        {
            self.ground.calls.put(exchange.slot(), Watched::WebSocket(slf.clone().unbind()));
            self.ground.engine.attend(exchange);
            state.is_attended = true;
        }
    }

    /// The server leaves.
    pub fn leave(slf: &Bound<'_, Socket>, code: u16) -> PyResult<()> {
        Socket::with(slf, |desk, link| link.leave(desk, code)).map(drop)
    }

    /// The handshake took longer than a request may take.
    pub fn is_late(&self, py: Python<'_>) -> PyResult<()> {
        self.state().run.is_late = true;
        self.cancel(py)
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let task = self.state().run.task(py);
        task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
    }

    /// The client is gone: the application has a moment to end by itself.
    fn begin_grace(slf: &Bound<'_, Socket>) -> PyResult<()> {
        let this = slf.get();
        if !this.state().run.may_be_timed() {
            return Ok(());
        }
        let give_up = slf.getattr(intern!(slf.py(), "give_up"))?;
        let timer = this.ground.tasks.call_later(slf.py(), this.ground.grace, &give_up)?;
        this.state().run.timer = Some(timer);
        Ok(())
    }

    /// The connection is over: the log, the hooks, and the end of it.
    fn conclude(slf: &Bound<'_, Socket>, mut exchange: Box<Exchange>, status: u16) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let ground = &this.ground;
        if exchange.timing.answered == 0 {
            exchange.answered();
        }
        ground.engine.conclude_call(exchange.slot());
        exchange.settle();
        let (scope, token, futures, sent, by_application) = {
            let mut state = this.state();
            let by_application = state.is_closed_by_application;
            state.phase = Phase::Closed;
            state.waits.patience = None;
            let futures = state.waits.take_all();
            let sent = state.link.as_ref().map(|link| link.bytes_sent(&exchange));
            (state.hooks.scope.take(), state.hooks.token.take(), futures, sent, by_application)
        };
        let bound = scope.as_ref().map(|scope| scope.bind(py));
        ground.log_sent(&exchange, bound, status, sent);
        ground.after(py, &exchange, bound, token);
        let left = ground.calls.take(exchange.slot());
        ground.give_back(exchange);
        drop((left, scope));
        ring(py, futures, Ring::Soon)?;
        if by_application { Ok(()) } else { Socket::begin_grace(slf) }
    }

    /// The task has ended: what it left open is closed.
    fn finish(slf: &Bound<'_, Socket>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (timer, phase) = {
            let mut state = this.state();
            state.run.task = None;
            (state.run.timer.take(), state.phase)
        };
        if let Some(timer) = timer {
            timer.call_method0(py, intern!(py, "cancel"))?;
        }
        let error = error_of(task);
        match phase {
            Phase::Open => {
                this.report(py, error.as_ref(), None);
                let code = match &error {
                    None => NORMAL,
                    Some(error) if is_cancelled(py, error) => GOING_AWAY,
                    Some(_) => INTERNAL_ERROR,
                };
                Socket::close(slf, Some(code), "").map(drop)
            }
            Phase::Closed => {
                this.report(py, error.as_ref(), None);
                Ok(())
            }
            Phase::Asked | Phase::Denying => Socket::unanswered(slf, error),
        }
    }

    /// The application has ended without an answer, or within it.
    #[cold]
    fn unanswered(slf: &Bound<'_, Socket>, error: Option<PyErr>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (exchange, has_left, is_late) = {
            let mut state = this.state();
            (state.exchange.take(), state.has_left, state.run.is_late)
        };
        let Some(mut exchange) = exchange else { return Ok(()) };
        let status = if is_late && error.is_some() { 504 } else { 500 };
        if exchange.request.reply.head_sent() || has_left {
            exchange.abort();
        } else {
            exchange.answer_error(status, "");
        }
        let line = request_line(&exchange);
        match error {
            None if has_left => {}
            None => {
                exchange.app_failed();
                let text = "the ASGI application returned without accepting or closing the WebSocket";
                this.ground.reporter.notify(py, true, format!("Error handling request {line}: {text}"));
            }
            Some(error) => {
                if !has_left {
                    exchange.app_failed();
                }
                this.report(py, Some(&error), Some(&line));
            }
        }
        Socket::conclude(slf, exchange, status)
    }

    /// What the application let out. Whose client has left may say so and no more.
    fn report(&self, py: Python<'_>, error: Option<&PyErr>, line: Option<&str>) {
        let Some(error) = error else { return };
        let (is_gone, own) = {
            let state = self.state();
            let is_gone = state.exchange.is_none() || state.has_left;
            (is_gone, state.exchange.as_ref().map(|exchange| request_line(exchange)))
        };
        let line = line.or(own.as_deref()).unwrap_or("of a WebSocket");
        let reporter = &self.ground.reporter;
        let ended = is_cancelled(py, error);
        if ended || (is_gone && error.is_instance_of::<PyOSError>(py)) {
            reporter.notify(py, false, format!("{line}: the WebSocket is closed, and its request was ended"));
        } else {
            reporter.error(py, format!("Error handling request {line}"), error.clone_ref(py));
        }
    }

    /// Begins the closing handshake. Whether it was not begun before.
    fn close(slf: &Bound<'_, Socket>, code: Option<u16>, reason: &str) -> PyResult<bool> {
        let py = slf.py();
        slf.get().state().phase = Phase::Closed;
        let outcome = Socket::with(slf, |desk, link| {
            let outcome = link.close(desk, code, reason);
            if outcome.is_ok() && link.wants_more() {
                link.go_on(desk, |kind, data| receive::event(py, kind, data));
            }
            outcome
        })?;
        Ok(matches!(outcome, Some(Ok(()))))
    }

    /// A bell to wait for.
    fn bell(&self, py: Python<'_>) -> PyResult<Py<Bell>> {
        let spare = self.state().bell.take();
        spare.map_or_else(|| self.ground.tasks.bell(py), Ok)
    }

    /// It has rung, and was heard.
    fn keep_bell(&self, bell: Py<Bell>) {
        bell.get().reset();
        let before = self.state().bell.replace(bell);
        drop(before);
    }

    /// The code and reason of `websocket.disconnect`, if that is what comes next.
    fn goodbye(state: &State) -> Option<(u16, String)> {
        if state.has_left {
            return Some((ABNORMAL, String::new()));
        }
        let goodbye = state.link.as_ref()?.goodbye()?;
        Some((goodbye.code, goodbye.reason.to_string()))
    }
}

/// Those who have waited go on.
#[inline]
fn ring(py: Python<'_>, bells: Vec<Py<Bell>>, when: Ring) -> PyResult<()> {
    bells.iter().try_for_each(|bell| Bell::ring(bell.bind(py), when))
}

const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const INTERNAL_ERROR: u16 = 1011;
