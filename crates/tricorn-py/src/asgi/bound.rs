//! `receive` and `send`, of an HTTP call or of a WebSocket.
use super::call::Call;
use super::websocket::{self, Socket};
use super::{receive, send};
use crate::coroutine_function::{CoroutineFunction, enter_call};
use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;

/// What the two functions can be bound to.
pub trait Callee: PyClass {
    const RECEIVE: &'static CoroutineFunction;
    const SEND: &'static CoroutineFunction;
    fn receive(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>>;
    fn send(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>;
}

impl Callee for Call {
    const RECEIVE: &'static CoroutineFunction = &RECEIVE_HTTP;
    const SEND: &'static CoroutineFunction = &SEND_HTTP;

    fn receive(slf: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
        receive::receive(slf)
    }

    fn send(slf: &Bound<'_, Call>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        send::send(slf, event)
    }
}

impl Callee for Socket {
    const RECEIVE: &'static CoroutineFunction = &RECEIVE_WEBSOCKET;
    const SEND: &'static CoroutineFunction = &SEND_WEBSOCKET;

    fn receive(slf: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
        websocket::receive(slf)
    }

    fn send(slf: &Bound<'_, Socket>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        websocket::send(slf, event)
    }
}

static RECEIVE_HTTP: CoroutineFunction = receive_function(call_receive::<Call>);
static SEND_HTTP: CoroutineFunction = send_function(call_send::<Call>);
static RECEIVE_WEBSOCKET: CoroutineFunction = receive_function(call_receive::<Socket>);
static SEND_WEBSOCKET: CoroutineFunction = send_function(call_send::<Socket>);

const fn receive_function(call: ffi::vectorcallfunc) -> CoroutineFunction {
    CoroutineFunction::new(c"receive", c"async def receive(): ...", call)
}

const fn send_function(call: ffi::vectorcallfunc) -> CoroutineFunction {
    CoroutineFunction::new(c"send", c"async def send(event, /): ...", call)
}

/// `receive` and `send` of a call.
pub fn functions<C: Callee>(py: Python<'_>, call: &Py<C>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let call = call.bind(py);
    Ok((C::RECEIVE.bind(call)?, C::SEND.bind(call)?))
}

unsafe extern "C" fn call_receive<C: Callee>(
    function: *mut ffi::PyObject,
    _args: *const *mut ffi::PyObject,
    flags: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_call::<C>(function, 0, flags, names, C::receive) }
}

unsafe extern "C" fn call_send<C: Callee>(
    function: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    flags: usize,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |call: &Bound<'_, C>| {
        // SAFETY: there is one argument, alive for the call: `enter_call` has counted.
        let event = unsafe { Borrowed::from_ptr(call.py(), *args) };
        C::send(call, &event)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_call::<C>(function, 1, flags, names, body) }
}
