//! The moment in which a call begins, and often ends.
use crate::sync::lock;
use pyo3::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tricorn_io::{Exchange, HubHandle};

/// An exchange that is over while its call begins goes back by way of the server, which is there already; any other by itself.
#[derive(Default)]
pub struct Beginning {
    /// The slot of the call that begins, and one.
    slot: AtomicUsize,
    done: Mutex<Option<Box<Exchange>>>,
}

/// Ends the moment, also when something panics in it.
struct During<'a>(&'a AtomicUsize, &'a HubHandle);

impl Drop for During<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Relaxed);
        self.1.begins_at(None);
    }
}

impl Beginning {
    /// Runs the beginning of the call in this slot. The exchange that ended in it, if one did.
    pub fn of(
        &self,
        engine: &HubHandle,
        slot: usize,
        begin: impl FnOnce() -> PyResult<()>,
    ) -> PyResult<Option<Box<Exchange>>> {
        self.slot.store(slot + 1, Ordering::Relaxed);
        engine.begins_at(Some(slot));
        let during = During(&self.slot, engine);
        let outcome = begin();
        drop(during);
        let done = lock(&self.done).take();
        match outcome {
            Ok(()) => Ok(done),
            Err(error) => {
                if let Some(done) = done {
                    engine.give_back(done);
                }
                Err(error)
            }
        }
    }

    /// The slot of the call that begins now.
    pub fn slot(&self) -> Option<usize> {
        self.slot.load(Ordering::Relaxed).checked_sub(1)
    }

    /// The exchange is over, for the reactor. Whether there are chores that the server is not about to take.
    pub fn give_back(&self, engine: &HubHandle, exchange: Box<Exchange>) -> bool {
        let is_here = self.slot().is_some();
        let other = if is_here { lock(&self.done).replace(exchange) } else { Some(exchange) };
        let has_chores = other.is_some_and(|other| engine.give_back(other));
        has_chores && !is_here
    }
}
