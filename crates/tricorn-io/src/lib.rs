//! Sockets, timers, the reactor, the baton and the monitor. No Python, and no `unsafe` code.
//!
//! ```text
//!            app thread                         monitor thread (no GIL)
//!   next ──────┐     ┌── next(done)             tick: is a call stuck? who polls?
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
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests are clients, too"))]
#![forbid(unsafe_code)]

mod active;
mod borrowed;
mod compress;
mod config;
mod disk;
mod engine;
mod exchange;
mod files;
mod http2;
mod monitor;
mod one_queue;
mod peer;
pub mod reactor;
mod secured;
mod stream;
pub mod tls;
mod turn;
mod waiting;
mod websocket;

pub use tricorn_figures::metrics;
use tricorn_figures::{limiter, logs, scoreboard};
use tricorn_sys as sys;
pub use tricorn_sys::clock;

pub use active::{Active, Departure, Effects, Grace, Read};
pub use compress::{Compressors, Failed, STREAMS as COMPRESSED_STREAMS, Stream as CompressedStream};
pub use config::{
    Allocate, BodyBuffer, Config, Door, Failpoint, FrontEnd, Http2, MaxConcurrency, ProxyProtocol, QueueOrder,
    Received, TlsDoors,
};
pub use disk::{can_spool_to, spools_to_memory};
pub use engine::buffering::{Behind, IsLast};
pub use engine::hub::{HubHandle, HubServer};
pub use engine::taken::Taken;
pub use engine::{Engine, Wake};
pub use exchange::body::Body;
pub use exchange::buffers::Request;
pub use exchange::descriptor::Descriptor;
pub use exchange::incoming::{Awaited, Incoming};
pub use exchange::opening::Opening;
pub use exchange::outbox::SharedBytes;
pub use exchange::patience::Patience;
pub use exchange::room::Room;
pub use exchange::timers::{Due, Timer};
pub use exchange::{Attachment, Exchange, Sent};
pub use files::{Mapping, Named, StaticMap};
pub use monitor::Reports;
pub use one_queue::affinity::Affinity;
pub use one_queue::siblings::Siblings;
pub use peer::Peer;
pub use reactor::{Chores, Notice, Readiness, SlotReadiness, unavailable};
pub use rustix::net::SocketType;
pub use scoreboard::group::{GROUP_BYTES, Group, GroupWord};
pub use scoreboard::ledger::{ARBITER, LEDGER_BYTES, Ledger, LedgerWord, MOLD};
pub use scoreboard::outside;
pub use scoreboard::routes::{MOST_ROUTES, RouteCounts, Routes, routes_bytes};
pub use scoreboard::sessions::{MAILBOXES, SESSION_BYTES, Sessions};
pub use scoreboard::{
    Call, CancelOrder, DRAIN, ENTRY, NOT_READY, Phase, RECONNECT, REPLACED, Scoreboard, TABLE, WORDS, YIELD, page_bytes,
};
pub use stream::Room as WaitForRoom;
pub use stream::Stream;
pub use sys::channel::Channel;
pub use sys::enlarge_signal_stack;
pub use sys::fds::shared_words;
pub use sys::files::{Opened, descriptor_limit, duplicate, open_cached, stored_size};
pub use sys::foreign_poll::{ReadyDescriptor, wait_at};
pub use sys::fork::{adopt_orphans, exit_at_once, is_child};
pub use sys::memory::trim_heap;
pub use sys::seat::Seat;
pub use tricorn_diagnosis::sampling::Frames;
pub use tricorn_diagnosis::stack_samples::{Asker, SampleRequest};
pub use tricorn_diagnosis::wait_sites::{Place, PoolWait, WaitSite};
pub use tricorn_doctor::{Marks, Memory, PyFrame, offsets_of};
pub use tricorn_figures::access_log::AccessLog;
pub use tricorn_figures::collectors::{Address, Policy, Relay, Socket, wait_for_room};
pub use tricorn_figures::logs::Logs;
pub use turn::{IN_A_ROW, Streak, TURN, Turn};
pub use websocket::{WebSocket, WebSocketBuffers, WebSocketIo};
