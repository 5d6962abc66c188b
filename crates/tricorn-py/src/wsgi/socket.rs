//! `environ["gunicorn.socket"]`: the connection's socket for those who ask, made when they do.
use super::handle::Handle;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// Stands for the client's socket; any attribute is that of a `socket.socket` over a duplicate of it.
#[pyclass(frozen, module = "tricorn._core", name = "RequestSocket")]
pub struct RequestSocket {
    handle: Py<Handle>,
    real: PyOnceLock<Py<PyAny>>,
}

impl RequestSocket {
    pub fn new(handle: Py<Handle>) -> RequestSocket {
        RequestSocket { handle, real: PyOnceLock::new() }
    }
}

static SOCKET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[pymethods]
impl RequestSocket {
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let real = self.real.get_or_try_init(py, || {
            let fd = self.handle.get().duplicate_socket().map_err(|error| {
                PyOSError::new_err(format!("the socket of a request that is over cannot be used: {error}"))
            })?;
            let socket = SOCKET.import(py, "socket", "socket")?;
            let keywords = pyo3::types::PyDict::new(py);
            keywords.set_item("fileno", fd)?;
            Ok::<_, PyErr>(socket.call((), Some(&keywords))?.unbind())
        })?;
        real.bind(py).getattr(name)
    }
}
