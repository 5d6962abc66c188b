//! HPACK, the compression of field sections (RFC 7541).
//!
//! ```text
//!   block ──> decoder ──> integer, huffman ──> static_table, table ──> name, value
//!   name, value ──> encoder ──> block
//! ```
//!
//! Each direction of a connection has one table of at most 4,096 bytes. A block is read to its end even if its fields
//! are not wanted: the tables of both sides must stay equal.
mod decoder;
mod encoder;
mod huffman;
mod huffman_codes;
mod integer;
mod static_table;
mod table;

pub use decoder::{DecodeError, Decoder};
pub use encoder::Encoder;
pub use table::MAX_TABLE;
