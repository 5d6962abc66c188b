//! Exchanges that were dropped and not given back: a panic on their way, or a defect.
//!
//! The reactor has lent an exchange a socket, a place, and a share of the bytes that bodies may take. If it is dropped all that
//! is noted here, and the next holder of the baton takes it back (`Shared::reclaim`). The monitor is
//! woken for that: no other thread may come by.
use crate::sys::fork::is_child;
use crate::sys::poll::Token;
use crate::sys::wake::Alarm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What an exchange had of the reactor's.
#[derive(Debug, Clone, Copy)]
pub struct Lent {
    pub token: Token,
    pub slot: usize,
    /// Bytes of its body, as they are counted against the bound of all.
    pub counted: usize,
    /// Those of them that are on disk.
    pub spooled: u64,
    /// Its body is in a file.
    pub filed: bool,
}

#[derive(Debug)]
pub struct Lost {
    any: AtomicBool,
    lent: Mutex<Vec<Lent>>,
    alarm: Arc<Alarm>,
}

impl Lost {
    /// `alarm` wakes the monitor.
    pub fn new(alarm: Arc<Alarm>) -> Lost {
        Lost { any: AtomicBool::new(false), lent: Mutex::default(), alarm }
    }

    #[inline]
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    pub fn take(&self) -> Vec<Lent> {
        self.any.store(false, Ordering::Relaxed);
        std::mem::take(&mut *self.lent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cold]
    fn add(&self, lent: Lent) {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner).push(lent);
        self.any.store(true, Ordering::SeqCst);
        self.alarm.ring();
    }
}

/// An exchange's; it ends when the exchange is given back.
#[derive(Debug, Default)]
pub struct Lease(Option<(Lent, Arc<Lost>)>);

impl Lease {
    #[inline]
    pub fn begin(&mut self, lent: Lent, lost: &Arc<Lost>) {
        self.0 = Some((lent, lost.clone()));
    }

    #[inline]
    pub fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        // What a child of the application drops is its parent's.
        if let Some((lent, lost)) = self.0.take()
            && !is_child()
        {
            lost.add(lent);
        }
    }
}
