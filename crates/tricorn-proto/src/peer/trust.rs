//! Front ends whose forwarded headers are believed: addresses, CIDR blocks, or everybody.
use std::net::IpAddr;

#[derive(Debug, Clone, Default)]
pub struct Trust {}

impl Trust {
    /// From gunicorn's `forwarded_allow_ips`: comma separated addresses and CIDR blocks, or `*`.
    pub fn parse(_text: &str) -> Result<Trust, String> {
        todo!()
    }
    /// `None` is a peer on a unix socket, which is always trusted.
    pub fn allows(&self, _peer: Option<IpAddr>) -> bool {
        todo!()
    }
}
