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
use super::gateway::Ground;
use super::head;
use super::room::State;
use crate::panics::{self, Panicked};
use crate::pieces::Piece;
use crate::report::{is_request_timeout, request_line};
use crate::sync::lock;
use crate::text::latin1;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Exchange, Sent};
use tricorn_proto::exchange::End;
use tricorn_proto::http1::{Framing, Method, Scheme};
use tricorn_proto::peer::client_of;

// What writes come to (`tricorn.gateway.call`).
pub const ACCEPTED: u8 = 0;
pub const BEHIND: u8 = 1;
pub const GONE: u8 = 2;
const EXCESS: u8 = 3;

/// A request and its answer.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Call {
    pub ground: Arc<Ground>,
    state: Mutex<State>,
}

#[pymethods]
impl Call {
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(|_, exchange| self.ground.heads().line(py, exchange))
    }

    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.with(|_, exchange| self.ground.heads().fields(py, exchange))
    }

    #[getter]
    fn scheme<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|_, exchange| {
            Ok(match exchange.request.head.scheme {
                Scheme::Http => intern!(py, "http").clone(),
                Scheme::Https => intern!(py, "https").clone(),
            })
        })
    }

    #[getter]
    fn peer(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        self.with(|_, exchange| {
            let ends = super::gateway::kept(exchange).map(|kept| &kept.ends);
            Ok(ends.and_then(|ends| ends.client.as_ref()).map(|client| client.clone_ref(py)))
        })
    }

    #[getter]
    fn is_trusted(&self) -> PyResult<bool> {
        self.with(|_, exchange| Ok(exchange.client.trusted))
    }

    #[getter]
    fn forwarded<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.with(|_, exchange| {
            if !exchange.client.trusted {
                return Ok(None);
            }
            let request = &*exchange.request;
            let client = client_of(&request.head, request.head_bytes(), &self.ground.engine.config().policy.trust);
            // What stands there need not be an address.
            let client =
                client.filter(|client| str::from_utf8(client).is_ok_and(|text| text.parse::<IpAddr>().is_ok()));
            client.map(|client| latin1(py, client)).transpose()
        })
    }

    #[getter]
    fn has_body(&self) -> PyResult<bool> {
        self.with(|_, exchange| Ok(exchange.is_partial() || !exchange.request.body.is_empty()))
    }

    #[getter]
    fn length(&self) -> PyResult<Option<u64>> {
        self.with(|_, exchange| {
            Ok(match exchange.request.head.framing {
                Framing::None => Some(0),
                Framing::Length(length) => Some(length),
                Framing::Chunked => None,
            })
        })
    }

    fn read<'py>(slf: &Bound<'py, Call>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        super::body::read(slf)
    }

    fn start(
        slf: &Bound<'_, Call>,
        status: u16,
        reason: &Bound<'_, PyString>,
        fields: &Bound<'_, PyAny>,
        chunk: &Bound<'_, PyBytes>,
    ) -> PyResult<u8> {
        let this = slf.get();
        let sent = this.working(|told, exchange| {
            let reply = &mut exchange.request.reply;
            head::set(reply, status, reason, fields)?;
            let promised = reply.content_length();
            let length = chunk.as_bytes().len() as u64;
            let is_bare = exchange.request.head.kind == Method::Head || matches!(status, 204 | 205 | 304);
            if !is_bare && promised.is_some_and(|promised| length > promised) {
                return Ok(Written::Excess);
            }
            let is_whole = is_bare || promised == Some(length);
            exchange.foresee_close_unread(is_whole);
            if is_whole {
                exchange.answered();
                exchange.send_at_once();
                told.end = Some(Piece::all(chunk).write_last(&this.ground.engine, exchange));
                return Ok(if exchange.is_gone() { Written::Gone } else { Written::Accepted });
            }
            Ok(Piece::all(chunk).write(&this.ground.engine, exchange, None).into())
        })?;
        this.written(slf, sent)
    }

    fn write(slf: &Bound<'_, Call>, chunk: &Bound<'_, PyBytes>) -> PyResult<u8> {
        let this = slf.get();
        let length = chunk.as_bytes().len() as u64;
        let sent = this.working(|told, exchange| {
            let reply = &exchange.request.reply;
            if !reply.head_sent() {
                return Err(PyRuntimeError::new_err("write was called before start"));
            }
            let left = match (told.end, reply.content_length()) {
                (Some(_), _) => Some(0),
                (None, promised) => promised.map(|promised| promised.saturating_sub(reply.body_sent())),
            };
            match left {
                Some(left) if length > left => Ok(Written::Excess),
                _ if length == 0 => Ok(Written::Accepted),
                _ => Ok(Piece::all(chunk).write(&this.ground.engine, exchange, None).into()),
            }
        })?;
        this.written(slf, sent)
    }

    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        let Some((mut exchange, end)) = self.take_with_end() else { return Ok(0) };
        let mut missing = 0;
        if !exchange.is_elsewhere() {
            if exchange.timing.answered == 0 {
                exchange.answered();
            }
            if let End::Short { missing: bytes } = end.unwrap_or_else(|| exchange.end())
                && !exchange.is_gone()
            {
                missing = bytes;
            }
        }
        self.conclude(py, exchange)?;
        Ok(missing)
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        let Some(mut exchange) = self.take() else { return Ok(()) };
        exchange.abort();
        self.conclude(py, exchange)
    }

    fn refuse(&self, py: Python<'_>, status: u16, message: &str) -> PyResult<()> {
        let Some(mut exchange) = self.take() else { return Ok(()) };
        give_up(&mut exchange, status, message);
        self.conclude(py, exchange)
    }

    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.failed(py, PyErr::from_value(error))
    }

    fn take_socket<'py>(&self, py: Python<'py>) -> PyResult<(RawFd, Bound<'py, PyBytes>)> {
        self.with(|_, exchange| {
            let fd = tricorn_io::duplicate(exchange.socket().as_raw_fd())
                .map_err(|error| PyOSError::new_err(error.to_string()))?;
            let unread = self.ground.engine.let_go(exchange);
            Ok((fd.into_raw_fd(), PyBytes::new(py, &unread)))
        })
    }

    /// The client was found to be gone, or has hung up some time ago; in a turn of its own.
    fn left(slf: &Bound<'_, Call>) -> PyResult<()> {
        super::room::client_left(slf)
    }

    /// The client was found to have closed its sending side; in a turn of its own.
    fn hung_up(slf: &Bound<'_, Call>) -> PyResult<()> {
        super::room::hang_up(slf)
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
        let state = State { exchange: Some(exchange), ..State::default() };
        Call { ground, state: Mutex::new(state) }
    }

    #[inline]
    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    pub fn is_over(&self) -> bool {
        self.state().exchange.is_none()
    }

    fn take(&self) -> Option<Box<Exchange>> {
        self.state().exchange.take()
    }

    fn take_with_end(&self) -> Option<(Box<Exchange>, Option<End>)> {
        let mut state = self.state();
        let exchange = state.exchange.take()?;
        Some((exchange, state.end.take()))
    }

    /// Works on the exchange, which is put back. Raises if there is none.
    pub fn with<T>(&self, work: impl FnOnce(&Call, &mut Exchange) -> PyResult<T>) -> PyResult<T> {
        let mut exchange = self.take().ok_or_else(over)?;
        let result = work(self, &mut exchange);
        self.state().exchange = Some(exchange);
        result
    }

    fn working(&self, work: impl FnOnce(&mut Told, &mut Exchange) -> PyResult<Written>) -> PyResult<Written> {
        let Some((mut exchange, end)) = self.take_with_end() else { return Ok(Written::Gone) };
        let mut told = Told { end };
        let result = panics::caught(|| work(&mut told, &mut exchange)).unwrap_or_else(|Panicked(text)| {
            Python::attach(|py| self.ground.reporter.panicked(py, text));
            exchange.abort();
            Ok(Written::Gone)
        });
        let mut state = self.state();
        (state.exchange, state.end) = (Some(exchange), told.end);
        result
    }

    fn written(&self, slf: &Bound<'_, Call>, written: Written) -> PyResult<u8> {
        match written {
            Written::Accepted => Ok(ACCEPTED),
            Written::Excess => Ok(EXCESS),
            Written::OverMark => super::room::wait(slf),
            Written::Gone => {
                super::room::leave_soon(slf)?;
                Ok(GONE)
            }
        }
    }

    /// An exception left the application, or was meant for it.
    #[cold]
    pub fn failed(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        let Some(mut exchange) = self.take() else {
            self.ground.reporter.error(py, "Exception in a request that is over".into(), error);
            return Ok(());
        };
        let line = request_line(&exchange);
        let is_late = is_request_timeout(py, &error);
        exchange.app_failed();
        give_up(&mut exchange, if is_late { 504 } else { 500 }, "");
        let text = if is_late {
            let limit = self.ground.engine.request_timeout();
            format!("Error handling request {line}: it was ended after {limit} s (request_timeout)")
        } else {
            format!("Error handling request {line}")
        };
        self.ground.reporter.error(py, text, error);
        self.conclude(py, exchange)
    }

    /// The answer is complete, or given up: the log, the hooks, and the connection for the next request.
    pub fn conclude(&self, py: Python<'_>, mut exchange: Box<Exchange>) -> PyResult<()> {
        if exchange.timing.answered == 0 {
            exchange.answered();
        }
        self.ground.engine.conclude_call(exchange.slot());
        exchange.settle();
        let (listener, token, timer, attended) = {
            let mut state = self.state();
            state.patience = None;
            (state.listener.take(), state.token.take(), state.timer.take(), state.attended)
        };
        self.ground.log(&exchange);
        self.ground.after(py, &exchange, token);
        let left = if attended { self.ground.calls.take(exchange.slot()) } else { None };
        self.ground.give_back(exchange);
        drop((left, listener));
        timer.map_or(Ok(()), |timer| timer.call_method0(py, intern!(py, "cancel")).map(drop))
    }
}

/// What has been said of an answer.
pub struct Told {
    pub end: Option<End>,
}

/// The server's own page if nothing was sent yet; the connection is closed.
pub fn give_up(exchange: &mut Exchange, status: u16, message: &str) {
    if exchange.request.reply.head_sent() || exchange.is_elsewhere() {
        exchange.abort();
    } else {
        exchange.answer_error(status, message);
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the request is over")
}
