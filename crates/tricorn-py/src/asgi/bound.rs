//! `receive` and `send` as plain C functions bound to a call: nothing is made for the calling of them.
use super::call::Call;
use super::{receive, send};
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Function = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// A method definition, as CPython keeps a pointer to it.
struct Definition(ffi::PyMethodDef);

// SAFETY: CPython only reads it, and what it points to is static.
unsafe impl Sync for Definition {}

static RECEIVE: Definition = method(c"receive", receive_entry, ffi::METH_NOARGS);
static SEND: Definition = method(c"send", send_entry, ffi::METH_O);

const fn method(name: &'static std::ffi::CStr, entry: Function, flags: std::ffi::c_int) -> Definition {
    Definition(ffi::PyMethodDef {
        ml_name: name.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: entry },
        ml_flags: flags,
        ml_doc: std::ptr::null(),
    })
}

/// `receive` and `send` of a call.
pub fn functions(py: Python<'_>, call: &Py<Call>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    Ok((bind(py, &RECEIVE, call)?, bind(py, &SEND, call)?))
}

fn bind(py: Python<'_>, definition: &'static Definition, to: &Py<Call>) -> PyResult<Py<PyAny>> {
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
/// Called by CPython with the GIL held, for a function that [`bind`] bound to a `Call`.
unsafe fn enter(
    slf: *mut ffi::PyObject,
    body: impl FnOnce(&Bound<'_, Call>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held (see above).
    let py = unsafe { Python::assume_attached() };
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the function was bound to a `Call`, which it keeps alive.
        let call = unsafe { Borrowed::from_ptr(py, slf).cast_unchecked::<Call>() };
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

unsafe extern "C" fn receive_entry(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter(slf, receive::receive) }
}

unsafe extern "C" fn send_entry(slf: *mut ffi::PyObject, event: *mut ffi::PyObject) -> *mut ffi::PyObject {
    let body = |call: &Bound<'_, Call>| {
        // SAFETY: the one argument of a METH_O function, alive for the call.
        let event = unsafe { Borrowed::from_ptr(call.py(), event) };
        send::send(call, &event)
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter(slf, body) }
}
