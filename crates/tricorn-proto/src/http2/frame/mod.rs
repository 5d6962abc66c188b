//! Frames (RFC 9113 section 6): one file each, with what its payload says and how it is written.
//!
//! Lengths and stream identifiers are checked here, states of streams elsewhere.
pub(crate) mod continuation;
pub mod data;
pub mod goaway;
mod header;
pub mod headers;
mod padding;
pub mod ping;
pub(crate) mod priority;
pub(crate) mod priority_update;
pub mod rst_stream;
pub mod settings;
pub mod window_update;

pub use header::{FrameHeader, HEADER_BYTES, Kind, MAX_PAYLOAD};
