//! A listener, watched or not, and what it brings.
use super::tokens::SPECIAL;
use crate::metrics::Backlog;
use crate::peer::Peer;
use crate::sys::fds;
use crate::sys::poll::{Token, ready};
use crate::waiting::entrance::Entrance;
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, acceptfrom_with, getsockname, sockopt};
use std::net::SocketAddr;

/// A listening socket shared with the other workers.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: OwnedFd,
    /// The address it is bound to; `None` for unix sockets.
    pub(crate) address: Option<SocketAddr>,
    is_tcp: bool,
    /// Its clients speak TLS.
    pub(super) is_tls: bool,
    /// It is not watched, whatever the gate is.
    pub(super) is_shut: bool,
    watched: bool,
}

/// What accept(2) brought.
pub(super) enum Accepted {
    Connection(OwnedFd, Peer),
    Nothing,
    /// There is one, and no descriptor for it.
    NoDescriptor,
}

impl Listener {
    pub fn new(socket: OwnedFd) -> rustix::io::Result<Listener> {
        let name = getsockname(&socket)?;
        let is_tcp = matches!(name.address_family(), AddressFamily::INET | AddressFamily::INET6);
        let address = SocketAddr::try_from(name).ok();
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener { socket, address, is_tcp, is_tls: false, is_shut: false, watched: false })
    }

    /// Has it watched, or no longer. What cannot be taken out was not there.
    pub(super) fn watch(&mut self, entrance: &Entrance, token: Token, watch: bool) -> rustix::io::Result<()> {
        let watch = watch && !self.is_shut;
        if watch && !self.watched {
            entrance.add(self.socket.as_fd(), token)?;
        } else if !watch && self.watched {
            let _ = entrance.remove(self.socket.as_fd());
        }
        self.watched = watch;
        Ok(())
    }

    pub(super) fn accept(&self) -> Accepted {
        loop {
            match acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, name)) => {
                    let peer = name.and_then(|name| SocketAddr::try_from(name).ok());
                    if self.is_tcp {
                        // Inherited from the listener where the arbiter made it; needed for inherited listeners.
                        let _ = sockopt::set_tcp_nodelay(&socket, true);
                    }
                    return Accepted::Connection(socket, peer.map_or(Peer::Unix, Peer::Internet));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                // Without a free descriptor accept(2) fails before it has looked whether anybody waits.
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) if self.has_some() => {
                    return Accepted::NoDescriptor;
                }
                Err(_) => return Accepted::Nothing,
            }
        }
    }

    /// The socket, while it is watched.
    pub(super) fn watched(&self) -> Option<BorrowedFd<'_>> {
        self.watched.then(|| self.socket.as_fd())
    }

    /// How many connections wait to be accepted; `None` where that is not known, or this worker alone knows (`reuse_port`).
    pub(super) fn backlog(&self) -> Option<Backlog> {
        let address = self.address.filter(|_| self.is_tcp)?;
        if sockopt::socket_reuseport(&self.socket).unwrap_or(false) {
            return None;
        }
        let (waiting, limit) = fds::backlog(self.socket.as_fd())?;
        Some(Backlog { listener: address.to_string(), waiting, limit })
    }

    /// Whether a connection waits to be accepted.
    #[cold]
    pub(super) fn has_some(&self) -> bool {
        !ready(self.socket.as_fd(), PollFlags::IN, 0).is_empty()
    }
}

/// Has all listeners watched that are not yet, or none any more.
pub(super) fn watch_all(listeners: &mut [Listener], entrance: &Entrance, watch: bool) -> rustix::io::Result<()> {
    let mut result = Ok(());
    for (index, listener) in listeners.iter_mut().enumerate() {
        result = result.and(listener.watch(entrance, SPECIAL + index as Token, watch));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::sys::poll::{Events, Poller};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;

    #[test]
    fn a_listener_that_the_poller_did_not_take_is_taken_by_the_next_try() {
        let socket = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = socket.local_addr().expect("an address");
        let mut listeners = [Listener::new(socket.into()).expect("a listener")];
        let poller = Arc::new(Poller::new().expect("a poller"));
        let entrance = Entrance::of_threads(poller.clone());
        // A second epoll_ctl(2) for the same open file and number fails (EEXIST).
        poller.add_edge(listeners[0].socket.as_fd(), 7).expect("room in the poller");
        for _ in 0..2 {
            assert_eq!(watch_all(&mut listeners, &entrance, true), Err(Errno::EXIST));
        }
        poller.remove(listeners[0].socket.as_fd()).expect("it was there");
        for _ in 0..2 {
            assert_eq!(watch_all(&mut listeners, &entrance, true), Ok(()));
        }
        let _client = TcpStream::connect(address).expect("a connection");
        let mut events = Events::default();
        poller.wait(&mut events, Some(clock::SECOND)).expect("a poller");
        assert_eq!(events.pop().map(|event| event.token), Some(SPECIAL));
        assert_eq!(watch_all(&mut listeners, &entrance, false), Ok(()));
        poller.wait(&mut events, Some(0)).expect("a poller");
        assert!(events.is_empty());
    }
}
