//! What the caller of a run is told while it lasts.
use crate::outcome::Progress;

/// Watches a run from the thread that started it.
pub trait Watcher {
    /// Called often. False stops the run.
    fn goes_on(&mut self) -> bool {
        true
    }

    /// Called about once a second. False stops the run.
    fn tick(&mut self, _progress: &Progress) -> bool {
        true
    }
}

/// None watches.
impl Watcher for () {}
