//! A connection to statsd or syslog for messages that Python code makes; a worker's core sends its own over a copy.
//!
//! There is no thread of it, and its locks are taken under the GIL only: a process may fork at any time. Its child begins anew
//! with the first message.
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tricorn_io::clock::{self, MILLI};
use tricorn_io::{Address, Policy, Relay, Socket, SocketType, wait_for_room};

/// How long a stream may take to connect, and the end of a process to send what is left.
const PATIENCE: u64 = 500 * MILLI;

#[pyclass(frozen, module = "tricorn._core")]
pub struct Collector {
    relay: Relay,
    /// The process that sends.
    pid: AtomicU32,
}

impl Collector {
    /// Copies the socket for the core of a worker.
    pub fn copy_socket(&self) -> PyResult<Socket> {
        let copy = self.relay.socket(Socket::copy);
        copy.map_err(|error| PyOSError::new_err(format!("the socket of a collector cannot be copied: {error}")))
    }

    fn relay(&self) -> &Relay {
        let pid = process::id();
        if self.pid.swap(pid, Relaxed) != pid {
            self.relay.after_fork();
        }
        &self.relay
    }
}

#[pymethods]
impl Collector {
    /// `transport`: udp, tcp, unix, dgram or stream. `place`: ADDRESS:PORT, a path, or None: a name that is not known. `keeps`: what
    /// the socket does not take is sent later. `follows`: the place is that of a name, which may come to mean another one.
    #[new]
    #[pyo3(signature = (transport, place, *, keeps, follows))]
    fn new(transport: &str, place: Option<&str>, keeps: bool, follows: bool) -> PyResult<Collector> {
        let socket = Socket::new(address(transport, place)?, None);
        let socket = if follows && transport == "tcp" { socket.followed() } else { socket };
        let policy = Policy { name: "the collector", most: 0, gather: 0, keeps };
        Ok(Collector { relay: Relay::new(policy, socket), pid: AtomicU32::new(process::id()) })
    }

    /// Connects, and waits for a moment until a stream is there. Raises `OSError`.
    fn connect(&self, py: Python<'_>) -> PyResult<()> {
        self.relay().connect().map_err(|error| os_error(py, error.into()))?;
        let stream = self.relay.socket(|socket| socket.is_stream().then(|| socket.copy_fd()).flatten());
        if let Some(stream) = stream {
            py.detach(|| wait_for_room(stream.as_fd(), PATIENCE));
        }
        Ok(())
    }

    /// Sends a message. What the socket does not take is kept, or lost: no call waits.
    fn send(&self, message: &[u8]) {
        let relay = self.relay();
        relay.add(std::iter::once(message));
        relay.send_all();
    }

    /// Sends what is kept, as far as the socket takes it.
    fn flush(&self) {
        self.relay().send_all();
    }

    /// Sends what is kept before the process ends, as far as there is time; the rest is lost. Closes the connection.
    fn close(&self, py: Python<'_>) {
        let relay = self.relay();
        let end = clock::now() + PATIENCE;
        while let Some(full) = relay.send_all() {
            let now = clock::now();
            if now >= end {
                break;
            }
            py.detach(|| wait_for_room(full.as_fd(), end - now));
        }
        relay.close();
    }

    /// Follows the collector's name to this place. Returns whether it is another one.
    fn move_to(&self, place: &str) -> PyResult<bool> {
        Ok(self.relay().move_to(inet(place)?))
    }

    /// Counts a message that could not be made.
    fn lose(&self) {
        self.relay().lose();
    }

    /// Messages that were lost in this process.
    #[getter]
    fn lost(&self) -> u64 {
        self.relay().lost()
    }

    /// (ADDRESS, PORT), a path, or None: a name that is not known.
    #[getter]
    fn address(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(match self.relay.socket(|socket| socket.address().clone()) {
            Address::Udp(address) | Address::Tcp(address) => {
                Some((address.ip().to_string(), address.port()).into_pyobject(py)?.into_any().unbind())
            }
            Address::Unix { path, .. } => Some(path.into_os_string().into_pyobject(py)?.into_any().unbind()),
            Address::Unresolved(_) => None,
        })
    }

    /// Whether messages follow one another without borders, as far as that is known.
    #[getter]
    fn is_stream(&self) -> bool {
        self.relay.socket(Socket::is_stream)
    }

    /// The connected socket, -1: there is none.
    fn fileno(&self) -> i32 {
        self.relay.socket(|socket| socket.fd().map_or(-1, |fd| fd.as_raw_fd()))
    }
}

fn address(transport: &str, place: Option<&str>) -> PyResult<Address> {
    let unix = |kind| match place {
        Some(path) => Ok(Address::Unix { path: PathBuf::from(path), kind }),
        None => Err(PyValueError::new_err("a collector at a unix socket without a path")),
    };
    match (transport, place) {
        ("udp", Some(place)) => inet(place).map(Address::Udp),
        ("tcp", Some(place)) => inet(place).map(Address::Tcp),
        ("udp", None) => Ok(Address::Unresolved(SocketType::DGRAM)),
        ("tcp", None) => Ok(Address::Unresolved(SocketType::STREAM)),
        ("unix", _) => unix(None),
        ("dgram", _) => unix(Some(SocketType::DGRAM)),
        ("stream", _) => unix(Some(SocketType::STREAM)),
        (other, _) => {
            Err(PyValueError::new_err(format!("a collector by {other}; expected udp, tcp, unix, dgram or stream")))
        }
    }
}

fn inet(place: &str) -> PyResult<SocketAddr> {
    place.parse().map_err(|_| PyValueError::new_err(format!("a collector at {place:?}; expected ADDRESS:PORT")))
}

/// The subclass of `OSError` of this number, with its text.
#[cold]
fn os_error(py: Python<'_>, error: io::Error) -> PyErr {
    let Some(number) = error.raw_os_error() else { return PyOSError::new_err(error.to_string()) };
    match py.import("os").and_then(|os| os.call_method1("strerror", (number,))) {
        Ok(text) => PyOSError::new_err((number, text.unbind())),
        Err(error) => error,
    }
}
