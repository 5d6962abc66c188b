//! What an event loop in Python tells of its waits: when each begins and ends.
use crate::core::Core;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use tricorn_io::{HubHandle, ReadyDescriptor, wait_at};

/// Keeps the time that the event loop of the calling thread waits and works.
#[pyclass(frozen, module = "tricorn._core")]
pub struct LoopClock {
    hub: HubHandle,
}

#[pymethods]
impl LoopClock {
    #[new]
    fn new(core: &Bound<'_, Core>) -> PyResult<LoopClock> {
        Ok(LoopClock { hub: core.get().hub()? })
    }

    /// The loop works, and says from now on when it waits.
    fn begin(&self) {
        self.hub.keep_loop_time();
    }

    /// The loop is about to wait for events.
    fn waits(&self) {
        self.hub.loop_waits();
    }

    /// The loop has waited.
    fn works(&self) {
        self.hub.loop_works();
    }

    /// What waits for events, as something that keeps the time. It is called with a timeout.
    fn around<'py>(&self, py: Python<'py>, wait: Py<PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, TimedWait { hub: self.hub.clone(), wait })?.getattr(intern!(py, "wait"))
    }

    /// What a selector of this epoll waits by, with keys by their descriptors: `selectors.EpollSelector.select` without a line
    /// of Python, which keeps the time.
    fn select<'py>(&self, py: Python<'py>, epoll: RawFd, keys: Py<PyDict>) -> PyResult<Bound<'py, PyAny>> {
        Bound::new(py, TimedSelect { hub: self.hub.clone(), epoll, keys })?.getattr(intern!(py, "select"))
    }
}

/// Calls what it was made of, and says how long that took. Its method is taken, which costs less than an object that is called.
#[pyclass(frozen, module = "tricorn._core")]
struct TimedWait {
    hub: HubHandle,
    wait: Py<PyAny>,
}

#[pymethods]
impl TimedWait {
    fn wait<'py>(&self, timeout: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.hub.loop_waits();
        let result = self.wait.bind(timeout.py()).call1((timeout,));
        self.hub.loop_works();
        result
    }
}

/// Waits at the epoll of an `EpollSelector`, and tells of its keys.
#[pyclass(frozen, module = "tricorn._core")]
struct TimedSelect {
    hub: HubHandle,
    /// A number, and no duplicate: in a child that the application forks another epoll has it.
    epoll: RawFd,
    keys: Py<PyDict>,
}

#[pymethods]
impl TimedSelect {
    #[pyo3(signature = (timeout = None))]
    fn select<'py>(&self, py: Python<'py>, timeout: Option<f64>) -> PyResult<Bound<'py, PyList>> {
        self.hub.loop_waits();
        // SAFETY: the loop that waits has the descriptor open, and a number that is not open is an error of the system's.
        let epoll = unsafe { BorrowedFd::borrow_raw(self.epoll) };
        let ready = py.detach(|| wait_at(epoll, timeout.map(whole_millis)));
        self.hub.loop_works();
        match ready.map_err(io::Error::from) {
            Ok(ready) => self.tell(py, &ready),
            // The signal's handler runs as soon as the loop goes on.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(PyList::empty(py)),
            Err(error) => Err(error.into()),
        }
    }
}

impl TimedSelect {
    /// Keys, each with which of its events there are. A descriptor without a key was forgotten meanwhile.
    fn tell<'py>(&self, py: Python<'py>, ready: &[ReadyDescriptor]) -> PyResult<Bound<'py, PyList>> {
        let told = PyList::empty(py);
        let keys = self.keys.bind(py);
        for descriptor in ready {
            let Some(key) = keys.get_item(descriptor.fd)? else { continue };
            let wanted: u8 = key.cast::<PyTuple>()?.get_item(EVENTS)?.extract()?;
            let events =
                wanted & (if descriptor.readable { READ } else { 0 } | if descriptor.writable { WRITE } else { 0 });
            told.append((key, events))?;
        }
        Ok(told)
    }
}

/// `selectors.EVENT_READ` and `EVENT_WRITE`, and where a `SelectorKey` has its events.
const READ: u8 = 1;
const WRITE: u8 = 2;
const EVENTS: usize = 2;

/// Nanoseconds of a time in seconds, not less than it and in whole milliseconds, as epoll has it in Python.
fn whole_millis(seconds: f64) -> u64 {
    ((seconds.max(0.0) * 1e3).ceil() as u64).saturating_mul(1_000_000)
}
