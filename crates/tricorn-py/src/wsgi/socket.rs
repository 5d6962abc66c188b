//! `environ["gunicorn.socket"]`: the connection's socket, made when an application asks for it.
//!
//! Who only asks what it is connected to changes nothing. Who does anything else takes the connection: the server lets go
//! of it and closes it when the application returns.
use super::handle::Handle;
use super::wait::Wait;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyBytes;

/// What can be asked of a socket without taking it.
const HARMLESS: [&str; 7] = ["family", "type", "proto", "getpeername", "getsockname", "getsockopt", "gettimeout"];

/// Stands for the client's socket; any attribute is that of a `socket.socket` over a duplicate of it.
#[pyclass(frozen, module = "tricorn._core", name = "RequestSocket")]
pub struct RequestSocket {
    handle: Py<Handle>,
    shown: PyOnceLock<Py<PyAny>>,
    taken: PyOnceLock<Py<PyAny>>,
}

impl RequestSocket {
    pub fn new(handle: Py<Handle>) -> RequestSocket {
        RequestSocket { handle, shown: PyOnceLock::new(), taken: PyOnceLock::new() }
    }

    /// No application has asked: it may stand for another connection next time.
    pub fn is_unused(&self, py: Python<'_>) -> bool {
        self.shown.get(py).is_none() && self.taken.get(py).is_none()
    }

    fn show(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let fd = self.handle.get().duplicate_socket().map_err(over)?;
        python_socket(py)?.call_method1("show", (fd,)).map(Bound::unbind)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let handle = self.handle.get();
        let (fd, unread) = handle.take_socket().map_err(over)?;
        let blocks = matches!(handle.wait(), Wait::Thread);
        python_socket(py)?.call_method1("take", (fd, PyBytes::new(py, &unread), blocks)).map(Bound::unbind)
    }
}

#[pymethods]
impl RequestSocket {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let real = match self.taken.get(py) {
            Some(taken) => taken,
            None if HARMLESS.contains(&name) => self.shown.get_or_try_init(py, || self.show(py))?,
            // What Python itself looks for (`copy`, `inspect`, `hasattr(…, "__len__")`) takes nothing.
            None if name.starts_with("__") => {
                return Err(pyo3::exceptions::PyAttributeError::new_err(name.to_owned()));
            }
            None => self.taken.get_or_try_init(py, || self.take(py))?,
        };
        real.bind(py).getattr(name)
    }
}

fn python_socket(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("tricorn.gateway.taken_socket")
}

fn over(error: String) -> PyErr {
    PyOSError::new_err(format!("the socket of a request cannot be used: {error}"))
}
