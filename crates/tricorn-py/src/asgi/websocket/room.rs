//! The wait of an application for a client that is too far behind.
use super::socket::Socket;
use crate::loops::{Awaited, LoopFuture, Poll, Wait};
use pyo3::prelude::*;

/// The awaitable of a `send` whose client is too far behind.
pub struct ForRoom {
    socket: Py<Socket>,
}

impl ForRoom {
    pub fn wait(socket: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
        let room = ForRoom { socket: socket.clone().unbind() };
        Ok(Py::new(socket.py(), Wait::new(Box::new(room)))?.into_any())
    }
}

impl Awaited for ForRoom {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let this = self.socket.bind(py).get();
        let is_full = {
            let state = this.state();
            let open = state.link.as_ref().zip(state.active.exchange());
            state.active.is_stalled() || open.is_some_and(|(link, exchange)| link.is_full(exchange))
        };
        if !is_full {
            return Ok(Poll::Ready(py.None()));
        }
        let future = this.future(py)?;
        this.state().waits.senders.push(future.clone_ref(py));
        Ok(Poll::Listen(future))
    }

    fn forget(&self, py: Python<'_>, future: &Py<PyAny>) {
        let dropped: Vec<_> =
            self.socket.bind(py).get().state().waits.senders.extract_if(.., |waiting| waiting.is(future)).collect();
        drop(dropped);
    }

    fn heard(&self, future: Py<LoopFuture>) {
        self.socket.get().keep_future(future);
    }
}
