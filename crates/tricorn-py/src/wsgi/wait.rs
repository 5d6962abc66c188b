//! How an application's call waits for something of ours: its thread blocks, or its greenlet lets others go on.
use pyo3::intern;
use pyo3::prelude::*;
use std::os::fd::AsRawFd;
use tricorn_io::clock::SECOND;
use tricorn_io::{Engine, Exchange, Room, Sent};

pub enum Wait {
    Thread,
    Hub(Hub),
}

/// The hub, as Python has it (`tricorn.workers.green.Hub`).
pub struct Hub(pub Py<PyAny>);

impl Hub {
    /// Something that a greenlet can `wait` for and another `set`.
    pub fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(py).call_method0(intern!(py, "event"))
    }

    fn wait_writable(&self, py: Python<'_>, exchange: &Exchange, nanos: u64) -> PyResult<()> {
        let arguments = (exchange.socket().as_raw_fd(), nanos as f64 / SECOND as f64);
        self.0.bind(py).call_method1(intern!(py, "wait_writable"), arguments).map(drop)
    }
}

impl Wait {
    /// Waits until the client is near enough again, or is given up. Raises what is thrown into the greenlet meanwhile.
    pub fn for_room(&self, py: Python<'_>, engine: &Engine, exchange: &mut Exchange) -> PyResult<Sent> {
        let hub = match self {
            Wait::Thread => return Ok(py.detach(|| exchange.wait_for_room(engine.config()))),
            Wait::Hub(hub) => hub,
        };
        let mut patience = exchange.patience(engine.config());
        loop {
            match exchange.room(engine.config(), &mut patience) {
                Room::Wanted(nanos) => hub.wait_writable(py, exchange, nanos)?,
                Room::Over(sent) => return Ok(sent),
            }
        }
    }
}
