//! The application's hands on its exchange: `start_response`, `write`, `wsgi.early_hints`.
//!
//! All three are plain C functions bound to one `Handle`. They may outlive the request (an application may keep what it
//! likes); the handle is then empty, and calling them raises.
use super::respond;
use super::wait::Wait;
use crate::functions::{Arguments, Definition, enter_with};
use crate::sync::lock;
use crate::text::as_latin1;
use pyo3::exceptions::{PyAssertionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tricorn_io::{Engine, Exchange, Sent};
use tricorn_proto::exchange::Fault;

/// Where an exchange is while the application runs. Whoever writes takes it out and puts it back.
#[pyclass(frozen, module = "tricorn._core", name = "Exchange")]
pub struct Handle {
    engine: Arc<Engine>,
    wait: Arc<Wait>,
    place: Mutex<Place>,
    back: Condvar,
}

#[derive(Default)]
struct Place {
    exchange: Option<Box<Exchange>>,
    /// Somebody waits for it to come back; without this each return would cost a system call.
    awaited: bool,
    /// The event that a greenlet waits for.
    event: Option<Py<PyAny>>,
}

impl Handle {
    pub fn new(engine: Arc<Engine>, wait: Arc<Wait>) -> Handle {
        Handle { engine, wait, place: Mutex::default(), back: Condvar::new() }
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// How the application's call waits.
    pub fn wait(&self) -> &Wait {
        &self.wait
    }

    fn place(&self) -> MutexGuard<'_, Place> {
        lock(&self.place)
    }

    pub fn put(&self, py: Python<'_>, exchange: Box<Exchange>) {
        let mut place = self.place();
        place.exchange = Some(exchange);
        if std::mem::take(&mut place.awaited) {
            self.back.notify_all();
        }
        let event = place.event.take();
        drop(place);
        if let Some(event) = event
            && let Err(error) = event.call_method0(py, pyo3::intern!(py, "set"))
        {
            error.write_unraisable(py, None);
        }
    }

    pub fn take(&self) -> Option<Box<Exchange>> {
        self.place().exchange.take()
    }

    /// Waits for a thread of the application, or a greenlet, that is still writing.
    pub fn take_back(&self, py: Python<'_>) -> Box<Exchange> {
        if let Some(exchange) = self.take() {
            return exchange;
        }
        if let Wait::Hub(hub) = &*self.wait {
            loop {
                // Whoever kills this greenlet while it waits here ends a request that is over.
                let _ = hub.event(py).and_then(|event| {
                    self.place().event = Some(event.clone().unbind());
                    event.call_method0(pyo3::intern!(py, "wait"))
                });
                if let Some(exchange) = self.take() {
                    return exchange;
                }
            }
        }
        py.detach(|| {
            let mut place = self.place();
            loop {
                if let Some(exchange) = place.exchange.take() {
                    return exchange;
                }
                place.awaited = true;
                place = self.back.wait(place).unwrap_or_else(PoisonError::into_inner);
            }
        })
    }

    /// Works on the exchange where it lies; for what does not block.
    fn with<T>(&self, work: impl FnOnce(&mut Exchange) -> PyResult<T>) -> PyResult<T> {
        match self.place().exchange.as_mut() {
            Some(exchange) => work(exchange),
            None => Err(over()),
        }
    }

    pub fn duplicate_socket(&self) -> Result<RawFd, String> {
        match self.place().exchange.as_ref() {
            Some(exchange) => tricorn_io::duplicate(exchange.socket().as_raw_fd())
                .map(IntoRawFd::into_raw_fd)
                .map_err(|error| error.to_string()),
            None => Err("it is closed or serves another request".into()),
        }
    }

    /// The socket is the application's from now on; with what was read behind the request.
    pub fn take_socket(&self) -> Result<(RawFd, Vec<u8>), String> {
        let mut place = self.place();
        let exchange = place.exchange.as_mut().ok_or("it is closed or serves another request")?;
        let fd = tricorn_io::duplicate(exchange.socket().as_raw_fd()).map_err(|error| error.to_string())?;
        Ok((fd.into_raw_fd(), self.engine.let_go(exchange)))
    }

    fn start_response(
        &self,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.with(|exchange| {
            let reply = &mut exchange.request.reply;
            match exc_info {
                Some(exc_info) if reply.head_sent() => return Err(reraise(exc_info)),
                Some(_) => {}
                None if reply.has_status() => {
                    return Err(PyAssertionError::new_err("start_response was called before, without exc_info"));
                }
                None => {}
            }
            reply.status(text(status, "the status")?.as_ref()).map_err(fault)?;
            each_header(headers, |name, value| reply.field(name, value).map_err(fault))
        })
    }

    fn write(&self, py: Python<'_>, piece: &Bound<'_, PyAny>) -> PyResult<()> {
        let piece = respond::bytes_of(piece)?;
        let mut exchange = self.take().ok_or_else(over)?;
        let outcome = if exchange.request.reply.has_status() {
            respond::send(py, self, &mut exchange, &piece).map(|_| ())
        } else {
            Err(PyAssertionError::new_err("write was called before start_response"))
        };
        self.put(py, exchange);
        outcome
    }

    /// 103 Early Hints (RFC 8297) with these header fields.
    fn early_hints(&self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        each_header(headers, |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            Ok(())
        })?;
        self.with(|exchange| {
            let mut pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            exchange.interim(103, &mut pairs).map_err(fault).map(|_: Sent| ())
        })
    }
}

/// Calls `each` with the bytes of every (name, value).
fn each_header(headers: &Bound<'_, PyAny>, mut each: impl FnMut(&[u8], &[u8]) -> PyResult<()>) -> PyResult<()> {
    let mut one = |item: &Bound<'_, PyAny>| -> PyResult<()> {
        let pair = item.cast::<PyTuple>().map_err(|_| wrong(item, "a header", "a tuple (name, value)"))?;
        if pair.len() != 2 {
            return Err(wrong(item, "a header", "a tuple (name, value)"));
        }
        let (name, value) = (pair.get_borrowed_item(0)?, pair.get_borrowed_item(1)?);
        each(text(&name, "a header name")?, text(&value, "a header value")?)
    };
    if let Ok(list) = headers.cast::<PyList>() {
        for index in 0..list.len() {
            one(&list.get_item(index)?)?;
        }
        return Ok(());
    }
    for item in headers.try_iter()? {
        one(&item?)?;
    }
    Ok(())
}

/// The bytes of a native string that has only latin-1 characters (PEP 3333 "Unicode Issues").
fn text<'a>(value: &'a Bound<'_, PyAny>, what: &str) -> PyResult<&'a [u8]> {
    let text = value.cast::<PyString>().map_err(|_| wrong(value, what, "a str"))?;
    as_latin1(text).ok_or_else(|| PyValueError::new_err(format!("{what} has characters outside latin-1: {text:?}")))
}

fn wrong(value: &Bound<'_, PyAny>, what: &str, expected: &str) -> PyErr {
    let kind = value.get_type();
    PyTypeError::new_err(format!("{what} must be {expected}, not {kind}: {value:?}"))
}

fn fault(fault: Fault) -> PyErr {
    PyValueError::new_err(fault.to_string())
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the request this belongs to is over")
}

/// The exception of an `exc_info`, to be raised again because it is too late for another response.
fn reraise(exc_info: &Bound<'_, PyAny>) -> PyErr {
    match exc_info.get_item(1) {
        Ok(value) if !value.is_none() => PyErr::from_value(value),
        Ok(_) => PyAssertionError::new_err("the response has begun, and exc_info holds no exception"),
        Err(error) => error,
    }
}

/// `start_response` of a handle.
pub fn start_response(py: Python<'_>, handle: &Py<Handle>) -> PyResult<Py<PyAny>> {
    START_RESPONSE.bind(handle.bind(py))
}

/// `wsgi.early_hints` of a handle.
pub fn early_hints(py: Python<'_>, handle: &Py<Handle>) -> PyResult<Py<PyAny>> {
    EARLY_HINTS.bind(handle.bind(py))
}

static START_RESPONSE: Definition = Definition::with_any(c"start_response", start_response_entry);
static WRITE: Definition = Definition::with_any(c"write", write_entry);
static EARLY_HINTS: Definition = Definition::with_any(c"early_hints", early_hints_entry);

fn missing(what: &str) -> PyErr {
    PyTypeError::new_err(format!("missing argument: {what}"))
}

unsafe extern "C" fn start_response_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |handle: &Bound<'_, Handle>, args: &Arguments<'_>| {
        let status = args.get(0).ok_or_else(|| missing("status"))?;
        let headers = args.get(1).ok_or_else(|| missing("headers"))?;
        // It comes last whether it is named or not; other names are for nobody.
        let exc_info = args.get(2).filter(|value| !value.is_none());
        handle.get().start_response(&status, &headers, exc_info.as_deref())?;
        WRITE.bind(handle)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_with::<Handle>(slf, args, count, keywords, body) }
}

unsafe extern "C" fn write_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |handle: &Bound<'_, Handle>, args: &Arguments<'_>| {
        let piece = args.get(0).ok_or_else(|| missing("data"))?;
        handle.get().write(args.py, &piece)?;
        Ok(args.py.None())
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_with::<Handle>(slf, args, count, keywords, body) }
}

unsafe extern "C" fn early_hints_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |handle: &Bound<'_, Handle>, args: &Arguments<'_>| {
        let headers = args.get(0).ok_or_else(|| missing("headers"))?;
        handle.get().early_hints(&headers)?;
        Ok(args.py.None())
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_with::<Handle>(slf, args, count, keywords, body) }
}
