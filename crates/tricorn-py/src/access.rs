//! Lines of the access log that Python's loggers write, made of the atoms that gunicorn's loggers know.
use crate::text::{as_latin1, latin1, utf8};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::borrow::Cow;
use tricorn_proto::access_log::{Format, Record, escape, user};
use tricorn_proto::message::{Field, FieldList, RequestHead, Span};

/// The JSON object of a request. `time` is the access log's, `[21/Nov/2026:01:02:32 +0000]`; `millis` have passed since then.
#[pyfunction]
pub fn access_object<'py>(atoms: &Bound<'py, PyDict>, time: &str, millis: u16) -> PyResult<Bound<'py, PyString>> {
    let atoms = Atoms(atoms);
    let mut bytes = Vec::new();
    let target = atoms.text("{raw_uri}e")?;
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    let head = RequestHead {
        method: push(&mut bytes, &atoms.text("m")?),
        path: push(&mut bytes, path),
        query: push(&mut bytes, &atoms.text("q")?),
        protocol: push(&mut bytes, &atoms.text("H")?),
        fields: atoms.fields(&mut bytes)?,
        ..RequestHead::default()
    };
    let request_id = atoms.has("{tricorn.request_id}e")?;
    let queued: Option<f64> = atoms.number("{tricorn.queue_time}e")?;
    let record = Record {
        head: &head,
        bytes: &bytes,
        remote: &atoms.text("h")?,
        status: String::from_utf8_lossy(&atoms.text("s")?).parse().unwrap_or_default(),
        fields: &FieldList::default(),
        sent: atoms.number("B")?.unwrap_or_default(),
        micros: atoms.number("D")?.unwrap_or_default(),
        time: time.as_bytes(),
        millis,
        pid: std::process::id(),
        request_id: &atoms.text("{tricorn.request_id}e")?,
        queue_micros: queued.map(|seconds| (seconds * 1e6).round() as u64),
        call_time: None,
        outcome: None,
        environ: &|_| None,
    };
    let mut line = Vec::new();
    Format::json(request_id).render(&record, &mut line);
    utf8(atoms.0.py(), String::from_utf8_lossy(&line).trim_end())
}

/// Text of a client, made harmless for a line of the log.
#[pyfunction]
pub fn access_escape<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    let mut line = Vec::new();
    escape(&mut line, &bytes_of(text));
    latin1(text.py(), &line)
}

/// The user name of HTTP Basic authentication; None for other credentials and broken ones.
#[pyfunction]
pub fn basic_auth_user(authorization: &Bound<'_, PyString>) -> Option<String> {
    user(&bytes_of(authorization)).and_then(|user| String::from_utf8(user).ok())
}

/// WSGI's strings are bytes in disguise (PEP 3333); others become the bytes they have in UTF-8.
fn bytes_of<'a>(text: &'a Bound<'_, PyString>) -> Cow<'a, [u8]> {
    as_latin1(text).map_or_else(|| text.to_string_lossy().into_owned().into_bytes().into(), Cow::Borrowed)
}

/// The mapping that `Logger.atoms` makes, which a subclass may have changed.
struct Atoms<'a, 'py>(&'a Bound<'py, PyDict>);

impl Atoms<'_, '_> {
    fn has(&self, name: &str) -> PyResult<bool> {
        self.0.contains(name)
    }

    /// The bytes of an atom; empty if it is unknown.
    fn text(&self, name: &str) -> PyResult<Vec<u8>> {
        let Some(value) = self.0.get_item(name)?.filter(|value| !value.is_none()) else { return Ok(Vec::new()) };
        let value = value.str()?;
        let bytes = bytes_of(&value);
        Ok(if *bytes == *UNKNOWN { Vec::new() } else { bytes.into_owned() })
    }

    /// The number that an atom is; `None` for what is no number.
    fn number<T: for<'a, 'py> FromPyObject<'a, 'py>>(&self, name: &str) -> PyResult<Option<T>> {
        Ok(self.0.get_item(name)?.and_then(|value| value.extract().ok()))
    }

    /// The request's fields that an object tells.
    fn fields(&self, bytes: &mut Vec<u8>) -> PyResult<Vec<Field>> {
        let mut fields = Vec::new();
        for name in ["referer", "user-agent", "host", "traceparent"] {
            let value = self.text(&format!("{{{name}}}i"))?;
            if !value.is_empty() {
                let (name, value) = (push(bytes, name.as_bytes()), push(bytes, &value));
                fields.push(Field { name, value, ..Field::default() });
            }
        }
        Ok(fields)
    }
}

/// Appends a text, and returns where it lies.
fn push(bytes: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = bytes.len() as u32;
    bytes.extend_from_slice(text);
    Span { start, end: bytes.len() as u32 }
}

const UNKNOWN: &[u8] = b"-";
