//! A producer waits for its client: how long, and what counts as progress.

/// How long a client may take to come nearer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub(super) wanted: u64,
    pub(super) mark: u64,
    pub(super) deadline: u64,
    pub(super) late: u64,
}

impl Patience {
    /// The call may take as long as it likes.
    pub(crate) fn without_end(self) -> Patience {
        Patience { late: u64::MAX, ..self }
    }
}
