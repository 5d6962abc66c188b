//! Functions that return awaitables and are taken for coroutine functions, bound to objects of ours.
//!
//! `inspect.iscoroutinefunction` wants Python code, or what has the attributes of a function ("duck type of FunctionType", as
//! Cython's are): asgiref warns of any other that it is given to call from a thread, as Channels' consumers give it `send`. The
//! builtin functions of C have no such attributes, so that these are a type of their own, called as fast.
use crate::functions::enter;
use pyo3::PyClass;
use pyo3::exceptions::{PyMemoryError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use std::ffi::{CStr, c_int, c_void};
use std::mem::offset_of;

/// A function: its name, its signature as a coroutine function of Python, and how it is called.
pub struct CoroutineFunction {
    name: &'static CStr,
    source: &'static CStr,
    call: ffi::vectorcallfunc,
    kind: PyOnceLock<Kind>,
}

struct Kind {
    object_type: Py<PyType>,
    /// Code of the signature, which is never run.
    code: Py<PyAny>,
}

/// An instance, as CPython allocates it.
#[repr(C)]
struct Instance {
    base: ffi::PyObject,
    call: Option<ffi::vectorcallfunc>,
    to: *mut ffi::PyObject,
}

impl CoroutineFunction {
    pub const fn new(name: &'static CStr, source: &'static CStr, call: ffi::vectorcallfunc) -> CoroutineFunction {
        CoroutineFunction { name, source, call, kind: PyOnceLock::new() }
    }

    /// The function, bound to an object, which it keeps alive. It enters with the same type.
    pub fn bind<T: PyClass>(&'static self, to: &Bound<'_, T>) -> PyResult<Py<PyAny>> {
        let py = to.py();
        let kind = self.kind.get_or_try_init(py, || self.make(py))?;
        // SAFETY: a type that `make` has made; its instances are as large as `Instance`. The new one is ours alone, and gets a
        // reference of its own to `to`, which `dealloc` gives back.
        unsafe {
            let instance = ffi::PyType_GenericAlloc(kind.object_type.as_ptr().cast(), 0);
            let function = Bound::from_owned_ptr_or_err(py, instance)?;
            let instance = instance.cast::<Instance>();
            (*instance).call = Some(self.call);
            (*instance).to = to.clone().into_ptr();
            Ok(function.unbind())
        }
    }

    fn make(&'static self, py: Python<'_>) -> PyResult<Kind> {
        let namespace = PyDict::new(py);
        py.run(self.source, Some(&namespace), None)?;
        let function =
            namespace.get_item(self.name.to_string_lossy())?.ok_or_else(|| PyTypeError::new_err("no function"))?;
        let closure = std::ptr::from_ref(self).cast_mut().cast::<c_void>();
        let attribute = |name: &'static CStr, get: ffi::getter| ffi::PyGetSetDef {
            name: name.as_ptr(),
            get: Some(get),
            closure,
            ..ffi::PyGetSetDef::default()
        };
        // CPython keeps pointers to both tables.
        let attributes = Box::leak(Box::new([
            attribute(c"__name__", get_name),
            attribute(c"__code__", get_code),
            attribute(c"__defaults__", get_nothing),
            attribute(c"__kwdefaults__", get_nothing),
            attribute(c"__annotations__", get_nothing),
            ffi::PyGetSetDef::default(),
        ]));
        let members = Box::leak(Box::new([
            ffi::PyMemberDef {
                name: c"__vectorcalloffset__".as_ptr(),
                type_code: ffi::Py_T_PYSSIZET,
                offset: offset_of!(Instance, call) as ffi::Py_ssize_t,
                flags: ffi::Py_READONLY,
                doc: std::ptr::null(),
            },
            ffi::PyMemberDef::default(),
        ]));
        let slot = |slot: c_int, pfunc: *mut c_void| ffi::PyType_Slot { slot, pfunc };
        let mut slots = [
            slot(ffi::Py_tp_dealloc, dealloc as *mut c_void),
            slot(ffi::Py_tp_call, ffi::PyVectorcall_Call as *mut c_void),
            slot(ffi::Py_tp_getset, attributes.as_mut_ptr().cast()),
            slot(ffi::Py_tp_members, members.as_mut_ptr().cast()),
            ffi::PyType_Slot::default(),
        ];
        let mut spec = ffi::PyType_Spec {
            name: c"tricorn._core.coroutine_function".as_ptr(),
            basicsize: size_of::<Instance>() as c_int,
            itemsize: 0,
            flags: (ffi::Py_TPFLAGS_DEFAULT | ffi::Py_TPFLAGS_HAVE_VECTORCALL) as u32,
            slots: slots.as_mut_ptr(),
        };
        // SAFETY: the spec and its slots live for the call, and what they point to for ever; null carries the error.
        let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec))? };
        Ok(Kind { object_type: made.cast_into::<PyType>()?.unbind(), code: function.getattr("__code__")?.unbind() })
    }
}

/// Enters Rust from the vectorcall of a function that takes this many arguments, all positional.
///
/// # Safety
/// Called by CPython with the GIL held, for a function that [`CoroutineFunction::bind`] bound to a `T`.
pub unsafe fn enter_call<T: PyClass>(
    function: *mut ffi::PyObject,
    count: usize,
    flags: usize,
    names: *mut ffi::PyObject,
    body: impl FnOnce(&Bound<'_, T>) -> PyResult<Py<PyAny>>,
) -> *mut ffi::PyObject {
    // SAFETY: an instance of ours (see above), which CPython keeps alive for the call; the GIL is held.
    unsafe {
        let given = ffi::PyVectorcall_NARGS(flags);
        enter::<T>((*function.cast::<Instance>()).to, |to| {
            if given != count as ffi::Py_ssize_t || !names.is_null() {
                return Err(PyTypeError::new_err(format!("expected {count} positional arguments, got {given}")));
            }
            body(to)
        })
    }
}

unsafe extern "C" fn dealloc(function: *mut ffi::PyObject) {
    // SAFETY: the last reference to an instance of ours is gone; it holds one to `to` and, as instances of heap types do, one to
    // its type.
    unsafe {
        let object_type = ffi::Py_TYPE(function);
        ffi::Py_XDECREF((*function.cast::<Instance>()).to);
        ffi::PyObject_Free(function.cast());
        ffi::Py_DECREF(object_type.cast());
    }
}

unsafe extern "C" fn get_name(_function: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the closure is the static that `make` was called for; its name ends with a zero.
    unsafe { ffi::PyUnicode_FromString((*closure.cast::<CoroutineFunction>()).name.as_ptr()) }
}

unsafe extern "C" fn get_code(_function: *mut ffi::PyObject, closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held, and the closure is the static that `make` was called for.
    let (py, function) = unsafe { (Python::assume_attached(), &*closure.cast::<CoroutineFunction>()) };
    match function.kind.get(py) {
        Some(kind) => kind.code.clone_ref(py).into_ptr(),
        None => {
            PyMemoryError::new_err("no code").restore(py);
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn get_nothing(_function: *mut ffi::PyObject, _closure: *mut c_void) -> *mut ffi::PyObject {
    // SAFETY: the GIL is held.
    unsafe { Python::assume_attached() }.None().into_ptr()
}
