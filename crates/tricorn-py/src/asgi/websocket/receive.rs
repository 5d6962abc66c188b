//! `receive`: connect, the messages, disconnect.
//!
//! A client that sends without pause always has a message there: the task gives the loop to others after a turn (`Streak`).
use super::events::{connect, disconnect, event};
use super::socket::{ABNORMAL, Phase, Socket};
use crate::loops::{AfterTurn, Awaited, LoopFuture, Poll, Ready, Wait};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

/// What `receive()` returns.
pub fn receive(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
    let py = socket.py();
    if is_asked_again(socket) {
        socket.get().told_again(py)?;
        let socket = socket.clone().unbind();
        return AfterTurn::of(py, move |py| goodbye(socket.bind(py)));
    }
    match next(socket)? {
        Some(event) => Ok(Py::new(py, Ready::new(event))?.into_any()),
        None => Ok(Py::new(py, Wait::new(Box::new(Receive { socket: socket.clone().unbind() })))?.into_any()),
    }
}

/// Whether the application was told that the connection is over, and nothing else is there for it.
fn is_asked_again(socket: &Bound<'_, Socket>) -> bool {
    let state = socket.get().state();
    state.departed.is_told && state.link.as_ref().is_none_or(|link| !link.session().has_messages())
}

struct Receive {
    socket: Py<Socket>,
}

impl Awaited for Receive {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let socket = self.socket.bind(py);
        if socket.get().ground.shared.gives_way() {
            return Ok(Poll::Turn);
        }
        if let Some(event) = next(socket)? {
            return Ok(Poll::Ready(event));
        }
        // All that has come is answered, as far as the application will: now the answers go out.
        if Socket::flush_held(socket)?
            && let Some(event) = next(socket)?
        {
            return Ok(Poll::Ready(event)); // no receiver was there to take them
        }
        let future = socket.get().future(py)?;
        socket.get().state().waits.receivers.push(future.clone_ref(py));
        Ok(Poll::Listen(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let dropped: Vec<_> =
            self.socket.bind(py).get().state().waits.receivers.extract_if(.., |waiting| waiting.is(future)).collect();
        drop(dropped);
    }

    fn heard(&self, future: Py<LoopFuture>) {
        self.socket.get().keep_future(future);
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
    let shared = &socket.get().ground.shared;
    if shared.is_interrupted() {
        return Ok(None);
    }
    if let Some(link) = &mut state.link
        && let Some(message) = link.take()
    {
        let wants_more = link.wants_more();
        drop(state);
        let mut read = 0;
        if wants_more {
            let more = Socket::with(socket, |desk, link| link.go_on(desk, |kind, data| event(py, kind, data)))?;
            read = more.unwrap_or(0);
        }
        shared.goes_on(read);
        return message.map(Some).ok_or_else(|| PyMemoryError::new_err("a WebSocket message"));
    }
    let is_refused = state.phase == Phase::Closed && state.link.is_none();
    let is_over = is_refused || Socket::goodbye(&state).is_some();
    drop(state);
    if is_over { goodbye(socket).map(Some) } else { Ok(None) }
}

/// The last event.
fn goodbye(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
    let mut state = socket.get().state();
    state.departed.is_told = true;
    let (code, reason) = Socket::goodbye(&state).unwrap_or((ABNORMAL, String::new()));
    drop(state);
    disconnect(socket.py(), code, &reason)
}
