//! What greenlets are asked, and what is asked of their hub.
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// How a greenlet looked when it had answered nothing.
pub(super) struct Untouched {
    attributes: usize,
    weak: usize,
}

/// What is asked of the hub and of greenlets.
pub(super) struct Library {
    hub: Py<PyAny>,
    switch: Py<PyAny>,
    getcurrent: Py<PyAny>,
    weak_references: Py<PyAny>,
    is_linked: Py<PyAny>,
}

impl Library {
    pub(super) fn of(py: Python<'_>, hub: Py<PyAny>) -> PyResult<Library> {
        Ok(Library {
            switch: hub.getattr(py, "switch")?,
            is_linked: hub.getattr(py, "is_linked")?,
            hub,
            getcurrent: py.import("greenlet")?.getattr("getcurrent")?.unbind(),
            weak_references: py.import("weakref")?.getattr("getweakrefcount")?.unbind(),
        })
    }

    pub(super) fn new_greenlet<'py>(&self, py: Python<'py>, run: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hub.bind(py).call_method1(intern!(py, "new_greenlet"), (run,))
    }

    /// The greenlet that runs.
    pub(super) fn current<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.getcurrent.bind(py).call0()
    }

    /// Gives control to the hub, until something switches back.
    pub(super) fn wait(&self, py: Python<'_>) -> PyResult<()> {
        self.switch.bind(py).call0().map(drop)
    }

    pub(super) fn look_at(&self, me: &Bound<'_, PyAny>) -> PyResult<Untouched> {
        Ok(Untouched { attributes: attributes(me)?, weak: self.weak(me)? })
    }

    fn weak(&self, me: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.weak_references.bind(me.py()).call1((me,))?.extract()
    }

    /// Whether the application left something on the greenlet by which it could be told from a new one.
    pub(super) fn is_touched(&self, me: &Bound<'_, PyAny>, before: &Untouched) -> PyResult<bool> {
        if attributes(me)? != before.attributes || self.weak(me)? != before.weak {
            return Ok(true);
        }
        self.is_linked.bind(me.py()).call1((me,))?.is_truthy()
    }
}

/// How many attributes of its own an object has.
fn attributes(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    let own = object.getattr(intern!(object.py(), "__dict__"))?;
    Ok(own.cast::<PyDict>().map_or(0, |own| own.len()))
}

/// How many hold an object.
#[cfg(not(Py_GIL_DISABLED))]
pub(super) fn holders_of(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: the object is alive.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) as isize }
}

/// Reference counts are split between threads here and say nothing: no number is ever the same.
#[cfg(Py_GIL_DISABLED)]
pub(super) fn holders_of(_: &Bound<'_, PyAny>) -> isize {
    use std::sync::atomic::{AtomicIsize, Ordering};
    static NEVER: AtomicIsize = AtomicIsize::new(0);
    NEVER.fetch_add(1, Ordering::Relaxed)
}
