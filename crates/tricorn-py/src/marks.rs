//! How what reads memory (a sampler, the monitor) tells the request that a thread is at: by the context (`contextvars`) that it runs in.
use crate::context::{Variable, run_in};
use pyo3::ffi;
use pyo3::prelude::*;
use tricorn_io::{Engine, Marks, offsets_of};

/// Finds out where the interpreter keeps a thread's context, and tells the engine. `variable`: names a request in contexts that tasks copy.
/// Without it what a task does that a request has made belongs to none.
pub fn tell(py: Python<'_>, engine: &Engine, variable: Option<&Variable>) -> PyResult<()> {
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
        engine.mark_calls_with(Marks { state, context, variable: variable.map_or(0, Variable::address) });
    }
    Ok(())
}
