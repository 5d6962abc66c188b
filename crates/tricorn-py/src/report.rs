//! What a gateway says to the logs and the hooks: lines of the access log, errors of the application, notices of the core.
use crate::text::latin1;
use pyo3::exceptions::{PyRuntimeError, PySystemExit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyType};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tricorn_io::{Chores, Engine, Exchange, clock, is_child};
use tricorn_proto::access_log::Record;
use tricorn_proto::message::{FieldList, Scheme, target};

/// A gateway's voice. The callables are the worker's: `on_error(message, error)`, `on_notice(level, text)`.
pub struct Reporter {
    engine: Arc<Engine>,
    on_error: Py<PyAny>,
    on_notice: Option<Py<PyAny>>,
    pid: u32,
}

/// The level of a notice, as the number that `logging` has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Debug = 10,
    Info = 20,
    Warning = 30,
    Error = 40,
}

/// What a line of the access log needs besides the exchange.
pub struct Line<'a> {
    pub remote: &'a [u8],
    pub status: u16,
    /// Bytes sent behind the head, if the reply has not counted them.
    pub sent: Option<u64>,
    /// The application was called: the line tells how long the request waited for it.
    pub called: bool,
    /// Values of `%({…}e)s`.
    pub environ: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

/// A finished reply for the hooks: status, headers, bytes of the body, microseconds since the request's first byte.
pub type Finished<'py> = (Bound<'py, PyString>, Bound<'py, PyList>, u64, u64);

impl Reporter {
    pub fn new(engine: Arc<Engine>, on_error: Py<PyAny>, on_notice: Option<Py<PyAny>>) -> Reporter {
        Reporter { engine, on_error, on_notice, pid: std::process::id() }
    }

    /// The same once more.
    pub fn clone_ref(&self, py: Python<'_>) -> Reporter {
        Reporter {
            engine: self.engine.clone(),
            on_error: self.on_error.clone_ref(py),
            on_notice: self.on_notice.as_ref().map(|on_notice| on_notice.clone_ref(py)),
            pid: self.pid,
        }
    }

    /// Whether the logs are told of requests here.
    #[inline]
    pub fn tells(&self) -> bool {
        self.engine.logs().are_on()
    }

    /// Whether that makes lines, in which values of the environ may stand.
    #[inline]
    pub fn makes_lines(&self) -> bool {
        self.engine.logs().has_lines()
    }

    /// Apart, since a greenlet that waits keeps every byte of the frames above it.
    #[inline(never)]
    pub fn access(&self, exchange: &Exchange, line: &Line<'_>) {
        if is_child() || exchange.is_deferred() {
            return; // locks may be held by threads of the parent; the reactor sends a file, and tells of it
        }
        let request = &*exchange.request;
        let record = Record {
            head: &request.head,
            bytes: request.head_bytes(),
            remote: remote_of(exchange, line.remote),
            status: line.status,
            fields: request.reply.fields(),
            sent: line.sent.unwrap_or_else(|| request.reply.body_sent()),
            micros: exchange.micros(clock::now()),
            time: exchange.wall.log_time(),
            millis: exchange.wall.millis(),
            pid: self.pid,
            request_id: request.reply.request_id(),
            queue_micros: line.called.then_some(exchange.timing.queue / 1000),
            call_time: exchange.call_time(),
            outcome: Some(exchange.outcome()),
            environ: line.environ,
        };
        self.engine.tell(&record);
    }

    /// Has a hook told of a finished reply. `sent`: bytes behind the head, if the reply has not counted them.
    pub fn after<'py>(
        &self,
        py: Python<'py>,
        exchange: &Exchange,
        sent: Option<u64>,
        tell: impl FnOnce(Finished<'py>) -> PyResult<Py<PyAny>>,
    ) {
        if is_child() {
            return; // the parent's will be told
        }
        if let Err(error) = finished(py, exchange, sent).and_then(tell) {
            self.error(py, "Exception in post_request hook".into(), error);
        }
    }

    pub fn error(&self, py: Python<'_>, message: String, error: PyErr) {
        if is_child() {
            return; // `forked.rs` tells of it
        }
        if let Err(second) = self.on_error.call1(py, (message, error.into_value(py))) {
            second.write_unraisable(py, None);
        }
    }

    /// A panic of ours, which has cost a request.
    #[cold]
    pub fn panicked(&self, py: Python<'_>, text: String) {
        let message = "Lost a request and closed its connection".into();
        self.error(py, message, PyRuntimeError::new_err(text));
    }

    /// The application let an exception out, or is over `request_timeout` (`is_late`): the answer, and the log.
    #[cold]
    pub fn failed(&self, py: Python<'_>, exchange: &mut Exchange, error: PyErr, is_late: bool) {
        if is_late {
            exchange.app_was_late()
        } else {
            exchange.app_failed()
        }
        exchange.give_up(if is_late { 504 } else { 500 }, "");
        let line = request_line(exchange);
        if self.engine.ends_calls() && error.is_instance_of::<PySystemExit>(py) {
            self.notify(py, Level::Info, format!("{line} was interrupted: the worker is shutting down"));
            return;
        }
        let text = if is_late && self.engine.was_cancelled(exchange.slot()) {
            format!("Error handling request {line}: cancelled by operator")
        } else if is_late {
            let limit = self.engine.request_timeout();
            format!("Error handling request {line}: exceeded request_timeout ({limit} s)")
        } else {
            format!("Error handling request {line}")
        };
        self.error(py, text, error);
    }

    pub fn notify(&self, py: Python<'_>, level: Level, text: String) {
        if let Some(on_notice) = &self.on_notice
            && let Err(error) = on_notice.call1(py, (level as u8, text))
        {
            error.write_unraisable(py, None);
        }
    }

    /// A body shorter than its Content-Length: the client cannot use it, and only the log can say why.
    #[cold]
    pub fn complain(&self, py: Python<'_>, exchange: &Exchange, missing: u64) {
        let line = request_line(exchange);
        let text = format!("{line}: the application sent {missing} bytes less than its Content-Length");
        self.notify(py, Level::Warning, text);
    }

    /// An application that frames its responses itself: once in a worker.
    #[cold]
    pub fn complain_of_framing(&self, py: Python<'_>, exchange: &Exchange) {
        static COMPLAINED: AtomicBool = AtomicBool::new(false);
        if !COMPLAINED.swap(true, Relaxed) {
            let line = request_line(exchange);
            let text = format!(
                "{line}: removed the application's Transfer-Encoding header: the server frames responses. Chunk \
                 sizes that the application writes are sent as content."
            );
            self.notify(py, Level::Warning, text);
        }
    }

    /// Drops and logs what other threads could not.
    pub fn do_chores(&self, py: Python<'_>, mut chores: Chores) {
        for notice in chores.notices.drain(..) {
            let level = if notice.warning { Level::Warning } else { Level::Debug };
            self.notify(py, level, notice.text);
        }
        drop_chores(py, chores);
    }
}

fn finished<'py>(py: Python<'py>, exchange: &Exchange, sent: Option<u64>) -> PyResult<Finished<'py>> {
    let reply = &exchange.request.reply;
    let status = latin1(py, reply.status_line())?;
    let sent = sent.unwrap_or_else(|| reply.body_sent());
    Ok((status, headers(py, reply.fields())?, sent, exchange.micros(clock::now())))
}

/// The application's header fields.
fn headers<'py>(py: Python<'py>, fields: &FieldList) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (name, value) in fields.iter() {
        list.append((latin1(py, name)?, latin1(py, value)?))?;
    }
    Ok(list)
}

/// The client's address in text: that of its connection, unless trusted front ends say another.
pub fn remote_of<'a>(exchange: &'a Exchange, remote: &'a [u8]) -> &'a [u8] {
    let client = exchange.request.claims().and_then(|claims| claims.client.as_ref());
    client.map_or(remote, |client| client.name.as_bytes())
}

/// What a WSGI environ would have of a request, for `%({…}e)s` where there is none.
pub fn as_environ(exchange: &Exchange, remote: &[u8], key: &str) -> Option<Vec<u8>> {
    let request = &*exchange.request;
    let (head, bytes) = (&request.head, request.head_bytes());
    let value = match key {
        "REQUEST_METHOD" => head.method.of(bytes),
        "RAW_URI" => head.target.of(bytes),
        "QUERY_STRING" => head.query.of(bytes),
        "SERVER_PROTOCOL" => head.protocol.of(bytes),
        "REMOTE_ADDR" => remote_of(exchange, remote),
        "PATH_INFO" => {
            let mut path = Vec::new();
            target::percent_decode(head.path.of(bytes), &mut path);
            return Some(path);
        }
        "wsgi.url_scheme" if head.scheme == Scheme::Https => b"https",
        "wsgi.url_scheme" => b"http",
        _ => return None,
    };
    Some(value.to_vec())
}

static REQUEST_TIMEOUT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Whether this is what a request over `request_timeout` is told to end with.
#[cold]
pub fn is_request_timeout(py: Python<'_>, error: &PyErr) -> bool {
    let kind = REQUEST_TIMEOUT.import(py, "tricorn.errors", "RequestTimeout");
    kind.is_ok_and(|kind| error.is_instance(py, kind))
}

/// What a late request, which was at this slot, is told to end with.
#[cold]
pub fn told_to_end(py: Python<'_>, engine: &Engine, slot: usize) -> PyErr {
    static REQUEST_CANCELLED: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let error = if engine.was_cancelled(slot) {
        REQUEST_CANCELLED
            .import(py, "tricorn.errors", "RequestCancelled")
            .map(|kind| PyErr::from_type(kind.clone(), ()))
    } else {
        let kind = REQUEST_TIMEOUT.import(py, "tricorn.errors", "RequestTimeout");
        kind.map(|kind| PyErr::from_type(kind.clone(), (engine.request_timeout(),)))
    };
    error.unwrap_or_else(|error| error)
}

/// `GET /path`, for the log.
pub fn request_line(exchange: &Exchange) -> String {
    let request = &*exchange.request;
    let bytes = request.head_bytes();
    let path = String::from_utf8_lossy(request.head.path.of(bytes)).into_owned();
    format!("{} {path}", String::from_utf8_lossy(request.head.method.of(bytes)))
}

/// The same of the scope of a request whose exchange is over.
pub fn scope_line(scope: &Bound<'_, PyDict>) -> String {
    let get = |key: &str| scope.get_item(key).ok().flatten();
    let method = get("method").map_or_else(|| "GET".to_owned(), |method| method.to_string());
    let path = get("raw_path").and_then(|path| Some(path.cast::<PyBytes>().ok()?.as_bytes().to_vec()));
    format!("{method} {}", String::from_utf8_lossy(&path.unwrap_or_default()))
}

/// Objects of the gateway, dropped here because this thread holds the GIL.
pub fn drop_chores(_py: Python<'_>, chores: Chores) {
    drop((chores.attachments, chores.spent));
}
