//! One HTTP request under way: its state, and what happens to it from outside.
//!
//! ```text
//!   Awaited ──http.response.start──▶ Started ──body──▶ Streaming ──last body──▶ Done
//!                                                            └─(trailers)──▶ Trailing ──▶ Done
//! ```
//!
//! `send.rs` moves it, `receive.rs` reads. Python is never run while the state is locked.
use super::failure::{self, Known, is_excused};
use super::ground::Ground;
use super::parts::{Departed, Run, Waits};
use crate::forked;
use crate::loops::{Begun, LAST_PIECES, Stream, Told, error_of, wake};
use crate::pieces::Piece;
use crate::report::{Level, request_line, scope_line};
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::clock;
use tricorn_io::{Active, Departure, Effects, Exchange, Readiness, Sent};
use tricorn_proto::message::Refusal;
use tricorn_proto::response::End;

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
}

/// What `receive` has handed out.
#[derive(Default)]
pub struct Received {
    /// The last piece of the request's body.
    pub body: bool,
    /// The client has left, or the server ends the response: `http.disconnect` is what comes next.
    pub gone: bool,
}

#[derive(Default)]
pub struct State {
    pub active: Active,
    pub response: Response,
    pub received: Received,
    pub departed: Departed,
    /// When the application was told to end its response, since the worker leaves (monotonic nanoseconds).
    closing: Option<u64>,
    pub waits: Waits<PyAny>,
    run: Run,
    told: Told,
    is_attended: bool,
}

/// A request as `receive` and `send` are bound to it.
#[pyclass(frozen, module = "tricorn._core", name = "HttpCall")]
pub struct Call {
    ground: Arc<Ground>,
    state: Mutex<State>,
}

#[pymethods]
impl Call {
    /// The task has ended; its context is the current one.
    fn ended(slf: &Bound<'_, Call>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        if tricorn_io::is_child() {
            forked::leave_task(slf.py(), Ok(task.clone()));
        }
        let (call, py) = (slf.get(), slf.py());
        call.ground.tasks.forget(task)?;
        let scope = call.state().run.scope.take();
        call.finish(py, task, scope.as_ref().map(|scope| scope.bind(py)))
    }

    /// Sends the head of a response whose body does not follow at once.
    fn send_head(slf: &Bound<'_, Call>) -> PyResult<()> {
        let (call, nothing) = (slf.get(), PyBytes::new(slf.py(), b""));
        let sent = {
            let mut state = call.state();
            if !state.owes_head() {
                return Ok(());
            }
            let Some(exchange) = state.active.exchange_mut() else { return Ok(()) };
            exchange.foresee_close_unread(false);
            Piece::all(&nothing).write(&call.ground.shared.engine, exchange, None)
        };
        if sent == Sent::Gone { Call::departed(slf, Departure::Broken) } else { Ok(()) }
    }

    /// The loop has turned since the first of the pieces that were dropped.
    fn loop_has_turned(&self) {
        self.state().departed.dropped = 0;
    }

    /// The client has left some time ago.
    fn grace_is_over(&self, py: Python<'_>) -> PyResult<()> {
        {
            let mut state = self.state();
            state.departed.is_overdue = true;
            let is_unread = state.response.phase != Phase::Awaited;
            if !self.ground.cancels(state.departed, is_unread) {
                return Ok(());
            }
            // A task that sends is cancelled in its next `send`, where it has nothing else under way, if one comes in time.
            let is_sending = std::mem::take(&mut state.departed.is_sending);
            if is_sending && !self.ground.cancels_all() && state.active.renew_grace(&self.ground.shared.engine) {
                return Ok(());
            }
        }
        self.cancel(py)
    }
}

impl State {
    /// Whether the application was told to end its response, and has had the time for its last pieces.
    pub fn is_closed(&self) -> bool {
        self.closing.is_some_and(|since| clock::now() >= since.saturating_add(LAST_PIECES))
    }

    /// Whether a head is to go out before there is a piece of the body, when the application goes on to wait: one with a length
    /// goes with the body, which is on its way.
    pub fn owes_head(&self) -> bool {
        let is_due = |exchange: &Exchange| {
            let reply = &exchange.request.reply;
            reply.content_length().is_none() && !reply.head_sent()
        };
        self.response.phase == Phase::Started && self.active.exchange().is_some_and(is_due)
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
    pub fn reset(&self, exchange: Box<Exchange>, told: Told) {
        *self.state() = State { active: self.ground.shared.active(exchange), told, ..State::default() };
    }

    /// The task waits for something: from now on the connection is watched.
    pub fn goes_on(slf: &Bound<'_, Call>, begun: &Begun<'_>, scope: Bound<'_, PyDict>) -> PyResult<()> {
        let this = slf.get();
        let context = begun.context()?;
        this.ground.tasks.hold(begun, context.as_ref(), &slf.getattr(intern!(slf.py(), "ended"))?)?;
        {
            let mut state = this.state();
            state.run.scope = Some(scope.unbind());
            if state.active.is_away() {
                return Ok(()); // answered, and busy with something else
            }
            state.run.task = Some(begun.task.clone().unbind());
            if let (Some(exchange), Some(context)) = (state.active.exchange(), &context) {
                this.ground.shared.engine.knows_call_by(exchange.slot(), context.as_ptr() as u64);
            }
        }
        this.attend(slf);
        Call::send_head_soon(slf)
    }

    /// Has the head sent at the loop's next turn, if there is no body by then: `EventSource.onopen`, `fetch()` and timers of the
    /// first byte wait for it. To be called when the task goes on to wait, and for a head that comes later than that.
    pub fn send_head_soon(slf: &Bound<'_, Call>) -> PyResult<()> {
        {
            let state = slf.get().state();
            if !state.is_attended || !state.owes_head() {
                return Ok(());
            }
        }
        slf.get().ground.tasks.call_soon(&slf.getattr(intern!(slf.py(), "send_head"))?)
    }

    /// From now on the connection is watched.
    pub fn attend(&self, slf: &Bound<'_, Call>) {
        let mut state = self.state();
        if !std::mem::replace(&mut state.is_attended, true)
            && let Some(exchange) = state.active.exchange()
        {
            self.ground.shared.attend(exchange, slf.clone().into_any().unbind());
        }
    }

    /// Something has happened to the connection.
    pub fn on_readiness(slf: &Bound<'_, Call>, readiness: Readiness) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let mut futures = Vec::new();
        let Effects { departure, refusal, .. } = {
            let mut state = this.state();
            let effects = state.active.on(&this.ground.shared.engine, readiness);
            // A job may have opened a file that is to be sent.
            if effects.writable || readiness.writable {
                futures.append(&mut state.waits.senders);
            }
            if effects.readable {
                futures.append(&mut state.waits.receivers);
            }
            effects
        };
        if let Some(refusal) = refusal {
            this.refuse(py, &refusal)?;
        }
        if let Some(departure) = departure {
            Call::departed(slf, departure)?;
        }
        wake(py, futures)
    }

    /// The client has left, or seems to: what waits is told, and the task has a moment to end by itself.
    pub fn departed(slf: &Bound<'_, Call>, departure: Departure) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (futures, is_overdue) = {
            let mut state = this.state();
            state.received.gone = true;
            state.departed.since.get_or_insert_with(clock::now);
            let departure = match departure {
                Departure::Broken => state.active.begin_grace(&this.ground.shared.engine, departure),
                Departure::HalfClosed | Departure::Overdue => departure,
            };
            // Clients of event streams come again by themselves, and what they do not read costs: no grace is needed.
            let ends_at_once =
                !this.ground.cancels_all() && state.active.exchange().is_some_and(Exchange::streams_events);
            let is_overdue = departure == Departure::Overdue || state.departed.is_overdue || ends_at_once;
            (state.waits.take_all(), is_overdue)
        };
        wake(py, futures)?;
        if is_overdue {
            // After what the loop is to do already: a task that was told may end by itself.
            this.ground.tasks.call_soon(&slf.getattr(intern!(py, "grace_is_over"))?)?;
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
        cancel_task(py, task)
    }

    /// Cancels the task, whose client has left. Its response, if it has one, is not complete. The log has it if the client left some
    /// time ago.
    pub fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let (task, line, is_overdue) = {
            let state = self.state();
            let Some(exchange) = state.active.exchange() else { return Ok(()) };
            let is_overdue = state.departed.is_overdue && !exchange.streams_events();
            (state.run.task(py), request_line(exchange), is_overdue)
        };
        if is_overdue && task.is_some() {
            self.ground.tell_of_cancellation(py, &line);
        }
        cancel_task(py, task)
    }

    pub fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().run.task(py)
    }

    /// The request's body is not as it should be, or does not come: an answer, if there is none yet, and the end.
    pub fn refuse(&self, py: Python<'_>, refusal: &Refusal) -> PyResult<()> {
        let Some(mut exchange) = self.state().active.take() else { return Ok(()) };
        self.ground.shared.engine.refuse(&mut exchange, refusal);
        self.state().received.gone = true;
        self.conclude(py, exchange)
    }

    /// The task has ended: what it left open is closed. To be called in its context, where its errors are logged.
    pub fn finish(&self, py: Python<'_>, task: &Bound<'_, PyAny>, scope: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (exchange, known, is_closing) = {
            let mut state = self.state();
            let known = Known { gone: state.received.gone, late: state.run.is_late };
            (state.active.take(), known, state.closing.is_some())
        };
        let error = error_of(task);
        let Some(mut exchange) = exchange else {
            self.report_late_error(py, error, known.gone, scope);
            return Ok(());
        };
        let engine = &self.ground.shared.engine;
        // Libraries end event streams by themselves when the worker leaves (sse-starlette).
        let is_closing = is_closing || engine.is_draining() && exchange.streams_events();
        match error {
            _ if exchange.is_gone() || !is_closing || known.late => self.end_badly(py, &mut exchange, error, known),
            Some(error) if !is_excused(py, &error, true) => self.end_badly(py, &mut exchange, Some(error), known),
            _ => engine.close_stream(&mut exchange),
        }
        self.conclude(py, exchange)
    }

    /// The application has ended, and its response is not complete.
    #[cold]
    fn end_badly(&self, py: Python<'_>, exchange: &mut Exchange, error: Option<PyErr>, known: Known) {
        match error {
            Some(error) => failure::failed(py, &self.ground, exchange, error, known),
            None if known.gone || exchange.is_gone() => exchange.abort(),
            None => self.unanswered(py, exchange),
        }
    }

    /// An error after the response: only the log can be told.
    fn report_late_error(&self, py: Python<'_>, error: Option<PyErr>, gone: bool, scope: Option<&Bound<'_, PyDict>>) {
        let Some(error) = error else { return };
        let line = scope.map(scope_line).unwrap_or_default();
        if is_excused(py, &error, true) {
            let text = format!("{line}: request ended after its response: {error}");
            self.ground.shared.reporter.notify(py, Level::Debug, text);
        } else {
            let after = if gone { "after its client had left" } else { "after its response was sent" };
            self.ground.shared.reporter.error(py, format!("Error handling request {line} ({after})"), error);
        }
    }

    /// The application returned, and its response is not complete.
    #[cold]
    fn unanswered(&self, py: Python<'_>, exchange: &mut Exchange) {
        let line = request_line(exchange);
        exchange.app_failed();
        let text = match exchange.request.reply.head_sent() {
            true => "returned without completing its response",
            false if self.ground.maker().offers_pathsend => {
                "returned without a response; a middleware that compresses may have dropped http.response.pathsend, \
                 which asgi_pathsend offers"
            }
            false => "returned without a response",
        };
        exchange.give_up(500, "");
        self.ground.shared.reporter.notify(
            py,
            Level::Warning,
            format!("Error handling request {line}: the ASGI application {text}"),
        );
    }

    /// The request is over.
    pub fn conclude(&self, py: Python<'_>, exchange: Box<Exchange>) -> PyResult<()> {
        let (told, futures) = {
            let mut state = self.state();
            state.response.phase = Phase::Done;
            state.active.end();
            state.run.task = None;
            (std::mem::take(&mut state.told), state.waits.take_all())
        };
        let call = self.ground.end(py, exchange, told, None, None);
        drop(call);
        wake(py, futures)
    }

    /// All of the response was written.
    pub fn complete(&self, py: Python<'_>, exchange: Box<Exchange>, end: End) -> PyResult<()> {
        if let End::Short { missing } = end
            && !exchange.is_gone()
        {
            self.ground.shared.reporter.complain(py, &exchange, missing);
        }
        self.conclude(py, exchange)
    }
}

impl Stream for Py<Call> {
    fn ask<T>(&self, question: impl FnOnce(&Exchange) -> T) -> Option<T> {
        self.get().state().active.exchange().map(question)
    }

    fn tell(&self, py: Python<'_>) -> PyResult<bool> {
        let receivers = {
            let mut state = self.get().state();
            if state.active.is_away() || state.closing.is_some() {
                return Ok(false);
            }
            state.closing = Some(clock::now());
            state.received.gone = true;
            std::mem::take(&mut state.waits.receivers)
        };
        wake(py, receivers)?;
        Ok(true)
    }

    fn force(&self, py: Python<'_>) -> PyResult<()> {
        cancel_task(py, self.get().task(py))
    }
}

fn cancel_task(py: Python<'_>, task: Option<Py<PyAny>>) -> PyResult<()> {
    task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
}
