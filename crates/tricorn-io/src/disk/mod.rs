//! Files, and the threads that wait for disks in place of everybody else.
//!
//! ```text
//!   reactor, exchange, monitor ── job ──▶ Pool: a line for each disk ──▶ a thread runs it
//!            ▲                                                              │ outcome, into a channel of the job's own
//!            └────────── news(): an event of the poller ────────────────────┘
//! ```
//!
//! A read or a write of a file waits where the disk is slow, the quota of dirty pages is used up or the server of a network file
//! system is away, whatever O_NONBLOCK says (open(2)). No thread that holds the baton or the GIL, or runs an event loop, does
//! either: it submits a [`Job`].
//!
//! Jobs of one file follow one another, since whoever has a next one waits for the outcome of the one before.
mod file;
mod pool;

pub use file::{DiskFile, Reserved, can_spool_to, spools_to_memory};
pub use pool::{Job, Place, Pool, stall};
