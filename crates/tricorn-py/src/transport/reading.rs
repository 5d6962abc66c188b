//! The request as its protocol reads it: bytes again, framed as the head says. They were checked before: the head is written
//! anew from what passed, so that a second parser cannot find in it what the first did not.
use super::connection::{Reading, State, Transport};
use crate::buffer::bytes_of;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Write;
use tricorn_io::{Departure, Engine, Exchange, Incoming, Read, Turn, clock};
use tricorn_proto::message::{Framing, Known, Method, Refusal, Version};

/// Most bytes read at a time of a connection that speaks another protocol.
const PIECE: usize = 64 * 1024;

/// What a look for more has brought.
enum Found {
    Bytes { departure: Option<Departure> },
    Nothing,
    Gone,
    Refused(Box<Refusal>),
}

/// The head of a request, and what has come of its body with it.
pub fn first_bytes<'py>(
    py: Python<'py>,
    transport: &Transport,
    exchange: &mut Exchange,
) -> PyResult<Bound<'py, PyBytes>> {
    let chunked = exchange.request.head.framing == Framing::Chunked;
    let body = exchange.take_body();
    let body = if body.is_empty() { None } else { Some(bytes_of(py, body)?) };
    let mut scratch = transport.ground.shared.scratch();
    scratch.clear();
    write_head(exchange, &mut scratch);
    if let Some(body) = body {
        frame(&mut scratch, body.as_bytes(), chunked);
    }
    if !exchange.is_partial() && chunked {
        scratch.extend_from_slice(LAST_CHUNK);
    }
    Ok(PyBytes::new(py, &scratch))
}

/// Gives the protocol bytes. What it raises ends its connection.
pub fn give(py: Python<'_>, transport: &Transport, bytes: &Bound<'_, PyBytes>) {
    let Some(protocol) = transport.protocol(py) else { return };
    if let Err(error) = protocol.call_method1(intern!(py, "data_received"), (bytes,)) {
        transport.ground.shared.reporter.error(py, "Error in a connection's protocol".into(), error);
        transport.client_left(py);
    }
}

/// Gives the protocol what has come, as long as it wants any and for a turn at most.
pub fn read(slf: &Bound<'_, Transport>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let shared = &this.ground.shared;
    let turn = Turn::begin(clock::now());
    while !turn.is_over(clock::now()) {
        let (found, bytes) = {
            let mut scratch = shared.scratch();
            scratch.clear();
            let found = this.state().look(&shared.engine, &mut scratch);
            let bytes = if scratch.is_empty() { None } else { Some(PyBytes::new(py, &scratch)) };
            (found, bytes)
        };
        if let Some(bytes) = bytes {
            give(py, this, &bytes);
        }
        match found {
            Found::Bytes { departure: Some(Departure::Overdue | Departure::Broken) } | Found::Gone => {
                this.client_left(py);
                return Ok(());
            }
            Found::Bytes { .. } => {}
            Found::Nothing => return Ok(()),
            Found::Refused(refusal) => {
                this.refuse(py, &refusal);
                return Ok(());
            }
        }
        let is_done = {
            let state = this.state();
            state.reading == Reading::Done && !state.tunnel
        };
        if is_done {
            return this.complete(py);
        }
    }
    read_soon(slf)
}

/// The same in the loop's next turn.
pub fn read_soon(slf: &Bound<'_, Transport>) -> PyResult<()> {
    slf.get().ground.shared.call_soon(&slf.getattr(intern!(slf.py(), "_read"))?, None)
}

impl State {
    /// Looks for more of the request, or of the tunnel; `out` is empty, and is what the protocol is to be given then.
    fn look(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Found {
        if self.paused || self.closed {
            return Found::Nothing;
        }
        if self.tunnel {
            let Some(exchange) = self.active.exchange_mut() else { return Found::Nothing };
            if !self.unread.is_empty() {
                out.append(&mut self.unread);
                return Found::Bytes { departure: None };
            }
            return match exchange.read_raw(out, PIECE) {
                Incoming::Bytes { .. } => Found::Bytes { departure: None },
                Incoming::Wait => Found::Nothing,
                Incoming::Gone | Incoming::Refused(_) => Found::Gone,
            };
        }
        if self.reading != Reading::Open || self.active.is_away() {
            return Found::Nothing;
        }
        let head = CHUNK_HEAD * usize::from(self.chunked);
        out.resize(head, b'0');
        let read = self.active.read(engine, out);
        let count = out.len() - head;
        let found = match read {
            Read::Bytes { last, departure } => {
                if last {
                    self.reading = Reading::Done;
                }
                Found::Bytes { departure }
            }
            Read::Wait { .. } => Found::Nothing,
            Read::Gone => Found::Gone,
            Read::Refused(refusal) => Found::Refused(refusal),
        };
        if self.chunked {
            close_chunk(out, count, self.reading == Reading::Done);
        }
        found
    }
}

/// The head as the protocol is to read it.
fn write_head(exchange: &Exchange, out: &mut Vec<u8>) {
    let head = &exchange.request.head;
    let bytes = exchange.request.head_bytes();
    let is_tunnel = head.kind == Method::Tunnel;
    out.extend_from_slice(if is_tunnel { b"GET" } else { head.method.of(bytes) });
    out.push(b' ');
    out.extend_from_slice(head.target.of(bytes));
    out.extend_from_slice(match head.version {
        Version::Http10 => b" HTTP/1.0\r\n".as_slice(),
        // The library speaks HTTP/1, whatever the client does.
        _ => b" HTTP/1.1\r\n",
    });
    // The library reads HTTP/1: the end of a body of unknown length is told by chunks.
    if head.version == Version::Http2 && head.framing == Framing::Chunked {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    if is_tunnel {
        out.extend_from_slice(UPGRADE);
    }
    for field in &head.fields {
        if head.version == Version::Http10 && field.known == Known::Connection {
            // Keeping the connection is ours. A library that does it for an old client may wait for the next request where
            // the end of the connection is the end of the response (aiohttp does).
            continue;
        }
        out.extend_from_slice(field.name.of(bytes));
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value.of(bytes));
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// An extended CONNECT (RFC 8441), as the library knows it from HTTP/1. Its answer to the key is not sent.
const UPGRADE: &[u8] = b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: dHJpY29ybiBvdmVyIGgyIQ==\r\n";

/// Adds a piece of the body; none is no chunk, which would be the last.
fn frame(out: &mut Vec<u8>, piece: &[u8], chunked: bool) {
    if !chunked {
        out.extend_from_slice(piece);
    } else if !piece.is_empty() {
        let _ = write!(out, "{:x}\r\n", piece.len()); // a vector takes all
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
}

/// Completes a chunk whose bytes stand behind room for its size: with leading zeros, so that nothing is moved.
fn close_chunk(out: &mut Vec<u8>, count: usize, last: bool) {
    if count == 0 {
        out.clear();
    } else {
        let size = format!("{count:016x}\r\n");
        out[..CHUNK_HEAD].copy_from_slice(size.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if last {
        out.extend_from_slice(LAST_CHUNK);
    }
}

/// Sixteen digits and CRLF.
const CHUNK_HEAD: usize = 18;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
