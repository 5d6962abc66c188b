//! `receive`: connect, the messages, disconnect.
use super::{Event, Phase, Socket};
use crate::loops::{Awaited, Bell, Poll, Ready, Wait};
use crate::text;
use pyo3::exceptions::PyMemoryError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tricorn_proto::websocket::Kind;

/// What `receive()` returns.
pub fn receive(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
    let py = socket.py();
    match next(socket)? {
        Some(event) => Ok(Py::new(py, Ready::new(event))?.into_any()),
        None => Ok(Py::new(py, Wait::new(Box::new(Receive { socket: socket.clone().unbind() })))?.into_any()),
    }
}

struct Receive {
    socket: Py<Socket>,
}

impl Awaited for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let socket = self.socket.bind(py);
        if let Some(event) = next(socket)? {
            return Ok(Poll::Ready(event));
        }
        // All that has come is answered, as far as the application will: now the answers go out.
        if Socket::flush_held(socket)?
            && let Some(event) = next(socket)?
        {
            return Ok(Poll::Ready(event)); // nobody was there to take them
        }
        let bell = socket.get().bell(py)?;
        socket.get().state().waits.receivers.push(bell.clone_ref(py));
        Ok(Poll::Listen(bell))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let dropped: Vec<_> =
            self.socket.bind(py).get().state().waits.receivers.extract_if(.., |waiting| waiting.is(future)).collect();
        drop(dropped);
    }

    fn heard(&self, bell: Py<Bell>) {
        self.socket.get().keep_bell(bell);
    }
}

/// The event that is there, if one is.
fn next(socket: &Bound<'_, Socket>) -> PyResult<Option<Py<PyAny>>> {
    let py = socket.py();
    let mut state = socket.get().state();
    if !std::mem::replace(&mut state.is_connected, true) {
        drop(state);
        return connect(py).map(Some);
    }
    if let Some(link) = &mut state.link
        && let Some(message) = link.take()
    {
        let wants_more = link.wants_more();
        drop(state);
        if wants_more {
            Socket::with(socket, |desk, link| link.go_on(desk, |kind, data| event(py, kind, data)))?;
        }
        return message.map(Some).ok_or_else(|| PyMemoryError::new_err("a WebSocket message"));
    }
    let goodbye = Socket::goodbye(&state);
    let is_refused = state.phase == Phase::Closed && state.link.is_none();
    drop(state);
    match goodbye {
        Some((code, reason)) => disconnect(py, code, &reason).map(Some),
        None if is_refused => disconnect(py, super::ABNORMAL, "").map(Some),
        None => Ok(None),
    }
}

/// `websocket.receive`.
pub fn event(py: Python<'_>, kind: Kind, data: &[u8]) -> Event {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.receive")).ok()?;
    match kind {
        Kind::Text => {
            // SAFETY: the receiver hands out text only after it has seen that it is UTF-8.
            let text = text::utf8(py, unsafe { std::str::from_utf8_unchecked(data) }).ok()?;
            event.set_item(intern!(py, "text"), text).ok()?;
        }
        Kind::Binary => event.set_item(intern!(py, "bytes"), PyBytes::new(py, data)).ok()?,
    }
    Some(event.into_any().unbind())
}

fn connect(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.connect"))?;
    Ok(event.into_any().unbind())
}

fn disconnect(py: Python<'_>, code: u16, reason: &str) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
    event.set_item(intern!(py, "code"), code)?;
    event.set_item(intern!(py, "reason"), reason)?;
    Ok(event.into_any().unbind())
}
