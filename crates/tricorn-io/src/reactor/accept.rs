//! Listeners, the gate before them, and what a new connection meets.
use super::conn::{Conn, Phase, Token};
use super::{BELL, CHANNEL, Reactor, Runner, SPECIAL};
use crate::clock;
use crate::config;
use crate::peer::Peer;
use crate::scoreboard::Word;
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
}

impl Listener {
    pub fn new(socket: OwnedFd) -> rustix::io::Result<Listener> {
        let name = getsockname(&socket)?;
        let is_tcp = matches!(name.address_family(), AddressFamily::INET | AddressFamily::INET6);
        let address = SocketAddr::try_from(name).ok();
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Listener { socket, address, is_tcp })
    }
}

impl Reactor {
    /// Opens or closes the gate: puts the listeners into the poller or takes them out.
    ///
    /// Open means "this worker could serve a new connection at once". A worker whose threads are all inside the
    /// application leaves new connections to its siblings, and to the kernel's queue if all are busy. Whether that
    /// changes anything.
    pub fn set_gate(&mut self, open: bool) -> bool {
        let open = open && self.gate_pause == 0 && !self.is_full();
        if open == self.gate_open {
            return false;
        }
        self.gate_open = open;
        self.accepting = None;
        for (index, listener) in self.listeners.iter().enumerate() {
            let token = SPECIAL + index as Token;
            let result = if open {
                self.poller.add_listener(listener.socket.as_fd(), token)
            } else {
                self.poller.remove(listener.socket.as_fd())
            };
            if let Err(error) = result {
                let text =
                    format!("tricorn: a listener cannot be {}: {error}", if open { "watched" } else { "let go" });
                self.chores.notices.push(super::Notice { warning: true, text });
            }
        }
        true
    }

    /// Watches the channel, or leaves it to those who can serve what comes.
    pub fn set_door(&mut self, receive: BorrowedFd<'_>, open: bool) {
        let open = open && self.gate_pause == 0;
        if open == self.door_open {
            return;
        }
        let result = if open { self.poller.add_listener(receive, CHANNEL) } else { self.poller.remove(receive) };
        match result {
            Ok(()) => self.door_open = open,
            Err(error) => self.notice(true, || format!("tricorn: the channel cannot be watched: {error}")),
        }
    }

    /// Listens for the bell, or no longer.
    pub fn watch_bell(&mut self, bell: BorrowedFd<'_>, watch: bool) {
        if watch == self.bell_watched {
            return;
        }
        let result = if watch { self.poller.add_edge(bell, BELL) } else { self.poller.remove(bell) };
        // Without it waiting requests are looked at a tick later.
        self.bell_watched = watch && result.is_ok();
    }

    /// App threads that are in no call, the one that runs this included; the monitor knows of none.
    fn free_threads_here(&self) -> usize {
        if self.runner == Runner::AppThread { self.free_threads() } else { 0 }
    }

    /// The system is out of descriptors: nothing is taken for a moment.
    pub fn pauses(&self) -> bool {
        self.gate_pause != 0
    }

    /// There was no room for newcomers.
    pub fn is_shut(&self) -> bool {
        (!self.gate_open || !self.may_start()) && !self.draining
    }

    /// As many as may be held at all. Under a hub so many may be running: others wait beside them, within `queue_limit`.
    fn is_full(&self) -> bool {
        !self.config.hub && self.busy + self.ready.len() >= self.config.worker_connections
    }

    /// The end of a pause opens the gate again; the end of a drain's last call closes it for good.
    pub(super) fn end_pause(&mut self, now: u64) {
        if self.listen_until != 0 && now >= self.listen_until {
            self.listen_until = 0;
            self.close_listeners();
        }
        if self.gate_pause != 0 && now >= self.gate_pause {
            self.gate_pause = 0;
            // With siblings an app thread opens it when it has nothing to do: only then may this worker accept.
            self.set_gate(!self.config.siblings);
        }
    }

    /// Takes no more connections: those in the queue now are the last.
    fn close_listeners(&mut self) {
        self.set_gate(false);
        for index in 0..self.listeners.len() {
            while self.take_for_later(index as u16) {}
        }
        self.listeners.clear();
    }

    /// Takes no more connections: those in the queue now are for the others that listen there.
    pub(super) fn leave_listeners(&mut self) {
        self.set_gate(false);
        self.take_missed();
        self.listeners.clear();
    }

    /// Takes those for whom nobody else was woken. For each connection the kernel wakes one of the threads that sleep on its
    /// listener (EPOLLEXCLUSIVE); if that is one of this worker, which finds the gate closed when it looks, the others sleep
    /// on. There is one such connection at most: who was woken is not woken again before it has looked. A hub does not sleep
    /// in our poller, and what wakes it wakes all.
    pub(crate) fn take_missed(&mut self) {
        if self.config.hub {
            return;
        }
        for index in 0..self.listeners.len() {
            self.take_for_later(index as u16);
        }
    }

    /// Takes one connection, to be read from when somebody looks. Whether there was any.
    fn take_for_later(&mut self, listener: u16) -> bool {
        let Some((socket, peer)) = self.take_connection(listener) else { return false };
        let token = self.welcome(socket, peer, listener, clock::now());
        self.later(token);
        true
    }

    /// The listener from which one more connection may be taken in this round.
    pub(super) fn next_accept(&mut self) -> Option<u16> {
        let (listener, left) = self.accepting?;
        if left == 0 || !self.gate_open {
            self.accepting = None;
            return None;
        }
        self.accepting = Some((listener, left - 1));
        Some(listener)
    }

    /// Takes one connection and reads from it at once: with `TCP_DEFER_ACCEPT` its request is there already.
    pub(super) fn accept_one(&mut self, listener: u16) -> Option<Token> {
        let full = self.is_full();
        // What can be handed over may be taken: the sleeping sibling was not woken for it.
        let passes_on = self.hands_over && (self.runner == Runner::Monitor || !self.may_start());
        let for_sibling = self.config.siblings && !passes_on && self.ready.len() >= self.free_threads_here();
        if full || for_sibling {
            self.accepting = None;
            if full {
                self.set_gate(false);
            }
            return None;
        }
        let Some((socket, peer)) = self.take_connection(listener) else {
            self.accepting = None;
            return None;
        };
        if self.connections() >= self.config.max_connections {
            self.evict();
        }
        let token = self.welcome(socket, peer, listener, clock::now());
        self.read(token)
    }

    pub(super) fn take_connection(&mut self, listener: u16) -> Option<(OwnedFd, Peer)> {
        let entry = self.door(listener)?;
        loop {
            match acceptfrom_with(&entry.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok((socket, name)) => {
                    let peer = name.and_then(|name| SocketAddr::try_from(name).ok());
                    if entry.is_tcp {
                        // Inherited from the listener where the arbiter made it; needed for inherited listeners.
                        let _ = sockopt::set_tcp_nodelay(&socket, true);
                    }
                    return Some((socket, peer.map_or(Peer::Unix, Peer::Internet)));
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.out_of_descriptors();
                    return None;
                }
                Err(_) => return None,
            }
        }
    }

    /// A level-triggered listener that cannot be served would spin: make room, and look away for a moment.
    #[cold]
    pub(super) fn out_of_descriptors(&mut self) {
        self.evict();
        self.set_gate(false);
        self.gate_pause = clock::now() + config::ACCEPT_PAUSE;
        self.notice(true, || "Out of file descriptors: accepting pauses. Raise the limit (ulimit -n).".into());
    }

    fn welcome(&mut self, socket: OwnedFd, peer: Peer, listener: u16, now: u64) -> Token {
        let trusted = self.config.policy.trust.allows(peer.ip());
        let token = self.conns.insert(Conn::new(socket, peer, listener, trusted));
        self.board.add(Word::Accepted, 1);
        self.board.set(Word::Connections, self.connections() as u64);
        let patience = self.config.header_timeout;
        // A drain is not held up by somebody who connected just before it and says nothing.
        self.set_deadline(token, now + if self.draining { patience.min(config::LINGER) } else { patience });
        token
    }

    /// Makes room: closes a share of the connections that wait for a next request, going round the table.
    pub(super) fn evict(&mut self) {
        let positions = self.conns.positions();
        let mut wanted = (self.connections() / 32).max(1);
        for _ in 0..positions {
            self.sweep = (self.sweep + 1) % positions.max(1);
            let idle = self
                .conns
                .at(self.sweep)
                .filter(|(_, conn)| conn.phase == Phase::Idle && conn.registered && !conn.is_admin());
            let Some((token, _)) = idle else { continue };
            self.board.add(Word::Evicted, 1);
            self.close(token);
            wanted -= 1;
            if wanted == 0 {
                return;
            }
        }
    }
}
