//! HTTP/2, the server's side (RFC 9113). Clients use its frames, compression and windows.
//!
//! ```text
//!   bytes ──> receive ──> frame ──┬─> receive_head ──> block, hpack ──> request (field_rules) ──> Step::Request
//!                                 │                                     trailers ───────────────> Step::Trailers
//!                                 ├─> receive_data ──> flow ───────────────────────────────────> Step::Body
//!                                 └─> settings, priority, shutdown, budget
//!
//!   what the reply machine has decided ──> encode ──> parts (they may wait) ──> send ──> hpack, flow, priority ──> output
//! ```
//!
//! `state` alone decides what a frame does to its stream, `violation` what a broken rule costs, `budget` how much a peer
//! may do. Content is never collected: the caller takes it from its own input.
pub mod block;
mod budget;
mod connection;
mod context;
mod deadlines;
pub mod encode;
mod error_code;
mod field_rules;
pub mod flow;
pub mod frame;
pub mod head_fields;
pub mod hpack;
pub mod output;
mod parts;
mod priority;
mod reading;
mod receive;
mod receive_data;
mod receive_head;
mod request;
mod send;
mod settings;
mod shutdown;
mod state;
mod step;
mod streams;
mod trailers;
mod unsendable;
mod violation;

pub use budget::Rate;
pub use connection::Connection;
pub use context::Context;
pub use error_code::ErrorCode;
pub use priority::Priority;
pub use receive::PREFACE;
pub use request::Request;
pub use send::EndStream;
pub use settings::{PeerSettings, Settings};
pub use step::{Progress, Step};
pub use unsendable::Unsendable;
pub use violation::{Scope, Violation};
