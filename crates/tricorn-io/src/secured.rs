//! The side of a door that speaks TLS: system calls around a [`Link`]. What its callers see is plaintext.
//!
//! Two contracts of plain sockets are kept, so that no caller has to know:
//!
//! * A read that brings less than was asked for has drained the socket, and the session, unless this holds more ([`Secured::holds`]): more
//!   bytes will make an edge. It holds more when it was cut short, since its peer sends many records with little in them.
//! * Bytes count as sent when the socket has their records. A sender presents again what was not taken, as it does with a plain
//!   socket, and is told how much of it is gone by now. So what a session owes keeps the outbox from being empty, and is never
//!   more than [`AHEAD`](crate::tls::AHEAD) bytes.
#![allow(clippy::disallowed_methods, reason = "the side of the door that speaks TLS")]

use crate::scoreboard::{Scoreboard, Share, Word};
use crate::sys::fds::{retry, send};
use crate::tls::{AHEAD, Facts, Failure, Link, Opened, RECORD, Reason, Scratch, Source};
use rustix::fd::BorrowedFd;
use rustix::io::{self, Errno, IoSlice, writev};
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A session, and what is known of it. All handles of a connection share it.
#[derive(Debug)]
pub struct Secured {
    link: Mutex<Counted>,
    facts: OnceLock<Arc<Facts>>,
    memory: SessionMemory,
}

/// What new sessions are made from, and the memory that all of them may hold.
#[derive(Debug, Clone)]
pub struct Sessions {
    pub source: Arc<Source>,
    pub memory: SessionMemory,
}

/// What all sessions of a worker hold for their sockets: the gauge of the scoreboard is the counter.
#[derive(Debug, Clone, Copy)]
pub struct SessionMemory {
    board: Scoreboard,
    limit: u64,
}

impl SessionMemory {
    /// `limit`: bytes.
    pub fn new(board: Scoreboard, limit: usize) -> SessionMemory {
        SessionMemory { board, limit: limit as u64 }
    }

    #[inline]
    pub fn is_over(&self) -> bool {
        self.board.get(Word::TlsBytes) > self.limit
    }

    /// Enough was given back: a 16th of the limit is free, so that the next session is not one too many.
    pub fn is_relieved(&self) -> bool {
        self.board.get(Word::TlsBytes) <= self.limit - self.limit / 16
    }
}

/// A session with its share of the memory.
#[derive(Debug)]
struct Counted {
    link: Link,
    share: Share,
}

/// A session whose lock is held. What it holds is counted when the lock is let go of.
struct Locked<'s>(MutexGuard<'s, Counted>);

impl Deref for Locked<'_> {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.0.link
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut Link {
        &mut self.0.link
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let bytes = self.0.link.memory();
        if bytes != self.0.share.bytes() {
            self.0.share.set(bytes);
        }
    }
}

/// What came of a part of a handshake.
#[derive(Debug)]
pub enum HandshakeOutcome {
    /// It is over: the connection is open. There may be plaintext already.
    Over,
    /// The client has to say more, or to take what we said.
    NotYet,
    /// The client speaks plain HTTP: its first bytes.
    Plain(Vec<u8>),
    Failed(Failure),
}

/// Bytes that a client may send before its handshake is over: what rustls takes of messages, and something for their records.
const MOST_BEFORE: usize = 96 * 1024;
/// The first byte of every record of a handshake.
const HANDSHAKE: u8 = 22;
/// What TLS has to say of itself goes with what is sent next, up to so many bytes.
const LITTLE: usize = 4 * 1024;
/// Bytes that are read of a socket at a time.
const READ: usize = AHEAD;

thread_local! {
    /// Memory for one call, of each thread that has read or sent by TLS: an idle session has none of its own.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// The handshake.
impl Secured {
    /// Goes on with the handshake of a connection, as far as the bytes at hand go. Without a session none of them has come, and
    /// the first one decides. `first`: bytes that were read before.
    pub fn handshake(
        session: &OnceLock<Box<Secured>>,
        socket: BorrowedFd<'_>,
        first: &[u8],
        sessions: &Sessions,
    ) -> HandshakeOutcome {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut first = Some(first).filter(|first| !first.is_empty());
            loop {
                if let Some(session) = session.get()
                    && let Err(error) = pay(&mut session.link(), socket)
                    && error != Errno::AGAIN
                {
                    return left();
                }
                let held = session.get().map_or(0, |session| session.link().begin_reading(&mut scratch.wire));
                let room = room_behind(&mut scratch.wire, held);
                let most = room.len();
                let count = match first.take() {
                    Some(bytes) => {
                        let count = bytes.len().min(room.len());
                        room[..count].copy_from_slice(&bytes[..count]);
                        count
                    }
                    None => match receive(socket, room) {
                        Ok(0) => return left(),
                        Ok(count) => count,
                        Err(Errno::AGAIN) => return HandshakeOutcome::NotYet,
                        Err(_) => return left(),
                    },
                };
                let incoming = &mut scratch.wire[..held + count];
                let outcome = match session.get() {
                    Some(session) => session.take_flight(incoming, socket),
                    None => match Secured::begin(incoming, sessions) {
                        Ok(begun) => session.get_or_init(|| Box::new(begun)).take_flight(incoming, socket),
                        Err(outcome) => return outcome,
                    },
                };
                if !matches!(outcome, HandshakeOutcome::NotYet) || count < most {
                    return outcome;
                }
            }
        })
    }

    fn begin(incoming: &[u8], sessions: &Sessions) -> Result<Secured, HandshakeOutcome> {
        match incoming.first() {
            Some(&HANDSHAKE) => {}
            // Methods of HTTP are words of letters.
            Some(byte) if byte.is_ascii_alphabetic() => return Err(HandshakeOutcome::Plain(incoming.to_vec())),
            _ => return Err(HandshakeOutcome::Failed(Failure::new(Reason::Garbage, "it speaks neither TLS nor HTTP"))),
        }
        let Sessions { source, memory } = sessions;
        let link = source.session().map_err(HandshakeOutcome::Failed)?;
        let share = Share::new(memory.board, Word::TlsBytes);
        Ok(Secured { link: Mutex::new(Counted { link, share }), facts: OnceLock::new(), memory: *memory })
    }

    /// Takes bytes of the client's, and answers them.
    fn take_flight(&self, incoming: &mut [u8], socket: BorrowedFd<'_>) -> HandshakeOutcome {
        let mut link = self.link();
        let mut surplus = Vec::new();
        let absorbed = link.absorb(incoming, &mut |plain| surplus.extend_from_slice(plain));
        link.keep(&surplus);
        // A request has come already: tickets go with its answer.
        let goes_with_answer = !surplus.is_empty() && absorbed.is_ok() && link.can_owe();
        let paid = if goes_with_answer { Ok(()) } else { pay(&mut link, socket) };
        match (absorbed, link.opened()) {
            (Err(failure), _) => HandshakeOutcome::Failed(failure),
            (Ok(()), Opened::Yes) => {
                let _ = self.facts.set(Arc::new(link.facts()));
                HandshakeOutcome::Over
            }
            (Ok(()), Opened::NotYet) if link.heard() > MOST_BEFORE => {
                HandshakeOutcome::Failed(Failure::new(Reason::Garbage, "its handshake is too long"))
            }
            (Ok(()), Opened::NotYet) if link.has_ended() => left(),
            (Ok(()), Opened::NotYet) => match paid {
                Ok(()) | Err(Errno::AGAIN) => HandshakeOutcome::NotYet,
                Err(_) => left(),
            },
        }
    }
}

fn left() -> HandshakeOutcome {
    HandshakeOutcome::Failed(Failure::new(Reason::Left, "it has left"))
}

/// Receiving.
impl Secured {
    fn link(&self) -> Locked<'_> {
        Locked(self.link.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that it holds for its socket.
    pub fn memory(&self) -> usize {
        self.link().memory()
    }

    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.facts.get()
    }

    /// Whether there are records that the socket has not taken.
    pub fn owes(&self) -> bool {
        !self.link().owed().is_empty()
    }

    /// Whether a read would bring something without the socket: plaintext, records that are to be opened, or the end.
    pub fn holds(&self) -> bool {
        let link = self.link();
        link.surplus() > 0 || link.has_ended() || link.is_cut()
    }

    /// How many records were opened since this was asked the last time, by the time that takes.
    pub fn take_opened(&self) -> u32 {
        self.link().take_opened()
    }

    /// Reads up to `most` bytes of plaintext, out of a bounded number of records.
    pub fn read(&self, socket: BorrowedFd<'_>, most: usize, sink: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut link = self.link();
        let mut count = link.take(most, sink);
        let mut error = Errno::AGAIN;
        SCRATCH.with_borrow_mut(|scratch| {
            while count < most && !link.has_ended() {
                match absorb(&mut link, socket, scratch, &mut count, most, sink) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(found) => {
                        error = found;
                        link.ends();
                    }
                }
            }
        });
        match count {
            0 if link.failure().is_some() => Err(Errno::PROTO),
            0 if error != Errno::AGAIN => Err(error),
            0 if link.has_ended() || most == 0 => Ok(0),
            0 => Err(Errno::AGAIN),
            count => Ok(count),
        }
    }

    /// Bytes of plaintext that have come, as far as they are looked for.
    pub fn unread(&self, socket: BorrowedFd<'_>) -> usize {
        let mut link = self.link();
        SCRATCH.with_borrow_mut(|scratch| {
            while link.surplus() < READ && !link.has_ended() {
                match absorb(&mut link, socket, scratch, &mut 0, 0, &mut |_| {}) {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(_) => link.ends(),
                }
            }
        });
        link.surplus()
    }
}

/// One read of the socket, or what the last one has left: plaintext goes to the sink until `most` bytes are there, and what is more stays
/// with the session. False: the socket has no more, or enough records were opened.
fn absorb(
    link: &mut Link,
    socket: BorrowedFd<'_>,
    scratch: &mut Scratch,
    count: &mut usize,
    most: usize,
    sink: &mut dyn FnMut(&[u8]),
) -> io::Result<bool> {
    let held = link.begin_reading(&mut scratch.wire);
    let room = room_behind(&mut scratch.wire, held);
    let most_read = room.len();
    let was_cut = link.is_cut();
    let got = match was_cut {
        true => 0,
        false => match receive(socket, room) {
            Ok(0) => {
                link.ends();
                return Ok(false);
            }
            Ok(got) => got,
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error),
        },
    };
    let mut surplus = Vec::new();
    let absorbed = link.absorb(&mut scratch.wire[..held + got], &mut |plain| {
        let (wanted, rest) = plain.split_at(plain.len().min(most - *count));
        if !wanted.is_empty() {
            sink(wanted);
            *count += wanted.len();
        }
        surplus.extend_from_slice(rest);
    });
    link.keep(&surplus);
    if !link.owed().is_empty() {
        let _ = pay(link, socket); // an answer of TLS' own, or an alert: what is left goes with what is sent next
    }
    absorbed.map_err(|_| Errno::PROTO)?;
    Ok((was_cut || got == most_read) && !link.is_cut())
}

/// Where more is read. There is room: rustls refuses messages that would fill it.
fn room_behind(wire: &mut [u8], held: usize) -> &mut [u8] {
    let room = wire.get_mut(held..).unwrap_or_default();
    let most = room.len().min(READ);
    room.get_mut(..most).unwrap_or_default()
}

/// Sending.
impl Secured {
    /// Sends slices; how many bytes of them count as sent.
    pub fn send(&self, socket: BorrowedFd<'_>, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut link = self.link();
        let most = slices.iter().map(|slice| slice.len()).sum();
        if link.pledged() > 0 || link.owed().len() > LITTLE {
            pay_some(&mut link, socket)?;
        }
        if link.pledged() == 0 {
            if link.owed().len() > LITTLE {
                return Err(Errno::AGAIN);
            }
            // Beyond the limit for all sessions a record at a time is sealed: less of it lies here when its client does not take it.
            let ahead = if self.memory.is_over() { RECORD } else { AHEAD };
            SCRATCH.with_borrow_mut(|scratch| seal(&mut link, socket, slices, ahead, scratch))?;
        }
        match link.redeem(most) {
            0 if most > 0 => Err(Errno::AGAIN),
            count => Ok(count),
        }
    }

    /// Sends all or, if something is owed, nothing: for bytes that are not presented again. How many.
    pub fn send_once(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> usize {
        let mut link = self.link();
        if link.pledged() > 0 || pay(&mut link, socket).is_err() {
            return 0;
        }
        let sealed = SCRATCH.with_borrow_mut(|scratch| seal(&mut link, socket, &[IoSlice::new(bytes)], AHEAD, scratch));
        link.forget_pledge();
        if sealed.is_ok() { bytes.len() } else { 0 }
    }

    /// Says that nothing more is sent, and sends what is owed as far as the socket takes it.
    pub fn send_close_notify(&self, socket: BorrowedFd<'_>) {
        let mut link = self.link();
        link.queue_close_notify();
        let _ = pay(&mut link, socket);
    }

    /// Records of bytes that count as not sent yet, which the socket has.
    pub fn ahead(&self) -> u64 {
        self.link().progress() as u64
    }
}

/// Seals slices, at most `ahead` bytes of them, and gives the socket what it takes of what is owed and of that.
fn seal(
    link: &mut Link,
    socket: BorrowedFd<'_>,
    slices: &[IoSlice<'_>],
    ahead: usize,
    scratch: &mut Scratch,
) -> io::Result<()> {
    let sealed = link.seal(slices, ahead, scratch).map_err(|_| Errno::PIPE)?;
    let records = &scratch.wire[..sealed];
    let owed = link.owed().len();
    let sent = match owed {
        0 => retry(|| send(socket, records)),
        _ => retry(|| writev(socket, &[IoSlice::new(link.owed()), IoSlice::new(records)])),
    };
    let taken = match sent {
        Ok(taken) => taken,
        Err(Errno::AGAIN) => 0,
        Err(error) => return Err(error),
    };
    link.paid(taken.min(owed));
    let taken = taken.saturating_sub(owed);
    link.went_out(taken);
    if taken < records.len() {
        link.owe(&records[taken..]);
    }
    Ok(())
}

/// Sends what is owed; an error if something is left.
fn pay(link: &mut Link, socket: BorrowedFd<'_>) -> io::Result<()> {
    while !link.owed().is_empty() {
        let taken = retry(|| send(socket, link.owed()))?;
        link.paid(taken);
    }
    Ok(())
}

/// The same; what is left is no error.
fn pay_some(link: &mut Link, socket: BorrowedFd<'_>) -> io::Result<()> {
    match pay(link, socket) {
        Err(Errno::AGAIN) => Ok(()),
        result => result,
    }
}

fn receive(socket: BorrowedFd<'_>, room: &mut [u8]) -> io::Result<usize> {
    retry(|| recv(socket, &mut *room, RecvFlags::empty()).map(|(count, _)| count))
}
