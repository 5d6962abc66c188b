//! What happens to a connection, and what of it its exchange wants to be told.

/// What a connection's exchange wants to be told of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attended {
    /// The slot of its call, and one; 0: nothing is told.
    pub(super) slot: u32,
    /// Whatever happens may mean that there is room for output.
    pub(super) room: bool,
    /// At the connection's deadline.
    pub reminded: bool,
    /// What has happened and was not told yet. Its request is listed in `Work::changed`.
    pub(super) news: Option<Readiness>,
}

/// What has happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There may be bytes to read.
    pub readable: bool,
    /// There may be room for output, after [`crate::Engine::wait_for_room`].
    pub writable: bool,
    /// The client has closed its sending side, or the connection is broken.
    pub hangup: bool,
    /// It is broken: nothing that is sent arrives.
    pub broken: bool,
    /// A timer may have come: [`crate::Engine::take_due`].
    pub expired: bool,
}

impl Readiness {
    /// Both: what was not told yet, and what has happened since.
    pub(super) fn and(self, later: Readiness) -> Readiness {
        Readiness {
            readable: self.readable | later.readable,
            writable: self.writable | later.writable,
            hangup: self.hangup | later.hangup,
            broken: self.broken | later.broken,
            expired: self.expired | later.expired,
        }
    }
}

/// Something happened to the connection of the call in this slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReadiness {
    pub slot: usize,
    pub readiness: Readiness,
}
