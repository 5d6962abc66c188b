//! The body of a request, as it comes.
use super::call::Call;
use crate::buffer::bytes_of;
use pyo3::exceptions::{PyConnectionAbortedError, PyConnectionResetError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn_io::{Body, Read};
use tricorn_proto::message::Refusal;

/// What has come; empty at the end, `None` if there is nothing yet. Raises ConnectionError if no more will come.
pub fn read<'py>(slf: &Bound<'py, Call>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let (call, py) = (slf.get(), slf.py());
    if call.is_over() {
        return Err(gone());
    }
    let whole = {
        let mut state = call.state();
        if state.active.is_partial() { Body::Empty } else { state.active.take_first() }
    };
    if !whole.is_empty() {
        return bytes_of(py, whole).map(Some);
    }
    let mut scratch = call.ground.shared.scratch();
    scratch.clear();
    let came = call.state().active.read(&call.ground.shared.engine, &mut scratch);
    match came {
        Read::Bytes { departure, .. } => {
            let bytes = PyBytes::new(py, &scratch);
            drop(scratch);
            departure.map_or(Ok(()), |departure| Call::depart_soon(slf, departure))?;
            Ok(Some(bytes))
        }
        Read::Wait { .. } => Ok(None),
        Read::Gone => {
            drop(scratch);
            end(slf, None)?;
            Err(gone())
        }
        Read::Refused(refusal) => {
            drop(scratch);
            end(slf, Some(&refusal))?;
            Err(PyConnectionAbortedError::new_err(refusal.message()))
        }
    }
}

/// No more will come. The listener is not told: it is the one that reads.
fn end(slf: &Bound<'_, Call>, refusal: Option<&Refusal>) -> PyResult<()> {
    let listener = slf.get().state().listener.take();
    drop(listener);
    match refusal {
        Some(refusal) => slf.get().refuse_body(slf.py(), refusal),
        None => Call::client_left(slf),
    }
}

fn gone() -> PyErr {
    PyConnectionResetError::new_err("the client has left")
}
