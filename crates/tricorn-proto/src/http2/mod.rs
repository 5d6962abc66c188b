//! HTTP/2, the server's side (RFC 9113).
pub mod hpack;
