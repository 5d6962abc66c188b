//! `receive` and `send` of a call.
use super::call::Call;
use super::{receive, send};
use crate::functions::{Definition, enter};
use pyo3::ffi;
use pyo3::prelude::*;

static RECEIVE: Definition = Definition::without_arguments(c"receive", receive_entry);
static SEND: Definition = Definition::with_one(c"send", send_entry);

pub fn functions(py: Python<'_>, call: &Py<Call>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let call = call.bind(py);
    Ok((RECEIVE.bind(call)?, SEND.bind(call)?))
}

unsafe extern "C" fn receive_entry(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter::<Call>(slf, receive::receive) }
}

unsafe extern "C" fn send_entry(slf: *mut ffi::PyObject, event: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let body = |call: &Bound<'_, Call>| {
        // SAFETY: the one argument of a METH_O function, alive for the call.
        let event = unsafe { Borrowed::from_ptr(call.py(), event) };
        send::send(call, &event)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter::<Call>(slf, body) }
}
