//! What must come in time: milliseconds, each `None` while it is not awaited.
use super::violation::Violation;

#[derive(Debug, Clone, Copy)]
pub(super) struct Deadlines {
    /// The preface and the peer's SETTINGS.
    opening: Option<u64>,
    /// The acknowledgement of ours.
    acknowledgement: Option<u64>,
    /// The last frame of a header block.
    block: Option<u64>,
}

impl Deadlines {
    pub fn new(opening: u64) -> Deadlines {
        Deadlines { opening: Some(opening), acknowledgement: Some(opening), block: None }
    }

    pub fn opened(&mut self) {
        self.opening = None;
    }

    pub fn acknowledged(&mut self) {
        self.acknowledgement = None;
    }

    pub fn is_acknowledged(&self) -> bool {
        self.acknowledgement.is_none()
    }

    pub fn block_begun(&mut self, deadline: u64) {
        self.block = Some(deadline);
    }

    pub fn block_complete(&mut self) {
        self.block = None;
    }

    pub fn earliest(&self) -> Option<u64> {
        [self.opening, self.acknowledgement, self.block].into_iter().flatten().min()
    }

    /// The first that is over.
    pub fn missed(&self, now: u64) -> Option<Violation> {
        let is_over = |deadline: Option<u64>| deadline.is_some_and(|deadline| now >= deadline);
        match self {
            _ if is_over(self.opening) => Some(Violation::Preface),
            _ if is_over(self.block) => Some(Violation::HeaderTimeout),
            _ if is_over(self.acknowledgement) => Some(Violation::SettingsTimeout),
            _ => None,
        }
    }
}
