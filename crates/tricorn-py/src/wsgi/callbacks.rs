//! What a callback of the gateway is told about a finished reply.
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tricorn_io::{Exchange, clock};

/// Calls `after(environ, token, status, headers, sent, micros)`.
pub fn after<'py>(
    after: &Bound<'py, PyAny>,
    exchange: &Exchange,
    environ: &Bound<'py, PyDict>,
    token: Option<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let py = after.py();
    let reply = &exchange.request.reply;
    let status = latin1(py, reply.status_line())?;
    let headers = sent_headers(py, reply.fields())?;
    let micros = exchange.micros(clock::now());
    after.call1((environ, token, status, headers, reply.body_sent(), micros)).map(drop)
}

/// The application's header fields as they were sent: `Name: value\r\n` each, checked when they were set.
pub fn sent_headers<'py>(py: Python<'py>, fields: &[u8]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for line in fields.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(colon + 2..).unwrap_or_default();
        list.append((latin1(py, &line[..colon])?, latin1(py, value)?))?;
    }
    Ok(list)
}
