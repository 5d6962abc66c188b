//! Header fields, as Python's HTTP classes have them: a dictionary from `Usual-Names` to lists of values.
use crate::text::{Cache, Names, as_latin1, is_secret, latin1, separator};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use tricorn_io::Exchange;
use tricorn_proto::response::{Fault, Reply};

/// Makes strings and dictionaries of heads; one per loop.
pub struct Heads {
    names: Names<PyString>,
    texts: Cache,
    id: Py<PyString>,
}

impl Heads {
    pub fn new(py: Python<'_>) -> Heads {
        let id = PyString::intern(py, "X-Request-Id").unbind();
        Heads { names: Names::new(), texts: Cache::new(), id }
    }

    /// Method, target, protocol.
    pub fn line<'py>(&mut self, py: Python<'py>, exchange: &Exchange) -> PyResult<Bound<'py, PyTuple>> {
        let request = &*exchange.request;
        let (head, bytes) = (&request.head, request.head_bytes());
        let method = self.texts.get(py, head.method.of(bytes))?;
        let target = self.texts.get(py, head.target.of(bytes))?;
        let protocol = self.texts.get(py, head.protocol.of(bytes))?;
        PyTuple::new(py, [method, target, protocol])
    }

    pub fn fields<'py>(&mut self, py: Python<'py>, exchange: &Exchange) -> PyResult<Bound<'py, PyDict>> {
        let request = &*exchange.request;
        let bytes = request.head_bytes();
        let fields = PyDict::new(py);
        for field in &request.head.fields {
            let (name, value) = (field.name.of(bytes), field.value.of(bytes));
            let text = if is_secret(name) { latin1(py, value)? } else { self.texts.get(py, value)? };
            let separator = separator(name);
            let name = self.name(py, name)?;
            match fields.get_item(&name)? {
                Some(values) if separator != b"," => add_to_only(values.cast()?, separator, value)?,
                Some(values) => values.cast::<PyList>()?.append(text)?,
                None => fields.set_item(name, PyList::new(py, [text])?)?,
            }
        }
        let id = request.reply.request_id();
        if !id.is_empty() {
            fields.set_item(self.id.bind(py), PyList::new(py, [latin1(py, id)?])?)?;
        }
        Ok(fields)
    }

    fn name<'py>(&mut self, py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyString>> {
        if let Some(known) = self.names.find(name) {
            return Ok(known.bind(py).clone());
        }
        Ok(self.names.keep(name, latin1(py, &usual(name))?))
    }
}

/// Adds to the only value of a list: classes like tornado's join several by commas.
#[cold]
fn add_to_only(values: &Bound<'_, PyList>, separator: &[u8], value: &[u8]) -> PyResult<()> {
    let first = values.get_item(0)?.cast_into::<PyString>()?;
    let first = as_latin1(&first).unwrap_or(b"");
    values.set_item(0, latin1(values.py(), &[first, separator, value].concat())?)
}

/// `content-TYPE` as `Content-Type`.
fn usual(name: &[u8]) -> Vec<u8> {
    let mut begins = true;
    let letter = |byte: &u8| {
        let letter = if begins { byte.to_ascii_uppercase() } else { byte.to_ascii_lowercase() };
        begins = *byte == b'-';
        letter
    };
    name.iter().map(letter).collect()
}

/// Status and fields of an answer. `fields` is a dictionary of lists, or a list of pairs.
pub fn set(reply: &mut Reply, status: u16, reason: &Bound<'_, PyString>, fields: &Bound<'_, PyAny>) -> PyResult<()> {
    let reason = as_latin1(reason).ok_or_else(|| outside("the reason", reason))?;
    let mut line = Vec::with_capacity(4 + reason.len());
    line.extend_from_slice(status.to_string().as_bytes());
    if !reason.is_empty() {
        line.push(b' ');
        line.extend_from_slice(reason);
    }
    reply.status(&line).map_err(fault)?;
    if let Ok(fields) = fields.cast::<PyDict>() {
        for (name, values) in fields.iter() {
            for value in values.cast::<PyList>()?.iter() {
                reply.field(text(&name)?, text(&value)?).map_err(fault)?;
            }
        }
        return Ok(());
    }
    for pair in fields.cast::<PyList>()?.iter() {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        reply.field(text(&name)?, text(&value)?).map_err(fault)?;
    }
    Ok(())
}

fn text<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    if let Ok(text) = value.cast::<PyString>() {
        return as_latin1(text).ok_or_else(|| outside("a header field", text));
    }
    let bytes = value.cast::<PyBytes>().map_err(|_| {
        PyTypeError::new_err(format!("a header's name and value must be str, not {}", value.get_type()))
    })?;
    Ok(bytes.as_bytes())
}

fn outside(what: &str, text: &Bound<'_, PyString>) -> PyErr {
    PyValueError::new_err(format!("{what} has characters outside latin-1: {text:?}"))
}

fn fault(fault: Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}
