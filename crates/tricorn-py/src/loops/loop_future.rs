//! A future that is made once and used again: its task goes on where it is woken.
//!
//! To a task it is a future (asyncio, "Future-like object"): it yields it, gives it a callback and may cancel it. An
//! `asyncio.Future` would have its loop call the task at the next turn; in between nothing happens that was worth waiting for.
use crate::context::run_in;
use crate::sync::lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
struct State {
    /// What the task asked to be called, and its context.
    callback: Option<(Py<PyAny>, Option<Py<PyAny>>)>,
    is_woken: bool,
    /// With the message that the task is to be cancelled with.
    cancelled: Option<Option<Py<PyAny>>>,
}

#[pyclass(frozen, module = "tricorn._core")]
pub struct LoopFuture {
    event_loop: Py<PyAny>,
    /// Says to a task that it was yielded by an `await`.
    is_awaited: AtomicBool,
    state: Mutex<State>,
}

#[pymethods]
impl LoopFuture {
    #[getter(_asyncio_future_blocking)]
    fn blocking(&self) -> bool {
        self.is_awaited.load(Ordering::Relaxed)
    }

    #[setter(_asyncio_future_blocking)]
    fn set_blocking(&self, value: bool) {
        self.is_awaited.store(value, Ordering::Relaxed);
    }

    fn get_loop(&self, py: Python<'_>) -> Py<PyAny> {
        self.event_loop.clone_ref(py)
    }

    #[pyo3(signature = (function, *, context=None))]
    fn add_done_callback(slf: &Bound<'_, LoopFuture>, function: Py<PyAny>, context: Option<Py<PyAny>>) -> PyResult<()> {
        let this = slf.get();
        let before = {
            let mut state = this.state();
            if !state.is_woken {
                state.callback.replace((function, context))
            } else {
                drop(state);
                return this.call_soon(slf, &function, context);
            }
        };
        drop(before);
        Ok(())
    }

    fn remove_done_callback(&self, _function: &Bound<'_, PyAny>) -> usize {
        let before = self.state().callback.take();
        usize::from(before.is_some())
    }

    #[pyo3(signature = (msg=None))]
    fn cancel(slf: &Bound<'_, LoopFuture>, msg: Option<Py<PyAny>>) -> PyResult<bool> {
        {
            let mut state = slf.get().state();
            if state.is_woken {
                return Ok(false);
            }
            state.cancelled = Some(msg);
        }
        LoopFuture::wake(slf, When::Soon)?;
        Ok(true)
    }

    fn done(&self) -> bool {
        self.state().is_woken
    }

    fn cancelled(&self) -> bool {
        self.state().cancelled.is_some()
    }

    fn result(&self, py: Python<'_>) -> PyResult<()> {
        let message = {
            let state = self.state();
            if !state.is_woken {
                return Err(PyRuntimeError::new_err("nothing has happened yet"));
            }
            match &state.cancelled {
                None => return Ok(()),
                Some(message) => message.as_ref().map(|message| message.clone_ref(py)),
            }
        };
        let kind = py.import("asyncio")?.getattr("CancelledError")?.cast_into::<PyType>()?;
        match message {
            Some(message) => Err(PyErr::from_type(kind, (message,))),
            None => Err(PyErr::from_type(kind, ())),
        }
    }

    fn exception(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.result(py)?;
        Ok(py.None())
    }
}

/// When the task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Here: in the loop's thread, outside of any task.
    Now,
    /// At the loop's next turn.
    Soon,
}

impl LoopFuture {
    pub fn new(event_loop: Py<PyAny>) -> LoopFuture {
        LoopFuture { event_loop, is_awaited: AtomicBool::new(false), state: Mutex::default() }
    }

    /// What an `await` of it yields.
    pub fn awaited(&self) {
        self.is_awaited.store(true, Ordering::Relaxed);
    }

    pub fn is_woken(&self) -> bool {
        self.state().is_woken
    }

    /// It can be waited for again.
    pub fn reset(&self) {
        let before = std::mem::take(&mut *self.state());
        drop(before);
    }

    /// The coroutine that waits goes on.
    pub fn wake(slf: &Bound<'_, LoopFuture>, when: When) -> PyResult<()> {
        let this = slf.get();
        let callback = {
            let mut state = this.state();
            state.is_woken = true;
            state.callback.take()
        };
        let Some((function, context)) = callback else { return Ok(()) };
        match (when, &context) {
            (When::Now, Some(context)) => run_in(slf.py(), context, || function.call1(slf.py(), (slf,)).map(drop)),
            _ => this.call_soon(slf, &function, context),
        }
    }

    fn call_soon(&self, slf: &Bound<'_, LoopFuture>, function: &Py<PyAny>, context: Option<Py<PyAny>>) -> PyResult<()> {
        let py = slf.py();
        let keywords = PyDict::new(py);
        if let Some(context) = context {
            keywords.set_item(intern!(py, "context"), context)?;
        }
        let event_loop = self.event_loop.bind(py);
        event_loop.call_method(intern!(py, "call_soon"), (function, slf), Some(&keywords)).map(drop)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}
