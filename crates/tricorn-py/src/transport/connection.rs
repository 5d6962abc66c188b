//! One connection as its protocol sees it: its state, and how its requests end.
//!
//! ```text
//!   Idle ──request──▶ Busy ──response and request complete──▶ Idle
//!     │                 ├──101──▶ Tunnel ──either end──▶ Closed
//!     └──closed─────────┴──close(), client gone, refused──▶ Closed
//! ```
//!
//! Python is never run while the state is locked.
use super::ground::Ground;
use super::lost::LostProtocols;
use crate::ends::{local_address, peer_address};
use crate::loops::{Ending, Remote, Stream, Told};
use crate::report::told_to_end;
use crate::sync::lock;
use pyo3::exceptions::{PyConnectionResetError, PyTimeoutError};
use pyo3::intern;
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tricorn_io::{Active, Attachment, Chores, Exchange};
use tricorn_proto::http1::{Left, ResponseParser};
use tricorn_proto::message::Refusal;

/// How far the request has come to the protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reading {
    /// The client waits to be told that it may send its body.
    Asked,
    /// There is more to come.
    Open,
    /// All of it is there.
    #[default]
    Done,
}

#[derive(Default)]
pub struct State {
    /// The request under way, if there is one.
    pub active: Active,
    pub parser: ResponseParser,
    pub reading: Reading,
    /// The protocol is given the body in chunks.
    pub chunked: bool,
    /// The protocol wants no more for now.
    pub paused: bool,
    /// The response is complete.
    pub answered: bool,
    /// It is to end after the event that is being written, since the worker leaves.
    pub ends_soon: bool,
    /// The response said that the connection ends with it: its protocol closes the transport when its handler is done.
    pub will_close: bool,
    /// The connection speaks another protocol.
    pub tunnel: bool,
    /// Bytes written to it.
    pub tunnelled: u64,
    /// What the client sent of it behind its request.
    pub unread: Vec<u8>,
    /// The protocol has closed the transport, or lost it.
    pub closed: bool,
    /// What the hooks were told.
    pub told: Told,
    /// The protocol's own request, until its response begins: it knows its route by then.
    pub request: Option<Py<PyAny>>,
}

/// The transport of one connection.
#[pyclass(frozen, weakref, module = "tricorn._core")]
pub struct Transport {
    pub ground: Arc<Ground>,
    pub peer: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    /// The client's address in text, for the access log.
    remote: Box<[u8]>,
    protocol: Mutex<Option<Py<PyAny>>>,
    /// The protocol was told to pause.
    holds_writer: AtomicBool,
    state: Mutex<State>,
}

impl Transport {
    /// A connection's first request: it gets its protocol, which `factory` makes.
    pub fn open(
        py: Python<'_>,
        ground: Arc<Ground>,
        exchange: &Exchange,
        factory: &Py<PyAny>,
    ) -> PyResult<Py<Transport>> {
        let peer = peer_address(exchange);
        let local = local_address(&ground.shared.engine, exchange);
        let remote = peer.map(|address| address.ip().to_string()).unwrap_or_default();
        let transport = Transport {
            ground,
            peer,
            local,
            remote: remote.into_bytes().into(),
            protocol: Mutex::default(),
            holds_writer: AtomicBool::new(false),
            state: Mutex::default(),
        };
        let transport = Py::new(py, transport)?;
        let known = transport.bind(py).as_any();
        transport.get().ground.inside(known, || {
            let protocol = factory.call0(py)?;
            transport.get().replace_protocol(protocol.clone_ref(py));
            protocol.call_method1(py, intern!(py, "connection_made"), (&transport,))
        })?;
        Ok(transport)
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Whether the protocol takes another request.
    pub fn is_open(&self) -> bool {
        !self.state().closed
    }

    pub fn protocol<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        lock(&self.protocol).as_ref().map(|protocol| protocol.bind(py).clone())
    }

    pub fn replace_protocol(&self, protocol: Py<PyAny>) {
        let before = lock(&self.protocol).replace(protocol);
        drop(before);
    }

    /// Nothing holds the protocol up any more, if something did.
    pub fn resume_writing(&self, py: Python<'_>) -> PyResult<()> {
        match self.protocol(py).filter(|_| self.holds_writer.swap(false, Ordering::Relaxed)) {
            Some(protocol) => protocol.call_method0(intern!(py, "resume_writing")).map(drop),
            None => Ok(()),
        }
    }

    /// The protocol is to wait; it is told once (aiohttp asserts that), though its client may fall behind while it gives way.
    pub fn pause_writing(&self, py: Python<'_>) -> PyResult<()> {
        match self.protocol(py).filter(|_| !self.holds_writer.swap(true, Ordering::Relaxed)) {
            Some(protocol) => protocol.call_method0(intern!(py, "pause_writing")).map(drop),
            None => Ok(()),
        }
    }

    /// The response is complete, or the request is: when both are, the connection is the reactor's again.
    pub fn complete(&self, py: Python<'_>) -> PyResult<()> {
        let (exchange, mut is_open) = {
            let mut state = self.state();
            if !state.answered || (state.reading != Reading::Done && !state.closed) {
                return Ok(());
            }
            state.active.end();
            (state.active.take(), !state.closed)
        };
        let Some(mut exchange) = exchange else { return Ok(()) };
        if self.holds_writer.load(Ordering::Relaxed) {
            self.resume_writing(py)?;
            is_open = self.is_open();
        }
        if self.ground.is_leaving() {
            self.lose(py, None);
            is_open = false;
        }
        if !is_open {
            exchange.client.attachment = None;
        }
        self.conclude(py, exchange);
        Ok(())
    }

    /// The protocol closes the transport.
    pub fn end(&self, py: Python<'_>, at_once: bool) -> PyResult<()> {
        let exchange = {
            let mut guard = self.state();
            let state = &mut *guard;
            if std::mem::replace(&mut state.closed, true) {
                return Ok(());
            }
            let left = state.parser.close();
            match state.active.take() {
                Some(exchange) if state.answered => {
                    // Whether the rest of the request lets the connection be used again, the reactor sees.
                    state.active.put(exchange);
                    None
                }
                Some(mut exchange) if left == Left::Complete && !at_once && !state.tunnel => {
                    exchange.answered();
                    exchange.end();
                    state.answered = true;
                    state.active.put(exchange);
                    None
                }
                other => other,
            }
        };
        self.lose(py, None);
        match exchange {
            Some(mut exchange) => {
                exchange.abort();
                self.drop_connection(py, exchange);
                Ok(())
            }
            None => self.complete(py),
        }
    }

    /// The client has left: the protocol is told, and its response is dropped.
    pub fn client_left(&self, py: Python<'_>) {
        let Some(mut exchange) = self.take() else { return };
        self.lose(py, None);
        exchange.abort();
        self.drop_connection(py, exchange);
    }

    /// The worker leaves: the response ends here, and the protocol is told that its connection is gone.
    pub fn close_stream(&self, py: Python<'_>) {
        let Some(mut exchange) = self.take() else { return };
        self.lose(py, None);
        self.ground.shared.engine.close_stream(&mut exchange);
        self.drop_connection(py, exchange);
    }

    /// The request's body is not as it should be, or does not come.
    pub fn refuse(&self, py: Python<'_>, refusal: &Refusal) {
        let Some(mut exchange) = self.take() else { return };
        self.ground.shared.engine.refuse(&mut exchange, refusal);
        self.lose(py, Some(PyConnectionResetError::new_err(refusal.message())));
        self.drop_connection(py, exchange);
    }

    /// The request took too long: the client is answered, and the protocol told that its connection is gone.
    pub fn is_late(&self, py: Python<'_>, slot: usize) {
        let engine = &self.ground.shared.engine;
        let text = if engine.was_cancelled(slot) { "the request was cancelled" } else { "request_timeout is over" };
        let why = PyTimeoutError::new_err(text);
        self.failed(py, told_to_end(py, engine, slot), true, Some(why));
    }

    /// The request ends with this error of the application; its protocol is told `why` its connection is gone.
    #[cold]
    pub fn failed(&self, py: Python<'_>, error: PyErr, is_late: bool, why: Option<PyErr>) {
        let Some(mut exchange) = self.take() else { return };
        self.ground.shared.reporter.failed(py, &mut exchange, error, is_late);
        self.lose(py, why);
        self.drop_connection(py, exchange);
    }

    /// A hook has refused a request that the protocol was not told of: 500, and the connection is closed.
    pub fn not_asked(&self, py: Python<'_>, mut exchange: Box<Exchange>, error: PyErr, told: Told) {
        self.ground.shared.reporter.failed(py, &mut exchange, error, false);
        self.lose(py, None);
        exchange.client.attachment = None;
        self.state().told = told;
        self.conclude(py, exchange);
    }

    fn take(&self) -> Option<Box<Exchange>> {
        self.state().active.take()
    }

    /// The request is over, and with it the connection.
    fn drop_connection(&self, py: Python<'_>, mut exchange: Box<Exchange>) {
        exchange.client.attachment = None;
        self.conclude(py, exchange);
    }

    fn conclude(&self, py: Python<'_>, exchange: Box<Exchange>) {
        let (told, sent) = {
            let mut state = self.state();
            state.active.end();
            (std::mem::take(&mut state.told), state.tunnel.then_some(state.tunnelled))
        };
        let ending = Ending { remote: Remote::Is(&self.remote), status: None, sent, called: true, told };
        // Most requests end outside of the server's turn. What their connections leave would wait there for the monitor, which
        // wakes the loop for it.
        if self.ground.end(py, exchange, ending) {
            do_chores(&self.ground, py, self.ground.shared.engine.take_chores());
        }
    }

    /// The protocol has no connection any more, and is told so soon, once.
    pub fn lose(&self, py: Python<'_>, why: Option<PyErr>) {
        let request = {
            let mut state = self.state();
            state.closed = true;
            state.request.take()
        };
        drop(request); // it refers to the protocol, which refers to this
        let Some(protocol) = lock(&self.protocol).take() else { return };
        LostProtocols::tell_soon(self.ground.lost.bind(py), &self.ground.shared, protocol, why);
    }
}

impl Stream for Py<Transport> {
    fn ask<T>(&self, question: impl FnOnce(&Exchange) -> T) -> Option<T> {
        let state = self.get().state();
        state.active.exchange().filter(|_| !state.answered).map(question)
    }

    /// A protocol knows no notice: it loses its connection, but not within an event.
    fn tell(&self, py: Python<'_>) -> PyResult<bool> {
        let is_between = {
            let mut state = self.get().state();
            if state.active.is_away() || std::mem::replace(&mut state.ends_soon, true) {
                return Ok(false);
            }
            state.active.exchange().is_some_and(Exchange::is_between_events)
        };
        if is_between {
            self.get().close_stream(py);
        }
        Ok(true)
    }

    fn force(&self, py: Python<'_>) -> PyResult<()> {
        self.get().close_stream(py);
        Ok(())
    }
}

/// A transport that is kept with its connection between two requests.
pub struct KeptTransport(pub Py<Transport>);

pub fn kept(attachment: Option<&Attachment>) -> Option<&KeptTransport> {
    attachment.and_then(|kept| kept.downcast_ref::<KeptTransport>())
}

/// The protocols of connections that are closed are told so, but for those that are about to say it themselves: a handler goes
/// on for a moment when its response is complete, and aiohttp takes a loss before its end for a client that has left.
pub fn do_chores(ground: &Ground, py: Python<'_>, chores: Chores) {
    for attachment in &chores.attachments {
        if let Some(KeptTransport(transport)) = kept(Some(attachment))
            && !transport.get().state().will_close
        {
            transport.get().lose(py, None);
        }
    }
    ground.shared.reporter.do_chores(py, chores);
}
