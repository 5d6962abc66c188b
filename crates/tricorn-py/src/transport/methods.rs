//! The transport as Python sees it (`asyncio.Transport`).
use super::connection::Transport;
use super::{reading, writing};
use crate::session;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::net::SocketAddr;
use std::os::fd::IntoRawFd;
use tricorn_proto::message::Scheme;

#[pymethods]
impl Transport {
    fn write(slf: &Bound<'_, Transport>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        writing::put(slf, data)
    }

    fn writelines(slf: &Bound<'_, Transport>, pieces: &Bound<'_, PyAny>) -> PyResult<()> {
        let all = PyBytes::new(slf.py(), b"").call_method1(intern!(slf.py(), "join"), (pieces,))?;
        writing::put(slf, &all)
    }

    /// Sends `count` bytes of a file from `offset`, as the next of the body; false if the response has no place for them.
    fn write_file(slf: &Bound<'_, Transport>, descriptor: i32, offset: u64, count: u64) -> PyResult<bool> {
        writing::put_file(slf, descriptor, offset, count)
    }

    /// The handler is done with its response: one that is too short is cut off, and the log says by how much.
    fn response_ended(slf: &Bound<'_, Transport>) -> PyResult<()> {
        writing::end_response(slf)
    }

    /// Nothing more is written; what was written is sent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, false)
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, true)
    }

    fn is_closing(&self) -> bool {
        self.state().closed
    }

    fn pause_reading(&self) {
        let mut state = self.state();
        state.paused = true;
        state.active.stop_reading(&self.ground.shared.engine);
    }

    fn resume_reading(slf: &Bound<'_, Transport>) -> PyResult<()> {
        let this = slf.get();
        if !std::mem::replace(&mut this.state().paused, false) || this.state().active.is_away() {
            return Ok(());
        }
        reading::read_soon(slf) // as every transport does it: the protocol is in the midst of something
    }

    fn is_reading(&self) -> bool {
        let state = self.state();
        !state.paused && !state.closed
    }

    fn _read(slf: &Bound<'_, Transport>) -> PyResult<()> {
        reading::read(slf)
    }

    /// The loop's other callbacks had their turn.
    fn _caught_up(&self, py: Python<'_>) -> PyResult<()> {
        let is_stalled = self.state().active.is_stalled();
        if is_stalled { Ok(()) } else { self.resume_writing(py) }
    }

    #[pyo3(signature = (name, default = None))]
    fn get_extra_info<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match name {
            "peername" => peer(py, self).map(Some),
            "scheme" => Ok(claimed_scheme(py, self).or(default)),
            "sockname" => address(py, self.local).map(Some),
            "socket" => socket(py, self).map(|socket| socket.or(default)),
            // aiohttp asks for the context at each request, and only whether there is one.
            "tls" | "sslcontext" => session(py, self).map(|session| session.or(default)),
            "ssl_object" | "peercert" | "cipher" => match session(py, self)? {
                Some(facts) => py.import("tricorn.gateway.tls_session")?.call_method1("extra", (facts, name)).map(Some),
                None => Ok(default),
            },
            _ => Ok(default),
        }
    }

    fn get_protocol(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.protocol(py).map(Bound::unbind)
    }

    fn set_protocol(&self, protocol: Py<PyAny>) {
        self.replace_protocol(protocol);
    }

    /// The limits are the server's: the protocol is told to pause when the client is too far behind.
    #[pyo3(signature = (high = None, low = None))]
    fn set_write_buffer_limits(&self, high: Option<usize>, low: Option<usize>) {
        let _ = (high, low);
    }

    fn get_write_buffer_size(&self) -> usize {
        0
    }

    fn can_write_eof(&self) -> bool {
        false
    }

    fn write_eof(&self) -> PyResult<()> {
        Err(pyo3::exceptions::PyNotImplementedError::new_err("this transport is closed as a whole"))
    }

    fn __repr__(&self) -> String {
        let state = self.state();
        let what = match (state.closed, state.active.is_away()) {
            (true, _) => "closed",
            (_, true) => "idle",
            (_, false) if state.tunnel => "tunnel",
            (_, false) => "busy",
        };
        format!("<tricorn Transport {what}>")
    }
}

/// A `socket.socket` over a duplicate of the descriptor, while there is a request: for what it is connected to. What a client that
/// speaks TLS sends cannot be read there.
fn socket<'py>(py: Python<'py>, transport: &Transport) -> PyResult<Option<Bound<'py, PyAny>>> {
    let duplicate = match transport.state().active.exchange() {
        Some(exchange) => exchange.lane.descriptor().duplicate().map_err(std::io::Error::from)?,
        None => return Ok(None),
    };
    py.import("tricorn.gateway.taken_socket")?.call_method1("show", (duplicate.into_raw_fd(),)).map(Some)
}

/// What is known of the client's session, if it speaks TLS, while there is a request.
fn session<'py>(py: Python<'py>, transport: &Transport) -> PyResult<Option<Bound<'py, PyAny>>> {
    let state = transport.state();
    let Some(exchange) = state.active.exchange() else { return Ok(None) };
    let told = exchange.facts().map(|facts| session::described(py, facts)).transpose()?;
    Ok(told.map(Bound::into_any))
}

/// The client: of the request under way, if trusted front ends say who asked, or else of the connection.
fn peer<'py>(py: Python<'py>, transport: &Transport) -> PyResult<Bound<'py, PyAny>> {
    let claimed = transport.state().active.exchange().and_then(|exchange| exchange.request.claims()?.client.clone());
    match claimed {
        Some(client) => Ok((client.name, client.port).into_pyobject(py)?.into_any()),
        None => address(py, transport.peer),
    }
}

/// Of the request under way, where front ends are believed or a balancer has announced it.
fn claimed_scheme<'py>(py: Python<'py>, transport: &Transport) -> Option<Bound<'py, PyAny>> {
    let state = transport.state();
    let request = state.active.exchange().map(|exchange| &exchange.request).filter(|request| {
        let is_own = || request.head.scheme == Scheme::Https;
        request.claims().is_some() || request.announced().is_some() || request.vars().is_some() || is_own()
    })?;
    Some(
        if request.head.scheme == Scheme::Https { intern!(py, "https") } else { intern!(py, "http") }
            .clone()
            .into_any(),
    )
}

/// As `socket.getpeername` has it; `''` where nothing is known, as for a unix socket.
fn address(py: Python<'_>, address: Option<SocketAddr>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match address {
        Some(SocketAddr::V4(address)) => (address.ip().to_string(), address.port()).into_pyobject(py)?.into_any(),
        Some(SocketAddr::V6(address)) => {
            (address.ip().to_string(), address.port(), address.flowinfo(), address.scope_id())
                .into_pyobject(py)?
                .into_any()
        }
        None => "".into_pyobject(py)?.into_any(),
    })
}
