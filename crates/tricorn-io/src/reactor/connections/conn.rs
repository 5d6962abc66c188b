//! One connection between, before and after its requests.
use super::deadlines::TimedPhase;
use super::phase::Phase;
use super::stage::Stage;
use super::trunk_reader::TrunkReader;
use crate::clock::{self, MILLI};
use crate::config;
use crate::exchange::Attachment;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::peer::Peer;
use crate::reactor::edges::Edges;
use crate::reactor::serial::Serial;
use crate::reactor::slab::Slab;
use crate::reactor::tokens::NEAR;
use crate::stream::Stream;
use crate::sys::fds;
use crate::sys::poll::{Poller, Token, ready};
use rustix::event::PollFlags;
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io;
use std::sync::Arc;
use tricorn_proto::peer::proxy_protocol::Announced;

/// Where a connection comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub peer: Peer,
    pub listener: u16,
    /// The peer may claim things by forwarded headers.
    pub trusted: bool,
}

/// What an entry of the table is.
#[derive(Debug, Default)]
pub(super) enum Role {
    /// A connection whose requests come one after another.
    #[default]
    Connection,
    /// A connection of HTTP/2, which carries streams.
    Trunk(Box<TrunkReader>),
    /// A stream of such a one, which has this token. It has one request.
    Stream { trunk: Token, id: u32 },
    /// One request of a connection that another worker has.
    Borrowed,
}

#[derive(Debug)]
pub(super) struct Conn {
    /// With the exchange while the phase is `Busy`, and with its trunk while it carries streams.
    pub output: Option<Output>,
    pub origin: Origin,
    pub phase: TimedPhase,
    pub edges: Edges,
    /// Its requests, but for those that exchanges have.
    pub serial: Serial,
    pub role: Role,
    pub attachment: Option<Attachment>,
    /// What stands before its requests, and by what they come.
    pub stage: Stage,
    /// What a balancer has announced of it.
    pub announced: Option<Arc<Announced>>,
    /// A reply was sent here, and the connection kept.
    pub served: bool,
}

impl Conn {
    pub fn new(stream: Stream, origin: Origin) -> Conn {
        Conn {
            output: Some(Output::new(stream)),
            origin,
            phase: TimedPhase::default(),
            edges: Edges::unknown(),
            serial: Serial::default(),
            role: Role::default(),
            attachment: None,
            stage: Stage::default(),
            announced: None,
            served: false,
        }
    }

    /// To be read from; `None`: an exchange has it.
    #[inline]
    pub fn stream(&self) -> Option<&Stream> {
        match &self.role {
            Role::Trunk(reader) => Some(reader.trunk().stream()),
            Role::Connection | Role::Stream { .. } | Role::Borrowed => self.output.as_ref().map(Output::stream),
        }
    }

    /// Whether it is a trunk without a stream.
    pub fn carries_nothing(&self) -> bool {
        matches!(&self.role, Role::Trunk(reader) if reader.trunk().standing().streams == 0)
    }

    pub fn is_stream(&self) -> bool {
        matches!(self.role, Role::Stream { .. })
    }

    /// The connection of HTTP/2 that it is a stream of.
    #[inline]
    pub fn trunk(&self) -> Option<Token> {
        if let Role::Stream { trunk, .. } = self.role { Some(trunk) } else { None }
    }

    /// Whether it has no more than one request.
    pub fn has_one_request(&self) -> bool {
        matches!(self.role, Role::Stream { .. } | Role::Borrowed)
    }

    /// Whether the peer may still be sending, so that closing at once would reset what we sent last.
    pub fn has_unread_input(&self) -> bool {
        (self.edges.is_readable() && !self.edges.is_hangup()) || self.serial.holds_input()
    }

    /// Whether nothing more is expected from an idle connection: its client has been answered, or has connected a while ago
    /// without asking anything (as browsers do ahead of time), and no byte of a request has come.
    pub fn is_done_with(&mut self) -> bool {
        let nothing_came = !self.serial.holds_input() && self.unread() == 0;
        let Some(stream) = self.stream() else { return false };
        let is_silent = || fds::silence(stream.socket()).is_some_and(|millis| millis * MILLI >= config::LAST_CALL);
        nothing_came && (self.served || is_silent())
    }

    /// Bytes that have come and were not read. By TLS they are looked for: what the session has then is no longer in the socket, and
    /// makes no edge. Whoever asks has the connection looked at again if it may be readable by that.
    pub fn unread(&mut self) -> u64 {
        let Some(stream) = self.stream() else { return 0 };
        let (count, holds) = (stream.unread(), stream.holds());
        if holds {
            self.edges.may_be_readable();
        }
        count
    }

    /// Whether the client of a request has left that has not begun. `half` as for [`has_left`].
    pub fn client_has_left(&mut self, id: RequestId, half: bool, now: u64) -> bool {
        let (Some(request), Some(stream)) = (self.serial.request(id), self.stream()) else { return false };
        if let Some(channel) = stream.channel() {
            return channel.look().gone;
        }
        let (partial, complete) = (request.partial, request.times.complete);
        if !has_left(stream.socket(), half, complete, now) {
            return false;
        }
        // Nothing is known of when a client closed its side that has sent all of a body which was not read, or perhaps all.
        let is_rest_there = partial && {
            let (left, unread) = (self.serial.body_left(), self.unread());
            left.map_or(unread > 0, |left| left <= unread)
        };
        !is_rest_there || self.stream().is_some_and(|stream| has_left(stream.socket(), true, complete, now))
    }

    /// The number of its socket, which an exchange may have, and those of a bridge or a loan.
    fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let own = self.stream().map(|stream| stream.socket().as_raw_fd());
        // A stream has none of its own.
        let own = own.filter(|_| !self.is_stream());
        let near = self.phase.get().near().map(|near| near.socket().as_raw_fd());
        let [first, second] = match self.phase.get() {
            Phase::Busy(lent) => [Some(lent.socket).filter(|_| !self.is_stream()), None],
            Phase::Bridged(bridge) => [own, bridge.far()],
            _ => [own, None],
        };
        [first, near, second].into_iter().flatten()
    }
}

/// Whether the client has left, for all that can be told. A client that closed its sending side together
/// with its request still listens; `half`: it is known to have done so in time.
pub fn has_left(socket: BorrowedFd<'_>, half: bool, complete: u64, now: u64) -> bool {
    let seen = ready(socket, PollFlags::RDHUP, 0);
    if seen.is_empty() {
        return false;
    }
    if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
        return true;
    }
    // Perhaps no thread looked when that happened. It was the last that came from there.
    let at = fds::silence(socket).map_or(now, |millis| now.saturating_sub(millis * clock::MILLI));
    !half && at.saturating_sub(complete) > config::HALF_CLOSE
}

/// Connections by token. They are put into the poller and taken out here, each once.
#[derive(Debug)]
pub(super) struct Conns {
    poller: Arc<Poller>,
    slab: Slab<Conn>,
    /// Entries that are no connections.
    streams: usize,
}

impl Conns {
    pub fn new(poller: Arc<Poller>) -> Conns {
        Conns { poller, slab: Slab::new(), streams: 0 }
    }

    /// Connections, without the streams of trunks.
    #[inline]
    pub fn len(&self) -> usize {
        self.slab.len() - self.streams
    }

    pub fn insert(&mut self, conn: Conn) -> Token {
        self.streams += usize::from(conn.is_stream());
        self.slab.insert(conn)
    }

    #[inline]
    pub fn get_mut(&mut self, token: Token) -> Option<&mut Conn> {
        self.slab.get_mut(token)
    }

    pub fn get(&self, token: Token) -> Option<&Conn> {
        self.slab.get(token)
    }

    /// A request that is being read, or waits.
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.get(id.connection())?.serial.request(id)
    }

    #[inline]
    pub fn request_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        self.get_mut(id.connection())?.serial.request_mut(id)
    }

    pub fn remove(&mut self, token: Token) -> Option<Conn> {
        let conn = self.slab.remove(token)?;
        self.streams -= usize::from(conn.is_stream());
        Some(conn)
    }

    /// Has the poller watch a connection from now on. An edge that came before is reported by the first wait. Whether it is new.
    #[inline]
    pub fn watch(&mut self, token: Token) -> io::Result<bool> {
        let Some(conn) = self.slab.get_mut(token) else { return Ok(false) };
        if conn.stream().is_none() {
            return Ok(false);
        }
        let is_new = conn.edges.register();
        if let Some(stream) = conn.stream().filter(|_| is_new && !conn.is_stream()) {
            self.poller.add_connection(stream.socket(), token)?;
        }
        Ok(is_new)
    }

    /// The same while an exchange has the socket. Whether it is new.
    pub fn watch_lent(&mut self, token: Token, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let is_new = self.slab.get_mut(token).is_some_and(|conn| conn.edges.register());
        if is_new {
            self.poller.add_connection(socket, token)?;
        }
        Ok(is_new)
    }

    /// Has the poller watch our end of a pair from now on.
    pub fn watch_near(&mut self, token: Token) -> io::Result<()> {
        let near = self.slab.get(token).and_then(|conn| conn.phase.get().near());
        near.map_or(Ok(()), |near| self.poller.add_connection(near.socket(), token | NEAR))
    }

    /// Takes a connection out of the poller. Closing our descriptor would not do it where another process has one as well.
    /// `lent`: its socket, if an exchange has that.
    pub fn unwatch(&mut self, token: Token, lent: Option<BorrowedFd<'_>>) {
        let Some(conn) = self.slab.get_mut(token) else { return };
        let was_there = conn.edges.unregister();
        if let Some(socket) = lent.or(conn.stream().map(Stream::socket))
            && was_there
            && !conn.is_stream()
        {
            let _ = self.poller.remove(socket);
        }
    }

    /// The connection at a position of the table, for sweeps.
    pub fn at(&self, position: usize) -> Option<(Token, &Conn)> {
        self.slab.at(position)
    }

    pub fn at_mut(&mut self, position: usize) -> Option<(Token, &mut Conn)> {
        let (token, _) = self.slab.at(position)?;
        Some((token, self.slab.get_mut(token)?))
    }

    pub fn positions(&self) -> usize {
        self.slab.positions()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Token, &Conn)> {
        self.slab.iter()
    }

    /// The sockets of all connections, those that exchanges have included.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.iter().flat_map(|(_, conn)| conn.descriptors())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    fn conns() -> Conns {
        Conns::new(Arc::new(Poller::new().expect("a poller")))
    }

    fn conn(listener: u16) -> Conn {
        let (socket, _) = rustix::pipe::pipe().expect("pipe");
        let origin = Origin { peer: Peer::Unix, listener, trusted: true };
        Conn::new(Stream::new(socket), origin)
    }

    #[test]
    fn an_idle_connection_is_done_with_once_it_is_answered_unless_a_request_is_on_its_way() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (socket, _) = listener.accept().expect("a connection");
        let mut conn = Conn { output: Some(Output::new(Stream::new(socket.into()))), ..conn(0) };
        conn.served = true;
        assert!(conn.is_done_with());
        client.write_all(b"G").expect("it is connected");
        assert!(!conn.is_done_with());
    }

    #[test]
    fn one_that_has_just_come_may_be_about_to_ask() {
        // Of this one the kernel does not tell how long it has been silent.
        let (near, _far) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut conn = Conn { output: Some(Output::new(Stream::new(near.into()))), ..conn(0) };
        assert!(!conn.is_done_with());
    }

    #[test]
    fn a_late_id_does_not_reach_the_next_connection() {
        let mut conns = conns();
        let read = |conns: &mut Conns, token| {
            let serial = &mut conns.get_mut(token).expect("a connection").serial;
            serial.begin_reading(Box::default);
            serial.current(token)
        };
        let first = conns.insert(conn(0));
        let late = read(&mut conns, first);
        assert!(conns.request(late).is_some());
        conns.remove(first);
        let second = conns.insert(conn(0));
        let id = read(&mut conns, second);
        assert_eq!(first as u32, second as u32, "the place is used again");
        assert!(conns.request(late).is_none() && conns.request_mut(late).is_none());
        assert!(conns.request(id).is_some());
    }

    #[test]
    fn a_connection_is_in_the_poller_once() {
        let mut conns = conns();
        let token = conns.insert(conn(0));
        assert_eq!([(); 2].map(|()| conns.watch(token)), [Ok(true), Ok(false)], "a second epoll_ctl(2) would fail");
        conns.unwatch(token, None);
        assert_eq!(conns.watch(token), Ok(true));
    }

    #[test]
    fn an_idle_connection_costs_less_than_a_quarter_kilobyte() {
        assert!(size_of::<Conn>() <= 248, "{}", size_of::<Conn>());
    }
}
