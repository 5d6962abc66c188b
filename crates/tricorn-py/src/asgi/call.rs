//! One HTTP request under way: its state, and what happens to it from outside.
//!
//! ```text
//!   Awaited ──http.response.start──▶ Started ──body──▶ Streaming ──last body──▶ Done
//!                                                            └─(trailers)──▶ Trailing ──▶ Done
//! ```
//!
//! `send.rs` moves it, `receive.rs` reads. Python is never run while the state is locked.
use super::ground::{Ground, Watched};
use super::parts::{Hooks, Run, Waits};
use super::turn::Turn;
use crate::forked;
use crate::loops::{error_of, wake};
use crate::report::{is_request_timeout, request_line};
use crate::sync::lock;
use pyo3::exceptions::PyOSError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Due, Exchange, Sent, Timer, What};
use tricorn_proto::exchange::End;
use tricorn_proto::http1::Refusal;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// No response yet.
    #[default]
    Awaited,
    /// Its status and headers are known, and not sent before there is a piece of the body.
    Started,
    Streaming,
    /// The body is complete, trailers are to come.
    Trailing,
    /// The response is complete, or was given up.
    Done,
}

/// How far the response is.
#[derive(Default)]
pub struct Response {
    pub phase: Phase,
    /// Trailers were announced.
    pub trailers: bool,
    /// It was complete before anything else could happen to the request.
    pub is_over: bool,
}

/// What the application was, or is to be, told of its client.
#[derive(Default)]
pub struct Told {
    /// The last piece of the request's body was handed out.
    pub body: bool,
    /// The client has left.
    pub gone: bool,
    /// Its sending side was seen to be closed while its body was still to be read.
    pub hung_up: bool,
}

#[derive(Default)]
pub struct State {
    /// While the request is under way.
    pub exchange: Option<Box<Exchange>>,
    pub response: Response,
    pub told: Told,
    pub waits: Waits<PyAny>,
    /// How long pieces of the body have followed one another without a wait.
    pub turn: Turn,
    run: Run,
    hooks: Hooks,
    attended: bool,
    place: usize,
}

/// A request as `receive` and `send` are bound to it.
#[pyclass(frozen, module = "tricorn._core", name = "HttpCall")]
pub struct Call {
    ground: Arc<Ground>,
    state: Mutex<State>,
}

/// What is to be done when the state is unlocked.
#[derive(Default)]
struct Todo {
    futures: Vec<Py<PyAny>>,
    left: bool,
    refusal: Option<Refusal>,
}

#[pymethods]
impl Call {
    /// The task has ended.
    fn ended(slf: &Bound<'_, Call>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        if tricorn_io::is_child() {
            forked::leave_task(slf.py(), Ok(task.clone()));
        }
        let call = slf.get();
        call.ground.tasks.forget(task)?;
        call.finish(slf.py(), task)
    }

    /// The client has left some time ago.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        let task = {
            let mut state = self.state();
            state.run.timer = None;
            if state.exchange.is_none() {
                return Ok(());
            }
            state.run.task(py)
        };
        task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
    }
}

impl Call {
    pub fn new(ground: Arc<Ground>) -> Call {
        Call { ground, state: Mutex::default() }
    }

    pub fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }

    #[inline]
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether this call is that task.
    pub fn is(&self, task: &Bound<'_, PyAny>) -> bool {
        self.state().run.task.as_ref().is_some_and(|own| own.is(task))
    }

    /// Another request begins.
    pub fn reset(&self, exchange: Box<Exchange>, scope: Option<Py<PyDict>>, token: Option<Py<PyAny>>) {
        let place = exchange.slot();
        *self.state() = State { exchange: Some(exchange), hooks: Hooks { scope, token }, place, ..State::default() };
    }

    /// The task waits for something: from now on the connection is watched.
    pub fn goes_on(slf: &Bound<'_, Call>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let this = slf.get();
        this.ground.tasks.hold(task, &slf.getattr(intern!(slf.py(), "ended"))?)?;
        let mut state = this.state();
        if state.exchange.is_none() {
            return Ok(()); // answered, and busy with something else
        }
        state.run.task = Some(task.clone().unbind());
        this.attend(slf, &mut state);
        Ok(())
    }

    fn attend(&self, slf: &Bound<'_, Call>, state: &mut State) {
        if !std::mem::replace(&mut state.attended, true)
            && let Some(exchange) = &state.exchange
        {
            self.ground.calls.put(state.place, Watched::Http(slf.clone().unbind()));
            self.ground.engine.attend(exchange);
        }
    }

    /// As `attend`, for those who have only the call.
    pub fn attend_to(&self, slf: &Bound<'_, Call>) {
        self.attend(slf, &mut self.state());
    }

    /// Something has happened to the connection.
    pub fn stirred(slf: &Bound<'_, Call>, what: What) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let mut todo = Todo::default();
        this.state().stir(this.ground(), what, &mut todo);
        if let Some(refusal) = todo.refusal {
            this.refuse(py, &refusal)?;
        }
        if todo.left {
            Call::client_left(slf)?;
        }
        wake(py, todo.futures)
    }

    /// The client has left: whoever waits is told, and the task has a moment to end by itself.
    pub fn client_left(slf: &Bound<'_, Call>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (futures, is_timed) = {
            let mut state = this.state();
            state.told.gone = true;
            (state.waits.take_all(), !state.run.may_be_timed())
        };
        wake(py, futures)?; // before the task is cancelled, if that is at once
        if !is_timed {
            let timer = this.ground.tasks.call_later(py, this.ground.grace, &slf.getattr(intern!(py, "give_up"))?)?;
            this.state().run.timer = Some(timer);
        }
        Ok(())
    }

    /// The request took too long.
    pub fn is_late(&self, py: Python<'_>) -> PyResult<()> {
        let task = {
            let mut state = self.state();
            state.run.is_late = true;
            state.run.task(py)
        };
        task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
    }

    /// The request's body is not as it should be, or does not come: an answer, if there is none yet, and the end.
    pub fn refuse(&self, py: Python<'_>, refusal: &Refusal) -> PyResult<()> {
        let Some(mut exchange) = self.state().exchange.take() else { return Ok(()) };
        self.ground.engine.count_refused(&exchange, refusal);
        if exchange.request.reply.head_sent() {
            exchange.abort();
        } else {
            exchange.answer_error(refusal.status(), &refusal.message());
        }
        self.state().told.gone = true;
        self.conclude(py, exchange)
    }

    /// The task has ended: what it left open is closed.
    pub fn finish(&self, py: Python<'_>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let (exchange, gone, late) = {
            let mut state = self.state();
            (state.exchange.take(), state.told.gone, state.run.is_late)
        };
        let error = error_of(task);
        let Some(mut exchange) = exchange else {
            self.report_late_error(py, error, gone);
            return Ok(());
        };
        let line = request_line(&exchange);
        match error {
            Some(error) => self.failed(py, &mut exchange, error, Failure { line, gone, late }),
            None if gone || exchange.is_gone() => exchange.abort(),
            None => self.unanswered(py, &mut exchange, &line),
        }
        self.conclude(py, exchange)
    }

    /// An error after the response: nobody but the log can be told.
    fn report_late_error(&self, py: Python<'_>, error: Option<PyErr>, gone: bool) {
        let Some(error) = error else { return };
        if gone || is_cancelled(py, &error) {
            self.ground.reporter.notify(py, false, format!("a request ended after its client had left: {error}"));
        } else {
            self.ground.reporter.error(py, "Exception in ASGI application after its response".into(), error);
        }
    }

    #[cold]
    fn failed(&self, py: Python<'_>, exchange: &mut Exchange, error: PyErr, failure: Failure) {
        let Failure { line, gone, late } = failure;
        let was_told = is_request_timeout(py, &error);
        let ended = is_cancelled(py, &error) || was_told;
        let late = late || was_told;
        if exchange.request.reply.head_sent() || (gone && !late) {
            exchange.abort();
        } else {
            exchange.answer_error(if late && ended { 504 } else { 500 }, "");
        }
        let reporter = &self.ground.reporter;
        if gone && !late && (ended || error.is_instance_of::<PyOSError>(py)) {
            reporter.notify(py, false, format!("{line}: the client has left, and the request was ended"));
            return;
        }
        exchange.app_failed();
        let text = if late && ended {
            let limit = self.ground.engine.request_timeout();
            format!("Error handling request {line}: it was ended after {limit} s (request_timeout)")
        } else {
            format!("Error handling request {line}")
        };
        reporter.error(py, text, error);
    }

    /// The application returned, and its response is not complete.
    #[cold]
    fn unanswered(&self, py: Python<'_>, exchange: &mut Exchange, line: &str) {
        exchange.app_failed();
        let text = if exchange.request.reply.head_sent() {
            exchange.abort();
            "returned without completing its response"
        } else {
            exchange.answer_error(500, "");
            "returned without a response"
        };
        self.ground.reporter.notify(py, true, format!("Error handling request {line}: the ASGI application {text}"));
    }

    /// The response is complete: the log, the hooks, and the connection for the next request.
    pub fn conclude(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<()> {
        if exchange.timing.answered == 0 {
            exchange.answered();
        }
        self.ground.engine.conclude_call(exchange.slot());
        exchange.settle();
        let (scope, token, futures, timer, attended) = {
            let mut state = self.state();
            state.response.phase = Phase::Done;
            state.waits.patience = None;
            state.run.task = None;
            let futures = state.waits.take_all();
            (state.hooks.scope.take(), state.hooks.token.take(), futures, state.run.timer.take(), state.attended)
        };
        let bound = scope.as_ref().map(|scope| scope.bind(py));
        self.ground.log(&exchange, bound, exchange.request.reply.status_code());
        self.ground.after(py, &exchange, bound, token);
        let left = if attended { self.ground.calls.take(exchange.slot()) } else { None };
        self.ground.give_back(exchange);
        drop((left, scope));
        if let Some(timer) = timer {
            timer.call_method0(py, intern!(py, "cancel"))?;
        }
        wake(py, futures)
    }

    /// All of the response was written.
    pub fn complete(&self, py: Python<'_>, exchange: Box<Exchange>, end: End) -> PyResult<()> {
        self.state().response.is_over = true;
        if let End::Short { missing } = end
            && !exchange.is_gone()
        {
            self.ground.reporter.complain(py, &exchange, missing);
        }
        self.conclude(py, exchange)
    }
}

struct Failure {
    line: String,
    gone: bool,
    late: bool,
}

impl State {
    fn stir(&mut self, ground: &Ground, what: What, todo: &mut Todo) {
        let Some(exchange) = &mut self.exchange else { return };
        if what.broken {
            exchange.client_left();
        }
        if what.hangup && exchange.is_partial() && !what.broken {
            self.told.hung_up = true; // what it sent before may all be there
        } else if what.hangup {
            todo.left = true;
        }
        let engine = &ground.engine;
        let due = if what.expired { engine.take_due(exchange) } else { Due::default() };
        if self.waits.patience.is_some()
            && (what.writable || due.has(Timer::Room) || what.broken)
            && let Some(sent) = engine.wait_for_room(exchange, &mut self.waits.patience)
        {
            todo.left |= sent == Sent::Gone;
            todo.futures.append(&mut self.waits.senders);
        }
        if due.has(Timer::Body) && !todo.left {
            todo.refusal = exchange.body_is_late(engine.config());
        }
        if exchange.awaits_body() && (what.readable || what.hangup || due.has(Timer::Body)) {
            todo.futures.append(&mut self.waits.receivers);
        }
    }
}

fn cancelled_error(py: Python<'_>) -> PyResult<&Py<PyType>> {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError")?;
    CANCELLED.get(py).ok_or_else(|| pyo3::exceptions::PyImportError::new_err("asyncio"))
}

pub fn is_cancelled(py: Python<'_>, error: &PyErr) -> bool {
    cancelled_error(py).is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}
