//! HTTP/1 and WebSocket, server side, without sockets, clocks, threads or Python: bytes and time come in as arguments.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod exchange;
pub mod http1;
pub mod peer;
mod trust;
pub mod websocket;
