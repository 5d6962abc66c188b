//! Descriptors kept in reserve, so that questions about this worker are answered when the application has all others.
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

/// How many: one slow client of an admin listener does not keep the next one waiting.
const KEPT: usize = 2;

/// A descriptor is closed, its number used by accept(2), and opened again when that connection ends.
#[derive(Debug, Default)]
pub(super) struct SpareDescriptors {
    kept: Vec<OwnedFd>,
    /// As many as are kept if the system has them; 0 without admin listeners.
    wanted: usize,
}

impl SpareDescriptors {
    pub fn keep(&mut self) {
        self.wanted = KEPT;
        self.refill();
    }

    pub fn let_go(&mut self) {
        *self = SpareDescriptors::default();
    }

    #[inline]
    pub fn is_short(&self) -> bool {
        self.kept.len() < self.wanted
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Frees one descriptor; whether there was one.
    pub fn free_one(&mut self) -> bool {
        self.kept.pop().is_some()
    }

    #[cold]
    pub fn refill(&mut self) {
        while self.is_short() {
            let Ok(descriptor) = eventfd(0, EventfdFlags::CLOEXEC) else { return };
            self.kept.push(descriptor);
        }
    }
}
