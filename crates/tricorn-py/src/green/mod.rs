//! Requests on greenlets: many calls under way at once on the thread of a hub (gevent's or eventlet's).
//!
//! ```text
//!   hub: a descriptor is readable ──▶ poll ──switch──▶ run: request, request, … ──nothing more──▶ parked
//!                                      ▲                 │ the application waits
//!                                      └─────────────────┘ the next request gets another greenlet
//! ```
//!
//! A new greenlet costs as much as two small requests, so one that has answered is used again, if that is unobservable: no code
//! holds it, nothing was attached to it, no link or weak reference watches it. Otherwise it ends with its request, as any
//! greenlet would. A greenlet that has waited is held by its hub until it gives control back; it is looked at once more then.
//!
//! A greenlet's stack is copied away while it waits: nothing here borrows from a `RefCell` across a switch, and no address
//! on the stack is told to anybody.
mod library;
mod running;
mod task;

use crate::core::Core;
use crate::functions::Definition;
use crate::marks::BaseContext;
use crate::panics;
use crate::service::Service;
use crate::stack::frames_from;
use crate::wsgi::{CallOptions, Hub, Server, Wait, WsgiGateway};
use library::{Library, holders_of};
use pyo3::exceptions::PySystemExit;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;
use running::Running;
use std::cell::{Cell, RefCell};
use std::os::fd::RawFd;
use tricorn_io::clock::{self, MILLI};
use tricorn_io::{HubHandle, HubServer, IN_A_ROW, Turn};

/// A turn so long holds up what else the hub has to do.
const SLOW: u64 = 10 * MILLI;
/// Most greenlets that are kept for later.
const PARKED: usize = 256;

/// What a new greenlet runs.
static RUN: Definition = Definition::without_arguments(c"run", run_entry);

unsafe extern "C" fn run_entry(slf: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: CPython calls this with the GIL, and with the server that it was bound to, which outlives the call.
    let (py, server) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, slf).cast_unchecked::<GreenServer>())
    };
    server.borrow().run(py);
    py.None().into_ptr()
}

/// Serves requests on greenlets until the core is drained or stopped.
#[pyclass(frozen, unsendable, module = "tricorn._core")]
pub struct GreenServer {
    service: Service,
    server: Server,
    library: Library,
    parked: RefCell<Vec<Py<PyAny>>>,
    /// Greenlets that have answered and were held by their hub, or by the application.
    unsure: RefCell<Vec<Py<PyAny>>>,
    /// How many hold a greenlet that is parked and has answered nothing yet.
    holders: Cell<isize>,
    /// The greenlet that `poll` has given control to and has not got it back from: it has not waited. Its address.
    begun: Cell<usize>,
    /// The greenlet that is switched to next is to end.
    dismisses: Cell<bool>,
    /// `poll` runs: it starts what there is to be started.
    polls: Cell<bool>,
    /// Which greenlet has which slot.
    running: RefCell<Running>,
    made: Cell<u64>,
    /// Called once, when the hub was held up for the first time.
    when_slow: RefCell<Option<Py<PyAny>>>,
}

#[pymethods]
impl GreenServer {
    /// `hub` is a `tricorn_green.workers.green.Hub`; `done` is called once, in the hub or in a greenlet, when the core has ended.
    #[new]
    fn new(
        py: Python<'_>,
        core: Bound<'_, Core>,
        gateway: &Bound<'_, WsgiGateway>,
        hub: Py<PyAny>,
        done: Py<PyAny>,
    ) -> PyResult<GreenServer> {
        let handle = core.get().hub()?;
        panics::watch_greenlets();
        handle.tells_stacks();
        let context = BaseContext::current(py, &handle, None)?;
        let options = CallOptions { wait: Wait::Hub(Hub::new(hub.clone_ref(py))), context: Some(context) };
        let server = Server::new(py, gateway, handle.engine().clone(), core.get().sendfile(), options)?;
        Ok(GreenServer {
            service: Service::join(core.unbind(), handle, done, usize::MAX),
            server,
            library: Library::of(py, hub)?,
            parked: RefCell::default(),
            unsure: RefCell::default(),
            holders: Cell::new(0),
            begun: Cell::new(0),
            dismisses: Cell::new(false),
            polls: Cell::new(false),
            running: RefCell::default(),
            made: Cell::new(0),
            when_slow: RefCell::default(),
        })
    }

    /// The descriptors to be watched for reading.
    #[getter]
    fn descriptors(&self) -> (RawFd, RawFd) {
        self.service.hub.descriptors()
    }

    /// What is to be called, once and in the hub, when something has held it up.
    fn when_slow(&self, call: Py<PyAny>) {
        *self.when_slow.borrow_mut() = Some(call);
    }

    /// What tells where greenlets wait.
    fn sample_with(&self, py: Python<'_>, sample: Py<PyAny>) {
        self.service.samples.take_with(py, sample);
    }

    /// How many greenlets were made so far.
    #[getter]
    fn made(&self) -> u64 {
        self.made.get()
    }

    /// How many greenlets wait for a request.
    #[getter]
    fn parked(&self) -> usize {
        self.parked.borrow().len()
    }

    /// Does what there is to do; called in the hub whenever a descriptor is readable.
    #[pyo3(signature = (_descriptor=None))]
    fn poll(slf: &Bound<'_, GreenServer>, _descriptor: Option<Bound<'_, PyAny>>) {
        let this = slf.borrow();
        let are_to_end = std::mem::take(&mut this.running.borrow_mut().are_to_end);
        if are_to_end {
            this.end_waiting_calls(slf.py());
        }
        if this.service.is_over() {
            return;
        }
        this.polls.set(true);
        let outcome = this.take_turn(slf);
        this.polls.set(false);
        if let Err(error) = outcome {
            this.service.end(slf.py(), Some(error));
        }
    }

    /// What is to be raised if the calling greenlet's request is late, and the application at it still.
    ///
    /// Called in a signal handler, which raises it: the greenlet is what holds up the hub.
    fn late_call(&self, py: Python<'_>) -> PyResult<Option<Py<PyType>>> {
        let current = self.library.current(py)?;
        let slot = self.running.borrow().slot_of(&current);
        let Some(slot) = slot.filter(|slot| self.hub().is_late_at(*slot)) else { return Ok(None) };
        // The frame below the handler's.
        if let Ok(frame) = py.import("sys").and_then(|sys| sys.call_method1(intern!(py, "_getframe"), (1,))) {
            self.hub().tell_stack(slot, frames_from(frame));
        }
        Ok(self.service.core.get().late_error(py, slot))
    }

    /// Has the hub raise `SystemExit` in every call that waits.
    fn end_calls(&self) {
        self.running.borrow_mut().are_to_end = true;
        self.hub().ring();
    }

    /// The greenlets of requests, with their slots.
    fn calls(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        let Ok(running) = self.running.try_borrow() else { return Vec::new() };
        running.all(py)
    }

    /// Lets go of the greenlets; what ended the service is raised. Called when `done` was, or in its place.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let parked = std::mem::take(&mut *self.parked.borrow_mut());
        let unsure = std::mem::take(&mut *self.unsure.borrow_mut());
        drop((parked, unsure)); // their own frames hold them: they end with the process
        self.service.close(|chores| self.server.do_chores(py, chores))
    }
}

/// The server in its turn.
struct InHub<'py, 'a> {
    slf: &'a Bound<'py, GreenServer>,
    server: &'a GreenServer,
}

impl HubServer for InHub<'_, '_> {
    type Error = PyErr;

    fn end_late(&mut self, slot: usize) -> PyResult<()> {
        self.server.raise_in_late_call(self.slf.py(), slot);
        Ok(())
    }

    fn serve(&mut self, turn: Turn) -> PyResult<bool> {
        for started in 1u32.. {
            if !self.server.hub().has_more() || started.is_multiple_of(IN_A_ROW) && turn.is_over(clock::now()) {
                break;
            }
            self.server.start_one(self.slf)?;
            if self.server.service.is_over() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn run_job(&mut self, job: impl FnOnce() + Send) {
        self.slf.py().detach(job);
    }
}

/// In the hub.
impl GreenServer {
    fn hub(&self) -> &HubHandle {
        &self.service.hub
    }

    fn take_turn(&self, slf: &Bound<'_, GreenServer>) -> PyResult<()> {
        let (py, begun) = (slf.py(), clock::now());
        self.sort(py)?;
        self.service.take_turn(py, || self.calls(py), &mut InHub { slf, server: self });
        if self.service.is_over() {
            return Ok(());
        }
        if !self.unsure.borrow().is_empty() {
            self.hub().ring();
        }
        self.notice_slowness(py, begun)
    }

    #[inline]
    fn notice_slowness(&self, py: Python<'_>, begun: u64) -> PyResult<()> {
        if self.when_slow.borrow().is_none() || !self.hub().was_missed() && clock::now() - begun < SLOW {
            return Ok(());
        }
        let call = self.when_slow.borrow_mut().take();
        call.map_or(Ok(()), |call| call.call0(py).map(drop))
    }

    /// Gives control to a greenlet until it waits, or has nothing more to do.
    fn start_one(&self, slf: &Bound<'_, GreenServer>) -> PyResult<()> {
        let py = slf.py();
        let parked = self.parked.borrow_mut().pop();
        let greenlet = match parked {
            Some(greenlet) => greenlet,
            None => match self.make(slf)? {
                Some(greenlet) => greenlet,
                None => return Ok(()),
            },
        };
        self.begun.set(greenlet.as_ptr() as usize);
        let result = greenlet.call_method0(py, intern!(py, "switch"));
        self.begun.set(0);
        result.map(drop)
    }

    /// A new greenlet, parked and taken.
    fn make(&self, slf: &Bound<'_, GreenServer>) -> PyResult<Option<Py<PyAny>>> {
        let py = slf.py();
        self.made.set(self.made.get() + 1);
        let greenlet = self.library.new_greenlet(py, RUN.bind(slf)?.into_bound(py))?;
        greenlet.call_method0(intern!(py, "switch"))?;
        drop(greenlet);
        let parked = self.parked.borrow_mut().pop();
        if let Some(greenlet) = &parked
            && self.holders.get() == 0
        {
            self.holders.set(holders_of(greenlet.bind(py)));
        }
        Ok(parked)
    }

    /// Sorts those that had answered while other code held them: none does any more, and they are parked; or they end.
    fn sort(&self, py: Python<'_>) -> PyResult<()> {
        for greenlet in std::mem::take(&mut *self.unsure.borrow_mut()) {
            let is_full = self.parked.borrow().len() >= PARKED;
            if holders_of(greenlet.bind(py)) == self.holders.get() && !is_full {
                self.parked.borrow_mut().push(greenlet);
                continue;
            }
            self.dismisses.set(true);
            let result = greenlet.call_method0(py, intern!(py, "switch"));
            self.dismisses.set(false);
            result?;
        }
        Ok(())
    }

    fn end_waiting_calls(&self, py: Python<'_>) {
        let exit = py.get_type::<PySystemExit>();
        for (_, greenlet) in self.calls(py) {
            throw(greenlet.bind(py), &exit);
        }
    }

    fn raise_in_late_call(&self, py: Python<'_>, slot: usize) {
        let greenlet = self.running.borrow().at(py, slot);
        let error = self.service.core.get().late_error(py, slot);
        let (Some(greenlet), Some(error)) = (greenlet, error) else { return };
        if let Ok(frame) = greenlet.bind(py).getattr(intern!(py, "gr_frame")) {
            self.hub().tell_stack(slot, frames_from(frame));
        }
        throw(greenlet.bind(py), error.bind(py));
    }
}

/// Raises in a greenlet that waits, and goes on when that waits again or has ended.
fn throw(greenlet: &Bound<'_, PyAny>, error: &Bound<'_, PyType>) {
    if let Err(error) = greenlet.call_method1(intern!(greenlet.py(), "throw"), (error,)) {
        error.write_unraisable(greenlet.py(), Some(greenlet));
    }
}
