//! Exchanges that were dropped and not given back: a panic on their way, or a defect.
//!
//! The reactor has lent an exchange a socket, a slot, and a share of the bytes that bodies may take. If it is dropped all that
//! is noted here, and the next holder of the baton takes it back (`Shared::reclaim`). The monitor is
//! woken for that: no other thread may come by.
use super::counted::Counted;
use super::id::RequestId;
use crate::sys::fork::is_child;
use crate::sys::wake::Alarm;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What an exchange had of the reactor's.
#[derive(Debug, Clone, Copy)]
pub struct Lent {
    pub request: RequestId,
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

/// References to [`Lost`] for leases, used again: a new one for each call would cost two atomic operations.
#[derive(Debug)]
pub struct Leases {
    lost: Arc<Lost>,
    spare: Vec<Arc<Lost>>,
}

impl Leases {
    pub fn of(lost: Arc<Lost>) -> Leases {
        Leases { lost, spare: Vec::new() }
    }

    #[inline]
    pub fn take(&mut self) -> Arc<Lost> {
        self.spare.pop().unwrap_or_else(|| self.lost.clone())
    }

    #[inline]
    pub fn give_back(&mut self, lost: Option<Arc<Lost>>) {
        self.spare.extend(lost);
    }
}

/// An exchange's: from the beginning of its call until it is given back.
#[derive(Debug)]
pub struct Lease {
    lent: Lent,
    /// Who is told if the exchange is dropped; `None`: nothing is lent.
    lost: Option<Arc<Lost>>,
}

impl Lease {
    #[inline]
    pub fn of(request: RequestId) -> Lease {
        Lease { lent: Lent { request, slot: 0, counted: 0, spooled: 0, filed: false }, lost: None }
    }

    #[inline]
    pub fn request(&self) -> RequestId {
        self.lent.request
    }

    #[inline]
    pub fn begin(&mut self, slot: usize, counted: &Counted, lost: Arc<Lost>) {
        let Counted { memory, disk, has_file, .. } = *counted;
        self.lent = Lent { slot, counted: memory, spooled: disk, filed: has_file, ..self.lent };
        self.lost = Some(lost);
    }

    #[inline]
    pub fn end(&mut self) -> Option<Arc<Lost>> {
        self.lost.take()
    }
}

impl Drop for Lease {
    #[inline]
    fn drop(&mut self) {
        // What a child of the application drops is its parent's.
        if let Some(lost) = self.lost.take()
            && !is_child()
        {
            lost.add(self.lent);
        }
    }
}
