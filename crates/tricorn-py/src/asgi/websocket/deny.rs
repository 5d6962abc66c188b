//! The extension `websocket.http.response`: a handshake is answered with a response of the application's own.
use super::super::event::{FINAL, bytes_of, each_header, headers_of, is_true, set_status, status_of};
use super::room::ForRoom;
use super::socket::{Phase, Socket};
use crate::loops::Done;
use crate::pieces::Piece;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use tricorn_io::{Departure, Exchange, Sent};
use tricorn_proto::response::HeadInputs;

pub fn start(socket: &Bound<'_, Socket>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let py = socket.py();
    let status = status_of(event, "websocket.http.response.start", FINAL)?;
    let headers = headers_of(event)?;
    let Some(mut exchange) = socket.get().state().active.take() else { return Done::get(py) };
    let outcome = set_head(&mut exchange, status, headers.as_ref());
    let mut state = socket.get().state();
    state.active.put(exchange);
    outcome?;
    state.phase = Phase::Denying;
    drop(state);
    Done::get(py)
}

fn set_head(exchange: &mut Exchange, status: u16, headers: Option<&Bound<'_, PyList>>) -> PyResult<()> {
    let reply = &mut exchange.request.reply;
    set_status(reply, status)?;
    headers.map_or(Ok(()), |headers| each_header(headers, |name, value| reply.field(name, value)))
}

pub fn body(socket: &Bound<'_, Socket>, event: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let (this, py) = (socket.get(), socket.py());
    let piece = match event.get_item(intern!(py, "body"))? {
        Some(piece) => bytes_of(&piece)?,
        None => PyBytes::new(py, b""),
    };
    let more = is_true(event, intern!(py, "more_body"))?;
    let Some(mut exchange) = this.state().active.take() else { return Done::get(py) };
    let engine = &this.ground.shared.engine;
    let (wall, load) = (exchange.wall.clone(), engine.told_load(&exchange));
    let keep = || Piece::all(&piece).kept();
    let bytes = piece.as_bytes();
    let is_all = !more && !exchange.request.reply.head_sent();
    let body_length = is_all.then_some(bytes.len() as u64);
    // What else the client has sent would be frames: they must not be read as a request.
    let inputs = HeadInputs { close: true, ..engine.head_inputs(&wall, load.as_deref(), body_length) };
    let sent = if is_all {
        exchange.write_last(&inputs, bytes, keep);
        exchange.flush(); // the application may go on
        Sent::Accepted
    } else {
        engine.write(&mut exchange, &inputs, bytes, keep)
    };
    if more {
        this.state().active.put(exchange);
        return match sent {
            Sent::Accepted => Done::get(py),
            Sent::OverMark => wait_for_room(socket),
            Sent::Gone => lost(socket),
        };
    }
    if !is_all {
        exchange.end();
    }
    let status = exchange.request.reply.status_code();
    this.state().is_closed_by_application = true;
    Socket::conclude(socket, exchange, status)?;
    Done::get(py)
}

/// The client is too far behind: the awaitable ends when it has caught up.
fn wait_for_room(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
    let (this, py) = (socket.get(), socket.py());
    this.attend(socket);
    let stalled = {
        let mut state = this.state();
        if state.active.is_away() {
            return Done::get(py);
        }
        state.active.stall(&this.ground.shared.engine)
    };
    match stalled {
        None => ForRoom::wait(socket),
        Some(Sent::Gone) => lost(socket),
        Some(_) => Done::get(py),
    }
}

/// A write found that the client is gone.
fn lost(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
    Socket::departed(socket, Departure::Broken)?;
    socket.get().disconnected(socket.py())
}
