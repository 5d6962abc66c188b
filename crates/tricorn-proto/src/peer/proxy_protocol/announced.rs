//! What the first bytes of a connection come to.
use super::values::Values;
use std::net::SocketAddr;

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub enum Opening {
    NeedMore,
    /// No header: the connection speaks for itself.
    Absent,
    /// A header, and its length.
    Header(Box<Announced>, usize),
}

/// What was announced of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announced {
    pub version: u8,
    pub ends: Ends,
    pub values: Values,
    /// The header as it came, for a worker that takes the connection over.
    pub bytes: Box<[u8]>,
}

/// Between whom the connection is that the balancer passes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// Those of the connection itself: the balancer checks the server's health, or does not know (LOCAL, UNKNOWN, UNSPEC).
    Own,
    Internet {
        source: SocketAddr,
        destination: SocketAddr,
    },
    /// A unix socket of the balancer's machine.
    Unix,
}

impl Ends {
    /// As version 1 names the family, and gunicorn in `PROXY_PROTOCOL`.
    pub fn family(&self) -> &'static str {
        match self {
            Ends::Own => "UNKNOWN",
            Ends::Internet { source: SocketAddr::V4(_), .. } => "TCP4",
            Ends::Internet { source: SocketAddr::V6(_), .. } => "TCP6",
            Ends::Unix => "UNIX",
        }
    }
}
