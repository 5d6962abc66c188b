//! How the threads of a worker, or its hub, wait for one another, and what each of them shows the others of its call.
//!
//! [`Waiting`] is what they share. Whether a worker has threads or a hub is asked in this folder only: each difference is a
//! method with one `match`.
//!
//! | | `Threads` | `Hub` |
//! |---|---|---|
//! | a call has | its thread's slot | a slot while it lasts |
//! | events are waited for by | an app thread in `Engine::wait`, or the monitor that covers | the hub's own event loop, beside its wake-up |
//! | listeners are watched in | the poller | the event loop's epoll |
//! | deadlines are kept by | that app thread | the monitor |
//! | stuck is | a call that is the same after a tick | a hub that does not come for what waits |
//! | `timeout` is about | each call | the hub |
//! | a late call is ended by | its thread, or the main thread | the hub, in the call's greenlet or task |

mod attention;
pub mod capacity;
pub mod entrance;
mod eye;
pub mod hub;
mod hub_watch;
pub mod lateness;
pub mod loop_time;
mod manner;
mod mark;
pub mod progress;
mod rung;
pub mod sampling;
mod seen;
pub mod sleeper;
pub mod slices;
pub mod slots;
pub mod streams;
mod threads;
mod until;
pub mod watch;
pub mod whereabouts;

pub use eye::Eye;
pub use manner::{ORDERS, Subject, Waiting};
pub use seen::Seen;

/// The atomics of words that are model-checked: `tests/wake_models.rs` has others by these names.
mod atomics {
    pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};
}
