//! HTTP/2, the client's side (RFC 9113); frames, compression and windows are tricorn-proto's.
//!
//! ```text
//!   clients ── links ──> channel: a connection and its wire ──> connection, without a socket ──> stream ──> response
//! ```
//!
//! A client has one request at a time. Several clients share a link, and its requests are streams of one connection. After
//! a GOAWAY new requests go over the link's next connection, while the last one still answers those that it has.
mod channel;
mod clients;
mod connection;
mod io;
mod links;
mod response;
mod stream;
mod trial;

pub use clients::Clients;
pub use io::Io;
pub use trial::try_out;
