//! What is measured.
use std::net::SocketAddr;
use std::time::Duration;
use tricorn_proto::websocket::Kind;

#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub address: SocketAddr,
    pub path: String,
    pub connections: usize,
    /// Bytes of a message.
    pub size: usize,
    pub duration: Duration,
    pub kind: Kind,
    /// permessage-deflate is offered.
    pub deflate: bool,
}
