//! Sockets, clocks, timers, the reactor, the baton, the monitor and the scoreboard. No Python.
//!
//! ```text
//!            app thread                         monitor thread (no GIL)
//!   try_next ──┐     ┌── finish                 tick: is a call stuck? who polls?
//!              ▼     ▼                               │
//!        ┌── the baton (Mutex) ──────────────────────▼──┐
//!        │ Reactor: connections, events, ready requests, │
//!        │ deadlines, listeners                          │
//!        └───────────────────────────────────────────────┘
//!              │ Exchange (owns the socket)   ▲
//!              ▼                              │
//!        application call, reply written ─────┘
//! ```
//!
//! * [`Engine`] is what the worker holds: shared by the app threads and the monitor.
//! * [`reactor::Reactor`] is everything under the baton; it never blocks and never meets Python.
//! * [`Exchange`] is one request on its way through the application; it owns the socket meanwhile.

mod access;
mod baton;
mod body;
mod buffering;
mod buffers;
mod calls;
mod claim;
pub mod clock;
mod config;
mod cork;
mod engine;
mod exchange;
mod files;
mod fork;
mod group;
mod hub;
mod hub_watch;
mod incoming;
mod lateness;
mod life;
mod limiter;
mod log_thread;
mod lost;
mod monitor;
mod one_queue;
mod orphan;
mod outbox;
mod overflow;
mod parcel;
mod peer;
mod progress;
pub mod reactor;
mod room;
mod scoreboard;
mod siblings;
mod sink;
mod sleeper;
mod spooler;
mod streams;
mod sys;
mod taken;
mod timers;
mod watchdog;
mod websocket;
mod wheel;

pub use access::AccessLog;
pub use body::{Allocate, Body, BodyBuffer, Received, can_spool_to, spools_to_memory};
pub use buffering::Behind;
pub use buffers::Request;
pub use config::{Config, Fault, MaxConcurrency, QueueOrder};
pub use cork::Cork;
pub use engine::{Engine, Wake};
pub use exchange::{Exchange, Sent};
pub use files::{descriptor_limit, duplicate, file_size, open_file};
pub use fork::is_child;
pub use group::{GROUP_BYTES, Group};
pub use incoming::Incoming;
pub use outbox::SharedBytes;
pub use overflow::Overflow;
pub use peer::Peer;
pub use reactor::{Attachment, Chores, Notice, Stir, What};
pub use room::{Patience, Room};
pub use scoreboard::{DRAIN, ENTRY, NOT_READY, REPLACED, Scoreboard, TABLE, VERSION, YIELD, bucket_floor, page_bytes};
pub use siblings::Siblings;
pub use sys::channel::Channel;
pub use sys::enlarge_signal_stack;
pub use sys::fds::receive;
pub use sys::fork::exit_at_once;
pub use timers::{Due, Timer};
pub use websocket::{Desk, Shelf, WebSocket};
