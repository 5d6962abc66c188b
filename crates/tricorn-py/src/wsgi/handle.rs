//! The application's hands on its exchange: `start_response`, `write`, `wsgi.early_hints`.
//!
//! All three are plain C functions bound to one `Handle`. They may outlive the request (an application may keep what it
//! likes); the handle is then empty, and calling them raises.
use super::send;
use super::wait::Wait;
use crate::functions::{Arguments, Definition, enter_with};
use crate::sync::lock;
use crate::text::as_latin1;
use pyo3::exceptions::{PyAssertionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use tricorn_io::tls::Facts;
use tricorn_io::{Engine, Exchange, Seat, Sent, Taken};
use tricorn_proto::response::Fault;

/// Where an exchange is while the application runs. A method that writes takes it out and puts it back.
#[pyclass(frozen, module = "tricorn._core", name = "Exchange")]
pub struct Handle {
    engine: Arc<Engine>,
    wait: Arc<Wait>,
    exchange: Seat<Exchange>,
    /// A thread or greenlet waits for the exchange to come back. It sets this, and then looks once more: either it finds the
    /// exchange, or the thread that puts the exchange back finds this set.
    awaited: AtomicBool,
    /// The event that a greenlet waits for.
    event: Mutex<Option<Py<PyAny>>>,
    back: Condvar,
    /// What `start_response` returns.
    write: Mutex<Option<Py<PyAny>>>,
}

impl Handle {
    /// With its `write`, which serves request after request. The two hold one another until `forget_write`.
    pub fn new(py: Python<'_>, engine: Arc<Engine>, wait: Arc<Wait>) -> PyResult<(Py<Handle>, Py<PyAny>)> {
        let handle = Handle {
            engine,
            wait,
            exchange: Seat::default(),
            awaited: AtomicBool::new(false),
            event: Mutex::default(),
            back: Condvar::new(),
            write: Mutex::default(),
        };
        let handle = Bound::new(py, handle)?;
        let write = WRITE.bind(&handle)?;
        *lock(&handle.get().write) = Some(write.clone_ref(py));
        Ok((handle.unbind(), write))
    }

    fn write_function(&self, this: &Bound<'_, Handle>) -> PyResult<Py<PyAny>> {
        match &*lock(&self.write) {
            Some(write) => Ok(write.clone_ref(this.py())),
            None => WRITE.bind(this),
        }
    }

    /// The handle and `write` hold one another no longer.
    pub fn forget_write(&self) {
        let write = lock(&self.write).take();
        drop(write); // behind the lock: with it the handle may go
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What `send.rs` sends with.
    pub fn means(&self) -> (&Engine, &Wait) {
        (&self.engine, &self.wait)
    }

    /// How the application's call waits.
    pub fn wait(&self) -> &Wait {
        &self.wait
    }

    #[inline]
    pub fn put(&self, exchange: Box<Exchange>) {
        self.exchange.put(exchange);
        if self.awaited.load(Ordering::SeqCst) {
            self.tell_waiting();
        }
    }

    #[cold]
    fn tell_waiting(&self) {
        let event = {
            let mut event = lock(&self.event);
            self.awaited.store(false, Ordering::SeqCst);
            self.back.notify_all();
            event.take()
        };
        if let Some(event) = event {
            Python::attach(|py| {
                if let Err(error) = event.call_method0(py, pyo3::intern!(py, "set")) {
                    error.write_unraisable(py, None);
                }
            });
        }
    }

    #[inline]
    pub fn take(&self) -> Option<Box<Exchange>> {
        self.exchange.take()
    }

    /// Waits for a thread of the application, or a greenlet, that is still writing.
    #[inline]
    pub fn take_back(&self, py: Python<'_>) -> Box<Exchange> {
        self.take().unwrap_or_else(|| self.await_return(py))
    }

    #[cold]
    fn await_return(&self, py: Python<'_>) -> Box<Exchange> {
        if let Wait::Hub(hub) = &*self.wait {
            loop {
                let event = hub.event(py);
                if let Ok(event) = &event {
                    let before = lock(&self.event).replace(event.clone().unbind());
                    drop(before); // behind the lock
                    self.awaited.store(true, Ordering::SeqCst);
                }
                if let Some(exchange) = self.take() {
                    return exchange;
                }
                // A kill of this greenlet while it waits here ends a request that is over.
                let _ = event.and_then(|event| event.call_method0(pyo3::intern!(py, "wait")));
            }
        }
        py.detach(|| {
            let mut waiting = lock(&self.event);
            loop {
                self.awaited.store(true, Ordering::SeqCst);
                if let Some(exchange) = self.take() {
                    return exchange;
                }
                waiting = self.back.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
        })
    }

    /// Works on the exchange; `None`: the request is over. `work` neither blocks nor runs Python code, which would not find the
    /// exchange here.
    #[inline]
    pub fn with<T>(&self, work: impl FnOnce(&mut Exchange) -> T) -> Option<T> {
        let mut lent = Lent { handle: self, exchange: Some(self.take()?) };
        lent.exchange.as_deref_mut().map(work)
    }

    /// The application has yielded something that is not written: it is not stuck.
    pub fn progressed(&self) {
        self.with(|exchange| self.engine.progressed(exchange));
    }

    pub fn duplicate_socket(&self) -> Result<RawFd, String> {
        let fd = self.with(|exchange| exchange.lane.descriptor().duplicate()).ok_or(ELSEWHERE)?;
        fd.map(IntoRawFd::into_raw_fd).map_err(|error| error.to_string())
    }

    /// What is known of the client's session; `None`: it is a plain connection.
    pub fn facts(&self) -> Result<Option<Arc<Facts>>, String> {
        self.with(|exchange| exchange.facts().cloned()).ok_or_else(|| ELSEWHERE.into())
    }

    /// The socket is the application's from now on; with what was read behind the request.
    pub fn take_socket(&self) -> Result<Taken, String> {
        let taken = self.with(|exchange| self.engine.let_go(exchange)).ok_or(ELSEWHERE)?;
        taken.map_err(|error| error.to_string())
    }

    fn start_response(
        &self,
        status: &Bound<'_, PyAny>,
        headers: &Bound<'_, PyAny>,
        exc_info: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let status = text(status, "the status").map_err(Wrong::into_error)?;
        let headers = as_list(headers)?;
        let outcome = self.with(|exchange| {
            let reply = &mut exchange.request.reply;
            match exc_info {
                Some(exc_info) if reply.head_sent() => return Err(Wrong::Late(exc_info.clone())),
                Some(_) => {}
                None if reply.has_status() => return Err(Wrong::Again),
                None => {}
            }
            reply.status(status)?;
            each_header(&headers, |name, value| Ok(reply.field(name, value)?))
        });
        outcome.unwrap_or(Err(Wrong::Over)).map_err(Wrong::into_error)
    }

    fn write(&self, py: Python<'_>, piece: &Bound<'_, PyAny>) -> PyResult<()> {
        let piece = send::bytes_of(piece)?;
        let mut exchange = self.take().ok_or_else(over)?;
        let outcome = if exchange.request.reply.has_status() {
            send::send(py, self.means(), &mut exchange, &piece).map(|_| ())
        } else {
            Err(PyAssertionError::new_err("write was called before start_response"))
        };
        self.put(exchange);
        outcome
    }

    /// 103 Early Hints (RFC 8297) with these header fields.
    fn early_hints(&self, headers: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let headers = as_list(headers)?;
        let kept = each_header(&headers, |name, value| {
            fields.push((name.to_vec(), value.to_vec()));
            Ok(())
        });
        kept.map_err(Wrong::into_error)?;
        let mut pairs = fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
        let outcome = self.with(|exchange| {
            self.engine.progressed(exchange);
            exchange.interim(103, &mut pairs).map(|_: Sent| ()).map_err(Wrong::from)
        });
        outcome.unwrap_or(Err(Wrong::Over)).map_err(Wrong::into_error)
    }
}

/// The exchange while `with` works on it. It goes back even if that panics: the call's end waits for it.
struct Lent<'h> {
    handle: &'h Handle,
    exchange: Option<Box<Exchange>>,
}

impl Drop for Lent<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(exchange) = self.exchange.take() {
            self.handle.put(exchange);
        }
    }
}

/// Why an application gets nothing of its socket.
const ELSEWHERE: &str = "it is closed or serves another request";

/// The headers as a list, which can be gone through without running Python code.
fn as_list<'py>(headers: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    match headers.cast::<PyList>() {
        Ok(list) => Ok(list.clone()),
        Err(_) => {
            let list = PyList::empty(headers.py());
            for header in headers.try_iter()? {
                list.append(header?)?;
            }
            Ok(list)
        }
    }
}

/// Calls `each` with the bytes of every (name, value). Runs no Python code.
fn each_header<'py>(
    headers: &Bound<'py, PyList>,
    mut each: impl FnMut(&[u8], &[u8]) -> Result<(), Wrong<'py>>,
) -> Result<(), Wrong<'py>> {
    for header in headers.iter() {
        if let Ok([name, value]) = header.cast::<PyTuple>().map(|pair| pair.as_slice()) {
            each(text(name, "a header name")?, text(value, "a header value")?)?;
        } else if let Some((name, value)) = pair_in_list(&header) {
            each(text(&name, "a header name")?, text(&value, "a header value")?)?;
        } else {
            return Err(Wrong::Kind(header, "a header", "a tuple (name, value)"));
        }
    }
    Ok(())
}

/// A header as a list of two, which gunicorn takes, too.
#[cold]
fn pair_in_list<'py>(header: &Bound<'py, PyAny>) -> Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let list = header.cast::<PyList>().ok().filter(|list| list.len() == 2)?;
    Some((list.get_item(0).ok()?, list.get_item(1).ok()?))
}

/// The bytes of a native string that has only latin-1 characters (PEP 3333 "Unicode Issues").
fn text<'a, 'py>(value: &'a Bound<'py, PyAny>, what: &'static str) -> Result<&'a [u8], Wrong<'py>> {
    let text = value.cast::<PyString>().map_err(|_| Wrong::Kind(value.clone(), what, "a str"))?;
    as_latin1(text).ok_or_else(|| Wrong::Wide(value.clone(), what))
}

/// What is wrong with a call of the application. It becomes an exception when nothing is locked: values are shown by their
/// `__repr__`, which is Python code.
enum Wrong<'py> {
    /// The request is over.
    Over,
    /// A second `start_response`.
    Again,
    /// The head is sent; with what `exc_info` holds.
    Late(Bound<'py, PyAny>),
    /// A value, what it is, and what it must be.
    Kind(Bound<'py, PyAny>, &'static str, &'static str),
    /// Characters outside latin-1 in what this is.
    Wide(Bound<'py, PyAny>, &'static str),
    Fault(Fault),
}

impl From<Fault> for Wrong<'_> {
    fn from(fault: Fault) -> Self {
        Wrong::Fault(fault)
    }
}

impl Wrong<'_> {
    #[cold]
    fn into_error(self) -> PyErr {
        match self {
            Wrong::Over => over(),
            Wrong::Again => PyAssertionError::new_err("start_response was called before, without exc_info"),
            Wrong::Late(exc_info) => reraise(&exc_info),
            Wrong::Kind(value, what, expected) => {
                let kind = value.get_type();
                PyTypeError::new_err(format!("{what} must be {expected}, not {kind}: {value:?}"))
            }
            Wrong::Wide(value, what) => {
                PyValueError::new_err(format!("{what} has characters outside latin-1: {value:?}"))
            }
            Wrong::Fault(fault) => PyValueError::new_err(fault.to_string()),
        }
    }
}

pub fn over() -> PyErr {
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
        // It comes last whether it is named or not; the name is not checked.
        let exc_info = args.get(2).filter(|value| !value.is_none());
        handle.get().start_response(&status, &headers, exc_info.as_deref())?;
        handle.get().write_function(handle)
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
