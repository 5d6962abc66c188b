//! Why a request is refused: whose fault, what came, which status.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    RequestLine,
    // … one variant per rule
}

/// A request that will not be served. Boxed where it travels, so that the good path stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// What came, as text for the log and the error page (not escaped).
    pub detail: String,
}

impl Refusal {
    pub fn status(&self) -> u16 {
        todo!()
    }
    /// The sentence for the log line and the error page.
    pub fn message(&self) -> String {
        todo!()
    }
}
