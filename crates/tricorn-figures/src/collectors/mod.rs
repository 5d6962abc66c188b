//! Collectors of what the server tells: syslog and statsd. The monitor sends, and waits for nothing.
//!
//! ```text
//!   threads of calls ── lines ──▶ Relay ── batches ──▶ monitor: Socket, send(2) with MSG_DONTWAIT
//! ```
//!
//! What Python code sends (`tricorn-py/src/collector.rs`) goes the same way, on the thread that says it.
//!
//! Messages gather in memory ([`batch::Batch`]); a [`Relay`] knows when they are due, and what becomes of those that the
//! socket does not take; a [`socket::Socket`] is connected again by itself, ever less often.

mod batch;
mod relay;
mod socket;

pub use relay::{Policy, Relay};
pub use socket::{Address, Socket, wait_for_room};
