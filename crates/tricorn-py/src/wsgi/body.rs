//! `wsgi.input` of a body that is still to come (`request_buffering = off`): read when the application asks.
//!
//! ```text
//!   Coming ──last bytes──▶ Ended      Coming ──the client leaves, is late, is wrong──▶ Broken, for every read from then on
//! ```
//!
//! The exchange stays with its handle while a read waits, so that the application may answer meanwhile (another thread of it,
//! or another greenlet). The wait has a descriptor of its own: the exchange may be over before it.
use super::handle::{Handle, over};
use super::wait::{Hub, Wait};
use crate::sync::lock;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyType};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use tricorn_io::clock::{self, SECOND};
use tricorn_io::{Awaited, Engine, Exchange, Incoming};
use tricorn_proto::message::Refusal;

/// The longest a thread waits before it looks whether Python wants something of it.
const SLICE: u64 = SECOND / 2;

static READER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static BODY_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The reader of a body that is still to come.
pub fn reader<'py>(py: Python<'py>, handle: &Py<Handle>) -> PyResult<Bound<'py, PyAny>> {
    let source = BodySource { handle: handle.clone_ref(py), state: Mutex::new(Some(State::default())) };
    READER.import(py, "tricorn.gateway.request_body", "reader")?.call1((source,))
}

/// Status and message, if this is what a read of the body raises because of the client.
pub fn client_fault(py: Python<'_>, error: &PyErr) -> Option<(u16, String)> {
    let kind = BODY_ERROR.import(py, "tricorn.errors", "BodyError").ok()?;
    if !error.is_instance(py, kind) {
        return None;
    }
    let value = error.value(py);
    Some((value.getattr("status").ok()?.extract().ok()?, value.to_string()))
}

/// A request's body as it comes.
#[pyclass(frozen, module = "tricorn._core")]
pub struct BodySource {
    handle: Py<Handle>,
    /// Away while a thread or a greenlet reads.
    state: Mutex<Option<State>>,
}

#[derive(Default)]
struct State {
    /// What has come and was not read; the first `taken` bytes were.
    at_hand: Vec<u8>,
    taken: usize,
    ended: bool,
    broken: Option<Broken>,
    /// For the wait: the exchange's slot, and a duplicate of its socket.
    awaited: Option<(usize, OwnedFd)>,
}

/// Why no more will come.
#[derive(Clone)]
struct Broken {
    status: u16,
    message: String,
}

/// What a look came to.
enum Look {
    Done,
    /// Nothing is there; so long it may be waited for.
    Wait(u64),
}

#[pymethods]
impl BodySource {
    /// Up to `most` bytes, of which there is at least one; none at the end. `None`: nothing yet, ask again. Raises `BodyError`.
    fn receive<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut state = lock(&self.state).take().ok_or_else(|| {
            PyRuntimeError::new_err("wsgi.input is being read by another thread or greenlet of this request")
        })?;
        let outcome = self.next(py, &mut state, most);
        *lock(&self.state) = Some(state);
        outcome
    }
}

impl BodySource {
    fn next<'py>(&self, py: Python<'py>, state: &mut State, most: usize) -> PyResult<Option<Bound<'py, PyBytes>>> {
        while state.taken == state.at_hand.len() && !state.ended && most > 0 {
            match self.look(state)? {
                Look::Done => {}
                Look::Wait(nanos) => {
                    self.wait(py, state, nanos)?;
                    if matches!(self.handle.get().wait(), Wait::Thread) {
                        return Ok(None);
                    }
                }
            }
            if let Some(Broken { status, message }) = state.broken.clone() {
                return Err(PyErr::from_value(
                    BODY_ERROR.import(py, "tricorn.errors", "BodyError")?.call1((message, status))?,
                ));
            }
        }
        let piece = &state.at_hand[state.taken..];
        let piece = PyBytes::new(py, &piece[..piece.len().min(most)]);
        state.taken += piece.as_bytes().len();
        Ok(Some(piece))
    }

    /// Takes what has come.
    fn look(&self, state: &mut State) -> PyResult<Look> {
        if state.broken.is_some() {
            return Ok(Look::Done);
        }
        let handle = self.handle.get();
        let looked = handle.with(|exchange| {
            let (engine, now) = (handle.engine(), clock::now());
            (state.taken, state.at_hand) = (0, std::mem::take(&mut state.at_hand));
            state.at_hand.clear();
            match exchange.receive(engine.config(), &mut state.at_hand) {
                Incoming::Bytes { last } => {
                    if exchange.awaits_body() {
                        engine.note_wait(exchange, false);
                    }
                    exchange.body_came(state.at_hand.len(), now);
                    engine.progressed(exchange);
                    state.ended = last;
                }
                Incoming::Wait => return state.await_more(engine, exchange, now),
                Incoming::Gone => {
                    exchange.client_left();
                    state.broken =
                        Some(Broken { status: 400, message: "the client left before its body was complete".into() });
                }
                Incoming::Refused(refusal) => state.refuse(engine, exchange, &refusal),
            }
            Ok(Look::Done)
        });
        looked.unwrap_or_else(|| Err(over()))
    }

    /// Lets others go on until the socket has bytes, or the time is over.
    fn wait(&self, py: Python<'_>, state: &State, nanos: u64) -> PyResult<()> {
        let Some((slot, socket)) = &state.awaited else { return Ok(()) };
        let handle = self.handle.get();
        match handle.wait() {
            Wait::Thread => {
                let engine = handle.engine();
                py.detach(|| engine.wait_for_bytes(*slot, socket.as_fd(), nanos.min(SLICE)));
                Ok(())
            }
            Wait::Hub(hub) => self.wait_in_hub(py, hub, socket, nanos),
        }
    }

    fn wait_in_hub(&self, py: Python<'_>, hub: &Hub, socket: &OwnedFd, nanos: u64) -> PyResult<()> {
        let outcome = hub.wait_readable(py, socket.as_fd(), nanos);
        if outcome.is_err() {
            // The greenlet is told to do something else: from now on time is not the client's.
            let handle = self.handle.get();
            handle.with(|exchange| {
                exchange.body_came(0, clock::now());
                handle.engine().note_wait(exchange, false);
            });
        }
        outcome
    }
}

impl State {
    /// Nothing has come. The wait goes on over several looks.
    fn await_more(&mut self, engine: &Engine, exchange: &mut Exchange, now: u64) -> PyResult<Look> {
        if self.awaited.is_none() {
            let socket = exchange.lane.readable();
            let socket = socket.map_err(|error| PyOSError::new_err(error.to_string()))?;
            self.awaited = Some((exchange.slot(), socket));
        }
        match exchange.await_body(engine.config(), now) {
            Awaited::Until { due, is_new } => {
                if is_new {
                    engine.note_wait(exchange, true);
                }
                Ok(Look::Wait(due.saturating_sub(now)))
            }
            Awaited::Late(refusal) => {
                exchange.body_came(0, now);
                self.refuse(engine, exchange, &refusal);
                Ok(Look::Done)
            }
        }
    }

    fn refuse(&mut self, engine: &Engine, exchange: &Exchange, refusal: &Refusal) {
        engine.count_refused(exchange, refusal);
        self.broken = Some(Broken { status: refusal.status(), message: refusal.message() });
    }
}
