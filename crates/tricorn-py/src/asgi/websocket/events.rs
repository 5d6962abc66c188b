//! The events of a WebSocket, as the application receives them.
use crate::text;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tricorn_proto::websocket::Kind;

/// A message as an event; `None`: there was no memory for it.
pub type Event = Option<Py<PyAny>>;

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

pub fn connect(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.connect"))?;
    Ok(event.into_any().unbind())
}

pub fn disconnect(py: Python<'_>, code: u16, reason: &str) -> PyResult<Py<PyAny>> {
    let event = PyDict::new(py);
    event.set_item(intern!(py, "type"), intern!(py, "websocket.disconnect"))?;
    event.set_item(intern!(py, "code"), code)?;
    event.set_item(intern!(py, "reason"), reason)?;
    Ok(event.into_any().unbind())
}
