//! Descriptors that clients hold beside those of their connections, and the jobs that some of them are with.
use crate::exchange::output::{DiskOutcome, Disks};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

pub(super) struct ExtraDescriptors {
    /// Of bodies, and of replies that wait for their clients.
    files: usize,
    /// Connections that are bridged: our end of a pair, and the exchange's.
    bridges: usize,
    /// Requests that other workers answer: our end of a pair.
    loans: usize,
    pub disks: Arc<Disks>,
    pub returned: Receiver<DiskOutcome>,
}

impl ExtraDescriptors {
    pub fn new(disks: Arc<Disks>, returned: Receiver<DiskOutcome>) -> ExtraDescriptors {
        ExtraDescriptors { files: 0, bridges: 0, loans: 0, disks, returned }
    }

    /// A file, if it is one.
    #[inline]
    pub fn opened(&mut self, is_file: bool) {
        self.files += usize::from(is_file);
    }

    #[inline]
    pub fn closed(&mut self, is_file: bool) {
        self.files -= usize::from(is_file);
    }

    pub fn bridge_begins(&mut self) {
        self.bridges += 1;
    }

    pub fn bridge_ends(&mut self) {
        self.bridges -= 1;
    }

    pub fn loan_begins(&mut self) {
        self.loans += 1;
    }

    pub fn loan_ends(&mut self) {
        self.loans -= 1;
    }

    /// With the connections that have ended while a job sends on them.
    #[inline]
    pub fn count(&self) -> usize {
        self.files + 2 * self.bridges + self.loans + self.disks.abandoned()
    }
}
