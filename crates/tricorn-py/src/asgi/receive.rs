//! `receive`: the request's body as it comes, and then the end.
use super::call::{Call, Phase, State};
use crate::loops::{Awaited, Poll, Ready, Wait};
use crate::wsgi::BytesBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tricorn_io::{Body, Engine, Incoming, clock};
use tricorn_proto::http1::Refusal;

/// What `receive()` returns.
pub fn receive(call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    let what = Receive { call: call.clone().unbind() };
    match next(call)? {
        Some(event) => Ok(Py::new(py, Ready::new(event))?.into_any()),
        None => Ok(Py::new(py, Wait::new(Box::new(what)))?.into_any()),
    }
}

struct Receive {
    call: Py<Call>,
}

impl Awaited for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let call = self.call.bind(py);
        let mut state = call.get().state();
        if state.turn.is_over() {
            state.turn.end();
            return Ok(Poll::Turn);
        }
        drop(state);
        if let Some(event) = next(call)? {
            return Ok(Poll::Ready(event));
        }
        let future = call.get().ground().tasks.future(py)?;
        call.get().attend_to(call);
        // Between the look above and this nothing can have happened: both are on the loop's thread.
        call.get().state().waits.receivers.push(future.clone_ref(py));
        Ok(Poll::Pending(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let call = self.call.bind(py).get();
        let mut state = call.state();
        let dropped: Vec<Py<PyAny>> = state.waits.receivers.extract_if(.., |waiting| waiting.is(future)).collect();
        state.stop_waiting();
        drop(state);
        drop(dropped);
    }
}

/// The event that is there, if one is.
fn next(slf: &Bound<'_, Call>) -> PyResult<Option<Py<PyAny>>> {
    let (call, py) = (slf.get(), slf.py());
    let mut guard = call.state();
    let state = &mut *guard;
    if state.response.phase == Phase::Done || state.told.gone {
        drop(guard);
        return disconnect(py).map(Some);
    }
    let Some(exchange) = &mut state.exchange else { return Ok(None) };
    if state.told.body {
        return Ok(None);
    }
    let first = exchange.take_body();
    if !matches!(first, Body::Empty) && !first.is_empty() {
        let more = exchange.is_partial();
        state.told.body = !more;
        drop(guard);
        return request(py, bytes_of(py, first)?, more).map(Some);
    }
    if state.turn.is_over() {
        return Ok(None);
    }
    if !exchange.is_partial() {
        state.told.body = true;
        drop(guard);
        return request(py, PyBytes::new(py, b""), false).map(Some);
    }
    let mut scratch = call.ground().scratch();
    let read = state.read(&call.ground().engine, &mut scratch);
    drop(guard);
    let body = matches!(read, Read::Piece { .. }).then(|| PyBytes::new(py, &scratch));
    drop(scratch);
    match read {
        Read::Piece { last, left } => {
            if left {
                Call::client_left(slf)?;
            }
            request(py, body.unwrap_or_else(|| PyBytes::new(py, b"")), !last).map(Some)
        }
        Read::Nothing => Ok(None),
        Read::NothingYet => {
            call.attend_to(slf);
            Ok(None)
        }
        Read::Gone => {
            Call::client_left(slf)?;
            disconnect(py).map(Some)
        }
        Read::Refused(refusal) => {
            call.refuse(py, &refusal)?;
            disconnect(py).map(Some)
        }
    }
}

/// What a look for more of the body came to.
enum Read {
    /// A piece, in the memory given; the `last` may be empty. The client has `left` after it.
    Piece {
        last: bool,
        left: bool,
    },
    Nothing,
    /// Nothing, and it was not waited for before.
    NothingYet,
    Gone,
    Refused(Box<Refusal>),
}

impl State {
    fn read(&mut self, engine: &Engine, piece: &mut Vec<u8>) -> Read {
        piece.clear();
        let Some(exchange) = &mut self.exchange else { return Read::Nothing };
        let waited = exchange.awaits_body();
        let incoming = engine.read_body(exchange, piece);
        if matches!(incoming, Incoming::Wait) {
            self.turn.end();
        }
        match incoming {
            Incoming::Bytes { last } => {
                self.turn.read(clock::now());
                self.told.body = last;
                Read::Piece { last, left: last && self.told.hung_up }
            }
            Incoming::Wait if waited => Read::Nothing,
            Incoming::Wait => Read::NothingYet,
            Incoming::Gone => Read::Gone,
            Incoming::Refused(refusal) => Read::Refused(refusal),
        }
    }

    /// The application does not wait for more of the body any longer: from now on time is not the client's.
    fn stop_waiting(&mut self) {
        if let Some(exchange) = &mut self.exchange
            && self.waits.receivers.is_empty()
            && exchange.awaits_body()
        {
            exchange.body_came(0, clock::now());
        }
    }
}

fn bytes_of(py: Python<'_>, body: Body) -> PyResult<Bound<'_, PyBytes>> {
    match body {
        Body::Empty => Ok(PyBytes::new(py, b"")),
        Body::Memory(bytes) => Ok(PyBytes::new(py, &bytes)),
        Body::Foreign(buffer) => buffer.into_any().downcast::<BytesBuffer>().map_err(|_| misplaced())?.into_bytes(py),
        Body::Spooled(_) => Err(misplaced()),
    }
}

fn misplaced() -> PyErr {
    PyRuntimeError::new_err("a body that streams is not where it should be (defect of tricorn)")
}

fn request(py: Python<'_>, body: Bound<'_, PyBytes>, more: bool) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
    event.set_item(intern!(py, "body"), body)?;
    event.set_item(intern!(py, "more_body"), more)?;
    Ok(event.into_any().unbind())
}

fn disconnect(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(event.into_any().unbind())
}
