//! A context (`contextvars`) for one call.
use pyo3::ffi;
use pyo3::prelude::*;

/// The context that a call runs in; left when this is dropped. The caller holds the GIL all the time, and is on the same
/// greenlet when it drops this as when it made it.
pub struct Entered {
    context: Option<Py<PyAny>>,
}

impl Entered {
    /// Enters a copy of `base`; nothing, if there is none.
    #[inline]
    pub fn copy_of(py: Python<'_>, base: Option<&Py<PyAny>>) -> PyResult<Entered> {
        let Some(base) = base else { return Ok(Entered { context: None }) };
        // SAFETY: `base` is a live context, the GIL is held; null carries the error.
        let context = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_Copy(base.as_ptr()))? };
        // SAFETY: a context that nobody has entered; a negative result carries the error.
        if unsafe { ffi::PyContext_Enter(context.as_ptr()) } < 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Entered { context: Some(context.unbind()) })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let Some(context) = self.context.take() else { return };
        Python::attach(|py| {
            // SAFETY: a live context. Should the application have put another one in its place (`gr_context`), this fails and
            // changes nothing.
            if unsafe { ffi::PyContext_Exit(context.as_ptr()) } < 0 {
                PyErr::fetch(py).write_unraisable(py, None);
            }
        });
    }
}
