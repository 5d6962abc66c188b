//! What all calls of one loop share, beside `loops::Shared`.
use super::head::Heads;
use crate::ends::Addresses;
use crate::loops::{Ending, Remote, Shared, Told};
use crate::sync::lock;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use tricorn_io::Exchange;

pub struct Ground {
    pub shared: Shared,
    heads: Mutex<Heads>,
    running: AtomicUsize,
}

/// What is kept with a connection.
pub struct OfConnection {
    pub ends: Addresses,
    pub connection: Option<Py<PyAny>>,
}

/// What was kept with this one.
pub fn kept(exchange: &Exchange) -> Option<&OfConnection> {
    exchange.client.attachment.as_ref().and_then(|kept| kept.downcast_ref())
}

impl Ground {
    pub fn new(py: Python<'_>, shared: Shared) -> Ground {
        Ground { shared, heads: Mutex::new(Heads::new(py)), running: AtomicUsize::new(0) }
    }

    pub fn heads(&self) -> MutexGuard<'_, Heads> {
        lock(&self.heads)
    }

    /// Calls that are under way.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Another call begins.
    pub fn begin(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A call is over. The call, if it was attended, to be let go when nothing is locked.
    pub fn end(&self, py: Python<'_>, exchange: Box<Exchange>, token: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        self.running.fetch_sub(1, Ordering::Relaxed);
        let remote = Remote::Of(|exchange| kept(exchange).map_or(b"", |kept| &kept.ends.remote));
        let told = Told { scope: None, token };
        self.shared.end(py, exchange, Ending { remote, status: None, sent: None, called: true, told }).call
    }
}
