//! The other end of a connection.
use std::fmt;
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

/// As the log names it.
impl fmt::Display for Peer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Internet(address) => address.ip().fmt(formatter),
            Peer::Unix => formatter.write_str("unix socket"),
        }
    }
}
