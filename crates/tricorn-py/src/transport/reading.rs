//! The request as its protocol reads it: bytes again, framed as the head says. They were checked before: the head is written
//! anew from what passed, so that a second parser cannot find in it what the first did not.
use super::connection::{Reading, State, Transport};
use super::gateway::{Ending, Told};
use crate::report::request_line;
use crate::wsgi::BytesBuffer;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::Write;
use tricorn_io::{Body, Engine, Exchange, Incoming};
use tricorn_proto::http1::{Framing, Known, Refusal, Version};

/// Most pieces read in a row; then others get their turn.
const BURST: usize = 8;
/// Most bytes read at a time of a connection that speaks another protocol.
const PIECE: usize = 64 * 1024;

/// What a look for more has brought.
enum Found {
    Bytes,
    Nothing,
    Gone,
    Refused(Box<Refusal>),
}

impl Transport {
    /// A request begins: the protocol is given its head, and what has come of its body.
    pub fn take(slf: &Bound<'_, Transport>, mut exchange: Box<Exchange>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let ground = &this.ground;
        let chunked = exchange.request.head.framing == Framing::Chunked;
        let body = exchange.take_body();
        let partial = exchange.is_partial();
        let bytes = {
            let mut scratch = ground.scratch();
            scratch.clear();
            write_head(&exchange, &mut scratch);
            let mut add = |piece: &[u8]| frame(&mut scratch, piece, chunked);
            match body {
                Body::Empty => {}
                Body::Memory(piece) => add(&piece),
                Body::Foreign(buffer) => {
                    let buffer = buffer.into_any().downcast::<BytesBuffer>().map_err(|_| misplaced())?;
                    add(buffer.into_bytes(py)?.as_bytes());
                }
                Body::Spooled(_) => return Err(misplaced()),
            }
            if !partial && chunked {
                scratch.extend_from_slice(LAST_CHUNK);
            }
            PyBytes::new(py, &scratch)
        };
        let told = match ground.tell_before(py, &exchange, this.peer) {
            Ok(told) => told,
            Err((error, told)) => {
                this.not_asked(py, exchange, error, told);
                return Ok(());
            }
        };
        ground.attend(&exchange, slf.clone().unbind());
        {
            let mut guard = this.state();
            let State { dictation, .. } = std::mem::take(&mut *guard);
            *guard = State { dictation, chunked, told, ..State::default() };
            let state = &mut *guard;
            state.dictation.begin(exchange.request.head.kind);
            state.reading = match (partial, exchange.request.head.expect_continue) {
                (false, _) => Reading::Done,
                (true, true) => Reading::Asked,
                (true, false) => Reading::Open,
            };
            state.exchange = Some(exchange);
        }
        Transport::give(slf, &bytes)?;
        if partial { Transport::read(slf) } else { Ok(()) }
    }

    /// A hook has refused a request that the protocol was not told of: 500, and the connection is closed.
    fn not_asked(&self, py: Python<'_>, mut exchange: Box<Exchange>, error: PyErr, told: Option<Told>) {
        exchange.app_failed();
        exchange.answer_error(500, "");
        let text = format!("Error handling request {}", request_line(&exchange));
        self.ground.reporter.error(py, text, error);
        self.lose(py, None);
        exchange.client.attachment = None;
        self.ground.conclude(py, exchange, Ending { remote: &self.remote, sent: None, told });
    }

    /// Gives the protocol bytes. What it raises ends its connection.
    fn give(slf: &Bound<'_, Transport>, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let Some(protocol) = this.protocol(py) else { return Ok(()) };
        if let Err(error) = protocol.call_method1(intern!(py, "data_received"), (bytes,)) {
            this.ground.reporter.error(py, "Error in the protocol of a connection".into(), error);
            return this.client_left(py);
        }
        Ok(())
    }

    /// Gives the protocol what has come, as long as it wants any.
    pub fn read(slf: &Bound<'_, Transport>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        for _ in 0..BURST {
            let (found, bytes) = {
                let mut scratch = this.ground.scratch();
                scratch.clear();
                let found = this.state().look(&this.ground.engine, &mut scratch);
                let bytes = if scratch.is_empty() { None } else { Some(PyBytes::new(py, &scratch)) };
                (found, bytes)
            };
            if let Some(bytes) = bytes {
                Transport::give(slf, &bytes)?;
            }
            match found {
                Found::Bytes => {}
                Found::Nothing => return Ok(()),
                Found::Gone => return this.client_left(py),
                Found::Refused(refusal) => return this.refuse(py, &refusal),
            }
            let (is_done, hung_up) = {
                let state = this.state();
                (state.reading == Reading::Done && !state.tunnel, state.hung_up)
            };
            if is_done {
                this.complete(py)?;
                return if hung_up { this.client_left(py) } else { Ok(()) };
            }
        }
        Transport::read_soon(slf)
    }

    pub fn read_soon(slf: &Bound<'_, Transport>) -> PyResult<()> {
        slf.get().ground.call_soon(&slf.getattr(intern!(slf.py(), "_read"))?, None)
    }
}

impl State {
    /// Looks for more of the request, or of the tunnel; `out` is empty, and is what the protocol is to be given then.
    fn look(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Found {
        if self.paused || self.closed {
            return Found::Nothing;
        }
        let Some(exchange) = &mut self.exchange else { return Found::Nothing };
        if self.tunnel {
            if !self.unread.is_empty() {
                out.append(&mut self.unread);
                return Found::Bytes;
            }
            return match exchange.read_raw(out, PIECE) {
                Incoming::Bytes { .. } => Found::Bytes,
                Incoming::Wait => Found::Nothing,
                Incoming::Gone | Incoming::Refused(_) => Found::Gone,
            };
        }
        if self.reading != Reading::Open {
            return Found::Nothing;
        }
        let head = CHUNK_HEAD * usize::from(self.chunked);
        out.resize(head, b'0');
        let incoming = engine.read_body(exchange, out);
        let count = out.len() - head;
        let found = match incoming {
            Incoming::Bytes { last } => {
                if last {
                    self.reading = Reading::Done;
                }
                Found::Bytes
            }
            Incoming::Wait => Found::Nothing,
            Incoming::Gone => Found::Gone,
            Incoming::Refused(refusal) => Found::Refused(refusal),
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
    out.extend_from_slice(head.method.of(bytes));
    out.push(b' ');
    out.extend_from_slice(head.target.of(bytes));
    out.extend_from_slice(match head.version {
        Version::Http10 => b" HTTP/1.0\r\n".as_slice(),
        Version::Http11 => b" HTTP/1.1\r\n",
    });
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

fn misplaced() -> PyErr {
    PyRuntimeError::new_err("a body that streams is not where it should be (defect of tricorn)")
}

/// Sixteen digits and CRLF.
const CHUNK_HEAD: usize = 18;
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
