//! The other end of a connection.
use std::net::{IpAddr, SocketAddr};

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    Internet(SocketAddr),
    /// A unix socket; its clients have no address worth telling.
    Unix,
}

impl Peer {
    pub fn ip(self) -> Option<IpAddr> {
        match self {
            Peer::Internet(address) => Some(address.ip()),
            Peer::Unix => None,
        }
    }
}
