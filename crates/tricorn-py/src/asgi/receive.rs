//! `receive`: the request's body as it comes, and then the end.
use super::call::{Call, Phase};
use crate::loops::{Awaited, Poll, Ready, Wait};
use crate::wsgi::BytesBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tricorn_io::{Body, Incoming, clock};

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
        if let Some(event) = next(call)? {
            return Ok(Poll::Ready(event));
        }
        let future = call.get().ground().tasks.future(py)?;
        call.get().attend_to(call);
        // Between the look above and this nothing can have happened: both are on the loop's thread.
        call.get().state().receivers.push(future.clone_ref(py));
        Ok(Poll::Pending(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let dropped: Vec<Py<PyAny>> =
            self.call.bind(py).get().state().receivers.extract_if(.., |waiting| waiting.is(future)).collect();
        drop(dropped);
    }
}

/// The event that is there, if one is.
fn next(slf: &Bound<'_, Call>) -> PyResult<Option<Py<PyAny>>> {
    let (call, py) = (slf.get(), slf.py());
    let mut guard = call.state();
    let state = &mut *guard;
    if state.phase == Phase::Done || state.gone {
        drop(guard);
        return disconnect(py).map(Some);
    }
    let Some(exchange) = &mut state.exchange else { return Ok(None) };
    if state.body_given {
        return Ok(None);
    }
    let config = call.ground().engine.config();
    let first = exchange.take_body();
    if !matches!(first, Body::Empty) && !first.is_empty() {
        let more = exchange.is_partial();
        state.body_given = !more;
        drop(guard);
        return request(py, bytes_of(py, first)?, more).map(Some);
    }
    if !exchange.is_partial() {
        state.body_given = true;
        drop(guard);
        return request(py, PyBytes::new(py, b""), false).map(Some);
    }
    let mut scratch = call.ground().scratch();
    scratch.clear();
    let incoming = exchange.receive(config, &mut scratch);
    let now = clock::now();
    match incoming {
        Incoming::Bytes { last } => {
            exchange.body_came(scratch.len(), now);
            if std::mem::take(&mut state.awaits_body) {
                call.ground().engine.remind(exchange, None);
            }
            state.body_given = last;
            let left = last && state.hung_up;
            drop(guard);
            let body = PyBytes::new(py, &scratch);
            drop(scratch);
            if left {
                Call::client_left(slf)?;
            }
            request(py, body, !last).map(Some)
        }
        Incoming::Wait => {
            if !std::mem::replace(&mut state.awaits_body, true) {
                let due = exchange.await_body(config, now);
                drop(guard);
                drop(scratch);
                call.attend_to(slf);
                if let Some(exchange) = &call.state().exchange {
                    call.ground().engine.remind(exchange, Some(due));
                }
            }
            Ok(None)
        }
        Incoming::Gone => {
            state.gone = true;
            drop(guard);
            drop(scratch);
            Call::client_left(slf)?;
            disconnect(py).map(Some)
        }
        Incoming::Refused(refusal) => {
            drop(guard);
            drop(scratch);
            call.refuse(py, &refusal)?;
            disconnect(py).map(Some)
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
