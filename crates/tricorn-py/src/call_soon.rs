//! `call_soon` of an event loop in Python, with two calls of Python functions in place of five: each step of a task begins with
//! it. What remains is in `asyncio.Handle`, whose fields differ between versions.
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// Makes handles for one loop, and puts them where its turns find them (`asyncio.base_events.BaseEventLoop._ready`).
#[pyclass(frozen, module = "tricorn._core")]
pub struct CallSoon {
    event_loop: Py<PyAny>,
    /// The loop's own method: for a loop that is closed, or debugged.
    own: Py<PyAny>,
    /// `asyncio.Handle`.
    handle: Py<PyAny>,
    /// The method that appends to what the next turn runs.
    append: Py<PyAny>,
}

#[pymethods]
impl CallSoon {
    #[new]
    fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<CallSoon> {
        Ok(CallSoon {
            own: event_loop.getattr("call_soon")?.unbind(),
            handle: event_loop.py().import("asyncio")?.getattr("Handle")?.unbind(),
            append: event_loop.getattr("_ready")?.getattr("append")?.unbind(),
            event_loop: event_loop.clone().unbind(),
        })
    }

    #[pyo3(signature = (callback, *args, context = None))]
    fn call_soon<'py>(
        &self,
        callback: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        context: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = callback.py();
        let event_loop = self.event_loop.bind(py);
        let is = |what| event_loop.getattr(what)?.is_truthy();
        if is(intern!(py, "_closed"))? || is(intern!(py, "_debug"))? {
            let all = [callback.clone()].into_iter().chain(args.iter());
            let keywords = PyDict::new(py);
            keywords.set_item(intern!(py, "context"), context)?;
            return self.own.bind(py).call(PyTuple::new(py, all.collect::<Vec<_>>())?, Some(&keywords));
        }
        let handle = self.handle.bind(py).call1((callback, args, event_loop, context))?;
        self.append.bind(py).call1((&handle,))?;
        Ok(handle)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        [&self.event_loop, &self.own, &self.handle, &self.append].into_iter().try_for_each(|object| visit.call(object))
    }
}
