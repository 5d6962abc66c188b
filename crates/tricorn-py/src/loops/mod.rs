//! Requests on an event loop: many calls under way at once on one thread, each a task.
//!
//! `loop_server.rs` takes what the loop's descriptors announce and gives it to a [`Gateway`], which knows what a request is
//! called with. `shared.rs` has what all gateways share, out of `beginning.rs` and `places.rs`. `tasks.rs`, `awaitable.rs` and
//! `loop_future.rs` are for gateways that call coroutines.
mod awaitable;
mod beginning;
mod call_table;
mod gateway;
mod loop_future;
mod row;
mod shared;
mod tasks;

pub use awaitable::{AfterTurn, Awaited, Done, Poll, Ready, Wait};
pub use gateway::Gateway;
pub use loop_future::{LoopFuture, When};
pub use row::{LAST_PIECES, Row, Stream};
pub use shared::{Callbacks, Ending, Over, Remote, Shared, Told};
pub use tasks::{Begun, Tasks, error_of, wake};
