//! `receive` and `send` as plain C functions bound to a call: nothing is made for the calling of them.
use super::call::Call;
use super::websocket::{self, Socket};
use super::{receive, send};
use pyo3::PyClass;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Function = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// A method definition, as CPython keeps a pointer to it.
pub struct Definition(ffi::PyMethodDef);

// SAFETY: CPython only reads it, and what it points to is static.
unsafe impl Sync for Definition {}

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

static RECEIVE_HTTP: Definition = method(c"receive", receive_entry::<Call>, ffi::METH_NOARGS);
static SEND_HTTP: Definition = method(c"send", send_entry::<Call>, ffi::METH_O);
static RECEIVE_WEBSOCKET: Definition = method(c"receive", receive_entry::<Socket>, ffi::METH_NOARGS);
static SEND_WEBSOCKET: Definition = method(c"send", send_entry::<Socket>, ffi::METH_O);

const fn method(name: &'static std::ffi::CStr, entry: Function, flags: std::ffi::c_int) -> Definition {
    Definition(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: entry },
        ml_flags: flags,
        ml_doc: std::ptr::null(),
    })
}

/// `receive` and `send` of a call.
pub fn functions<C: Callee>(py: Python<'_>, call: &Py<C>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    Ok((bind(py, C::RECEIVE, call)?, bind(py, C::SEND, call)?))
}

fn bind<C>(py: Python<'_>, definition: &'static Definition, to: &Py<C>) -> PyResult<Py<PyAny>> {
    // SAFETY: the definition is static and never written to by CPython; `to` is a live object; null carries the error.
    unsafe {
        let definition = std::ptr::from_ref(&definition.0).cast_mut();
        let function = ffi::PyCFunction_NewEx(definition, to.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, function).map(Bound::unbind)
    }
}

/// Enters Rust from a C function: no panic leaves it, errors are raised.
///
/// # Safety
/// Called by CPython with the GIL held, for a function that [`bind`] bound to a `C`.
unsafe fn enter<C: Callee>(
    slf: *mut ffi::PyObject,
    body: impl FnOnce(&Bound<'_, C>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held (see above).
    let py = unsafe { Python::assume_attached() };
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the function was bound to a `C`, which it keeps alive.
        let call = unsafe { Borrowed::from_ptr(py, slf).cast_unchecked::<C>() };
        body(&call)
    }));
    match result {
        Ok(Ok(value)) => value.into_ptr(),
        Ok(Err(error)) => {
            error.restore(py);
            std::ptr::null_mut()
        }
        Err(_) => {
            PyRuntimeError::new_err("tricorn panicked (a defect of tricorn)").restore(py);
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn receive_entry<C: Callee>(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter(slf, C::receive) }
}

unsafe extern "C" fn send_entry<C: Callee>(slf: *mut ffi::PyObject, event: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let body = |call: &Bound<'_, C>| {
        // SAFETY: the one argument of a METH_O function, alive for the call.
        let event = unsafe { Borrowed::from_ptr(call.py(), event) };
        C::send(call, &event)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter(slf, body) }
}
