//! A context (`contextvars`) for one call, and what can be asked of it.
use crate::text::latin1;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::CStr;

/// The context that a call runs in; left when this is dropped. The caller holds the GIL all the time, and is on the same
/// greenlet when it drops this as when it made it.
#[derive(Default)]
pub struct Entered {
    context: Option<Py<PyAny>>,
    /// The id of a request is set; if there is no context to leave, it is taken back.
    is_identified: bool,
}

impl Entered {
    /// Enters a copy of `base`.
    #[inline]
    pub fn copy_of(py: Python<'_>, base: &Py<PyAny>) -> PyResult<Entered> {
        // SAFETY: `base` is a live context, the GIL is held; null carries the error.
        Entered::new(unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_Copy(base.as_ptr()))? })
    }

    /// Enters a copy of the current context in which the request has this id; nothing, if it has none.
    #[inline]
    pub fn identified(py: Python<'_>, id: &[u8]) -> PyResult<Entered> {
        if id.is_empty() {
            return Ok(Entered::default());
        }
        // SAFETY: the GIL is held; null carries the error.
        let mut entered = Entered::new(unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_CopyCurrent())? })?;
        entered.identify(py, id)?;
        Ok(entered)
    }

    fn new(context: Bound<'_, PyAny>) -> PyResult<Entered> {
        // SAFETY: a context that was never entered; a negative result carries the error.
        if unsafe { ffi::PyContext_Enter(context.as_ptr()) } < 0 {
            return Err(PyErr::fetch(context.py()));
        }
        Ok(Entered { context: Some(context.unbind()), is_identified: false })
    }

    /// Has log records that are made until this is dropped carry the id of their request. Empty: there is none.
    #[inline]
    pub fn identify(&mut self, py: Python<'_>, id: &[u8]) -> PyResult<()> {
        if !id.is_empty() {
            request_id_variable(py)?.set(latin1(py, id)?.as_any())?;
            self.is_identified = true;
        }
        Ok(())
    }
}

impl Entered {
    /// The address of the context; 0: there is none.
    #[inline]
    pub fn address(&self) -> u64 {
        self.context.as_ref().map_or(0, |context| context.as_ptr() as u64)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(context) = self.context.take() else {
            if self.is_identified {
                Python::attach(forget_request_id);
            }
            return;
        };
        Python::attach(|py| {
            // SAFETY: a live context. Should the application have put another one in its place (`gr_context`), this fails and
            // changes nothing.
            if unsafe { ffi::PyContext_Exit(context.as_ptr()) } < 0 {
                PyErr::fetch(py).write_unraisable(py, None);
            }
        });
    }
}

/// The id of the request that a context handles: a string, or None.
fn request_id_variable(py: Python<'_>) -> PyResult<&Variable> {
    static VARIABLE: PyOnceLock<Variable> = PyOnceLock::new();
    VARIABLE.get_or_try_init(py, || Variable::new(py, c"tricorn.request_id"))
}

/// The id of the request that this context handles.
#[pyfunction]
pub fn request_id(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(request_id_variable(py)?.get(py)?.filter(|id| !id.is_none()))
}

#[cold]
fn forget_request_id(py: Python<'_>) {
    if let Err(error) = request_id_variable(py).and_then(|variable| variable.set(py.None().bind(py))) {
        error.write_unraisable(py, None);
    }
}

/// A variable of contexts.
pub struct Variable(Py<PyAny>);

impl Variable {
    pub fn new(py: Python<'_>, name: &CStr) -> PyResult<Variable> {
        // SAFETY: the name ends with a null; there is no default; null carries the error.
        let variable = unsafe { ffi::PyContextVar_New(name.as_ptr(), std::ptr::null_mut()) };
        // SAFETY: as above.
        unsafe { Bound::from_owned_ptr_or_err(py, variable) }.map(|variable| Variable(variable.unbind()))
    }

    /// Of the object in memory.
    pub fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Sets it in the current context.
    #[inline]
    pub fn set(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: a live variable and a live value; the result is a new reference, or null with an error set.
        let token = unsafe { ffi::PyContextVar_Set(self.0.as_ptr(), value.as_ptr()) };
        // SAFETY: as above.
        unsafe { Bound::from_owned_ptr_or_err(value.py(), token) }.map(drop)
    }

    /// What it is in the current context; `None` if it is nothing there.
    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut value = std::ptr::null_mut();
        // SAFETY: a live variable, no default; a negative result has an error set.
        if unsafe { ffi::PyContextVar_Get(self.0.as_ptr(), std::ptr::null_mut(), &raw mut value) } < 0 {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: a new reference, or null.
        Ok(unsafe { Bound::from_owned_ptr_or_opt(py, value) })
    }
}

/// Runs something in a context.
pub fn run_in(py: Python<'_>, context: &Py<PyAny>, body: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
    // SAFETY: a context object, which a task made; a negative result has an error set.
    if unsafe { ffi::PyContext_Enter(context.as_ptr()) } < 0 {
        return Err(PyErr::fetch(py));
    }
    let result = body();
    // SAFETY: the context entered above; what has run leaves it as it found it.
    if unsafe { ffi::PyContext_Exit(context.as_ptr()) } < 0 {
        return Err(PyErr::fetch(py));
    }
    result
}
