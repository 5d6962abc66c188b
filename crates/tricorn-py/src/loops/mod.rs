//! Requests on an event loop: many calls under way at once on one thread, each a task.
//!
//! `loop_server.rs` takes what the loop's descriptors announce and gives it to a [`Gateway`], which knows what a request is
//! called with. `beginning.rs` and `places.rs` are what gateways share, `tasks.rs`, `awaitable.rs` and `bell.rs` what those for
//! coroutines do.
mod awaitable;
mod beginning;
mod bell;
mod gateway;
mod places;
mod tasks;

pub use awaitable::{Awaited, Done, Poll, Ready, Wait};
pub use beginning::Beginning;
pub use bell::{Bell, Ring};
pub use gateway::Gateway;
pub use places::Places;
pub use tasks::{Tasks, error_of, is_done, wake};
