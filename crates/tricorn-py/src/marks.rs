//! How what reads memory (a sampler, the monitor) tells the request that a thread is at: by the context (`contextvars`) that it runs in.
use crate::context::{Entered, Variable, run_in};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use tricorn_io::{HubHandle, Marks, offsets_of};

/// The context of the worker, in copies of which the calls of a hub run.
pub struct BaseContext {
    hub: HubHandle,
    context: Py<PyAny>,
    /// Names a call in its copy, and in the copies that its tasks make of that.
    variable: Option<Variable>,
}

impl BaseContext {
    /// The current context. With the name of a variable calls are told apart by it, without one by their contexts.
    pub fn current(py: Python<'_>, hub: &HubHandle, variable: Option<&CStr>) -> PyResult<BaseContext> {
        let variable = variable.map(|name| Variable::new(py, name)).transpose()?;
        tell(py, hub, variable.as_ref())?;
        let context = py.import("contextvars")?.call_method0("copy_context")?.unbind();
        Ok(BaseContext { hub: hub.clone(), context, variable })
    }

    /// Enters a copy.
    #[inline]
    pub fn enter(&self, py: Python<'_>) -> PyResult<Entered> {
        Entered::copy_of(py, &self.context)
    }

    /// Enters a copy in which the variable names this call.
    pub fn enter_for(&self, call: &Bound<'_, PyAny>) -> PyResult<Entered> {
        let entered = self.enter(call.py())?;
        self.variable.as_ref().map_or(Ok(()), |variable| variable.set(call))?;
        Ok(entered)
    }

    /// The call that the current context belongs to.
    pub fn named<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.variable.as_ref().map_or(Ok(None), |variable| variable.get(py))
    }

    /// From now on the call in this slot is known by the context that was entered.
    #[inline]
    pub fn know(&self, slot: usize, entered: &Entered) {
        self.hub.knows_call_by(slot, entered.address());
    }
}

/// Finds out where the interpreter keeps a thread's context, and tells the hub. `variable`: names a request in contexts that tasks copy.
/// Without it what a task does that a request has made belongs to none.
pub fn tell(py: Python<'_>, hub: &HubHandle, variable: Option<&Variable>) -> PyResult<()> {
    let contexts = py.import("contextvars")?;
    // SAFETY: this thread has the GIL, and so a thread state, of which only the address is taken.
    let state = unsafe { ffi::PyThreadState_Get() } as u64;
    let mut places: Option<Vec<u64>> = None;
    for _ in 0..2 {
        let context = contexts.call_method0("copy_context")?.unbind();
        run_in(py, &context, || {
            let found = offsets_of(state, context.as_ptr() as u64);
            // What is the same for another context is it: a word may be left over from something else.
            places = Some(match places.take() {
                None => found,
                Some(before) => before.into_iter().filter(|place| found.contains(place)).collect(),
            });
            Ok(())
        })?;
    }
    if let Some(&context) = places.unwrap_or_default().first() {
        hub.mark_calls_with(Marks { state, context, variable: variable.map_or(0, Variable::address) });
    }
    Ok(())
}
