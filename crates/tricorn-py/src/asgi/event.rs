//! Reads the events that an application sends: what they hold, and what is wrong with them.
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::ops::RangeInclusive;
use tricorn_proto::message::status;
use tricorn_proto::response::{Fault, Reply};

/// The headers of an event, as a list of pairs of bytes; `None` if it has none.
///
/// What is made of anything else runs the application's code, such as an iterator: that has to happen before the exchange is
/// taken, since this code may call `send`.
pub fn headers_of<'py>(event: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyList>>> {
    let py = event.py();
    let Some(headers) = event.get_item(intern!(py, "headers"))? else { return Ok(None) };
    if let Ok(list) = headers.cast_exact::<PyList>()
        && list.iter().all(|item| pair(&item).is_some())
    {
        return Ok(Some(list.clone()));
    }
    let list = PyList::empty(py);
    for item in headers.try_iter()? {
        list.append(pair_of(&item?)?)?;
    }
    Ok(Some(list))
}

/// Name and value of an item that needs no conversion.
#[inline]
fn pair<'a>(item: &'a Bound<'_, PyAny>) -> Option<(&'a [u8], &'a [u8])> {
    let [name, value] = item.cast_exact::<PyTuple>().ok()?.as_slice() else { return None };
    Some((name.cast::<PyBytes>().ok()?.as_bytes(), value.cast::<PyBytes>().ok()?.as_bytes()))
}

#[cold]
fn pair_of<'py>(item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let refuse = |_| wrong(item, "a header", "a pair (name, value) of bytes");
    let pair = item.try_iter().map_err(refuse)?.collect::<PyResult<Vec<_>>>().map_err(refuse)?;
    let [name, value] = pair.as_slice() else { return Err(wrong(item, "a header", "a pair (name, value) of bytes")) };
    let bytes = |value: &Bound<'py, PyAny>| {
        value.cast::<PyBytes>().cloned().map_err(|_| wrong(value, "a header's name and value", "bytes"))
    };
    PyTuple::new(item.py(), [bytes(name)?, bytes(value)?])
}

/// Calls `each` with every name and value of a list of [`headers_of`].
pub fn each_header(
    headers: &Bound<'_, PyList>,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Fault>,
) -> PyResult<()> {
    for index in 0..headers.len() {
        let item = headers.get_item(index)?;
        let (name, value) = pair(&item).ok_or_else(|| wrong(&item, "a header", "a pair (name, value) of bytes"))?;
        each(name, value).map_err(fault)?;
    }
    Ok(())
}

/// Copies of the headers of an event, for what reads them later.
pub fn copied_headers(event: &Bound<'_, PyDict>) -> PyResult<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut fields = Vec::new();
    if let Some(headers) = headers_of(event)? {
        each_header(&headers, |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            Ok(())
        })?;
    }
    Ok(fields)
}

/// What a final response may have for its status. Interim ones are an event of their own, and 101 would end HTTP.
pub const FINAL: RangeInclusive<u16> = 200..=999;

/// The status of an event of this kind.
pub fn status_of(event: &Bound<'_, PyDict>, kind: &str, range: RangeInclusive<u16>) -> PyResult<u16> {
    let status = event.get_item(intern!(event.py(), "status"))?.ok_or_else(|| missing(kind, "status"))?;
    integer(&status, "the status", range)
}

/// An int within these bounds.
pub fn integer(value: &Bound<'_, PyAny>, what: &str, range: RangeInclusive<u16>) -> PyResult<u16> {
    let number = match value.extract::<i64>() {
        Ok(number) => u16::try_from(number).ok(),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => None,
        Err(_) => return Err(wrong(value, what, "an int")),
    };
    number.filter(|number| range.contains(number)).ok_or_else(|| {
        let (first, last) = range.into_inner();
        PyValueError::new_err(format!("{what} is out of range: it must be from {first} to {last}, not {value}"))
    })
}

/// Sets `200 OK`, from its number.
pub fn set_status(reply: &mut Reply, status: u16) -> PyResult<()> {
    let reason = status::reason(status).as_bytes();
    let mut line = [b' '; 64];
    for (place, unit) in [100, 10, 1].into_iter().enumerate() {
        line[place] = b'0' + (status / unit % 10) as u8;
    }
    let end = (4 + reason.len()).min(line.len());
    line[4..end].copy_from_slice(&reason[..end - 4]);
    reply.status(&line[..end]).map_err(fault)
}

/// A byte string as the event has it.
pub fn bytes_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let buffer = PyBuffer::<u8>::get(value).map_err(|_| wrong(value, "a byte string", "bytes"))?;
    Ok(PyBytes::new(value.py(), &buffer.to_vec(value.py())?))
}

pub fn is_true(event: &Bound<'_, PyDict>, key: &Bound<'_, PyString>) -> PyResult<bool> {
    event.get_item(key)?.map_or(Ok(false), |value| value.is_truthy())
}

pub fn missing(kind: &str, key: &str) -> PyErr {
    PyValueError::new_err(format!("the event {kind:?} has no {key:?}"))
}

pub fn wrong(value: &Bound<'_, PyAny>, what: &str, expected: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} must be {expected}, not {}", value.get_type()))
}

pub fn fault(fault: Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}
