//! A connection that the application has taken for itself, to speak another protocol over its socket.
use super::Engine;
use crate::exchange::Exchange;
use crate::exchange::descriptor::Descriptor;
use crate::exchange::timers::Timers;
use crate::scoreboard::Phase;
use crate::stream::Stream;
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::io;

/// A socket as the application gets it.
#[derive(Debug)]
pub struct Taken {
    /// A descriptor of its own.
    pub socket: OwnedFd,
    /// What was read behind the request, and is in no socket any more.
    pub unread: Vec<u8>,
}

const UNSENT: &str = "a part of the response waits on disk for the client: a socket is taken before the response";

impl Engine {
    /// From now on the socket is the application's: nothing happens to it until the exchange is over, and then it is closed.
    ///
    /// Where the client speaks TLS the application gets one end of a pair, and the reactor carries the bytes
    /// (`reactor/connections/bridge.rs`). What is written by way of the exchange goes there as well, behind the application's.
    ///
    /// What `request_timeout` does to the call it does from now on without an answer of ours: a 504 in the midst of another
    /// protocol would be taken for a part of that. If the monitor has answered already, the socket is closed for writing.
    pub fn let_go(&self, exchange: &mut Exchange) -> io::Result<Taken> {
        if exchange.facts().is_some() && matches!(exchange.lane.descriptor(), Descriptor::Own(_)) {
            return self.bridge(exchange);
        }
        let socket = exchange.lane.descriptor().duplicate()?;
        if !exchange.lane.take() {
            return Ok(Taken { socket, unread: Vec::new() });
        }
        exchange.lane.begin();
        self.is_let_go(exchange);
        let unread = match exchange.lane.descriptor() {
            Descriptor::Own(own) => self.shared.baton.take().reactor.let_go(exchange.lane.id(), own),
            Descriptor::Borrowed(_) | Descriptor::Shared => Vec::new(),
        };
        Ok(Taken { socket, unread })
    }

    /// The session stays here.
    #[cold]
    fn bridge(&self, exchange: &mut Exchange) -> io::Result<Taken> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (near, far) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let (socket, number) = (fcntl_dupfd_cloexec(&far, 3)?, far.as_raw_fd());
        exchange.resolve();
        let mut spent = Vec::new();
        let redirected = exchange.lane.redirect(Stream::new(far), &mut spent);
        let (client, unsent) = redirected.ok_or_else(|| io::Error::new(io::ErrorKind::ResourceBusy, UNSENT))?;
        exchange.lane.take();
        self.is_let_go(exchange);
        let mut core = self.shared.baton.take();
        core.reactor.take_owners(spent);
        core.reactor.begin_bridge(exchange.lane.id(), client, (Stream::new(near), number), unsent);
        if core.reactor.has_leftovers() {
            self.shared.waiting.kick.ring(); // they make no event that ends the wait of another thread
            self.shared.waiting.ring_hub();
        }
        Ok(Taken { socket, unread: Vec::new() })
    }

    fn is_let_go(&self, exchange: &mut Exchange) {
        let slot = &self.shared.waiting.slots[exchange.slot];
        slot.progress.exempt(slot.calls());
        self.note_phase(exchange, Phase::Upgraded);
        exchange.timers = Timers::default();
    }
}
