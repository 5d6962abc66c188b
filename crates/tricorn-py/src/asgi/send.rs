//! `send`: the application's events become the response. What can be done at once is done in the call itself.
use super::call::{Call, Phase, State};
use crate::loops::{Awaited, Done, Poll, Wait};
use crate::pieces::{Piece, write_file};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};
use std::path::PathBuf;
use tricorn_io::{Departure, Exchange, Sent};
use tricorn_proto::message::status;
use tricorn_proto::response::{End, Fault, Reply};

/// What `send(event)` returns.
pub fn send(call: &Bound<'_, Call>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    let event = event.cast::<PyDict>().map_err(|_| wrong(event, "an event", "a dict"))?;
    let kind = event.get_item(intern!(py, "type"))?.ok_or_else(|| PyValueError::new_err("an event without a type"))?;
    let kind = kind.cast_into::<PyString>().map_err(|_| PyTypeError::new_err("an event's type must be a str"))?;
    let kind = kind.to_str()?;
    match verdict(kind, &call.get().state())? {
        Verdict::Go => {}
        Verdict::Ignore => return Done::get(py),
        Verdict::Gone => return Err(client_disconnected(py)),
    }
    let sent = match kind {
        "http.response.body" => body(call, event)?,
        "http.response.start" => start(call, event)?,
        "http.response.trailers" => trailers(call, event)?,
        "http.response.pathsend" => pathsend(call, event)?,
        "http.response.early_hint" => early_hint(call, event)?,
        _ => informational(call, event)?,
    };
    match sent {
        Sent::Accepted => Done::get(py),
        Sent::Gone => Err(lost(call)?),
        Sent::OverMark => wait_for_room(call),
    }
}

/// What becomes of an event.
enum Verdict {
    Go,
    Ignore,
    Gone,
}

/// Events come in the order of the specification; others are told what was expected. What comes after the response is
/// ignored ("any further messages on the channel will be ignored").
fn verdict(kind: &str, state: &State) -> PyResult<Verdict> {
    let is_here = state.active.exchange().is_some_and(|exchange| !exchange.is_gone());
    if state.received.gone && !is_here && !state.response.is_over {
        return Ok(Verdict::Gone);
    }
    let fits = match kind {
        _ if state.response.phase == Phase::Done => return Ok(Verdict::Ignore),
        "http.response.start" => state.response.phase == Phase::Awaited,
        "http.response.body" => matches!(state.response.phase, Phase::Started | Phase::Streaming),
        "http.response.pathsend" => state.response.phase == Phase::Started,
        "http.response.trailers" => state.response.phase == Phase::Trailing,
        // Before anything of the response was sent; too late they hint at nothing.
        "http.response.early_hint" | "http.response.informational" => match state.response.phase {
            Phase::Awaited | Phase::Started => true,
            _ => return Ok(Verdict::Ignore),
        },
        _ => false,
    };
    if fits {
        return Ok(Verdict::Go);
    }
    let expected = match state.response.phase {
        Phase::Awaited => "expected 'http.response.start'",
        Phase::Started => "expected 'http.response.body' or 'http.response.pathsend'",
        Phase::Streaming => "expected 'http.response.body'",
        Phase::Trailing | Phase::Done => "expected 'http.response.trailers'",
    };
    Err(PyRuntimeError::new_err(format!("Unexpected ASGI message {kind:?}: {expected}")))
}

fn start(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let py = call.py();
    let status = event.get_item(intern!(py, "status"))?.ok_or_else(|| missing("http.response.start", "status"))?;
    let status: u16 = status.extract().map_err(|_| wrong(&status, "the status", "an int"))?;
    let headers = event.get_item(intern!(py, "headers"))?;
    let trailers = is_true(event, intern!(py, "trailers"))?;
    let sent = with(call, |exchange| {
        let reply = &mut exchange.request.reply;
        set_status(reply, status)?;
        if let Some(headers) = &headers {
            each_header(headers, |name, value| reply.field(name, value).map_err(fault))?;
        }
        Ok(Sent::Accepted)
    })?;
    let mut state = call.get().state();
    (state.response.phase, state.response.trailers) = (Phase::Started, trailers);
    Ok(sent)
}

/// `200 OK`, from its number.
pub fn set_status(reply: &mut Reply, status: u16) -> PyResult<()> {
    let reason = status::reason(status).as_bytes();
    let mut line = [0u8; 64];
    let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
    let length = 4 + reason.len();
    if !(100..1000).contains(&status) || length > line.len() {
        return Err(PyValueError::new_err(format!("the status must be from 100 to 999, not {status}")));
    }
    line[..3].copy_from_slice(&digits);
    line[3] = b' ';
    line[4..length].copy_from_slice(reason);
    reply.status(&line[..length]).map_err(fault)
}

fn body(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let py = call.py();
    let piece = match event.get_item(intern!(py, "body"))? {
        Some(piece) => bytes_of(&piece)?,
        None => PyBytes::new(py, b""),
    };
    let more = is_true(event, intern!(py, "more_body"))?;
    if more {
        call.get().state().response.phase = Phase::Streaming;
        return with(call, |exchange| {
            exchange.foresee_close_unread(false);
            Ok(Piece::all(&piece).write(&call.get().ground().shared.engine, exchange, None))
        });
    }
    finish(call, |exchange, is_first| {
        if is_first {
            return (Sent::Accepted, Some(Piece::all(&piece).write_last(&call.get().ground().shared.engine, exchange)));
        }
        let sent = if piece.as_bytes().is_empty() && exchange.request.reply.head_sent() {
            Sent::Accepted
        } else {
            Piece::all(&piece).write(&call.get().ground().shared.engine, exchange, None)
        };
        (sent, None)
    })
}

/// Sends the last of the body with `send`, which is told whether it is the first, too; and ends the response if it has not,
/// unless trailers are to follow.
fn finish(call: &Bound<'_, Call>, send: impl FnOnce(&mut Exchange, bool) -> (Sent, Option<End>)) -> PyResult<Sent> {
    let (this, py) = (call.get(), call.py());
    let mut state = this.state();
    let Some(mut exchange) = state.active.take() else { return Ok(Sent::Gone) };
    let (is_first, trailers) = (state.response.phase == Phase::Started, state.response.trailers);
    drop(state);
    exchange.foresee_close_unread(!trailers);
    if trailers {
        let (sent, _) = send(&mut exchange, false);
        let mut state = this.state();
        state.response.phase = Phase::Trailing;
        state.active.put(exchange);
        return Ok(sent);
    }
    exchange.answered();
    let (_, end) = send(&mut exchange, is_first);
    let end = end.unwrap_or_else(|| exchange.end());
    this.complete(py, exchange, end)?;
    Ok(Sent::Accepted)
}

fn trailers(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let (this, py) = (call.get(), call.py());
    let headers = event.get_item(intern!(py, "headers"))?;
    let more = is_true(event, intern!(py, "more_trailers"))?;
    with(call, |exchange| {
        let takes = takes_trailers(exchange);
        let reply = &mut exchange.request.reply;
        if let Some(headers) = headers.as_ref().filter(|_| takes) {
            each_header(headers, |name, value| reply.trailer(name, value).map_err(fault))?;
        }
        Ok(Sent::Accepted)
    })?;
    if more {
        return Ok(Sent::Accepted);
    }
    let Some(mut exchange) = this.state().active.take() else { return Ok(Sent::Gone) };
    exchange.answered();
    let end = exchange.end();
    this.complete(py, exchange, end)?;
    Ok(Sent::Accepted)
}

/// Whether the client has said that it takes trailers (`TE: trailers`, RFC 9110 section 10.1.4).
fn takes_trailers(exchange: &Exchange) -> bool {
    let request = &*exchange.request;
    let te = request.head.find(request.head_bytes(), b"te").unwrap_or_default();
    te.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(b"trailers"))
}

/// The extension `http.response.pathsend`: the kernel sends the file.
fn pathsend(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let py = call.py();
    let path = event.get_item(intern!(py, "path"))?.ok_or_else(|| missing("http.response.pathsend", "path"))?;
    let path: PathBuf = path.extract()?;
    let (file, length) = tricorn_io::open_file(&path)?;
    finish(call, |exchange, _| {
        let engine = &call.get().ground().shared.engine;
        let length = exchange.request.reply.content_length().map_or(length, |promised| promised.min(length));
        (write_file(call.py(), engine, exchange, file, (0, length), Some(length)), None)
    })
}

/// The extension `http.response.early_hint`: 103 with these links (RFC 8297).
fn early_hint(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let py = call.py();
    let links = event.get_item(intern!(py, "links"))?.ok_or_else(|| missing("http.response.early_hint", "links"))?;
    let mut values = Vec::new();
    for link in links.try_iter()? {
        values.push(bytes_of(&link?)?.as_bytes().to_vec());
    }
    with(call, |exchange| {
        let mut fields = values.iter().map(|value| (b"link".as_slice(), value.as_slice()));
        exchange.interim(103, &mut fields).map_err(fault)
    })
}

/// gunicorn's `http.response.informational`: any interim response.
fn informational(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Sent> {
    let py = call.py();
    let status =
        event.get_item(intern!(py, "status"))?.ok_or_else(|| missing("http.response.informational", "status"))?;
    let status: u16 = status.extract().map_err(|_| wrong(&status, "the status", "an int"))?;
    let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    if let Some(headers) = event.get_item(intern!(py, "headers"))? {
        each_header(&headers, |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            Ok(())
        })?;
    }
    with(call, |exchange| {
        let mut pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        exchange.interim(status, &mut pairs).map_err(fault)
    })
}

/// Works on the exchange, which is elsewhere meanwhile: Python may run, on other threads at least.
fn with(call: &Bound<'_, Call>, work: impl FnOnce(&mut Exchange) -> PyResult<Sent>) -> PyResult<Sent> {
    let taken = call.get().state().active.take();
    let Some(mut exchange) = taken else { return Ok(Sent::Gone) };
    let outcome = work(&mut exchange);
    call.get().state().active.put(exchange);
    outcome
}

/// The client is too far behind: the awaitable ends when it has caught up.
fn wait_for_room(call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
    let (this, py) = (call.get(), call.py());
    this.attend(call);
    let stalled = {
        let mut state = this.state();
        if state.active.is_away() {
            return Done::get(py);
        }
        state.active.stall(&this.ground().shared.engine)
    };
    match stalled {
        None => Ok(Py::new(py, Wait::new(Box::new(ForRoom { call: call.clone().unbind() })))?.into_any()),
        Some(Sent::Gone) => Err(lost(call)?),
        Some(_) => Done::get(py),
    }
}

struct ForRoom {
    call: Py<Call>,
}

impl Awaited for ForRoom {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let call = self.call.bind(py).get();
        if !call.state().active.is_stalled() {
            return Ok(Poll::Ready(py.None()));
        }
        let future = call.ground().tasks.future(py)?;
        call.state().waits.senders.push(future.clone_ref(py));
        Ok(Poll::Pending(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let dropped: Vec<Py<PyAny>> =
            self.call.bind(py).get().state().waits.senders.extract_if(.., |waiting| waiting.is(future)).collect();
        drop(dropped);
    }
}

/// A write found that the client is gone.
fn lost(call: &Bound<'_, Call>) -> PyResult<PyErr> {
    Call::departed(call, Departure::Broken)?;
    Ok(client_disconnected(call.py()))
}

/// What `send` raises when the client has left: an OSError, as the specification asks for.
pub fn client_disconnected(py: Python<'_>) -> PyErr {
    static DISCONNECTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    match DISCONNECTED.import(py, "tricorn.errors", "ClientDisconnected") {
        Ok(kind) => PyErr::from_type(kind.clone(), ("the client has left",)),
        Err(_) => PyOSError::new_err("the client has left"),
    }
}

/// Calls `each` with every name and value.
pub fn each_header(headers: &Bound<'_, PyAny>, mut each: impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
    if let Ok(list) = headers.cast_exact::<PyList>() {
        for index in 0..list.len() {
            one_header(&list.get_item(index)?, &mut each)?;
        }
        return Ok(());
    }
    for item in headers.try_iter()? {
        one_header(&item?, &mut each)?;
    }
    Ok(())
}

fn one_header(item: &Bound<'_, PyAny>, each: &mut impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
    if let Ok([name, value]) = item.cast_exact::<PyTuple>().map(|pair| pair.as_slice()) {
        return each(header_bytes(name)?, header_bytes(value)?);
    }
    let refuse = |_| wrong(item, "a header", "a pair (name, value) of bytes");
    let pair = item.try_iter().map_err(refuse)?.collect::<PyResult<Vec<_>>>().map_err(refuse)?;
    let [name, value] = pair.as_slice() else { return Err(wrong(item, "a header", "a pair (name, value) of bytes")) };
    each(header_bytes(name)?, header_bytes(value)?)
}

fn header_bytes<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a [u8]> {
    let bytes = value.cast::<PyBytes>().map_err(|_| wrong(value, "a header's name and value", "bytes"))?;
    Ok(bytes.as_bytes())
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
