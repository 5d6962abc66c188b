//! `Core`: the engine as Python sees it, and the loop of an app thread.
use crate::doors;
use crate::given::nanoseconds;
use crate::late::{self, Errors, Thread};
use crate::logs;
use crate::memory::{ledger_of, memory, routes_of, sessions_of};
use crate::options::{self, CoreOptions, GroupOptions};
use crate::panics::{self, Panicked};
use crate::report::drop_chores;
use crate::wsgi::{CallOptions, Server, Wait, WsgiGateway};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyType};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tricorn_io::{
    AccessLog, Affinity, Channel, Engine, Exchange, GROUP_BYTES, Group, HubHandle, Scoreboard, Siblings, Wake, clock,
    page_bytes,
};
use tricorn_proto::peer::session::Naming;

/// The reactor, its monitor thread and the scoreboard page of this worker.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Core {
    engine: Arc<Engine>,
    sendfile: bool,
    late: late::Raiser,
    when_woken: PyOnceLock<Py<PyAny>>,
}

#[pymethods]
impl Core {
    #[new]
    fn new(listeners: Vec<RawFd>, options: &Bound<'_, PyDict>, scoreboard: PyBuffer<u8>) -> PyResult<Core> {
        panics::watch();
        let CoreOptions { mut config, sendfile } = options::read(options)?;
        let tls_page = doors::tls_page(options)?;
        config.tls = doors::tls_doors(options, &config.doors, tls_page.as_ref())?;
        let (threads, hub) = (config.threads, config.hub);
        let board = page_of(&scoreboard, threads)?;
        let logs = logs::open(options, config.fault)?;
        let sockets = listeners.into_iter().map(listener).collect::<PyResult<Vec<OwnedFd>>>()?;
        let listeners = options::admin_listeners(options)?.into_iter().map(listener).collect::<PyResult<Vec<_>>>()?;
        let engine = Engine::new(config, sockets, board, logs)
            .and_then(|engine| engine.open_admin(listeners).map(|()| engine))
            .map_err(|error| PyOSError::new_err(format!("the core cannot be set up: {error}")))?;
        let (slot, generation) = options::identity(options)?;
        engine.identify(slot, generation);
        let group = options::group(options)?;
        if let Some(group) = &group {
            let siblings = siblings(group, &scoreboard, threads, slot)?;
            engine.open_group(siblings).map_err(std::io::Error::from)?;
        }
        engine.keep(Box::new((scoreboard, group, tls_page)));
        let late = late::Raiser::new(if hub { 0 } else { threads });
        Ok(Core { engine: Arc::new(engine), sendfile, late, when_woken: PyOnceLock::new() })
    }

    /// From now on sessions that have these names stay with their workers.
    fn follow_sessions(&self, namings: Vec<String>) -> PyResult<()> {
        let namings = namings.iter().map(|naming| Naming::parse(naming)).collect::<Result<Vec<_>, _>>();
        self.engine.follow_sessions(namings.map_err(PyValueError::new_err)?);
        Ok(())
    }

    #[getter]
    fn request_timeout(&self) -> f64 {
        self.engine.request_timeout()
    }

    /// What is to be raised in the main thread's call if that is late; `None` once the application has answered.
    fn late_call(&self, py: Python<'_>) -> Option<Py<PyType>> {
        self.late_error(py, self.engine.late_main_slot()?)
    }

    /// What is raised in calls that are over `request_timeout`, and in those that are cancelled.
    fn raise_when_late(&self, py: Python<'_>, late: Py<PyType>, cancelled: Py<PyType>) {
        let _ = self.late.errors.set(py, Errors { late, cancelled });
    }

    /// Raises `SystemExit` in the calls of all threads but the main one. Whether there was one. From now on an application that
    /// lets it out has done what it was told.
    fn end_calls(&self, py: Python<'_>) -> bool {
        self.late.end_calls(py, &self.engine)
    }

    /// Has the main thread call this between two requests, whenever the wakeup descriptor was written to.
    fn call_when_woken(&self, py: Python<'_>, function: Py<PyAny>) {
        let _ = self.when_woken.set(py, function);
    }

    /// A non-blocking descriptor for `signal.set_wakeup_fd`.
    #[getter]
    fn wakeup_fd(&self) -> RawFd {
        self.engine.wakeup_fd()
    }

    /// Makes this core useless in processes that the application forks. For the one core of a worker's process.
    fn guard_forks(&self) -> PyResult<()> {
        let guarded = self.engine.guard_forks();
        guarded.map_err(|error| PyOSError::new_err(format!("the core cannot be guarded against forks: {error}")))
    }

    /// Makes no more lines of the access log, nor for syslog: Python makes them. Before `start`.
    fn hand_over_access_log(&self) {
        self.engine.logs().hand_over_lines();
    }

    /// Starts the monitor thread. A process that is forked from now on has none (`guard_forks`).
    fn start(&self) -> PyResult<()> {
        self.engine.start().map_err(PyErr::from)
    }

    /// Serves requests on the calling thread until the core is drained or stopped.
    fn serve(&self, py: Python<'_>, gateway: &Bound<'_, WsgiGateway>) -> PyResult<()> {
        let main_thread = is_main_thread(py)?;
        let slot = self.engine.join(main_thread).ok_or_else(|| {
            PyRuntimeError::new_err(format!("{} threads serve already", self.engine.config().threads))
        })?;
        let thread = self.late.join(slot, Thread::current(py)?);
        let options = CallOptions { wait: Wait::Thread, context: None };
        let server = match Server::new(py, gateway, self.engine.clone(), self.sendfile, options) {
            Ok(server) => server,
            Err(error) => {
                self.engine.leave(slot, None);
                return Err(error);
            }
        };
        let mut done = None;
        // How long this thread waited for the GIL since it was free for a request.
        let mut waited = 0;
        loop {
            match self.engine.next(slot, done.take()) {
                Wake::Request(mut exchange) => {
                    exchange.timing.waited_for_gil(std::mem::take(&mut waited));
                    let answer = || {
                        server.answer(py, exchange, |engine, slot| {
                            if engine.conclude_call(slot) {
                                thread.forget_raised(py);
                            }
                        })
                    };
                    match panics::caught(answer) {
                        Ok((exchange, Ok(()))) => done = self.make_way(py, slot, exchange),
                        Ok((exchange, Err(error))) => {
                            // A defect of ours, or no memory: the request is finished, the thread leaves.
                            self.engine.leave(slot, Some(exchange));
                            return Err(error);
                        }
                        Err(Panicked(text)) => server.panicked(py, text),
                    }
                }
                Wake::Ready(_) => {} // no exchange attends here
                Wake::Chores => server.do_chores(py, self.engine.take_chores()),
                Wake::Signal => {
                    if main_thread && let Err(error) = self.was_woken(py) {
                        self.engine.leave(slot, None);
                        return Err(error);
                    }
                }
                Wake::Nothing => {
                    if !self.engine.poll_now() {
                        let came = py.detach(|| {
                            self.engine.wait(slot);
                            clock::now()
                        });
                        waited = clock::now().saturating_sub(came);
                    }
                }
                Wake::Ended => break,
            }
        }
        self.engine.leave(slot, None);
        server.do_chores(py, self.engine.take_chores());
        if self.engine.is_broken() {
            return Err(PyRuntimeError::new_err("the core broke (this is a defect of tricorn); the worker must go"));
        }
        Ok(())
    }

    /// Blocks the main thread until the core is drained or stopped; signal handlers run meanwhile.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        loop {
            let goes_on = py.detach(|| self.engine.wait_for_signal());
            self.was_woken(py)?;
            self.late.raise_in_late_calls(py, &self.engine);
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Accepts nothing more, closes idle connections, finishes running and read requests, then lets `serve` return.
    fn drain(&self, py: Python<'_>) {
        py.detach(|| self.engine.drain());
    }

    /// Has calls on threads and greenlets end their streams at their next piece: those whose clients come again when `lead` seconds
    /// are over, one after another within `spread` seconds, others when `rest` seconds are over. Callable in a signal handler.
    fn close_streams(&self, lead: f64, spread: f64, rest: f64) {
        self.engine.close_streams(nanoseconds(lead), nanoseconds(spread), nanoseconds(rest));
    }

    /// Lets `serve` return as soon as running application calls do; connections are closed.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.engine.stop());
    }

    /// Joins the monitor thread, flushes the access log and closes every connection. What the error log should be told.
    fn close(&self, py: Python<'_>) -> Option<String> {
        let last_word = py.detach(|| self.engine.close());
        drop_chores(py, self.engine.take_chores());
        last_word
    }

    /// After `close`, in a worker that becomes a mold: its forks are not children of the application's, and have nothing of this
    /// core.
    fn let_go_of_forks(&self, py: Python<'_>) {
        py.detach(|| self.engine.let_go_of_forks());
    }

    /// Opens the access log file anew (after rotation).
    fn reopen_logs(&self, py: Python<'_>) -> PyResult<()> {
        let result = py.detach(|| self.engine.logs().access.as_ref().map_or(Ok(()), AccessLog::reopen));
        result.map_err(|error| PyOSError::new_err(format!("the access log cannot be reopened: {error}")))
    }
}

impl Core {
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The engine, for the server of a hub or an event loop.
    pub fn hub(&self) -> PyResult<HubHandle> {
        self.engine.hub().ok_or_else(|| {
            PyRuntimeError::new_err("this core was not made for a hub or an event loop (core option hub)")
        })
    }

    /// After a call: those that have begun and wait for the GIL come before requests that have not. The exchange, if it is still
    /// to be given back.
    #[inline]
    fn make_way(&self, py: Python<'_>, slot: usize, exchange: Box<Exchange>) -> Option<Box<Exchange>> {
        if !self.engine.others_run() {
            return Some(exchange);
        }
        let handed_in = self.engine.hand_in(exchange);
        py.detach(|| {
            std::thread::yield_now();
            self.engine.stand_by(slot, handed_in);
        });
        None
    }

    /// On the main thread, between two requests.
    fn was_woken(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        self.when_woken.get(py).map_or(Ok(()), |function| function.call0(py).map(drop))
    }

    pub fn sendfile(&self) -> bool {
        self.sendfile
    }

    /// What is raised in the call at this slot, which is late.
    pub fn late_error(&self, py: Python<'_>, slot: usize) -> Option<Py<PyType>> {
        self.late.error_of(py, &self.engine, slot).map(|error| error.clone_ref(py))
    }
}

/// A listening socket that the worker hands over by number.
fn listener(fd: RawFd) -> PyResult<OwnedFd> {
    if fd < 0 {
        return Err(PyValueError::new_err(format!("{fd} is no descriptor")));
    }
    // SAFETY: by the contract of `Core` the caller detached the descriptor: it is open, and the core alone closes it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import("threading")?;
    threading.call_method0("current_thread")?.eq(threading.call_method0("main_thread")?)
}

/// The size of the scoreboard page of a worker that runs so many requests at once.
#[pyfunction]
pub fn scoreboard_bytes(entries: usize) -> usize {
    page_bytes(entries)
}

/// What is answered to a request in the channel that no worker will take. `message`: what its message begins with.
#[pyfunction]
pub fn unavailable<'py>(py: Python<'py>, message: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &tricorn_io::unavailable(message))
}

/// Room for every signal at once on the calling thread's alternate signal stack, if it has one. Whether that was replaced.
#[pyfunction]
pub fn enlarge_signal_stack() -> PyResult<bool> {
    tricorn_io::enlarge_signal_stack().map_err(|error| PyErr::from(std::io::Error::from(error)))
}

/// Makes orphans among the descendants of this process its children.
#[pyfunction]
pub fn adopt_orphans() -> PyResult<()> {
    tricorn_io::adopt_orphans().map_err(|error| PyErr::from(std::io::Error::from(error)))
}

/// Gives back to the kernel what was freed and is kept.
#[pyfunction]
pub fn trim_heap() {
    tricorn_io::trim_heap();
}

/// All pages of the group, of which `page` is one. They are as long as it is, which may be longer than `threads` need: the
/// arbiter makes them before a worker knows its class.
fn siblings(options: &GroupOptions, page: &PyBuffer<u8>, threads: usize, slot: u64) -> PyResult<Siblings> {
    let size = page.len_bytes();
    let first = memory(&options.pages, size, "pages")?;
    let count = options.pages.len_bytes() / size;
    let distance = (page.buf_ptr() as usize).checked_sub(first as usize);
    let own = distance
        .map(|bytes| (bytes / size, bytes % size))
        .filter(|(own, rest)| *own < count && *rest == 0 && size.is_multiple_of(8));
    let Some((own, _)) = own else {
        return Err(PyValueError::new_err("core option pages: the worker's own page is not one of them"));
    };
    // SAFETY: `count` pages of this size lie there, aligned; the engine keeps the buffers (`Engine::keep`).
    let pages: Vec<Scoreboard> =
        (0..count).map(|index| unsafe { Scoreboard::at(first.add(index * size), threads) }).collect();
    // SAFETY: the same, for one page.
    let group = unsafe { Group::at(memory(&options.group, GROUP_BYTES, "group")?) };
    let channel = match options.channel {
        Some((receive, send, wakeup)) => {
            Some(Channel { receive: listener(receive)?, send: listener(send)?, wakeup: listener(wakeup)? })
        }
        None => None,
    };
    let affinity = affinity(options, channel.as_ref(), pages.get(own))?;
    let mut siblings = Siblings::new(group, channel, pages, own);
    siblings.affinity = affinity;
    if let Some(ledger) = &options.ledger {
        siblings = siblings.with_ledger(ledger_of(ledger)?);
    }
    if let Some(routes) = &options.routes {
        siblings = siblings.with_routes(routes_of(routes)?, slot);
    }
    Ok(siblings)
}

fn page_of(buffer: &PyBuffer<u8>, threads: usize) -> PyResult<Scoreboard> {
    let address = memory(buffer, page_bytes(threads), "scoreboard")?;
    // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and the engine and its monitor keep it for as long as
    // they are there (`Engine::keep`).
    Ok(unsafe { Scoreboard::at(address, threads) })
}

/// The table of sessions and this worker's mailbox, where there is a channel.
fn affinity(
    options: &GroupOptions,
    channel: Option<&Channel>,
    board: Option<&Scoreboard>,
) -> PyResult<Option<(Arc<Affinity>, Channel)>> {
    let (Some(table), Some((receive, number, ends)), Some(Channel { wakeup, .. })) =
        (&options.sessions, &options.mailboxes, channel)
    else {
        return Ok(None);
    };
    let sessions = sessions_of(table)?;
    let ends = ends.iter().map(|end| listener(*end)).collect::<PyResult<Vec<_>>>()?;
    let (Some(send), Some(board)) = (ends.get(usize::from(*number)), board) else {
        return Err(PyValueError::new_err("core option mailboxes: the worker's own is not one of them"));
    };
    let send = send.try_clone()?;
    let wakeup = wakeup.try_clone()?;
    let mailbox = Channel { receive: listener(*receive)?, send, wakeup };
    Ok(Some((Arc::new(Affinity::new(sessions, *board, *number, ends)), mailbox)))
}
