//! One connection between, before and after its requests.
use super::attended::Attended;
use super::tokens;
use super::wheel::Tick;
use crate::exchange::Attachment;
use crate::exchange::buffers::Request;
use crate::exchange::outbox::Outbox;
use crate::peer::Peer;
use crate::sys::poll::Token;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use tricorn_proto::http1::Receiver;

/// Where a connection stands. `reactor/*.rs` moves it:
///
/// ```text
///            first bytes        head, body to come      body complete
///   Idle ───────────────▶ Head ───────────────▶ Body ───────────────▶ Queued
///    ▲                     │                      │ complete, not on disk  ▲
///    │                     │                      └───────▶ Storing ───────┘ the last piece is written
///    ▲                     │ head, no body                              │ an app thread takes it
///    │                     └──────────────────▶ Queued                  ▼
///    │ reply sent, keep-alive                                         Busy (its socket is with the exchange)
///    ├────────────────────────── Flushing ◀── reply not yet taken ──────┤
///    └──────────────────────────────────────────────────────────────────┘
///   refusal, close with unread input ──▶ Lingering ──▶ closed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Nothing of a request has come.
    Idle,
    Head,
    Body,
    /// The body is complete, and its last bytes are being written to disk.
    Storing,
    /// A complete request waits for an app thread.
    Queued,
    /// An exchange is under way and owns the socket.
    Busy,
    /// The application is done; the rest of the reply is sent as the client takes it.
    Flushing {
        reuse: bool,
    },
    /// Our side is closed; input is read and thrown away until the peer closes or the deadline passes.
    Lingering,
}

#[derive(Debug)]
pub struct Conn {
    /// Taken by the exchange while `Busy`.
    pub socket: Option<OwnedFd>,
    /// The number of the socket while the exchange has it.
    pub lent: RawFd,
    pub phase: Phase,
    pub peer: Peer,
    pub listener: u16,
    /// The peer may claim things by forwarded headers.
    pub trusted: bool,
    /// In the poller: done when a connection is first waited for, so that a connection for one request never is.
    pub registered: bool,
    /// There may be bytes to read (an edge came, or the last read was full).
    pub readable: bool,
    /// The peer will send no more.
    pub hangup: bool,
    /// Listed in `Reactor::again`.
    pub again: bool,
    /// A reply was sent here, and the connection kept.
    pub served: bool,
    /// An admin connection that uses a reserved descriptor: closed after its answer.
    pub borrowed: bool,
    pub deadline: Tick,
    /// The earliest tick at which the wheel brings this connection up; 0: never.
    pub wheel_at: Tick,
    pub receiver: Receiver,
    /// The request that is being read; none while idle, so that an idle connection costs little.
    pub request: Option<Box<Request>>,
    pub outgoing: Option<Box<Outgoing>>,
    pub attachment: Option<Attachment>,
    /// While `Busy`: what its exchange wants to be told of.
    pub attended: Attended,
}

impl Conn {
    #[inline]
    pub fn is_admin(&self) -> bool {
        tokens::is_admin(self.listener)
    }

    /// An admin connection that asks nothing. One that has a reserved descriptor is given the time to ask.
    pub fn may_be_dropped(&self) -> bool {
        self.is_admin() && self.phase == Phase::Idle && !self.borrowed
    }
}

/// The rest of a reply, and what is known about how the client takes it.
#[derive(Debug)]
pub struct Outgoing {
    pub outbox: Outbox,
    /// It holds a file, which counts as a descriptor.
    pub file: bool,
    /// Bytes acknowledged when the deadline was last set.
    pub acknowledged: u64,
}

impl Conn {
    pub fn new(socket: OwnedFd, peer: Peer, listener: u16, trusted: bool) -> Conn {
        Conn {
            socket: Some(socket),
            lent: -1,
            phase: Phase::Idle,
            peer,
            listener,
            trusted,
            registered: false,
            readable: true,
            hangup: false,
            again: false,
            served: false,
            borrowed: false,
            deadline: 0,
            wheel_at: 0,
            receiver: Receiver::default(),
            request: None,
            outgoing: None,
            attachment: None,
            attended: Attended::default(),
        }
    }
}

/// Connections by token: an index and a generation, so that a late event of a closed connection meets nobody.
#[derive(Debug, Default)]
pub struct Conns {
    entries: Vec<Entry>,
    free: Vec<u32>,
    count: usize,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    conn: Option<Conn>,
}

impl Conns {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn insert(&mut self, conn: Conn) -> Token {
        self.count += 1;
        match self.free.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                entry.conn = Some(conn);
                token(index, entry.generation)
            }
            None => {
                let index = self.entries.len() as u32;
                self.entries.push(Entry { generation: 1, conn: Some(conn) });
                token(index, 1)
            }
        }
    }

    #[inline]
    pub fn get_mut(&mut self, token: Token) -> Option<&mut Conn> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.conn.as_mut() } else { None }
    }

    pub fn get(&self, token: Token) -> Option<&Conn> {
        let entry = self.entries.get(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.conn.as_ref() } else { None }
    }

    pub fn remove(&mut self, token: Token) -> Option<Conn> {
        let index = token as u32;
        let entry = self.entries.get_mut(index as usize)?;
        if entry.generation != (token >> 32) as u32 {
            return None;
        }
        let conn = entry.conn.take()?;
        // Generations stay below the tokens set apart for listeners and the wake pipe.
        entry.generation = if entry.generation >= 0x7fff_fffe { 1 } else { entry.generation + 1 };
        self.free.push(index);
        self.count -= 1;
        Some(conn)
    }

    /// All tokens, for sweeps.
    pub fn tokens(&self) -> Vec<Token> {
        let held = |(index, entry): (usize, &Entry)| entry.conn.as_ref().map(|_| token(index as u32, entry.generation));
        self.entries.iter().enumerate().filter_map(held).collect()
    }

    /// The connection at a position of the table, for round-robin sweeps.
    pub fn at(&self, position: usize) -> Option<(Token, &Conn)> {
        let entry = self.entries.get(position)?;
        entry.conn.as_ref().map(|conn| (token(position as u32, entry.generation), conn))
    }

    /// The sockets of all connections, those that exchanges have included.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        let socket = |conn: &Conn| conn.socket.as_ref().map_or(conn.lent, OwnedFd::as_raw_fd);
        self.entries.iter().filter_map(|entry| entry.conn.as_ref()).map(socket)
    }

    pub fn positions(&self) -> usize {
        self.entries.len()
    }
}

fn token(index: u32, generation: u32) -> Token {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conn() -> Conn {
        let (socket, _) = rustix::pipe::pipe().expect("pipe");
        Conn::new(socket, Peer::Unix, 0, true)
    }

    #[test]
    fn a_late_token_does_not_reach_the_next_connection() {
        let mut conns = Conns::default();
        let first = conns.insert(conn());
        assert!(conns.get_mut(first).is_some());
        assert!(conns.remove(first).is_some());
        let second = conns.insert(conn());
        assert_eq!(first as u32, second as u32, "the place is used again");
        assert!(conns.get_mut(first).is_none());
        assert!(conns.remove(first).is_none());
        assert_eq!(conns.len(), 1);
    }

    #[test]
    fn an_idle_connection_costs_less_than_a_quarter_kilobyte() {
        assert!(size_of::<Entry>() <= 256, "{}", size_of::<Entry>());
    }
}
