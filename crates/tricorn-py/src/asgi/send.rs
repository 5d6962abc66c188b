//! `send`: the application's events become the response. What can be done at once is done in the call itself.
use super::call::{Call, Phase, State};
use super::event::{
    FINAL, bytes_of, copied_headers, each_header, fault, headers_of, is_true, missing, set_status, status_of, wrong,
};
use super::failure::worker_leaves;
use crate::loops::{AfterTurn, Awaited, Done, Poll, Wait};
use crate::pieces::{Piece, write_file};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::io;
use std::path::{Path, PathBuf};
use tricorn_io::{Departure, Exchange, IsLast, Opened, Opening, Sent};
use tricorn_proto::response::End;

/// What `send(event)` returns.
pub fn send(call: &Bound<'_, Call>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    let event = event.cast::<PyDict>().map_err(|_| wrong(event, "an event", "a dict"))?;
    let kind = event.get_item(intern!(py, "type"))?.ok_or_else(|| PyValueError::new_err("an event without a type"))?;
    let kind = kind.cast_into::<PyString>().map_err(|_| PyTypeError::new_err("an event's type must be a str"))?;
    let kind = kind.to_str()?;
    let verdict = verdict(kind, &call.get().state())?;
    match verdict {
        Verdict::Go => {}
        Verdict::Ignore => return ignored(py),
        Verdict::Gone => return discard(call, kind, event),
    }
    let (sent, moved) = match kind {
        "http.response.body" => body(call, event)?,
        "http.response.start" => (start(call, event)?, 0),
        "http.response.trailers" => (trailers(call, event)?, 0),
        "http.response.pathsend" => return pathsend(call, event),
        "http.response.early_hint" => (early_hint(call, event)?, 0),
        _ => (informational(call, event)?, 0),
    };
    was_sent(call, sent, moved)
}

fn was_sent(call: &Bound<'_, Call>, sent: Sent, moved: usize) -> PyResult<Py<PyAny>> {
    match sent {
        Sent::Accepted => accepted(call, moved),
        Sent::Gone => lost(call),
        Sent::OverMark => wait_for_room(call),
    }
}

/// It is done, and the application goes on: a client that reads as fast as it is sent to never makes it wait.
#[inline]
fn accepted(call: &Bound<'_, Call>, moved: usize) -> PyResult<Py<PyAny>> {
    let shared = &call.get().ground().shared;
    if shared.goes_on(moved) && shared.gives_way() { AfterTurn::nothing(call.py()) } else { Done::get(call.py()) }
}

/// Nothing is done; the loop turns first, since an application that goes on sending would otherwise never let it.
#[cold]
fn ignored(py: Python<'_>) -> PyResult<Py<PyAny>> {
    AfterTurn::nothing(py)
}

/// What becomes of an event.
enum Verdict {
    Go,
    Ignore,
    /// The connection is broken: nothing that is sent arrives.
    Gone,
}

/// Events come in the order of the specification; others are told what was expected. What comes after the response is
/// ignored ("any further messages on the channel will be ignored"), and so is what comes in another order from an application
/// whose client has left: it may be the end of one response and the beginning of the next, as in the endpoints of MCP.
fn verdict(kind: &str, state: &State) -> PyResult<Verdict> {
    if state.response.phase == Phase::Done {
        return Ok(Verdict::Ignore);
    }
    if state.received.gone && state.active.exchange().is_none_or(Exchange::is_gone) {
        return Ok(Verdict::Gone);
    }
    let fits = match kind {
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
    if state.received.gone {
        return Ok(Verdict::Ignore);
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
    let status = status_of(event, "http.response.start", FINAL)?;
    let headers = headers_of(event)?;
    let trailers = is_true(event, intern!(py, "trailers"))?;
    if call.get().state().response.phase != Phase::Awaited {
        return Err(PyRuntimeError::new_err("another response was begun while its headers were read"));
    }
    let sent = with(call, |exchange| {
        let has_trailers = trailers && takes_trailers(exchange);
        let reply = &mut exchange.request.reply;
        set_status(reply, status)?;
        if let Some(headers) = &headers {
            each_header(headers, |name, value| match has_trailers && name.eq_ignore_ascii_case(b"trailer") {
                true => reply.announce_trailers(value),
                false => reply.field(name, value),
            })?;
        }
        Ok(Sent::Accepted)
    })?;
    let mut state = call.get().state();
    (state.response.phase, state.response.trailers) = (Phase::Started, trailers);
    drop(state);
    Call::send_head_soon(call)?;
    Ok(sent)
}

/// And how many bytes these are.
fn body(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<(Sent, usize)> {
    let py = call.py();
    let piece = match event.get_item(intern!(py, "body"))? {
        Some(piece) => bytes_of(&piece)?,
        None => PyBytes::new(py, b""),
    };
    let moved = piece.as_bytes().len();
    let more = is_true(event, intern!(py, "more_body"))?;
    if more {
        {
            let mut state = call.get().state();
            if state.is_closed() {
                return Err(worker_leaves(py));
            }
            state.response.phase = Phase::Streaming;
        }
        let engine = &call.get().ground().shared.engine;
        let sent = with(call, |exchange| {
            exchange.foresee_close_unread(false);
            Ok(Piece::all(&piece).write(engine, exchange, None))
        })?;
        call.get().state().active.wrote(engine);
        return Ok((sent, moved));
    }
    last_bytes(call, &piece).map(|sent| (sent, moved))
}

/// The last of a body.
fn last_bytes(call: &Bound<'_, Call>, piece: &Bound<'_, PyBytes>) -> PyResult<Sent> {
    finish(call, |exchange, is_first| {
        if is_first {
            return (Sent::Accepted, Some(Piece::all(piece).write_last(&call.get().ground().shared.engine, exchange)));
        }
        let sent = if piece.as_bytes().is_empty() && exchange.request.reply.head_sent() {
            Sent::Accepted
        } else {
            Piece::all(piece).write(&call.get().ground().shared.engine, exchange, None)
        };
        (sent, None)
    })
}

/// Sends the last of the body with `send`, which is told whether it is the first, too; and ends the response if it has not,
/// unless trailers are to follow.
fn finish(call: &Bound<'_, Call>, send: impl FnOnce(&mut Exchange, bool) -> (Sent, Option<End>)) -> PyResult<Sent> {
    let (this, py) = (call.get(), call.py());
    let mut state = this.state();
    let mut exchange = state.active.take().ok_or_else(at_work)?;
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
    let headers = headers_of(event)?;
    let more = is_true(event, intern!(py, "more_trailers"))?;
    with(call, |exchange| {
        let takes = takes_trailers(exchange);
        let reply = &mut exchange.request.reply;
        if let Some(headers) = headers.as_ref().filter(|_| takes) {
            each_header(headers, |name, value| reply.trailer(name, value))?;
        }
        Ok(Sent::Accepted)
    })?;
    if more {
        return Ok(Sent::Accepted);
    }
    let mut exchange = this.state().active.take().ok_or_else(at_work)?;
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

/// The extension `http.response.pathsend`: the kernel sends the file. One that the kernel's caches know is opened at once; any other by a
/// job, as its disk may hang.
fn pathsend(call: &Bound<'_, Call>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let py = call.py();
    let path = event.get_item(intern!(py, "path"))?.ok_or_else(|| missing("http.response.pathsend", "path"))?;
    let path: PathBuf = path.extract()?;
    if let Some(opened) = py.detach(|| tricorn_io::open_cached(&path)) {
        let sent = send_opened(call, opened)?;
        return was_sent(call, sent, 0);
    }
    call.get().attend(call);
    let opening = {
        let state = call.get().state();
        let exchange = state.active.exchange().ok_or_else(at_work)?;
        call.get().ground().shared.engine.open_file(exchange, path.clone())
    };
    Ok(Py::new(py, Wait::new(Box::new(ForFile { call: call.clone().unbind(), opening, path })))?.into_any())
}

/// Sends a file, which ends the response.
fn send_opened(call: &Bound<'_, Call>, opened: Opened) -> PyResult<Sent> {
    let py = call.py();
    let (file, length) = match opened {
        Opened::Stored(file, length) => (file, length),
        Opened::Made(bytes) => {
            let mut promised = None;
            with(call, |exchange| {
                promised = exchange.request.reply.content_length();
                Ok(Sent::Accepted)
            })?;
            let most = promised.and_then(|promised| usize::try_from(promised).ok()).unwrap_or(bytes.len());
            return last_bytes(call, &PyBytes::new(py, &bytes[..most.min(bytes.len())]));
        }
    };
    finish(call, |exchange, _| {
        let engine = &call.get().ground().shared.engine;
        let length = exchange.request.reply.content_length().map_or(length, |promised| promised.min(length));
        (write_file(py, (engine, exchange), file, (0, length), Some(length), IsLast::Yes), None)
    })
}

/// A file that is being opened, and then sent.
struct ForFile {
    call: Py<Call>,
    opening: Opening,
    path: PathBuf,
}

impl Awaited for ForFile {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let call = self.call.bind(py);
        let future = call.get().ground().tasks.future(py)?;
        {
            let mut state = call.get().state();
            if state.response.phase == Phase::Done || state.active.exchange().is_none_or(Exchange::is_gone) {
                return Ok(Poll::Ready(py.None()));
            }
            // Before the look: what comes behind it wakes the future.
            state.waits.senders.push(future.clone_ref(py));
        }
        let Some(opened) = self.opening.take() else { return Ok(Poll::Pending(future)) };
        self.forget(py, &future);
        send_opened(call, opened.map_err(|error| named(py, &error, &self.path))?)?;
        Ok(Poll::Ready(py.None()))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        forget_sender(self.call.bind(py), future);
    }
}

/// This future waits no longer for anything that a `send` needs.
fn forget_sender(call: &Bound<'_, Call>, future: &Py<PyAny>) {
    let dropped: Vec<Py<PyAny>> =
        call.get().state().waits.senders.extract_if(.., |waiting| waiting.is(future)).collect();
    drop(dropped);
}

/// The error of a file, with its number and name: `FileNotFoundError` and the like, as `open()` raises them.
#[cold]
fn named(py: Python<'_>, error: &io::Error, path: &Path) -> PyErr {
    let Some(number) = error.raw_os_error() else { return PyOSError::new_err(format!("{}: {error}", path.display())) };
    let text = py.import("os").and_then(|os| os.call_method1("strerror", (number,))).map(Bound::unbind);
    match text {
        Ok(text) => PyOSError::new_err((number, text, path.as_os_str().to_os_string())),
        Err(error) => error,
    }
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
    let status = status_of(event, "http.response.informational", 100..=199)?;
    let fields = copied_headers(event)?;
    with(call, |exchange| {
        let mut pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        exchange.interim(status, &mut pairs).map_err(fault)
    })
}

/// Works on the exchange, which is elsewhere meanwhile: Python may run, on other threads at least.
fn with(call: &Bound<'_, Call>, work: impl FnOnce(&mut Exchange) -> PyResult<Sent>) -> PyResult<Sent> {
    let mut exchange = call.get().state().active.take().ok_or_else(at_work)?;
    let outcome = work(&mut exchange);
    call.get().state().active.put(exchange);
    outcome
}

fn at_work() -> PyErr {
    PyRuntimeError::new_err("send() was called while another send() of the same request was at work")
}

/// Discards an event whose client is gone; only how far the response is counts. As HTTP specification 2.3 has it, nothing is
/// raised.
#[cold]
fn discard(call: &Bound<'_, Call>, kind: &str, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let (this, py) = (call.get(), call.py());
    let more = kind == "http.response.body" && is_true(event, intern!(py, "more_body"))?;
    let mut state = this.state();
    match kind {
        "http.response.start" if state.response.phase == Phase::Awaited => {
            state.response.phase = Phase::Started;
            // An answer that begins now has a grace of its own, to come to its end.
            state.departed.is_overdue = !state.active.renew_grace(&this.ground().shared.engine);
        }
        "http.response.body" if more => {
            state.response.phase = Phase::Streaming;
            let cancels_all = this.ground().cancels_all();
            // The first of these pieces may be all there is, as behind BaseHTTPMiddleware.
            let departed = &mut state.departed;
            let goes_on = std::mem::replace(&mut departed.is_sending, true);
            departed.dropped = departed.dropped.saturating_add(1);
            let (has_turned, holds_loop) = (departed.dropped == 1, departed.dropped >= DROPPED_IN_A_ROW);
            // One that was told, and ends by itself, has its grace; one that only sends has nothing to send to.
            let is_due = if departed.is_told {
                goes_on && departed.is_overdue
            } else {
                departed.is_overdue || goes_on && !cancels_all
            };
            let cancels = is_due && has_turned && (cancels_all || departed.is_heard());
            drop(state);
            if has_turned {
                this.ground().tasks.call_soon(&call.getattr(intern!(py, "loop_has_turned"))?)?;
            }
            if cancels {
                this.cancel(py)?;
            }
            if !holds_loop {
                // A task that is cancelled while it waits in its generator closes the generator. Cancelled while it waits in here,
                // it leaves that to the garbage collector, and goes on to its background task before.
                return Done::get(py);
            }
        }
        "http.response.body" | "http.response.pathsend" | "http.response.trailers" => {
            let exchange = state.active.take();
            drop(state);
            if let Some(mut exchange) = exchange {
                exchange.abort();
                this.conclude(py, exchange)?;
            }
        }
        _ => {}
    }
    ignored(py)
}

/// Pieces that are dropped at once, of a task that waits for nothing of its own in between; then the loop turns.
const DROPPED_IN_A_ROW: u32 = 64;

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
        Some(Sent::Gone) => lost(call),
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
        forget_sender(self.call.bind(py), future);
    }
}

/// A write found that the client is gone.
fn lost(call: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
    Call::departed(call, Departure::Broken)?;
    // As a piece that is dropped: see [`discard`].
    Done::get(call.py())
}
