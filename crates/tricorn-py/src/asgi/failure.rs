//! How a task that let an exception out ends its request.
use super::ground::Ground;
use crate::report::{is_request_timeout, request_line};
use pyo3::exceptions::{PyImportError, PyOSError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use tricorn_io::Exchange;

/// What is known of the request besides.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The client has left, and the application was told.
    pub gone: bool,
    /// The task was cancelled since the request took too long.
    pub late: bool,
}

/// Answers, if that can be, and logs. A request whose client has left may end by saying so.
#[cold]
pub fn failed(py: Python<'_>, ground: &Ground, exchange: &mut Exchange, error: PyErr, known: Known) {
    let reporter = &ground.shared.reporter;
    let was_told = is_request_timeout(py, &error);
    let ended = was_told || is_cancelled(py, &error);
    let is_late = ended && (was_told || known.late);
    if !known.gone || is_late {
        return reporter.failed(py, exchange, error, is_late);
    }
    exchange.abort();
    let line = request_line(exchange);
    if ended || error.is_instance_of::<PyOSError>(py) {
        reporter.notify(py, false, format!("{line}: the client has left, and the request was ended"));
    } else {
        exchange.app_failed();
        reporter.error(py, format!("Error handling request {line}"), error);
    }
}

/// Whether this is `asyncio.CancelledError`.
pub fn is_cancelled(py: Python<'_>, error: &PyErr) -> bool {
    cancelled_error(py).is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}

fn cancelled_error(py: Python<'_>) -> PyResult<&Py<PyType>> {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError")?;
    CANCELLED.get(py).ok_or_else(|| PyImportError::new_err("asyncio"))
}
