//! What is measured.
use std::net::SocketAddr;
use std::time::Duration;
use tricorn_proto::websocket::Kind;

use crate::tls::Tls;

#[derive(Debug, Clone)]
pub struct Options {
    pub address: SocketAddr,
    /// The field Host.
    pub host: String,
    pub tls: Option<Tls>,
    pub path: String,
    pub connections: usize,
    /// Bytes of a message.
    pub size: usize,
    pub duration: Duration,
    pub kind: Kind,
    /// permessage-deflate is offered.
    pub deflate: bool,
}
