//! How an application's call waits for something of ours: its thread blocks, or its greenlet lets others go on.
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::Mutex;
use tricorn_io::clock::SECOND;
use tricorn_io::{Engine, Exchange, Room, Sent, Streak, TURN, WaitForRoom};

pub enum Wait {
    Thread,
    Hub(Hub),
}

/// The hub, as Python has it (`tricorn_green.workers.green.Hub`).
pub struct Hub {
    hub: Py<PyAny>,
    streak: Mutex<Streak>,
}

impl Hub {
    pub fn new(hub: Py<PyAny>) -> Hub {
        Hub { hub, streak: Mutex::default() }
    }

    /// Something that a greenlet can `wait` for and another `set`.
    pub fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.hub.bind(py).call_method0(intern!(py, "event"))
    }

    fn for_room(&self, py: Python<'_>, engine: &Engine, exchange: &mut Exchange) -> PyResult<Sent> {
        let mut behind = engine.fall_behind(exchange);
        loop {
            match py.detach(|| engine.room(exchange, &mut behind)) {
                Room::Wanted(nanos) => self.wait_writable(py, exchange, nanos)?,
                Room::Away(nanos) => {
                    if let Some(alarm) = exchange.await_job() {
                        self.wait_readable(py, alarm.as_fd(), nanos)?;
                    }
                }
                Room::Over(sent) => return Ok(sent),
            }
        }
    }

    pub fn wait_readable(&self, py: Python<'_>, socket: BorrowedFd<'_>, nanos: u64) -> PyResult<()> {
        let arguments = (socket.as_raw_fd(), nanos as f64 / SECOND as f64);
        self.hub.bind(py).call_method1(intern!(py, "wait_readable"), arguments).map(drop)
    }

    fn wait_writable(&self, py: Python<'_>, exchange: &Exchange, nanos: u64) -> PyResult<()> {
        match exchange.lane.room() {
            Ok(WaitForRoom::Socket(socket)) => {
                let arguments = (socket.as_raw_fd(), nanos as f64 / SECOND as f64);
                self.hub.bind(py).call_method1(intern!(py, "wait_writable"), arguments).map(drop)
            }
            Ok(WaitForRoom::Alarm(alarm)) => self.wait_readable(py, alarm.as_fd(), nanos),
            Err(error) => Err(std::io::Error::from(error).into()),
        }
    }
}

impl Wait {
    /// So many bytes were sent or read without a wait: under a hub, whose greenlets run until they wait, others have their turn now and then.
    /// Raises what is thrown into the greenlet meanwhile.
    #[inline]
    pub fn goes_on(&self, py: Python<'_>, exchange: &Exchange, bytes: usize) -> PyResult<()> {
        let Wait::Hub(hub) = self else { return Ok(()) };
        let gives_way = {
            let mut streak = lock(&hub.streak);
            streak.goes_on(bytes);
            streak.gives_way()
        };
        if gives_way { hub.wait_writable(py, exchange, TURN) } else { Ok(()) }
    }

    /// Waits until there is room for the next piece, with the client or on disk, or the client is given up. Raises what is
    /// thrown into the greenlet meanwhile.
    pub fn for_room(&self, py: Python<'_>, engine: &Engine, exchange: &mut Exchange) -> PyResult<Sent> {
        let outcome = match self {
            Wait::Thread => Ok(py.detach(|| engine.make_room(exchange))),
            Wait::Hub(hub) => hub.for_room(py, engine, exchange),
        };
        drop(exchange.take_spent()); // a long stream would keep every piece of it
        outcome
    }
}
