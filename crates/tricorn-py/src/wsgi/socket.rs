//! `environ["gunicorn.socket"]`: the connection's socket, made when an application asks for it.
//!
//! Who only asks what it is connected to, and by which session of TLS, changes nothing. Who does anything else takes the connection: the
//! server lets go of it and closes it when the application returns.
use super::handle::Handle;
use super::wait::Wait;
use crate::session;
use pyo3::exceptions::{PyAttributeError, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;
use std::os::fd::IntoRawFd;
use tricorn_io::Taken;

/// What can be asked of a socket without taking it.
const HARMLESS: [&str; 7] = ["family", "type", "proto", "getpeername", "getsockname", "getsockopt", "gettimeout"];

/// The same of Python's `ssl.SSLSocket`; a plain connection has none of these.
const OF_SESSION: [&str; 4] = ["getpeercert", "cipher", "version", "selected_alpn_protocol"];

/// Stands for the client's socket; any attribute is that of a `socket.socket` over a duplicate of it.
#[pyclass(frozen, module = "tricorn._core", name = "RequestSocket")]
pub struct RequestSocket {
    handle: Py<Handle>,
    shown: PyOnceLock<Py<PyAny>>,
    session: PyOnceLock<Py<PyAny>>,
    taken: PyOnceLock<Py<PyAny>>,
}

impl RequestSocket {
    pub fn new(handle: Py<Handle>) -> RequestSocket {
        RequestSocket { handle, shown: PyOnceLock::new(), session: PyOnceLock::new(), taken: PyOnceLock::new() }
    }

    /// No application has asked: it may stand for another connection next time.
    pub fn is_unused(&self, py: Python<'_>) -> bool {
        [&self.shown, &self.session, &self.taken].iter().all(|made| made.get(py).is_none())
    }

    fn show(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fd = self.handle.get().duplicate_socket().map_err(over)?;
        python_socket(py)?.call_method1("show", (fd,)).map(Bound::unbind)
    }

    /// What stands for the session; a plain connection has no such attribute.
    fn session(&self, py: Python<'_>, name: &str) -> PyResult<&Py<PyAny>> {
        self.session.get_or_try_init(py, || {
            let Some(facts) = self.handle.get().facts().map_err(over)? else { return Err(has_no(name)) };
            let session = py.import("tricorn.gateway.tls_session")?.getattr("Session")?;
            session.call1((session::described(py, &facts)?,)).map(Bound::unbind)
        })
    }

    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let handle = self.handle.get();
        let told = match handle.facts().map_err(over)? {
            Some(facts) => Some(session::of_taken(py, &facts, handle.duplicate_socket().map_err(over)?)?),
            None => None,
        };
        let Taken { socket, unread } = handle.take_socket().map_err(over)?;
        let blocks = matches!(handle.wait(), Wait::Thread);
        let given = (socket.into_raw_fd(), PyBytes::new(py, &unread), blocks, told);
        python_socket(py)?.call_method1("take", given).map(Bound::unbind)
    }
}

#[pymethods]
impl RequestSocket {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let real = match self.taken.get(py) {
            Some(taken) => taken,
            None if HARMLESS.contains(&name) => self.shown.get_or_try_init(py, || self.show(py))?,
            None if OF_SESSION.contains(&name) => self.session(py, name)?,
            // What Python itself looks for (`copy`, `inspect`, `hasattr(…, "__len__")`) takes nothing.
            None if name.starts_with("__") => return Err(has_no(name)),
            None => self.taken.get_or_try_init(py, || self.take(py))?,
        };
        real.bind(py).getattr(name)
    }
}

fn python_socket(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(session::TAKEN_SOCKET)
}

fn has_no(name: &str) -> PyErr {
    PyAttributeError::new_err(name.to_owned())
}

fn over(error: String) -> PyErr {
    PyOSError::new_err(format!("the socket of a request cannot be used: {error}"))
}
