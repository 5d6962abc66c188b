//! From the application's iterable to bytes on the socket.
use super::file::{self, Regular};
use super::handle::Handle;
use super::send::{bytes_of, send, send_part};
use crate::pieces::{Piece, write_file};
use pyo3::exceptions::{PyAssertionError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use tricorn_io::{Engine, Exchange, IsLast, Sent};
use tricorn_proto::response::End;

/// Pieces that are all at hand and no more than this go out as one.
const TOGETHER: u64 = 16 * 1024;

/// How the application's result is sent, and what went wrong.
pub struct Response<'a, 'py> {
    pub handle: &'a Bound<'py, Handle>,
    pub file_wrapper: Option<&'a Bound<'py, PyAny>>,
    pub sendfile: bool,
}

impl<'py> Response<'_, 'py> {
    /// Sends everything the result yields, ends the reply, and calls `close` whatever happened.
    pub fn send(&self, result: &Bound<'py, PyAny>) -> PyResult<Option<End>> {
        if let Some(outcome) = self.send_list(result) {
            return outcome;
        }
        let outcome = match self.send_file(result) {
            Ok(Some(end)) => Ok(Some(end)),
            Ok(None) => self.send_iterable(result),
            Err(error) => Err(error),
        };
        // PEP 3333: "If the iterable returned by the application has a close() method, the server or gateway must call
        // that method upon completion of the current request, whether the request was completed normally, or terminated
        // early".
        let closed = match result.getattr_opt(intern!(result.py(), "close")) {
            Ok(Some(close)) => close.call0().map(|_| ()),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match (outcome, closed) {
            (Err(error), _) => Err(error),
            (Ok(end), Ok(())) => Ok(end),
            (Ok(_), Err(error)) => Err(error),
        }
    }

    /// A list or tuple of `bytes`: all is at hand, so the length is known and the last piece ends the reply.
    fn send_list(&self, result: &Bound<'py, PyAny>) -> Option<PyResult<Option<End>>> {
        let pieces: Vec<Bound<'py, PyBytes>>;
        if let Ok(list) = result.cast_exact::<PyList>() {
            if list.len() == 1
                && let Ok(only) = list.get_item(0)
                && let Ok(only) = only.cast_into_exact::<PyBytes>()
            {
                return Some(self.send_only(&only));
            }
            pieces = list.iter().map(|item| item.cast_into_exact::<PyBytes>().ok()).collect::<Option<_>>()?;
        } else if let Ok(tuple) = result.cast_exact::<PyTuple>() {
            pieces = tuple.iter().map(|item| item.cast_into_exact::<PyBytes>().ok()).collect::<Option<_>>()?;
        } else {
            return None;
        }
        Some(self.send_pieces(&pieces))
    }

    /// Works on the exchange of an application that has called `start_response`. One that has taken the socket for itself has
    /// nothing to send (`StopIteration`).
    fn begun<T>(&self, work: impl FnOnce(&Engine, &mut Exchange) -> PyResult<T>) -> PyResult<T> {
        let handle = self.handle.get();
        let mut exchange = handle.take_back(self.handle.py());
        let outcome = if exchange.request.reply.has_status() {
            work(handle.engine(), &mut exchange)
        } else if exchange.is_elsewhere() {
            Err(PyStopIteration::new_err(()))
        } else {
            Err(PyAssertionError::new_err("the application yielded a body before it called start_response"))
        };
        handle.put(exchange);
        outcome
    }

    fn send_only(&self, piece: &Bound<'py, PyBytes>) -> PyResult<Option<End>> {
        self.begun(|engine, exchange| {
            exchange.answered();
            exchange.foresee_close(engine.config(), true);
            Ok(Some(Piece::all(piece).write_last(engine, exchange)))
        })
    }

    fn send_pieces(&self, pieces: &[Bound<'py, PyBytes>]) -> PyResult<Option<End>> {
        let py = self.handle.py();
        let total = pieces.iter().map(|piece| piece.as_bytes().len() as u64).sum();
        if total <= TOGETHER {
            let all = pieces.iter().map(|piece| piece.as_bytes()).collect::<Vec<_>>().concat();
            return self.send_only(&PyBytes::new(py, &all));
        }
        let Some((last, first)) = pieces.split_last() else { return self.send_only(&PyBytes::new(py, b"")) };
        self.begun(|engine, exchange| {
            exchange.answered();
            exchange.foresee_close(engine.config(), true);
            for piece in first.iter().filter(|piece| !piece.as_bytes().is_empty()) {
                send_part(py, self.handle.get().means(), exchange, piece, Some(total))?;
            }
            Ok(Some(Piece::all(last).write_last(engine, exchange)))
        })
    }

    fn send_iterable(&self, result: &Bound<'py, PyAny>) -> PyResult<Option<End>> {
        let py = result.py();
        let (mut whole, mut is_full, mut is_closed) = (None, false, false);
        for piece in result.try_iter()? {
            let piece = bytes_of(&piece?)?;
            if is_full {
                // PEP 3333, "Handling the Content-Length Header": a server "should stop iterating over the response when
                // enough data has been sent". It asks once more, so that code behind the last piece runs, as it does
                // with gunicorn; an application that goes on has no end.
                break;
            }
            if piece.as_bytes().is_empty() {
                self.handle.get().progressed();
                continue; // the head waits for the first byte (PEP 3333, "The start_response() Callable")
            }
            whole = self.send_if_whole(&piece)?;
            if whole.is_some() {
                is_full = true;
                continue;
            }
            let sent = self.begun(|engine, exchange| {
                let sent = send(py, self.handle.get().means(), exchange, &piece)?;
                is_full = exchange.request.reply.is_full();
                is_closed = engine.ends_stream(exchange);
                Ok(sent)
            })?;
            if sent == Sent::Gone {
                return Ok(None);
            }
            if is_closed {
                return self.begun(|engine, exchange| {
                    engine.close_stream(exchange);
                    Ok(None)
                });
            }
        }
        if whole.is_some() {
            return Ok(whole);
        }
        self.begun(|engine, exchange| {
            exchange.answered();
            exchange.foresee_close(engine.config(), true);
            Ok(Some(if exchange.request.reply.head_sent() {
                exchange.end()
            } else {
                Piece::all(&PyBytes::new(py, b"")).write_last(engine, exchange)
            }))
        })
    }

    /// A first piece that is as long as Content-Length says is the whole body: frameworks answer so, and it ends the reply.
    /// What may follow is beyond the length and not sent.
    fn send_if_whole(&self, piece: &Bound<'py, PyBytes>) -> PyResult<Option<End>> {
        self.begun(|engine, exchange| {
            let reply = &exchange.request.reply;
            let length = piece.as_bytes().len() as u64;
            if reply.head_sent() || reply.content_length() != Some(length) {
                return Ok(None);
            }
            exchange.answered();
            exchange.foresee_close(engine.config(), true);
            Ok(Some(Piece::all(piece).write_last(engine, exchange)))
        })
    }

    /// `wsgi.file_wrapper` around a plain file: the kernel sends it. `None` if this is something else.
    fn send_file(&self, result: &Bound<'py, PyAny>) -> PyResult<Option<End>> {
        let py = result.py();
        let Some(wrapper) = self.file_wrapper.filter(|_| self.sendfile) else { return Ok(None) };
        if !result.get_type().as_any().is(wrapper) {
            return Ok(None); // a subclass may iterate in its own way
        }
        let Some(Regular { fd, offset, size }) = file::regular(&result.getattr(intern!(py, "filelike"))?) else {
            return Ok(None);
        };
        let Ok(file) = tricorn_io::duplicate(fd) else { return Ok(None) };
        if self.begun(|_, exchange| Ok(exchange.request.reply.is_compressed()))? {
            return Ok(None); // the application has called `write` before
        }
        self.begun(|engine, exchange| {
            exchange.answered();
            exchange.foresee_close(engine.config(), true);
            let rest = size.saturating_sub(offset);
            let length = exchange.request.reply.content_length().unwrap_or(rest).min(rest);
            write_file(py, (engine, &mut *exchange), file, (offset, length), Some(rest), IsLast::Yes);
            Ok(Some(exchange.end()))
        })
    }
}
