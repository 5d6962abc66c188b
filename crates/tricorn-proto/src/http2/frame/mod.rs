//! Frames (RFC 9113 section 6): one file each, with what its payload says and how it is written.
//!
//! Lengths and stream identifiers are checked here, states of streams elsewhere.
pub(crate) mod continuation;
pub(crate) mod data;
pub(crate) mod goaway;
mod header;
pub(crate) mod headers;
mod padding;
pub(crate) mod ping;
pub(crate) mod priority;
pub(crate) mod priority_update;
pub(crate) mod rst_stream;
pub(crate) mod settings;
pub(crate) mod window_update;

pub use header::{FrameHeader, HEADER_BYTES, Kind, MAX_PAYLOAD};
