//! Tasks that begin where they are made: a request that has nothing to wait for is answered without a turn of the loop.
//!
//! CPython 3.12 has that (`eager_start`). Before, a task asks its loop to call it soon; for the moment in which it does, the
//! loop says "now".
use super::loop_future::LoopFuture;
use crate::context::run_in;
use crate::forked;
use crate::functions::{Arguments, Definition, enter_with};
use crate::sync::lock;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySet, PyString};
use std::sync::Mutex;

pub struct Tasks {
    event_loop: Py<PyAny>,
    /// `asyncio.Task`.
    kind: Py<PyAny>,
    call_soon: Py<PyString>,
    /// Where the first step of a task is caught: the loop's own attributes, and what stands in them for that time.
    catcher: Option<Stage>,
    keywords: Py<PyDict>,
    /// Tasks under way, which the loop itself only knows weakly.
    running: Py<PySet>,
}

/// A task that has taken its first step.
pub struct Begun<'py> {
    pub task: Bound<'py, PyAny>,
    /// The task's context as its loop was told; from CPython 3.12 on the task itself is asked.
    context: Option<Py<PyAny>>,
}

struct Stage {
    own: Py<PyDict>,
    call_soon: Py<PyAny>,
    catcher: Py<Catcher>,
}

/// What a task asked its loop to call.
struct Step {
    function: Py<PyAny>,
    context: Option<Py<PyAny>>,
}

/// Stands for `loop.call_soon` while a task is made.
#[pyclass(frozen, module = "tricorn._core")]
struct Catcher {
    caught: Mutex<Option<Step>>,
}

static CALL_SOON: Definition = Definition::with_any(c"call_soon", call_soon_entry);

/// `call_soon(step, context=…)`.
unsafe extern "C" fn call_soon_entry(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    keywords: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let body = |catcher: &Bound<'_, Catcher>, args: &Arguments<'_>| {
        let function = args.get(0).ok_or_else(|| PyTypeError::new_err("call_soon without a callback"))?;
        let context = args.first_named().map(|context| context.to_owned().unbind());
        catcher.get().put(Step { function: function.to_owned().unbind(), context });
        Ok(args.py.None())
    };
    // SAFETY: CPython calls this as it was bound.
    unsafe { enter_with::<Catcher>(slf, args, count, keywords, body) }
}

impl Catcher {
    fn put(&self, step: Step) {
        let before = lock(&self.caught).replace(step);
        drop(before);
    }

    fn take(&self) -> Option<Step> {
        lock(&self.caught).take()
    }
}

impl Tasks {
    pub fn new(py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Tasks> {
        let keywords = PyDict::new(py);
        keywords.set_item("loop", event_loop)?;
        keywords.set_item("name", "request")?; // a number for each would have to be written out for each
        let is_eager = py.version_info() >= (3, 12);
        if is_eager {
            keywords.set_item("eager_start", true)?;
        }
        let catcher = if is_eager {
            None
        } else {
            let own = event_loop.getattr("__dict__")?.cast_into::<PyDict>()?.unbind();
            let catcher = Bound::new(py, Catcher { caught: Mutex::new(None) })?;
            Some(Stage { own, call_soon: CALL_SOON.bind(&catcher)?, catcher: catcher.unbind() })
        };
        Ok(Tasks {
            event_loop: event_loop.clone().unbind(),
            kind: py.import("asyncio")?.getattr("Task")?.unbind(),
            call_soon: PyString::intern(py, "call_soon").unbind(),
            catcher,
            keywords: keywords.unbind(),
            running: PySet::empty(py)?.unbind(),
        })
    }

    /// A task of this coroutine, as far as it came without waiting. To be called in the loop's thread, outside of any task.
    pub fn begin<'py>(&self, coroutine: &Bound<'py, PyAny>) -> PyResult<Begun<'py>> {
        let begun = self.take_first_step(coroutine);
        if tricorn_io::is_child() {
            forked::leave_task(coroutine.py(), begun.map(|begun| begun.task));
        }
        begun
    }

    fn take_first_step<'py>(&self, coroutine: &Bound<'py, PyAny>) -> PyResult<Begun<'py>> {
        let py = coroutine.py();
        let keywords = self.keywords.bind(py);
        let Some(Stage { own, call_soon: caught, catcher }) = &self.catcher else {
            let task = self.kind.bind(py).call((coroutine,), Some(keywords))?;
            return Ok(Begun { task, context: None });
        };
        let (own, call_soon) = (own.bind(py), self.call_soon.bind(py));
        own.set_item(call_soon, caught)?;
        let task = self.kind.bind(py).call((coroutine,), Some(keywords));
        own.del_item(call_soon)?;
        let caught = catcher.get().take();
        let task = task?;
        let Some(step) = caught else { return Ok(Begun { task, context: None }) };
        step.take(py)?;
        Ok(Begun { task, context: step.context })
    }

    /// The task that the loop is at.
    pub fn current<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let asyncio = py.import(intern!(py, "asyncio"))?;
        let task = asyncio.call_method1(intern!(py, "current_task"), (&self.event_loop,))?;
        Ok((!task.is_none()).then_some(task))
    }

    /// Remembers a task that waits, and has `done` called with it, in its [`Begun::context`], when it has ended.
    pub fn hold(&self, begun: &Begun<'_>, context: Option<&Py<PyAny>>, done: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = begun.task.py();
        self.running.bind(py).add(&begun.task)?;
        let keywords = PyDict::new(py);
        keywords.set_item(intern!(py, "context"), context)?;
        begun.task.call_method(intern!(py, "add_done_callback"), (done,), Some(&keywords)).map(drop)
    }

    pub fn forget(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        self.running.bind(task.py()).discard(task).map(drop)
    }

    pub fn running(&self, py: Python<'_>) -> usize {
        self.running.bind(py).len()
    }

    /// Cancels all that are under way.
    pub fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        for task in self.running.bind(py).iter().collect::<Vec<_>>() {
            task.call_method0(intern!(py, "cancel"))?;
        }
        Ok(())
    }

    pub fn loop_future(&self, py: Python<'_>) -> PyResult<Py<LoopFuture>> {
        Py::new(py, LoopFuture::new(self.event_loop.clone_ref(py)))
    }

    pub fn future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.event_loop.call_method0(py, intern!(py, "create_future"))
    }

    /// Calls `function` at the loop's next turn.
    pub fn call_soon(&self, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = function.py();
        self.event_loop.call_method1(py, self.call_soon.bind(py), (function,)).map(drop)
    }

    /// Calls `function` in so many seconds, and not before what the loop was to do already; returns what can be cancelled.
    pub fn call_later(&self, py: Python<'_>, seconds: f64, function: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        if seconds <= 0.0 {
            return self.event_loop.call_method1(py, intern!(py, "call_soon"), (function,));
        }
        self.event_loop.call_method1(py, intern!(py, "call_later"), (seconds, function))
    }
}

impl Begun<'_> {
    /// Whether the task has ended already.
    pub fn is_done(&self) -> PyResult<bool> {
        is_done(&self.task)
    }

    /// Runs something in the task's context, where what the task has set is seen: a log handler may look for it.
    pub fn inside(&self, body: impl FnOnce() -> PyResult<()>) -> PyResult<()> {
        match self.context()? {
            Some(context) => run_in(self.task.py(), &context, body),
            None => body(),
        }
    }

    /// `None`: the task never asked its loop for a step.
    pub fn context(&self) -> PyResult<Option<Py<PyAny>>> {
        let py = self.task.py();
        match &self.context {
            Some(context) => Ok(Some(context.clone_ref(py))),
            None if py.version_info() >= (3, 12) => {
                self.task.call_method0(intern!(py, "get_context")).map(|context| Some(context.unbind()))
            }
            None => Ok(None),
        }
    }
}

impl Step {
    /// Takes it, in the task's context.
    fn take(&self, py: Python<'_>) -> PyResult<()> {
        let step = || self.function.call0(py).map(drop);
        self.context.as_ref().map_or_else(step, |context| run_in(py, context, step))
    }
}

/// Whether a task, or any future, is done.
fn is_done(task: &Bound<'_, PyAny>) -> PyResult<bool> {
    task.call_method0(intern!(task.py(), "done"))?.is_truthy()
}

/// Returns the exception of a task that is done, with its traceback; its `CancelledError` if it was cancelled.
///
/// Not by way of `result()`: that raises the exception, and the C implementation of asyncio's futures forgets the traceback
/// when it does so for the first time.
pub fn error_of(task: &Bound<'_, PyAny>) -> Option<PyErr> {
    match task.call_method0(intern!(task.py(), "exception")) {
        Ok(error) if error.is_none() => None,
        Ok(error) => Some(PyErr::from_value(error)),
        Err(cancelled) => Some(cancelled),
    }
}

/// Makes futures done, those that are not.
pub fn wake(py: Python<'_>, futures: Vec<Py<PyAny>>) -> PyResult<()> {
    for future in futures {
        let future = future.bind(py);
        if !is_done(future)? {
            future.call_method1(intern!(py, "set_result"), (py.None(),))?;
        }
    }
    Ok(())
}
