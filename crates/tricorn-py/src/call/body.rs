//! The body of a request, as it comes.
use super::call::Call;
use super::room;
use crate::wsgi::BytesBuffer;
use pyo3::exceptions::{PyConnectionAbortedError, PyConnectionResetError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn_io::{Body, Incoming};
use tricorn_proto::http1::Refusal;

/// What has come; empty at the end, `None` if there is nothing yet. Raises ConnectionError if no more will come.
pub fn read<'py>(slf: &Bound<'py, Call>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let (call, py) = (slf.get(), slf.py());
    if call.is_over() {
        return Err(gone());
    }
    let mut scratch = call.ground.scratch();
    scratch.clear();
    let came = call.with(|call, exchange| {
        let first = exchange.take_body();
        if !first.is_empty() {
            return Ok(Came::First(first));
        }
        let was_partial = exchange.is_partial();
        Ok(match call.ground.engine.read_body(exchange, &mut scratch) {
            Incoming::Bytes { last } => Came::Bytes { is_last: last && was_partial },
            Incoming::Wait => Came::Nothing,
            Incoming::Gone => Came::Gone,
            Incoming::Refused(refusal) => Came::Refused(refusal),
        })
    })?;
    let bytes = match came {
        Came::First(body) => bytes_of(py, body).map(Some),
        Came::Bytes { is_last } => {
            if is_last && call.state().hung_up {
                room::hang_up_soon(slf)?;
            }
            Ok(Some(PyBytes::new(py, &scratch)))
        }
        Came::Nothing => Ok(None),
        Came::Gone => Err(gone()),
        Came::Refused(refusal) => {
            drop(scratch);
            end(slf, Some(&refusal))?;
            return Err(PyConnectionAbortedError::new_err(refusal.message()));
        }
    };
    drop(scratch);
    if bytes.as_ref().is_err_and(|error| error.is_instance_of::<PyConnectionResetError>(py)) {
        end(slf, None)?;
    }
    bytes
}

enum Came {
    /// What had come with the head.
    First(Body),
    Bytes {
        is_last: bool,
    },
    Nothing,
    Gone,
    Refused(Box<Refusal>),
}

/// No more will come. The listener is not told: it is the one who reads.
fn end(slf: &Bound<'_, Call>, refusal: Option<&Refusal>) -> PyResult<()> {
    let listener = slf.get().state().listener.take();
    drop(listener);
    match refusal {
        Some(refusal) => room::refuse(slf, refusal),
        None => room::client_left(slf),
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

fn gone() -> PyErr {
    PyConnectionResetError::new_err("the client has left")
}

fn misplaced() -> PyErr {
    PyRuntimeError::new_err("a body that streams is not where it should be (defect of tricorn)")
}
