//! Plain C functions bound to objects of ours: what is called for every request, and costs nothing to be called.
use crate::panics::{self, Panicked};
use pyo3::PyClass;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_int};

/// A method definition, as CPython keeps a pointer to it.
pub struct Definition(ffi::PyMethodDef);

// SAFETY: CPython only reads it, and what it points to is static.
unsafe impl Sync for Definition {}

/// A function that takes nothing.
pub type Simple = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> *mut ffi::PyObject;

/// A function that takes positional arguments and, behind them, named ones.
pub type Fast = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

impl Definition {
    pub const fn without_arguments(name: &'static CStr, entry: Simple) -> Definition {
        Definition::of(name, ffi::PyMethodDefPointer { PyCFunction: entry }, ffi::METH_NOARGS)
    }

    pub const fn with_any(name: &'static CStr, entry: Fast) -> Definition {
        let flags = ffi::METH_FASTCALL | ffi::METH_KEYWORDS;
        Definition::of(name, ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: entry }, flags)
    }

    const fn of(name: &'static CStr, entry: ffi::PyMethodDefPointer, flags: c_int) -> Definition {
        Definition(ffi::PyMethodDef {
            ml_name: name.as_ptr(),
            ml_meth: entry,
            ml_flags: flags,
            ml_doc: std::ptr::null(),
        })
    }

    /// The function, bound to an object, which it keeps alive. The entry enters with the same type.
    pub fn bind<T: PyClass>(&'static self, to: &Bound<'_, T>) -> PyResult<Py<PyAny>> {
        // SAFETY: the definition is static and never written to by CPython; `to` is a live object; null carries the error.
        unsafe {
            let definition = std::ptr::from_ref(&self.0).cast_mut();
            let function = ffi::PyCFunction_NewEx(definition, to.as_ptr(), std::ptr::null_mut());
            Bound::from_owned_ptr_or_err(to.py(), function).map(Bound::unbind)
        }
    }
}

/// The arguments of a call.
pub struct Arguments<'py> {
    pub py: Python<'py>,
    first: *const *mut ffi::PyObject,
    count: usize,
    /// How many of them are named, and by what.
    names: *mut ffi::PyObject,
}

impl<'py> Arguments<'py> {
    /// The one at this place, named or not.
    pub fn get(&self, index: usize) -> Option<Borrowed<'_, 'py, PyAny>> {
        if index >= self.count + self.named() {
            return None;
        }
        // SAFETY: CPython gives so many live objects, which the caller keeps alive for the call.
        unsafe { Borrowed::from_ptr_or_opt(self.py, *self.first.add(index)) }
    }

    /// The first that is named, whatever its name.
    pub fn first_named(&self) -> Option<Borrowed<'_, 'py, PyAny>> {
        if self.named() > 0 { self.get(self.count) } else { None }
    }

    fn named(&self) -> usize {
        // SAFETY: null or a tuple of names.
        if self.names.is_null() { 0 } else { unsafe { ffi::PyTuple_Size(self.names).max(0) as usize } }
    }
}

/// Enters Rust from a C function: no panic leaves it, errors are raised.
///
/// # Safety
/// Called by CPython with the GIL held, for a function that [`Definition::bind`] bound to a `T`.
pub unsafe fn enter<T: PyClass>(
    slf: *mut ffi::PyObject,
    body: impl FnOnce(&Bound<'_, T>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held (see above).
    let py = unsafe { Python::assume_attached() };
    let result = panics::caught(|| {
        // SAFETY: the function was bound to a `T`, which it keeps alive.
        let bound = unsafe { Borrowed::from_ptr(py, slf).cast_unchecked::<T>() };
        body(&bound)
    });
    match result.unwrap_or_else(|Panicked(text)| Err(PyRuntimeError::new_err(text))) {
        Ok(value) => value.into_ptr(),
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

/// As [`enter`], with the arguments of a function [`Definition::with_any`].
///
/// # Safety
/// As for [`enter`], and the arguments are those that CPython gave.
pub unsafe fn enter_with<T: PyClass>(
    slf: *mut ffi::PyObject,
    first: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
    body: impl FnOnce(&Bound<'_, T>, &Arguments<'_>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    let body = |bound: &Bound<'_, T>| {
        let arguments = Arguments { py: bound.py(), first, count: count.max(0) as usize, names };
        body(bound, &arguments)
    };
    // SAFETY: promised by the caller.
    unsafe { enter(slf, body) }
}

/// Calls with three arguments.
pub fn call_with<'py>(
    py: Python<'py>,
    function: &Py<PyAny>,
    arguments: &[*mut ffi::PyObject; 3],
) -> PyResult<Bound<'py, PyAny>> {
    let mut all = [std::ptr::null_mut(), arguments[0], arguments[1], arguments[2]];
    // SAFETY: the callable and the arguments are alive; the slot before the first argument is ours, as
    // PY_VECTORCALL_ARGUMENTS_OFFSET promises; null carries the error.
    unsafe {
        let result = ffi::PyObject_Vectorcall(
            function.as_ptr(),
            all.as_mut_ptr().add(1),
            3 | ffi::PY_VECTORCALL_ARGUMENTS_OFFSET,
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, result)
    }
}
