//! One connection as its protocol sees it: an `asyncio.Transport`.
//!
//! ```text
//!   Idle ──request──▶ Busy ──response and request complete──▶ Idle
//!     │                 ├──101──▶ Tunnel ──either end──▶ Closed
//!     └──closed─────────┴──close(), client gone, refused──▶ Closed
//! ```
//!
//! Python is never run while the state is locked.
use super::gateway::{Ending, Ground, Told};
use super::outcome::Outcome;
use crate::ends::{local_address, peer_address};
use crate::report::request_line;
use crate::sync::lock;
use pyo3::exceptions::{PyConnectionResetError, PyRuntimeError, PyTimeoutError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::clock::{self, MILLI};
use tricorn_io::{Due, Engine, Exchange, Patience, Sent, Timer, What};
use tricorn_proto::exchange::{Dictation, Left};
use tricorn_proto::http1::Refusal;

/// How far the request has come to the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reading {
    /// The client waits to be told that it may send its body.
    Asked,
    /// There is more to come.
    Open,
    /// All of it is there.
    #[default]
    Done,
}

#[derive(Default)]
pub struct State {
    /// While a request is under way.
    pub exchange: Option<Box<Exchange>>,
    pub dictation: Dictation,
    pub reading: Reading,
    /// The protocol is given the body in chunks.
    pub chunked: bool,
    /// The protocol wants no more for now.
    pub paused: bool,
    /// The client is far behind: the protocol was told to pause.
    pub patience: Option<Patience>,
    /// The response is complete.
    pub answered: bool,
    /// The connection speaks another protocol.
    pub tunnel: bool,
    /// Bytes written to it.
    pub tunnelled: u64,
    /// What the client sent of it behind its request.
    pub unread: Vec<u8>,
    /// The client's sending side was seen to be closed.
    pub hung_up: bool,
    /// The protocol has closed the transport, or lost it.
    pub closed: bool,
    /// What those know who look on.
    pub told: Option<Told>,
}

/// The transport of one connection.
#[pyclass(frozen, weakref, module = "tricorn._core")]
pub struct Transport {
    pub ground: Arc<Ground>,
    pub peer: Option<SocketAddr>,
    local: Option<SocketAddr>,
    /// The client's address in text, for the access log.
    pub remote: Box<[u8]>,
    protocol: Mutex<Option<Py<PyAny>>>,
    state: Mutex<State>,
}

#[pymethods]
impl Transport {
    fn write(slf: &Bound<'_, Transport>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        Transport::put(slf, data)
    }

    fn writelines(slf: &Bound<'_, Transport>, pieces: &Bound<'_, PyAny>) -> PyResult<()> {
        let all = PyBytes::new(slf.py(), b"").call_method1(intern!(slf.py(), "join"), (pieces,))?;
        Transport::put(slf, &all)
    }

    /// Sends `count` bytes of a file from `offset`, as the next of the body; false if the response has no place for them.
    fn write_file(slf: &Bound<'_, Transport>, descriptor: i32, offset: u64, count: u64) -> PyResult<bool> {
        Transport::put_file(slf, descriptor, offset, count)
    }

    /// Nothing more is written; what was written is sent.
    fn close(slf: &Bound<'_, Transport>) -> PyResult<()> {
        slf.get().end(slf.py(), false)
    }

    fn abort(slf: &Bound<'_, Transport>) -> PyResult<()> {
        slf.get().end(slf.py(), true)
    }

    fn is_closing(&self) -> bool {
        self.state().closed
    }

    fn pause_reading(&self) {
        let mut state = self.state();
        state.paused = true;
        if let Some(exchange) = state.exchange.as_mut().filter(|exchange| exchange.awaits_body()) {
            // Time in which the protocol does not want any is not the client's.
            exchange.body_came(0, clock::now());
        }
    }

    fn resume_reading(slf: &Bound<'_, Transport>) -> PyResult<()> {
        let this = slf.get();
        if !std::mem::replace(&mut this.state().paused, false) || this.state().exchange.is_none() {
            return Ok(());
        }
        // Soon, as every transport does it: the protocol is in the midst of something.
        this.ground.call_soon(&slf.getattr(intern!(slf.py(), "_read"))?, None)
    }

    fn is_reading(&self) -> bool {
        let state = self.state();
        !state.paused && !state.closed
    }

    fn _read(slf: &Bound<'_, Transport>) -> PyResult<()> {
        Transport::read(slf)
    }

    #[pyo3(signature = (name, default = None))]
    fn get_extra_info<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match name {
            "peername" => address(py, self.peer).map(Some),
            "sockname" => address(py, self.local).map(Some),
            "socket" => self.socket(py).map(|socket| socket.or(default)),
            _ => Ok(default),
        }
    }

    fn get_protocol(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.protocol).as_ref().map(|protocol| protocol.clone_ref(py))
    }

    fn set_protocol(&self, protocol: Py<PyAny>) {
        let before = lock(&self.protocol).replace(protocol);
        drop(before);
    }

    /// The limits are the server's: the protocol is told to pause when the client is too far behind.
    #[pyo3(signature = (high = None, low = None))]
    fn set_write_buffer_limits(&self, high: Option<usize>, low: Option<usize>) {
        let _ = (high, low);
    }

    fn get_write_buffer_size(&self) -> usize {
        0
    }

    fn can_write_eof(&self) -> bool {
        false
    }

    fn write_eof(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyNotImplementedError::new_err("this transport is closed as a whole"))
    }

    fn __repr__(&self) -> String {
        let state = self.state();
        let what = match (state.closed, &state.exchange) {
            (true, _) => "closed",
            (_, Some(_)) if state.tunnel => "tunnel",
            (_, Some(_)) => "busy",
            _ => "idle",
        };
        format!("<tricorn Transport {what}>")
    }
}

impl Transport {
    /// A connection's first request: it gets its protocol.
    pub fn open(
        py: Python<'_>,
        ground: Arc<Ground>,
        exchange: &Exchange,
        protocol: Py<PyAny>,
    ) -> PyResult<Py<Transport>> {
        let peer = peer_address(exchange);
        let local = local_address(&ground.engine, exchange);
        let remote = peer.map(|address| address.ip().to_string()).unwrap_or_default();
        let transport = Transport {
            ground,
            peer,
            local,
            remote: remote.into_bytes().into(),
            protocol: Mutex::new(Some(protocol.clone_ref(py))),
            state: Mutex::default(),
        };
        let transport = Py::new(py, transport)?;
        protocol.call_method1(py, intern!(py, "connection_made"), (&transport,))?;
        Ok(transport)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether the protocol takes another request.
    pub fn is_open(&self) -> bool {
        !self.state().closed
    }

    pub fn protocol<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        lock(&self.protocol).as_ref().map(|protocol| protocol.bind(py).clone())
    }

    /// Something has happened to the connection.
    pub fn stirred(slf: &Bound<'_, Transport>, what: What) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let outcome = this.state().stir(&this.ground.engine, what, this.ground.grace);
        match outcome {
            Stirred::Late(refusal) => this.refuse(py, &refusal),
            Stirred::Left => this.client_left(py),
            Stirred::GoesOn { writable, readable } => {
                if writable {
                    this.resume_writing(py)?;
                }
                if readable { Transport::read(slf) } else { Ok(()) }
            }
        }
    }

    pub fn resume_writing(&self, py: Python<'_>) -> PyResult<()> {
        match self.protocol(py) {
            Some(protocol) => protocol.call_method0(intern!(py, "resume_writing")).map(drop),
            None => Ok(()),
        }
    }

    pub fn pause_writing(&self, py: Python<'_>) -> PyResult<()> {
        match self.protocol(py) {
            Some(protocol) => protocol.call_method0(intern!(py, "pause_writing")).map(drop),
            None => Ok(()),
        }
    }

    /// What came of a write.
    pub fn after_write(slf: &Bound<'_, Transport>, outcome: Outcome) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        match outcome {
            Outcome::Goes => Ok(()),
            Outcome::Behind => this.pause_writing(py),
            Outcome::MayRead => Transport::read_soon(slf),
            Outcome::Gone => this.client_left(py),
            Outcome::Complete => this.complete(py),
            Outcome::Wrong(why) => {
                let mut guard = this.state();
                let Some(mut exchange) = guard.exchange.take() else { return Ok(()) };
                drop(guard);
                let text = format!("Error handling request {}: {why}", request_line(&exchange));
                exchange.app_failed();
                if exchange.request.reply.head_sent() {
                    exchange.abort();
                } else {
                    exchange.answer_error(500, "");
                }
                this.lose(py, None);
                this.conclude(py, exchange);
                this.ground.reporter.error(py, text, PyRuntimeError::new_err(why));
                Ok(())
            }
        }
    }

    /// The response is complete, or the request is: when both are, the connection is the reactor's again.
    pub fn complete(&self, py: Python<'_>) -> PyResult<()> {
        let (exchange, paused) = {
            let mut state = self.state();
            if !state.answered || (state.reading != Reading::Done && !state.closed) {
                return Ok(());
            }
            (state.exchange.take(), state.patience.take().is_some())
        };
        let Some(mut exchange) = exchange else { return Ok(()) };
        if paused {
            self.resume_writing(py)?;
        }
        if self.ground.is_leaving() {
            self.lose(py, None);
        }
        if !self.is_open() {
            exchange.client.attachment = None;
        }
        self.conclude(py, exchange);
        Ok(())
    }

    /// The protocol closes the transport.
    fn end(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        let exchange = {
            let mut guard = self.state();
            let state = &mut *guard;
            if std::mem::replace(&mut state.closed, true) {
                return Ok(());
            }
            let left = state.dictation.close();
            let exchange = state.exchange.take();
            match exchange {
                Some(exchange) if state.answered => {
                    // Whether the rest of the request lets the connection be used again, the reactor sees.
                    state.exchange = Some(exchange);
                    None
                }
                Some(mut exchange) if left == Left::Complete && !at_once && !state.tunnel => {
                    exchange.answered();
                    exchange.end();
                    state.answered = true;
                    state.exchange = Some(exchange);
                    None
                }
                other => other,
            }
        };
        self.lose(py, None);
        if let Some(mut exchange) = exchange {
            exchange.abort();
            exchange.client.attachment = None;
            self.conclude(py, exchange);
            return Ok(());
        }
        self.complete(py)
    }

    /// The client has left: the protocol is told, and its response is dropped.
    pub fn client_left(&self, py: Python<'_>) -> PyResult<()> {
        let exchange = self.state().exchange.take();
        let Some(mut exchange) = exchange else { return Ok(()) };
        self.lose(py, None);
        if self.state().tunnel {
            exchange.answered();
        }
        exchange.abort();
        exchange.client.attachment = None;
        self.conclude(py, exchange);
        Ok(())
    }

    /// The request's body is not as it should be, or does not come.
    pub fn refuse(&self, py: Python<'_>, refusal: &Refusal) -> PyResult<()> {
        let exchange = self.state().exchange.take();
        let Some(mut exchange) = exchange else { return Ok(()) };
        self.ground.engine.count_refused(&exchange, refusal);
        if exchange.request.reply.head_sent() {
            exchange.abort();
        } else {
            exchange.answer_error(refusal.status(), &refusal.message());
        }
        self.lose(py, Some(PyConnectionResetError::new_err(refusal.message())));
        exchange.client.attachment = None;
        self.conclude(py, exchange);
        Ok(())
    }

    /// The request took too long: the client is answered, and the protocol told that its connection is gone.
    pub fn is_late(&self, py: Python<'_>) -> PyResult<()> {
        let exchange = self.state().exchange.take();
        let Some(mut exchange) = exchange else { return Ok(()) };
        exchange.app_failed();
        if exchange.request.reply.head_sent() {
            exchange.abort();
        } else {
            exchange.answer_error(504, "");
        }
        let limit = self.ground.engine.request_timeout();
        let line = request_line(&exchange);
        let text = format!("Error handling request {line}: it was ended after {limit} s (request_timeout)");
        self.lose(py, Some(PyTimeoutError::new_err("request_timeout is over")));
        exchange.client.attachment = None;
        self.conclude(py, exchange);
        self.ground.reporter.notify(py, true, text);
        Ok(())
    }

    fn conclude(&self, py: Python<'_>, exchange: Box<Exchange>) {
        let mut state = self.state();
        let (told, sent) = (state.told.take(), state.tunnel.then_some(state.tunnelled));
        drop(state);
        self.ground.conclude(py, exchange, Ending { remote: &self.remote, sent, told });
    }

    /// The protocol has no connection any more, and is told so soon, once.
    pub fn lose(&self, py: Python<'_>, why: Option<PyErr>) {
        self.state().closed = true;
        let Some(protocol) = lock(&self.protocol).take() else { return };
        let told = protocol.bind(py).getattr(intern!(py, "connection_lost")).and_then(|lost| {
            let why = why.map_or_else(|| py.None(), |why| why.into_value(py).into_any());
            self.ground.call_soon(&lost, Some(why))
        });
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }

    /// A `socket.socket` over a duplicate of the descriptor, while there is a request.
    fn socket<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let duplicate = match &self.state().exchange {
            Some(exchange) => {
                tricorn_io::duplicate(exchange.socket().as_raw_fd()).map_err(std::io::Error::from)?.into_raw_fd()
            }
            None => return Ok(None),
        };
        py.import("tricorn.gateway.taken_socket")?.call_method1("show", (duplicate,)).map(Some)
    }
}

/// How long after the beginning of its request a client that closes its sending side is not taken for one that has left.
const HALF_CLOSE: u64 = 250 * MILLI;

enum Stirred {
    GoesOn { writable: bool, readable: bool },
    Late(Refusal),
    Left,
}

impl State {
    fn stir(&mut self, engine: &Engine, what: What, grace: u64) -> Stirred {
        let Some(exchange) = &mut self.exchange else {
            return Stirred::GoesOn { writable: false, readable: false };
        };
        if what.broken {
            exchange.client_left();
            return Stirred::Left;
        }
        if what.hangup && !self.tunnel && self.reading == Reading::Done {
            // One that closes its sending side together with its request may still listen, for a while.
            let now = clock::now();
            if now > exchange.timing.started + HALF_CLOSE {
                return Stirred::Left;
            }
            engine.set_timer(exchange, Timer::HalfClose, now + grace);
        }
        let due = if what.expired { engine.take_due(exchange) } else { Due::default() };
        if due.has(Timer::HalfClose) {
            if self.patience.is_none() {
                return Stirred::Left;
            }
            // It takes its response: how fast is judged by another timer.
            engine.set_timer(exchange, Timer::HalfClose, clock::now() + grace);
        }
        self.hung_up |= what.hangup; // what it sent before may all be there
        let (mut writable, is_due) = (false, due.has(Timer::Body));
        if self.patience.is_some() && (what.writable || due.has(Timer::Room)) {
            match engine.wait_for_room(exchange, &mut self.patience) {
                None => {}
                Some(Sent::Gone) => return Stirred::Left,
                Some(_) => writable = true,
            }
        }
        if is_due && let Some(refusal) = exchange.body_is_late(engine.config()) {
            return Stirred::Late(refusal);
        }
        Stirred::GoesOn { writable, readable: what.readable || what.hangup || is_due }
    }
}

/// As `socket.getpeername` has it; `''` where nothing is known, as for a unix socket.
fn address(py: Python<'_>, address: Option<SocketAddr>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match address {
        Some(SocketAddr::V4(address)) => (address.ip().to_string(), address.port()).into_pyobject(py)?.into_any(),
        Some(SocketAddr::V6(address)) => {
            (address.ip().to_string(), address.port(), address.flowinfo(), address.scope_id())
                .into_pyobject(py)?
                .into_any()
        }
        None => "".into_pyobject(py)?.into_any(),
    })
}
