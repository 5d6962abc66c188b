//! `receive` and `send`, of an HTTP call or of a WebSocket.
use super::call::Call;
use super::websocket::{self, Socket};
use super::{receive, send};
use crate::functions::{Definition, enter};
use pyo3::PyClass;
use pyo3::ffi;
use pyo3::prelude::*;

/// What the two functions can be bound to.
pub trait Callee: PyClass {
    const RECEIVE: &'static Definition;
    const SEND: &'static Definition;
    fn receive(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>>;
    fn send(slf: &Bound<'_, Self>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>>;
}

impl Callee for Call {
    const RECEIVE: &'static Definition = &RECEIVE_HTTP;
    const SEND: &'static Definition = &SEND_HTTP;

    fn receive(slf: &Bound<'_, Call>) -> PyResult<Py<PyAny>> {
        receive::receive(slf)
    }

    fn send(slf: &Bound<'_, Call>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        send::send(slf, event)
    }
}

impl Callee for Socket {
    const RECEIVE: &'static Definition = &RECEIVE_WEBSOCKET;
    const SEND: &'static Definition = &SEND_WEBSOCKET;

    fn receive(slf: &Bound<'_, Socket>) -> PyResult<Py<PyAny>> {
        websocket::receive(slf)
    }

    fn send(slf: &Bound<'_, Socket>, event: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        websocket::send(slf, event)
    }
}

static RECEIVE_HTTP: Definition = Definition::without_arguments(c"receive", receive_entry::<Call>);
static SEND_HTTP: Definition = Definition::with_one(c"send", send_entry::<Call>);
static RECEIVE_WEBSOCKET: Definition = Definition::without_arguments(c"receive", receive_entry::<Socket>);
static SEND_WEBSOCKET: Definition = Definition::with_one(c"send", send_entry::<Socket>);

/// `receive` and `send` of a call.
pub fn functions<C: Callee>(py: Python<'_>, call: &Py<C>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let call = call.bind(py);
    Ok((C::RECEIVE.bind(call)?, C::SEND.bind(call)?))
}

unsafe extern "C" fn receive_entry<C: Callee>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter::<C>(slf, C::receive) }
}

unsafe extern "C" fn send_entry<C: Callee>(slf: *mut ffi::PyObject, event: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let body = |call: &Bound<'_, C>| {
        // SAFETY: the one argument of a METH_O function, alive for the call.
        let event = unsafe { Borrowed::from_ptr(call.py(), event) };
        C::send(call, &event)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter::<C>(slf, body) }
}
