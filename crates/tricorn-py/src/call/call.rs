//! One request under way.
//!
//! ```text
//!   Begun ──start──▶ Streaming ──write──▶ … ──end──▶ Over
//!     │   └─start, all of the body with it─▶ Complete ──end──▶ Over
//!     └─── take_socket ──▶ Taken ──end──▶ Over           abort, refuse, fail and a client that leaves: Over, from anywhere
//! ```
//!
//! The exchange is taken out of the state while something is done with it: Python code that comes back here meanwhile
//! finds a call that is over, and no lock.
use super::ground::Ground;
use crate::loops::Stream;
use crate::panics::{self, Panicked};
use crate::report::{is_request_timeout, told_to_end};
use crate::sync::lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Active, Departure, Effects, Exchange, Readiness, Sent};
use tricorn_proto::message::Refusal;
use tricorn_proto::response::End;

// What writes come to (`tricorn.gateway.call`).
const ACCEPTED: u8 = 0;
const BEHIND: u8 = 1;
const GONE: u8 = 2;
const EXCESS: u8 = 3;

/// A request and its answer.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Call {
    pub ground: Arc<Ground>,
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub active: Active,
    /// The object that is told what happens.
    pub listener: Option<Py<PyAny>>,
    /// Of `before`, for `after`.
    pub token: Option<Py<PyAny>>,
    /// All of the answer was written with its head.
    end: Option<End>,
    /// The application was told to end its response, since the worker leaves.
    is_closing: bool,
}

/// What a listener is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Readable,
    Writable,
    HangUp,
    Gone,
}

impl Event {
    fn method(self, py: Python<'_>) -> &Bound<'_, PyString> {
        match self {
            Event::Readable => intern!(py, "on_readable"),
            Event::Writable => intern!(py, "on_writable"),
            Event::HangUp => intern!(py, "on_hangup"),
            Event::Gone => intern!(py, "on_gone"),
        }
    }
}

/// What a write came to, before its consequences.
pub enum Written {
    Accepted,
    OverMark,
    Gone,
    Excess,
}

impl From<Sent> for Written {
    fn from(sent: Sent) -> Written {
        match sent {
            Sent::Accepted => Written::Accepted,
            Sent::OverMark => Written::OverMark,
            Sent::Gone => Written::Gone,
        }
    }
}

impl Call {
    pub fn new(ground: Arc<Ground>, exchange: Box<Exchange>) -> Call {
        let state = State { active: ground.shared.active(exchange), ..State::default() };
        Call { ground, state: Mutex::new(state) }
    }

    #[inline]
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn is_over(&self) -> bool {
        self.state().active.is_away()
    }

    /// The slot of its exchange, while it is not over.
    pub fn slot(&self) -> Option<usize> {
        self.state().active.exchange().map(Exchange::slot)
    }

    pub fn take(&self) -> Option<Box<Exchange>> {
        self.state().active.take()
    }

    pub fn take_with_end(&self) -> Option<(Box<Exchange>, Option<End>)> {
        let mut state = self.state();
        let exchange = state.active.take()?;
        Some((exchange, state.end.take()))
    }

    /// Works on the exchange, which is put back. Raises if there is none.
    pub fn with<T>(&self, work: impl FnOnce(&Call, &mut Exchange) -> PyResult<T>) -> PyResult<T> {
        let mut exchange = self.take().ok_or_else(over)?;
        let result = work(self, &mut exchange);
        self.state().active.put(exchange);
        result
    }

    /// Writes some of the answer, and notes its end if that is written with it.
    pub fn working(
        &self,
        work: impl FnOnce(&mut Option<End>, &mut Exchange) -> PyResult<Written>,
    ) -> PyResult<Written> {
        let Some((mut exchange, mut end)) = self.take_with_end() else { return Ok(Written::Gone) };
        let result = panics::caught(|| work(&mut end, &mut exchange)).unwrap_or_else(|Panicked(text)| {
            Python::attach(|py| self.ground.shared.reporter.panicked(py, text));
            exchange.abort();
            Ok(Written::Gone)
        });
        let mut state = self.state();
        state.active.put(exchange);
        state.active.wrote(&self.ground.shared.engine);
        state.end = end;
        result
    }

    /// The same of a piece of so many bytes with more to come. One that has kept the loop for long enough is called behind until the
    /// loop's other callbacks had their turn.
    pub fn written_piece(slf: &Bound<'_, Call>, written: Written, bytes: usize) -> PyResult<u8> {
        let shared = &slf.get().ground.shared;
        if matches!(written, Written::Accepted) && shared.goes_on(bytes) && shared.gives_way() {
            shared.call_soon(&slf.getattr(intern!(slf.py(), "caught_up"))?, None)?;
            return Ok(BEHIND);
        }
        Call::written(slf, written)
    }

    /// What follows a write, and what its caller is told of it.
    pub fn written(slf: &Bound<'_, Call>, written: Written) -> PyResult<u8> {
        let gone = || Call::leave_soon(slf).map(|()| GONE);
        match written {
            Written::Accepted => {
                let ends = {
                    let state = slf.get().state();
                    state.is_closing && state.active.exchange().is_some_and(Exchange::is_between_events)
                };
                if ends {
                    slf.get().ground.shared.call_soon(&slf.getattr(intern!(slf.py(), "closed"))?, None)?;
                }
                Ok(ACCEPTED)
            }
            Written::Excess => Ok(EXCESS),
            Written::Gone => gone(),
            Written::OverMark => {
                let this = slf.get();
                let mut state = this.state();
                if state.active.is_away() {
                    return Ok(GONE);
                }
                if state.active.is_stalled() {
                    return Ok(BEHIND);
                }
                let stalled = state.active.stall(&this.ground.shared.engine);
                drop(state);
                match stalled {
                    None => Ok(BEHIND),
                    Some(Sent::Gone) => gone(),
                    Some(_) => Ok(ACCEPTED),
                }
            }
        }
    }

    /// Something has happened to the connection.
    pub fn on_readiness(slf: &Bound<'_, Call>, readiness: Readiness) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let effects = this.state().active.on(&this.ground.shared.engine, readiness);
        let Effects { readable, writable, departure, refusal } = effects;
        if let Some(refusal) = refusal {
            return this.refuse_body(py, &refusal);
        }
        match departure {
            Some(Departure::Broken | Departure::Overdue) => return Call::client_left(slf),
            Some(Departure::HalfClosed) => this.tell(py, Event::HangUp),
            None => {}
        }
        if readable {
            this.tell(py, Event::Readable);
        }
        if writable {
            this.tell(py, Event::Writable);
        }
        Ok(())
    }

    /// Tells the listener, while the call is not over. What it raises is logged.
    pub fn tell(&self, py: Python<'_>, event: Event) {
        let listener = {
            let state = self.state();
            if state.active.is_away() {
                return;
            }
            state.listener.as_ref().map(|listener| listener.clone_ref(py))
        };
        self.tell_this(py, listener, event);
    }

    fn tell_this(&self, py: Python<'_>, listener: Option<Py<PyAny>>, event: Event) {
        let Some(listener) = listener else { return };
        let name = event.method(py);
        if let Err(error) = listener.bind(py).call_method0(name) {
            self.ground.shared.reporter.error(py, format!("Exception in {name}"), error);
        }
    }

    /// The worker leaves: the response ends here, and the listener is told that its client has left.
    pub fn close_stream(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, |exchange| self.ground.shared.engine.close_stream(exchange))
    }

    /// The client has left: the call is over, and its listener told so.
    pub fn client_left(slf: &Bound<'_, Call>) -> PyResult<()> {
        slf.get().finish(slf.py(), Exchange::abort)
    }

    /// The same in a turn of its own, since the listener is in the midst of something.
    pub fn leave_soon(slf: &Bound<'_, Call>) -> PyResult<()> {
        slf.get().ground.shared.call_soon(&slf.getattr(intern!(slf.py(), "left"))?, None)
    }

    /// Tells of a departure that was found while the listener is in the midst of something.
    pub fn depart_soon(slf: &Bound<'_, Call>, departure: Departure) -> PyResult<()> {
        match departure {
            Departure::HalfClosed => {
                slf.get().ground.shared.call_soon(&slf.getattr(intern!(slf.py(), "hung_up"))?, None)
            }
            Departure::Overdue | Departure::Broken => Call::leave_soon(slf),
        }
    }

    /// The request's body is not as it should be, or does not come: an answer, if there is none yet, and the end.
    pub fn refuse_body(&self, py: Python<'_>, refusal: &Refusal) -> PyResult<()> {
        self.finish(py, |exchange| self.ground.shared.engine.refuse(exchange, refusal))
    }

    /// The request, which is at this slot, is over `request_timeout` or was cancelled.
    pub fn is_late(&self, py: Python<'_>, slot: usize) -> PyResult<()> {
        let listener = self.state().listener.as_ref().map(|listener| listener.clone_ref(py));
        self.failed(py, told_to_end(py, &self.ground.shared.engine, slot))?;
        self.tell_this(py, listener, Event::Gone);
        Ok(())
    }

    fn finish(&self, py: Python<'_>, last: impl FnOnce(&mut Exchange)) -> PyResult<()> {
        let (exchange, listener) = {
            let mut state = self.state();
            (state.active.take(), state.listener.as_ref().map(|listener| listener.clone_ref(py)))
        };
        let Some(mut exchange) = exchange else { return Ok(()) };
        last(&mut exchange);
        self.conclude(py, exchange);
        self.tell_this(py, listener, Event::Gone);
        Ok(())
    }

    /// An exception left the application, or was meant for it.
    #[cold]
    pub fn failed(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        let reporter = &self.ground.shared.reporter;
        let Some(mut exchange) = self.take() else {
            reporter.error(py, "Exception in a finished request".into(), error);
            return Ok(());
        };
        let is_late = is_request_timeout(py, &error);
        reporter.failed(py, &mut exchange, error, is_late);
        self.conclude(py, exchange);
        Ok(())
    }

    /// The answer is complete, or given up.
    pub fn conclude(&self, py: Python<'_>, exchange: Box<Exchange>) {
        let (listener, token) = {
            let mut state = self.state();
            state.active.end();
            (state.listener.take(), state.token.take())
        };
        let call = self.ground.end(py, exchange, token);
        drop((call, listener));
    }
}

impl Stream for Py<Call> {
    fn ask<T>(&self, question: impl FnOnce(&Exchange) -> T) -> Option<T> {
        self.get().state().active.exchange().map(question)
    }

    /// Its listener knows no notice: its client is gone, but not within an event.
    fn tell(&self, py: Python<'_>) -> PyResult<bool> {
        let is_between = {
            let mut state = self.get().state();
            if state.active.is_away() || std::mem::replace(&mut state.is_closing, true) {
                return Ok(false);
            }
            state.active.exchange().is_some_and(Exchange::is_between_events)
        };
        if is_between {
            self.force(py)?;
        }
        Ok(true)
    }

    fn force(&self, py: Python<'_>) -> PyResult<()> {
        self.get().close_stream(py)
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the request is over")
}
