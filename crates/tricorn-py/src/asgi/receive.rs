//! `receive`: the request's body as it comes, and then the end.
use super::call::{Call, Phase};
use crate::buffer::bytes_of;
use crate::loops::{AfterTurn, Awaited, Poll, Ready, Wait};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tricorn_io::{Departure, Read};

/// What `receive()` returns.
pub fn receive(call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    if call.get().state().departed.is_told {
        return again(call);
    }
    let what = Receive { call: call.clone().unbind() };
    match next(call)? {
        Some(event) => Ok(Py::new(py, Ready::new(event))?.into_any()),
        None => Ok(Py::new(py, Wait::new(Box::new(what)))?.into_any()),
    }
}

/// The application was told, and asks again: it gets the same after the loop's other callbacks, or it is cancelled when it has
/// had its grace.
#[cold]
fn again(call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
    if call.get().state().departed.is_overdue {
        call.get().cancel(call.py())?;
    }
    AfterTurn::of(call.py(), disconnect)
}

struct Receive {
    call: Py<Call>,
}

impl Awaited for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let call = self.call.bind(py);
        // The departure is told at once: a task that has not heard of it is cancelled after this turn of the loop.
        let gone = call.get().state().received.gone;
        if !gone && call.get().ground().shared.gives_way() {
            return Ok(Poll::Turn);
        }
        if let Some(event) = next(call)? {
            return Ok(Poll::Ready(event));
        }
        let future = call.get().ground().tasks.future(py)?;
        call.get().attend(call);
        // Between the look above and this nothing can have happened: both are on the loop's thread.
        call.get().state().waits.receivers.push(future.clone_ref(py));
        Ok(Poll::Pending(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let call = self.call.bind(py).get();
        let mut state = call.state();
        let dropped: Vec<Py<PyAny>> = state.waits.receivers.extract_if(.., |waiting| waiting.is(future)).collect();
        if state.waits.receivers.is_empty() {
            state.active.stop_reading(&call.ground().shared.engine);
        }
        drop(state);
        drop(dropped);
    }
}

/// The event that is there, if one is.
fn next(slf: &Bound<'_, Call>) -> PyResult<Option<Py<PyAny>>> {
    let (call, py) = (slf.get(), slf.py());
    let mut guard = call.state();
    let state = &mut *guard;
    if state.response.phase == Phase::Done {
        drop(guard);
        return tell(call, py).map(Some);
    }
    // What came before the client left is handed over first: a complete request is still processed, and frameworks such as
    // engine.io take the first event for the request.
    let is_awaited = !state.active.is_away() && !state.received.body;
    if is_awaited && !state.active.is_partial() {
        let all = state.active.take_first();
        state.received.body = true;
        drop(guard);
        return request(py, bytes_of(py, all)?, false).map(Some);
    }
    if !is_awaited {
        let gone = state.received.gone;
        drop(guard);
        return if gone { tell(call, py).map(Some) } else { Ok(None) };
    }
    if call.ground().shared.is_interrupted() {
        return Ok(None);
    }
    let mut scratch = call.ground().shared.scratch();
    scratch.clear();
    let read = state.active.read(&call.ground().shared.engine, &mut scratch);
    match read {
        Read::Bytes { last, departure } => {
            let effort = state.active.exchange_mut().map_or(0, |exchange| exchange.effort(scratch.len()));
            call.ground().shared.goes_on(effort);
            state.received.body = last;
            drop(guard);
            let body = PyBytes::new(py, &scratch);
            drop(scratch);
            departure.map_or(Ok(()), |departure| Call::departed(slf, departure))?;
            request(py, body, !last).map(Some)
        }
        Read::Wait { .. } if state.received.gone => {
            drop((guard, scratch));
            tell(call, py).map(Some)
        }
        Read::Wait { is_new } => {
            drop((guard, scratch));
            if is_new {
                call.attend(slf);
            }
            Ok(None)
        }
        Read::Gone => {
            drop((guard, scratch));
            Call::departed(slf, Departure::Broken)?;
            tell(call, py).map(Some)
        }
        Read::Refused(refusal) => {
            drop((guard, scratch));
            call.refuse(py, &refusal)?;
            tell(call, py).map(Some)
        }
    }
}

fn request(py: Python<'_>, body: Bound<'_, PyBytes>, more: bool) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "http.request"))?;
    event.set_item(intern!(py, "body"), body)?;
    event.set_item(intern!(py, "more_body"), more)?;
    Ok(event.into_any().unbind())
}

/// Tells the application that its client has left, or that its response is complete.
fn tell(call: &Call, py: Python<'_>) -> PyResult<Py<PyAny>> {
    call.state().departed.is_told = true;
    disconnect(py)
}

fn disconnect(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "http.disconnect"))?;
    Ok(event.into_any().unbind())
}
