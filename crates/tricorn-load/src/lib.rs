//! A load generator: HTTP/1.1 and HTTP/2 in a closed and in an open model, and WebSockets; over TLS, too.
//!
//! ```text
//!   plan (JSON) ──> request: prepared, as it is sent ────────┐
//!                   address: sockets                          │
//!                                                             v
//!   engine ── a thread each ──> driver ── when? ──> closed │ open ── rate
//!     │                           │
//!     │ once a second             ├──> poller: epoll
//!     v                           └──> pool ──> client: one connection, one request at a time
//!   outcome (JSON) <── tally <──────────┤  └───> http2: clients that share connections, a stream for each request
//!                                       └──> wire: a socket, with a session of tls or without
//! ```
//!
//! There is no runtime and no thread for timers: a driver's loop begins what is due, waits in epoll until something
//! happens or is due, and takes one step of each client that something happened to. An answered request costs two system
//! calls and a share of a third, and no allocation.
//!
//! In the open model latency counts from when a request was due. A request that is due while all connections are busy is
//! held, and sent when one is free: a server that makes clients wait cannot thereby get fewer requests (no coordinated
//! omission).
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods)] // A generator looks at the clock.

mod address;
mod client;
mod clock;
mod closed;
mod descriptors;
mod driver;
mod echoes;
mod engine;
mod failure;
mod http2;
mod latencies;
mod mix;
mod notes;
mod open;
mod outcome;
pub mod plan;
mod poller;
mod pool;
mod prepared;
mod random;
mod rate;
mod reasons;
mod request;
mod samples;
mod tally;
mod tls;
mod watcher;
mod websocket;
mod wire;

pub use engine::run;
pub use outcome::{Outcome, Progress};
pub use plan::Plan;
pub use samples::{Ended, Samples};
pub use watcher::Watcher;
