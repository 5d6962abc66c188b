//! Where to connect to, and from where.
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, socket_with, sockopt};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::plan;

/// An address that a server answered at.
#[derive(Debug, Clone)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

impl Address {
    /// Finds the address, and connects once to see that a server listens. With this connection, which blocks.
    ///
    /// # Errors
    /// A sentence: the name is unknown, nothing listens there, or it is another machine, which has to be allowed.
    pub fn find(given: &plan::Address, allows_remote: bool) -> Result<(Address, OwnedFd), String> {
        match given {
            plan::Address::Unix(path) => Address::find_unix(path),
            plan::Address::Tcp(host, port) => Address::find_tcp(host, *port, allows_remote),
        }
    }

    fn find_unix(path: &str) -> Result<(Address, OwnedFd), String> {
        let shown = path.replacen('\0', "@", 1);
        let wrong = |error: Errno| format!("unix:{shown} is no address: {error}");
        let (address, tried) = match path.strip_prefix('\0') {
            Some(name) => {
                use std::os::linux::net::SocketAddrExt;
                let named = std::os::unix::net::SocketAddr::from_abstract_name(name);
                let tried = named.and_then(|named| UnixStream::connect_addr(&named));
                (SocketAddrUnix::new_abstract_name(name.as_bytes()).map_err(wrong)?, tried)
            }
            None => (SocketAddrUnix::new(path).map_err(wrong)?, UnixStream::connect(path)),
        };
        let tried = tried.map_err(|error| format!("unix:{shown}: {}. {RUNNING}", plain(&error)))?;
        Ok((Address::Unix(address), tried.into()))
    }

    fn find_tcp(host: &str, port: u16, allows_remote: bool) -> Result<(Address, OwnedFd), String> {
        let all = (host, port).to_socket_addrs().map_err(|error| format!("{host}: {}", plain(&error)))?;
        let mut reason = format!("{host}: the name has no address");
        for address in all {
            if !allows_remote && !is_local(address.ip()) {
                return Err(format!(
                    "{address} is another machine. Load is sent to this machine only, unless --remote is given: with it, \
                     use only servers that you may load"
                ));
            }
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(tried) => return Ok((Address::Tcp(address), tried.into())),
                Err(error) => reason = format!("{address}: {}. {RUNNING}", plain(&error)),
            }
        }
        Err(reason)
    }

    /// A socket that is connected, or is being connected. `number`: which of the connections it is for.
    pub fn open(&self, number: usize) -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match self {
            Address::Unix(address) => {
                let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
                connect(&socket, address)?;
                Ok(socket)
            }
            Address::Tcp(address) => {
                let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                let socket = socket_with(family, SocketType::STREAM, flags, None)?;
                sockopt::set_tcp_nodelay(&socket, true)?;
                if let Some(source) = source(address.ip(), number) {
                    bind(&socket, &SocketAddr::from((source, 0)))?;
                }
                match connect(&socket, address) {
                    Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
                    Err(error) => Err(error),
                }
            }
        }
    }
}

/// An address of our own for connections that one address has no ports for: 127.0.0.0/8 is all this machine's.
fn source(target: IpAddr, number: usize) -> Option<Ipv4Addr> {
    let block = number / PORTS;
    if block == 0 || !matches!(target, IpAddr::V4(target) if target.is_loopback()) {
        return None;
    }
    Some(Ipv4Addr::new(127, 1, (block / 250) as u8, (block % 250 + 1) as u8))
}

/// Whether this machine has the address: a socket can be bound to it.
fn is_local(address: IpAddr) -> bool {
    address.is_loopback() || address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}

/// Without Rust's `(os error 111)`.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

const RUNNING: &str = "Is the server running, and is this where it listens?";
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections from one address. The kernel looks among the even ports of its range first (inet_hashtables.c), of which
/// there are 14,116 by default (ip_local_port_range): beyond them it walks over all of these for each connection, which
/// took milliseconds.
const PORTS: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_connections_to_loopback_have_several_sources() {
        let target = IpAddr::from(Ipv4Addr::LOCALHOST);
        assert_eq!(source(target, 9_999), None);
        assert_eq!(source(target, 10_000), Some(Ipv4Addr::new(127, 1, 0, 2)));
        assert_eq!(source(target, 19_999), Some(Ipv4Addr::new(127, 1, 0, 2)));
        assert_eq!(source(target, 49_999), Some(Ipv4Addr::new(127, 1, 0, 5)));
        assert_eq!(source(IpAddr::from([192, 0, 2, 1]), 50_000), None);
    }

    #[test]
    fn what_does_not_listen_and_what_is_another_machine_is_said() {
        let tcp = |host: &str, port| Address::find(&plan::Address::Tcp(host.into(), port), false).unwrap_err();
        assert_eq!(tcp("127.0.0.1", 1), format!("127.0.0.1:1: Connection refused. {RUNNING}"));
        assert!(tcp("192.0.2.1", 80).starts_with("192.0.2.1:80 is another machine. Load is sent to this machine only"));
        let unix = |path: &str| Address::find(&plan::Address::Unix(path.into()), false).unwrap_err();
        assert_eq!(unix("/nowhere/s"), format!("unix:/nowhere/s: No such file or directory. {RUNNING}"));
        assert_eq!(unix("\0none-is-here"), format!("unix:@none-is-here: Connection refused. {RUNNING}"));
    }
}
