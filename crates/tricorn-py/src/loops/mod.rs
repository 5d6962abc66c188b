//! Requests on an event loop: many calls under way at once on one thread, each a task.
//!
//! `server.rs` takes what the loop's descriptors announce and gives it to a [`Gateway`], which knows what a request is
//! called with. `tasks.rs` and `awaitable.rs` are what gateways for coroutines share.
mod awaitable;
mod bell;
mod server;
mod tasks;

pub use awaitable::{Awaited, Done, Poll, Ready, Wait};
pub use bell::{Bell, Ring};
pub use server::{Gateway, LoopServer};
pub use tasks::{Tasks, error_of, is_done, wake};
