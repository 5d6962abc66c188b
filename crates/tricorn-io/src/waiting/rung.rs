//! Whether a hub is rung for: one word, so that many rings cost one wake-up.
//!
//! ```text
//!   quiet ──ring: the descriptor is made readable──▶ rung ──answer: read the descriptor, then this──▶ quiet
//! ```
//!
//! Rules:
//! * What the hub is to see is written before `ring`, and looked for after `answer`.
//! * A ring that finds the word set makes nothing readable. The hub sees what came with it all the same: `answer` exchanges the
//!   word, so that it reads from the last ring (acquire). A plain store would take nothing over, and a word that was written
//!   before that ring might not be seen. `tests/wake_models.rs` tries every interleaving.
use super::atomics::{AtomicBool, Ordering};

#[derive(Debug)]
pub struct Rung(AtomicBool);

impl Rung {
    pub fn new() -> Rung {
        Rung(AtomicBool::new(false))
    }

    /// Whether the descriptor is to be made readable.
    #[must_use]
    pub fn ring(&self) -> bool {
        !self.0.swap(true, Ordering::SeqCst)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The descriptor was read. (The other way round a ring in between would be cleared and still count as under way: the hub
    /// would not be woken any more.)
    pub fn answer(&self) {
        self.0.swap(false, Ordering::SeqCst);
    }
}
