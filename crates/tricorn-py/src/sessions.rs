//! The table of sessions, for the arbiter: who reads which mailbox, and how many sessions each worker has.
use crate::memory::sessions_of;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

/// The table of sessions. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Sessions {
    table: tricorn_io::Sessions,
    _buffer: PyBuffer<u8>,
}

#[pymethods]
impl Sessions {
    #[new]
    fn new(page: PyBuffer<u8>) -> PyResult<Sessions> {
        Ok(Sessions { table: sessions_of(&page)?, _buffer: page })
    }

    /// Gives the table its keys, before it is shared.
    fn begin(&self, first: u64, second: u64) {
        self.table.begin([first, second]);
    }

    /// The worker that reads this mailbox is gone, and its sessions with it.
    fn disown(&self, mailbox: u16) {
        self.table.own(mailbox, 0);
    }

    /// Mailbox, pid and number of sessions, of each that a worker reads.
    fn counts(&self) -> Vec<(u16, u32, usize)> {
        self.table.counts()
    }
}

/// The size of the table, and how many mailboxes it knows.
#[pyfunction]
pub fn session_sizes() -> (usize, usize) {
    (tricorn_io::SESSION_BYTES, tricorn_io::MAILBOXES)
}
