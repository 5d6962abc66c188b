//! How a task that let an exception out ends its request.
use super::ground::Ground;
use crate::report::{Level, is_request_timeout, request_line};
use pyo3::exceptions::{PyImportError, PyOSError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyTuple, PyType};
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
    let was_cancelled = is_cancelled(py, &error);
    let is_late = was_told || was_cancelled && known.late;
    let is_excused = !is_late && is_excused(py, &error, known.gone);
    if !is_late && was_cancelled && ground.has_cancelled() && !known.gone {
        // The worker's own line names it.
        exchange.app_failed();
        exchange.give_up(500, "");
        return;
    }
    if !is_excused && (is_late || !known.gone) {
        return reporter.failed(py, exchange, error, is_late);
    }
    exchange.abort();
    let line = request_line(exchange);
    if is_excused {
        reporter.notify(py, Level::Debug, format!("{line}: client disconnected; request ended"));
    } else {
        exchange.app_failed();
        reporter.error(py, format!("Error handling request {line}"), error);
    }
}

/// Whether an exception is what became of a client's departure, and no error of the application.
pub fn is_excused(py: Python<'_>, error: &PyErr, gone: bool) -> bool {
    gone && is_cancelled(py, error) || comes_of_departure(py, error)
}

/// Most exceptions looked at in a chain.
const LONGEST_CHAIN: usize = 100;

/// Whether an exception goes back to our `ClientDisconnected`: it is one, has one among its causes and contexts, or is a group
/// whose members all do. Frameworks turn it into exceptions of their own (`starlette.requests.ClientDisconnect`).
fn comes_of_departure(py: Python<'_>, error: &PyErr) -> bool {
    client_disconnected_type(py).is_ok_and(|kind| goes_back_to(error.value(py), kind.bind(py), &mut Vec::new()))
}

fn goes_back_to(error: &Bound<'_, PyAny>, kind: &Bound<'_, PyType>, seen: &mut Vec<usize>) -> bool {
    if seen.len() == LONGEST_CHAIN || seen.contains(&(error.as_ptr() as usize)) {
        return false;
    }
    seen.push(error.as_ptr() as usize);
    let py = error.py();
    let get = |name| error.getattr(name).ok().filter(|value| !value.is_none());
    if error.is_instance(kind).unwrap_or(false) {
        return true;
    }
    // The members of an exception group (PEP 654), also of the backport for Python 3.10.
    if let Some(members) = get(intern!(py, "exceptions"))
        && let Ok(members) = members.cast::<PyTuple>()
        && !members.is_empty()
        && members.iter().all(|member| goes_back_to(&member, kind, seen))
    {
        return true;
    }
    [intern!(py, "__cause__"), intern!(py, "__context__")]
        .into_iter()
        .any(|name| get(name).is_some_and(|before| goes_back_to(&before, kind, seen)))
}

/// Whether this is `asyncio.CancelledError`.
pub fn is_cancelled(py: Python<'_>, error: &PyErr) -> bool {
    cancelled_error(py).is_ok_and(|kind| error.is_instance(py, kind.bind(py)))
}

/// What `send` of a WebSocket raises when the client has left: an OSError, as the specification asks for since 2.4.
pub fn client_disconnected(py: Python<'_>) -> PyErr {
    disconnected(py, "the client disconnected")
}

/// What `send` raises when the server has told the application to end its stream, and it goes on.
#[cold]
pub fn worker_leaves(py: Python<'_>) -> PyErr {
    disconnected(py, "the worker leaves, and the application was told to end this response")
}

fn disconnected(py: Python<'_>, text: &'static str) -> PyErr {
    match client_disconnected_type(py) {
        Ok(kind) => PyErr::from_type(kind.bind(py).clone(), (text,)),
        Err(_) => PyOSError::new_err(text),
    }
}

fn client_disconnected_type(py: Python<'_>) -> PyResult<&Py<PyType>> {
    static DISCONNECTED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    DISCONNECTED.import(py, "tricorn.errors", "ClientDisconnected")?;
    DISCONNECTED.get(py).ok_or_else(|| PyImportError::new_err("tricorn.errors"))
}

fn cancelled_error(py: Python<'_>) -> PyResult<&Py<PyType>> {
    static CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CANCELLED.import(py, "asyncio", "CancelledError")?;
    CANCELLED.get(py).ok_or_else(|| PyImportError::new_err("asyncio"))
}
