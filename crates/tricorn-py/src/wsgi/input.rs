//! `wsgi.input`: the body is all there before the application is called, so the standard library's readers serve it,
//! exact to the byte: `io.BytesIO` for memory, a buffered file for a body on disk.
use crate::buffer::bytes_of;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyList};
use std::os::fd::IntoRawFd;
use tricorn_io::Body;

/// `wsgi.input` of every request without a body. It holds nothing, so all requests share one.
#[pyclass(frozen, module = "tricorn._core")]
pub struct EmptyInput;

#[pymethods]
impl EmptyInput {
    #[pyo3(signature = (_size=None, /))]
    fn read<'py>(&self, py: Python<'py>, _size: Option<Bound<'py, PyAny>>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, b"")
    }

    #[pyo3(signature = (_size=None, /))]
    fn readline<'py>(&self, py: Python<'py>, _size: Option<Bound<'py, PyAny>>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, b"")
    }

    #[pyo3(signature = (_hint=None, /))]
    fn readlines<'py>(&self, py: Python<'py>, _hint: Option<Bound<'py, PyAny>>) -> Bound<'py, PyList> {
        PyList::empty(py)
    }

    fn readable(&self) -> bool {
        true
    }

    fn close(&self) {}

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }
}

static BYTES_IO: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static OPEN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Bytes a reader of a body on disk takes at a time.
const BUFFER: usize = 64 * 1024;

/// The reader of a body that is not empty.
pub fn reader<'py>(py: Python<'py>, body: Body) -> PyResult<Bound<'py, PyAny>> {
    match body {
        Body::Empty => Ok(Bound::new(py, EmptyInput)?.into_any()),
        // BytesIO shares a bytes object and gives it out unchanged: one copy in all.
        Body::Memory(_) | Body::Foreign(_) => BYTES_IO.import(py, "io", "BytesIO")?.call1((bytes_of(py, body)?,)),
        Body::Spooled(spool) => {
            let fd = spool.into_file()?.into_raw_fd();
            OPEN.import(py, "io", "open")?.call1((fd, "rb", BUFFER))
        }
    }
}
