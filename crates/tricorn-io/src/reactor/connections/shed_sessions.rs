//! Which connections are closed when all sessions of TLS hold too much for their sockets (`tls_buffer_total`).
//!
//! Each holds a bounded amount (`tls/link.rs`): an unfinished record, or message of the handshake; records that the client does not
//! take. Connections without a request go first, then those whose body is still to come: of each kind the one that holds the most, and
//! of equal ones the oldest. A reply that is under way is not cut off: its session seals less ahead (`secured.rs`).
use super::Connections;
use super::conn::Conn;
use super::phase::Phase;
use super::reject::{After, Rejection, Unbegun};
use crate::clock::{self, MILLI};
use crate::config;
use crate::exchange::buffers::INPUT;
use crate::reactor::warnings::Incident;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use crate::tls::Reason;
use std::cmp::Reverse;
use tricorn_proto::access_log::Outcome;

const TOO_MUCH: Rejection<'_> = Rejection::for_now(
    "This server is receiving too much at once; the request was not begun.",
    Unbegun::Capacity,
    After::Close,
    Outcome::Evicted,
);

/// Most connections that are closed at a time.
const MOST: usize = (config::STEPS / config::REJECTION_STEPS) as usize;
/// How long the table is left alone when no connection in it could be closed.
const PAUSE: u64 = 100 * MILLI;

/// What a connection is at that may be closed. The first gives way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    WithoutRequest,
    Body,
}

impl Conn {
    /// `None`: it is not closed for its session's memory.
    fn rank_of_session(&self) -> Option<Rank> {
        // There may be bytes that were not looked at.
        let is_quiet = !self.edges.is_listed() && !self.edges.is_readable();
        match self.phase.get() {
            Phase::Handshaking | Phase::Lingering => Some(Rank::WithoutRequest),
            Phase::Idle | Phase::Head if is_quiet => Some(Rank::WithoutRequest),
            Phase::Body if is_quiet => Some(Rank::Body),
            _ => None,
        }
    }
}

impl Connections {
    /// A connection was read dry: an event is waited for. Its session may hold more than before.
    #[inline]
    pub(super) fn await_event(&mut self, token: Token) {
        self.register(token);
        if self.sessions.is_exceeded() {
            self.shed_sessions();
        }
    }

    #[cold]
    fn shed_sessions(&mut self) {
        let now = clock::now();
        // The table is not searched again and again where all that is held is held by requests.
        if !self.sessions.may_search(now) {
            return;
        }
        let conns = &self.conns;
        let mut found: Vec<_> = conns
            .iter()
            .filter_map(|(token, conn)| {
                let rank = conn.rank_of_session()?;
                let memory = conn.stream().map_or(0, |stream| stream.session_memory());
                (memory > 0).then_some((rank, Reverse(memory / INPUT), conn.phase.deadline(), token))
            })
            .collect();
        if found.is_empty() {
            self.sessions.search_again(now + PAUSE);
        }
        if found.len() > MOST {
            found.select_nth_unstable(MOST);
            found.truncate(MOST);
        }
        found.sort_unstable();
        for (nr, (.., token)) in found.into_iter().enumerate() {
            if self.sessions.is_relieved() || nr > 0 && self.work.is_hold_over() {
                break;
            }
            self.log.warn(Incident::SessionClosed);
            self.shed_session(token);
        }
        self.tell_shortage(now);
    }

    fn shed_session(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token) else { return };
        match conn.phase.get() {
            Phase::Handshaking => {
                self.board.handshake_failed(Reason::Crowded);
                self.close(token);
            }
            Phase::Head | Phase::Body => {
                let serial = &conn.serial;
                let id = serial.current(token);
                self.reject(id, &TOO_MUCH, Word::Evicted);
            }
            Phase::Lingering => self.close(token),
            _ => {
                self.board.add(Word::Evicted, 1);
                self.close_gracefully(token);
            }
        }
    }
}
