//! HTTP/1, HTTP/2, WebSocket, and what front ends speak (uwsgi, SCGI, FastCGI), server side, without sockets, clocks, threads or Python: bytes and time come in as arguments.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod cgi;
pub mod http1;
pub mod http2;
pub mod message;
pub mod peer;
pub mod representation;
pub mod response;
pub mod statsd;
pub mod syslog;
mod trust;
pub mod websocket;
