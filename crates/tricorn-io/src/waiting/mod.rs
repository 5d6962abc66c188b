//! How the threads of a worker, or its hub, wait for one another, and what each of them shows the others of its call.

pub mod hub;
pub mod lateness;
pub mod progress;
pub mod sleeper;
pub mod slots;
pub mod streams;
pub mod watch;

/// The atomics of words that are model-checked: `tests/watch_model.rs` has others by these names.
mod atomics {
    pub use std::sync::atomic::{AtomicU8, Ordering};
}
