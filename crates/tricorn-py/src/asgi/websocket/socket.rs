//! The state of a WebSocket, what happens to it from outside, and how it ends.
use super::super::failure::{self, Known, client_disconnected, is_cancelled, is_excused};
use super::super::ground::Ground;
use super::super::parts::{Departed, Run, Waits};
use super::events::{self, Event};
use crate::loops::{AfterTurn, Begun, LoopFuture, Told, When, error_of};
use crate::report::{Level, request_line, scope_line};
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Active, Departure, Exchange, Readiness, WebSocket, WebSocketIo};
use tricorn_proto::websocket::handshake::Asked;

pub use tricorn_proto::websocket::close::ABNORMAL;

pub type Link = WebSocket<Event>;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Asked,
    Open,
    Denying,
    /// By the application, or refused.
    Closed,
}

#[derive(Default)]
pub struct State {
    /// While the connection lives.
    pub active: Active,
    /// Once it is accepted; longer than the connection, for what was not received yet.
    pub link: Option<Box<Link>>,
    pub asked: Option<Box<Asked>>,
    pub phase: Phase,
    /// `websocket.connect` was received.
    pub is_connected: bool,
    /// The client left before it was answered, or was refused.
    pub has_left: bool,
    pub departed: Departed,
    pub waits: Waits<LoopFuture>,
    /// For the next wait.
    future: Option<Py<LoopFuture>>,
    told: Told,
    run: Run,
    /// The application has closed, or refused.
    pub is_closed_by_application: bool,
    is_attended: bool,
    /// The loop was asked to call `flush`.
    is_flushed_soon: bool,
}

/// A WebSocket as `receive` and `send` are bound to it.
#[pyclass(frozen, module = "tricorn._core", name = "WebSocketCall")]
pub struct Socket {
    pub ground: Arc<Ground>,
    state: Mutex<State>,
}

#[pymethods]
impl Socket {
    /// The task has ended.
    fn ended(slf: &Bound<'_, Socket>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        slf.get().ground.tasks.forget(task)?;
        let scope = slf.get().state().run.scope.take();
        Socket::finish(slf, task, scope.as_ref().map(|scope| scope.bind(slf.py())))
    }

    /// The connection has ended some time ago.
    fn grace_is_over(&self, py: Python<'_>) -> PyResult<()> {
        let timer = {
            let mut state = self.state();
            state.departed.is_overdue = true;
            let is_unread = state.link.is_some();
            if !self.ground.cancels(state.departed, is_unread) {
                return Ok(());
            }
            state.run.timer.take()
        };
        drop(timer);
        self.give_up(py)
    }

    /// Sends what was held back.
    fn flush(slf: &Bound<'_, Socket>) -> PyResult<()> {
        slf.get().state().is_flushed_soon = false;
        Socket::flush_held(slf).map(drop)
    }
}

impl Socket {
    pub fn new(ground: Arc<Ground>, exchange: Box<Exchange>, asked: Asked, told: Told) -> Socket {
        let active = ground.shared.active(exchange);
        let state = State { active, asked: Some(Box::new(asked)), told, ..State::default() };
        Socket { ground, state: Mutex::new(state) }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn take(&self) -> Option<Box<Exchange>> {
        self.state().active.take()
    }

    /// The task waits for something.
    pub fn goes_on(slf: &Bound<'_, Socket>, begun: &Begun<'_>, scope: Bound<'_, PyDict>) -> PyResult<()> {
        let this = slf.get();
        let context = begun.context()?;
        this.ground.tasks.hold(begun, context.as_ref(), &slf.getattr(intern!(slf.py(), "ended"))?)?;
        let has_left = {
            let mut state = this.state();
            if let (Some(exchange), Some(context)) = (state.active.exchange(), &context) {
                this.ground.shared.engine.knows_call_by(exchange.slot(), context.as_ptr() as u64);
            }
            state.run.task = Some(begun.task.clone().unbind());
            state.run.scope = Some(scope.unbind());
            state.active.is_away() && !state.is_closed_by_application
        };
        this.attend(slf);
        // The client may have left while the task took its first step.
        if has_left { Socket::begin_grace(slf) } else { Ok(()) }
    }

    /// Works on the connection, which is elsewhere meanwhile. `None`: it is over, or not accepted.
    pub fn with<T>(
        slf: &Bound<'_, Socket>,
        work: impl FnOnce(&mut WebSocketIo<'_>, &mut Link) -> T,
    ) -> PyResult<Option<T>> {
        Socket::with_ring(slf, When::Soon, work)
    }

    /// The same; coroutines that wait for what comes of it go on `when`.
    fn with_ring<T>(
        slf: &Bound<'_, Socket>,
        when: When,
        work: impl FnOnce(&mut WebSocketIo<'_>, &mut Link) -> T,
    ) -> PyResult<Option<T>> {
        let (this, ground) = (slf.get(), &slf.get().ground);
        let (mut exchange, mut link) = {
            let mut state = this.state();
            if state.link.is_none() {
                return Ok(None);
            }
            match (state.active.take(), state.link.take()) {
                (Some(exchange), Some(link)) => (exchange, link),
                (_, link) => {
                    state.link = link;
                    return Ok(None);
                }
            }
        };
        let mut buffers = ground.take_shelf();
        let result = work(
            &mut WebSocketIo { engine: &ground.shared.engine, exchange: &mut exchange, buffers: &mut buffers },
            &mut link,
        );
        ground.give_shelf(buffers);
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
                state.active.put(exchange);
                drop(state);
                wake(slf.py(), futures, when)?;
                return Ok(Some(result));
            }
            futures
        };
        // Before they go on: they may find that it is over.
        Socket::conclude(slf, exchange, 101)?;
        wake(slf.py(), futures, when)?;
        Ok(Some(result))
    }

    /// Whether there was something to be sent.
    pub fn flush_held(slf: &Bound<'_, Socket>) -> PyResult<bool> {
        let is_held = slf.get().state().link.as_ref().is_some_and(|link| link.is_held());
        if is_held {
            Socket::with(slf, |desk, link| link.flush(desk))?;
        }
        Ok(is_held)
    }

    /// Something has happened to the connection.
    pub fn on_readiness(slf: &Bound<'_, Socket>, readiness: Readiness) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let worked = Socket::with_ring(slf, When::Now, |desk, link| {
            if link.on_readiness(desk, readiness) {
                link.read(desk, |kind, data| events::event(py, kind, data));
            }
        })?;
        if worked.is_some() {
            return Ok(());
        }
        // It is not accepted: a request that waits for its answer, or is answered with a denial.
        let (effects, futures) = {
            let mut state = this.state();
            let effects = state.active.on(&this.ground.shared.engine, readiness);
            let futures = if effects.writable { std::mem::take(&mut state.waits.senders) } else { Vec::new() };
            (effects, futures)
        };
        wake(py, futures, When::Now)?;
        effects.departure.map_or(Ok(()), |departure| Socket::departed(slf, departure))
    }

    /// The client has left, or seems to, before it was answered.
    #[cold]
    pub fn departed(slf: &Bound<'_, Socket>, departure: Departure) -> PyResult<()> {
        let futures = {
            let mut state = slf.get().state();
            if departure == Departure::Broken
                && let Some(exchange) = state.active.exchange_mut()
            {
                exchange.client_left();
            }
            state.has_left = true;
            state.waits.take_all()
        };
        wake(slf.py(), futures, When::Now)?;
        Socket::begin_grace(slf)
    }

    /// From now on the connection is watched.
    pub fn attend(&self, slf: &Bound<'_, Socket>) {
        let mut state = self.state();
        if !state.is_attended
            && let Some(exchange) = state.active.exchange()
        {
            self.ground.shared.attend(exchange, slf.clone().into_any().unbind());
            state.is_attended = true;
        }
    }

    /// When its request began, if it is open (monotonic nanoseconds).
    pub fn open_since(&self) -> Option<u64> {
        let state = self.state();
        let exchange = state.active.exchange()?;
        (state.phase == Phase::Open).then_some(exchange.timing.started)
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

    pub fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.state().run.task(py)
    }

    /// Cancels the task, whose client has left.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        let scope = self.state().run.scope.as_ref().map(|scope| scope.clone_ref(py));
        if let Some(scope) = scope {
            self.ground.tell_of_cancellation(py, &scope_line(scope.bind(py)));
        }
        self.cancel(py)
    }

    /// The application was told that the connection is over, and asks again: cancelled if it has had its grace.
    #[cold]
    pub fn told_again(&self, py: Python<'_>) -> PyResult<()> {
        let is_overdue = self.state().departed.is_overdue;
        if is_overdue { self.give_up(py) } else { Ok(()) }
    }

    /// What `send` raises when the client is gone: at once for the first time, and later after the loop's other callbacks.
    #[cold]
    pub fn disconnected(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let was_told = std::mem::replace(&mut self.state().departed.is_told, true);
        if !was_told {
            return Err(client_disconnected(py));
        }
        self.told_again(py)?;
        AfterTurn::of(py, |py| Err(client_disconnected(py)))
    }

    fn cancel(&self, py: Python<'_>) -> PyResult<()> {
        let task = self.task(py);
        task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
    }

    /// The client is gone: the application has a moment to end by itself.
    fn begin_grace(slf: &Bound<'_, Socket>) -> PyResult<()> {
        let this = slf.get();
        if !this.state().run.may_be_timed() {
            return Ok(());
        }
        let is_over = slf.getattr(intern!(slf.py(), "grace_is_over"))?;
        let timer = this.ground.tasks.call_later(slf.py(), this.ground.shared.grace_seconds(), &is_over)?;
        this.state().run.timer = Some(timer);
        Ok(())
    }

    /// The connection is over.
    pub fn conclude(slf: &Bound<'_, Socket>, exchange: Box<Exchange>, status: u16) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (told, futures, sent, by_application) = {
            let mut state = this.state();
            state.phase = Phase::Closed;
            state.active.end();
            let sent = state.link.as_ref().map(|link| link.bytes_sent(&exchange));
            (std::mem::take(&mut state.told), state.waits.take_all(), sent, state.is_closed_by_application)
        };
        let call = this.ground.end(py, exchange, told, Some(status), sent);
        drop(call);
        wake(py, futures, When::Soon)?;
        if by_application { Ok(()) } else { Socket::begin_grace(slf) }
    }

    /// The task has ended: what it left open is closed. To be called in its context, where its errors are logged.
    pub fn finish(slf: &Bound<'_, Socket>, task: &Bound<'_, PyAny>, scope: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
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
                this.report(py, error.as_ref(), scope);
                let code = match &error {
                    None => NORMAL,
                    Some(error) if is_cancelled(py, error) => GOING_AWAY,
                    Some(_) => INTERNAL_ERROR,
                };
                Socket::close(slf, Some(code), "").map(drop)
            }
            Phase::Closed => {
                this.report(py, error.as_ref(), scope);
                Ok(())
            }
            Phase::Asked | Phase::Denying => Socket::unanswered(slf, error),
        }
    }

    /// The application has ended without an answer, or within it.
    #[cold]
    fn unanswered(slf: &Bound<'_, Socket>, error: Option<PyErr>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (exchange, known) = {
            let mut state = this.state();
            (state.active.take(), Known { gone: state.has_left, late: state.run.is_late })
        };
        let Some(mut exchange) = exchange else { return Ok(()) };
        match error {
            Some(error) => failure::failed(py, &this.ground, &mut exchange, error, known),
            None if known.gone => exchange.abort(),
            None => {
                exchange.app_failed();
                let line = request_line(&exchange);
                let text = "the ASGI application returned without accepting or closing the WebSocket";
                let text = format!("Error handling request {line}: {text}");
                this.ground.shared.reporter.notify(py, Level::Warning, text);
                exchange.give_up(500, "");
            }
        }
        let status = exchange.request.reply.status_code();
        Socket::conclude(slf, exchange, status)
    }

    /// Logs what the application let out, if it is not what became of a client's departure.
    fn report(&self, py: Python<'_>, error: Option<&PyErr>, scope: Option<&Bound<'_, PyDict>>) {
        let Some(error) = error else { return };
        let line = scope.map(scope_line).unwrap_or_default();
        let reporter = &self.ground.shared.reporter;
        if is_excused(py, error, true) {
            reporter.notify(py, Level::Debug, format!("{line}: WebSocket closed; request ended"));
        } else {
            reporter.error(py, format!("Error handling request {line}"), error.clone_ref(py));
        }
    }

    /// Output is held back while there is more to be answered; if the application turns to something else it goes out all the
    /// same, at the loop's next turn.
    pub fn see_to_held(slf: &Bound<'_, Socket>) -> PyResult<()> {
        {
            let mut state = slf.get().state();
            let is_held = state.link.as_ref().is_some_and(|link| link.is_held());
            if !is_held || std::mem::replace(&mut state.is_flushed_soon, true) {
                return Ok(());
            }
        }
        slf.get().ground.tasks.call_soon(&slf.getattr(intern!(slf.py(), "flush"))?)
    }

    /// Begins the closing handshake. Whether it was not begun before.
    pub fn close(slf: &Bound<'_, Socket>, code: Option<u16>, reason: &str) -> PyResult<bool> {
        let py = slf.py();
        slf.get().state().phase = Phase::Closed;
        let outcome = Socket::with(slf, |desk, link| {
            let outcome = link.close(desk, code, reason);
            if outcome.is_ok() && link.wants_more() {
                link.go_on(desk, |kind, data| events::event(py, kind, data));
            }
            outcome
        })?;
        Ok(matches!(outcome, Some(Ok(()))))
    }

    /// A future to wait for.
    pub fn future(&self, py: Python<'_>) -> PyResult<Py<LoopFuture>> {
        let spare = self.state().future.take();
        spare.map_or_else(|| self.ground.tasks.loop_future(py), Ok)
    }

    /// It was woken, and its task knows.
    pub fn keep_future(&self, future: Py<LoopFuture>) {
        future.get().reset();
        let before = self.state().future.replace(future);
        drop(before);
    }

    /// The code and reason of `websocket.disconnect`, if that is what comes next.
    pub fn goodbye(state: &State) -> Option<(u16, String)> {
        if state.has_left {
            return Some((ABNORMAL, String::new()));
        }
        let goodbye = state.link.as_ref()?.goodbye()?;
        Some((goodbye.code, goodbye.reason.to_string()))
    }
}

/// What has waited goes on.
#[inline]
fn wake(py: Python<'_>, futures: Vec<Py<LoopFuture>>, when: When) -> PyResult<()> {
    futures.iter().try_for_each(|future| LoopFuture::wake(future.bind(py), when))
}

pub const NORMAL: u16 = 1000;
const GOING_AWAY: u16 = 1001;
const INTERNAL_ERROR: u16 = 1011;
