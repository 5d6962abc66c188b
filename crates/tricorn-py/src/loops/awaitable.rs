//! What `send` and `receive` return. All of them are awaitables that can be made tasks of, too, as coroutines can.
//!
//! What is there already costs the event loop nothing: `Done` and `Ready` end at the first step.
use super::loop_future::LoopFuture;
use crate::sync::lock;
use pyo3::exceptions::{PyRuntimeError, PyStopIteration, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Awaited: `None`, at once. There is one for all.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Done;

static DONE: PyOnceLock<Py<Done>> = PyOnceLock::new();

impl Done {
    #[inline]
    pub fn get(py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(DONE.get_or_try_init(py, || Py::new(py, Done))?.clone_ref(py).into_any())
    }
}

#[pymethods]
impl Done {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> Option<Py<PyAny>> {
        None
    }

    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyStopIteration::new_err(()))
    }

    #[pyo3(signature = (*error))]
    fn throw(&self, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(raised(error))
    }

    fn close(&self) {}
}

/// Awaited: a value, at once.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Ready {
    value: Mutex<Option<Py<PyAny>>>,
}

impl Ready {
    pub fn new(value: Py<PyAny>) -> Ready {
        Ready { value: Mutex::new(Some(value)) }
    }

    fn take(&self) -> PyErr {
        let value = lock(&self.value).take();
        value.map_or_else(again, returned)
    }
}

#[pymethods]
impl Ready {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self) -> PyResult<Option<Py<PyAny>>> {
        Err(self.take())
    }

    fn send(&self, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(self.take())
    }

    #[pyo3(signature = (*error))]
    fn throw(&self, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        Err(raised(error))
    }

    fn close(&self) {}
}

/// Something that may have to be waited for.
pub trait Awaited: Send + Sync {
    /// What is waited for, if it is there; else a future that is done when it is worth asking again.
    fn poll(&self, py: Python<'_>) -> PyResult<Poll>;

    /// This future is waited for no more.
    fn forget(&self, py: Python<'_>, future: &Py<PyAny>);

    /// This future was woken, and its task knows.
    fn heard(&self, _future: Py<LoopFuture>) {}
}

pub enum Poll {
    Ready(Py<PyAny>),
    Pending(Py<PyAny>),
    /// As `Pending`, for a future that is used again.
    Listen(Py<LoopFuture>),
    /// It is there, but the loop's other callbacks come first. A task that yields `None` is continued after them, as by
    /// `asyncio.sleep(0)`.
    Turn,
}

/// Awaited: what `outcome` gives, after the loop's other callbacks had their turn.
///
/// For what is there at once, however often an application asks for it: it would otherwise never let its loop turn.
pub struct AfterTurn {
    turned: AtomicBool,
    outcome: Box<Outcome>,
}

type Outcome = dyn Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync;

impl AfterTurn {
    pub fn of(
        py: Python<'_>,
        outcome: impl Fn(Python<'_>) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    ) -> PyResult<Py<PyAny>> {
        let after = AfterTurn { turned: AtomicBool::new(false), outcome: Box::new(outcome) };
        Ok(Py::new(py, Wait::new(Box::new(after)))?.into_any())
    }

    /// Awaited: `None`, after the loop's other callbacks had their turn.
    pub fn nothing(py: Python<'_>) -> PyResult<Py<PyAny>> {
        AfterTurn::of(py, |py| Ok(py.None()))
    }
}

impl Awaited for AfterTurn {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        if !self.turned.swap(true, Ordering::Relaxed) {
            return Ok(Poll::Turn);
        }
        (self.outcome)(py).map(Poll::Ready)
    }

    fn forget(&self, _py: Python<'_>, _future: &Py<PyAny>) {}
}

enum Waited {
    /// A future, and its iterator.
    Future(Py<PyAny>, Py<PyAny>),
    LoopFuture(Py<LoopFuture>),
}

/// Awaited: what an [`Awaited`] gives, when it does.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Wait {
    what: Box<dyn Awaited>,
    waited: Mutex<Option<Waited>>,
}

impl Wait {
    pub fn new(what: Box<dyn Awaited>) -> Wait {
        Wait { what, waited: Mutex::new(None) }
    }

    fn waited(&self) -> MutexGuard<'_, Option<Waited>> {
        lock(&self.waited)
    }

    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        loop {
            let waited = self.waited().take();
            match waited {
                Some(Waited::Future(future, iterator)) => {
                    let yielded = advance(py, &iterator)?;
                    if let Some(yielded) = yielded {
                        *self.waited() = Some(Waited::Future(future, iterator));
                        return Ok(yielded);
                    }
                }
                Some(Waited::LoopFuture(future)) if !future.get().is_woken() => return Ok(self.listen(py, future)),
                Some(Waited::LoopFuture(future)) => self.what.heard(future),
                None => {}
            }
            match self.what.poll(py)? {
                Poll::Ready(value) => return Err(returned(value)),
                Poll::Pending(future) => {
                    let iterator = future.call_method0(py, intern!(py, "__await__"))?;
                    *self.waited() = Some(Waited::Future(future, iterator));
                }
                Poll::Listen(future) => return Ok(self.listen(py, future)),
                Poll::Turn => return Ok(py.None()),
            }
        }
    }

    fn listen(&self, py: Python<'_>, future: Py<LoopFuture>) -> Py<PyAny> {
        future.get().awaited();
        let yielded = future.clone_ref(py).into_any();
        *self.waited() = Some(Waited::LoopFuture(future));
        yielded
    }

    fn give_up(&self, py: Python<'_>) {
        let waited = self.waited().take();
        match waited {
            Some(Waited::Future(future, _)) => self.what.forget(py, &future),
            Some(Waited::LoopFuture(future)) => self.what.forget(py, future.as_any()),
            None => {}
        }
    }
}

#[pymethods]
impl Wait {
    fn __await__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.step(py).map(Some)
    }

    fn send(&self, py: Python<'_>, _value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    #[pyo3(signature = (*error))]
    fn throw(&self, py: Python<'_>, error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.give_up(py);
        Err(raised(error))
    }

    fn close(&self, py: Python<'_>) {
        self.give_up(py);
    }
}

/// One step of a future's iterator: what it yields, or `None` if the future is done. Raises what the future does.
fn advance(py: Python<'_>, iterator: &Py<PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let mut result = std::ptr::null_mut();
    // SAFETY: a live iterator and `None`; the result is a new reference, or null with an error set.
    let outcome = unsafe { ffi::PyIter_Send(iterator.as_ptr(), ffi::Py_None(), &raw mut result) };
    // SAFETY: as above.
    let result = unsafe { Bound::from_owned_ptr_or_err(py, result)? };
    Ok((outcome == ffi::PySendResult::PYGEN_NEXT).then(|| result.unbind()))
}

/// How an iterator returns a value (PEP 380). In a tuple: one that is a tuple or an exception itself is not taken apart.
fn returned(value: Py<PyAny>) -> PyErr {
    PyStopIteration::new_err((value,))
}

fn again() -> PyErr {
    PyRuntimeError::new_err("cannot reuse already awaited receive()")
}

/// The error that `throw(type[, value[, traceback]])` asks for.
fn raised(error: &Bound<'_, PyTuple>) -> PyErr {
    let Ok(first) = error.get_item(0) else {
        return PyTypeError::new_err("throw expected an exception");
    };
    match error.get_item(1) {
        Ok(value) if value.is_instance_of::<pyo3::exceptions::PyBaseException>() => PyErr::from_value(value),
        Ok(value) if !value.is_none() => match first.call1((value,)) {
            Ok(made) => PyErr::from_value(made),
            Err(error) => error,
        },
        _ => PyErr::from_value(first),
    }
}
