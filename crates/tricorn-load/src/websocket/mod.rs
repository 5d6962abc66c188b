//! WebSockets: echo in a closed loop.
//!
//! Messages are made once, masked and compressed, so that sending one costs a system call. What comes back is unpacked
//! and compared, byte by byte.
mod connection;
pub mod echo;
mod handshake;
mod messages;
pub mod options;
mod report;
