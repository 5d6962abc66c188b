//! Which connections give way when something runs short: places or descriptors (`max_connections`), the memory of unfinished heads
//! (`head_buffer_total`) or of TLS sessions (`tls_buffer_total`).
//!
//! nginx closes connections that wait for a first byte or a next request, the longest waiting first, and none whose head has
//! begun. HAProxy stops to accept. Unfinished heads can fill the first, and idle connections the second, until their deadlines.
//! Here the order is that of [`Rank`]; of one rank those come first that hold the most of what is short, and of these the one with
//! the earliest deadline, which has waited longest. What a session holds is bounded (`tls/link.rs`). A reply that is under way
//! is not cut off: its session seals less ahead (`secured.rs`).
use super::Connections;
use super::conn::Conn;
use super::phase::Phase;
use super::reject::{After, Rejection, Unbegun};
use crate::clock::{self, MILLI};
use crate::config;
use crate::exchange::buffers::INPUT;
use crate::exchange::id::RequestId;
use crate::reactor::warnings::Incident;
use crate::reactor::wheel::{Tick, tick_at};
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use crate::tls::Reason;
use std::cmp::Reverse;
use tricorn_proto::access_log::Outcome;

/// A 32nd of the connections is closed at a time, so that the table is not searched for each newcomer, and no more than this:
/// the baton is held meanwhile.
const SHARE: usize = 32;
const MOST: usize = config::STEPS as usize;
/// How long the table is left alone when no session in it could be closed.
const PAUSE: u64 = 100 * MILLI;

/// What has run short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    /// Places of connections, or descriptors.
    Places,
    HeadMemory,
    SessionMemory,
}

impl Resource {
    /// The answer to a request that has not begun.
    const fn rejection(self) -> Rejection<'static> {
        let (message, after, outcome) = match self {
            Resource::Places => (
                "This server has more connections than it can hold; the request was not begun.",
                After::Close,
                Outcome::Evicted,
            ),
            Resource::HeadMemory => (
                "This server is receiving too many request heads at once; the request was not begun.",
                After::Linger,
                Outcome::HeadMemory,
            ),
            Resource::SessionMemory => (
                "This server is receiving too much at once; the request was not begun.",
                After::Close,
                Outcome::Evicted,
            ),
        };
        Rejection::for_now(message, Unbegun::Capacity, after, outcome)
    }

    /// Counts these answers.
    const fn counter(self) -> Word {
        match self {
            Resource::HeadMemory => Word::HeadsShed,
            Resource::Places | Resource::SessionMemory => Word::Evicted,
        }
    }
}

/// How much a connection deserves to be kept. The least gives way first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It has been answered and closed; only the client's end is waited for.
    Answered,
    /// No request since it was accepted, or an unfinished head, for longer than [`config::HEAD_DUE`].
    Overdue,
    /// It has been served, and may be again: its client expects that it is closed some day (RFC 9112 section 9.3.1).
    Served,
    /// Its head is on its way. Where these are the majority they count as overdue: heads that are sent at once do not add up.
    Arriving,
    /// Its body is on its way: it gives way for the memory of sessions only.
    Body,
}

/// A connection that may give way; the least does first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: Rank,
    /// How much it holds of what is short, in steps of a small buffer.
    held: Reverse<usize>,
    deadline: Tick,
    token: Token,
}

impl Conn {
    /// `None`: it is not closed for others. `due`: a head that is late enough to be overdue has this deadline or an earlier one.
    fn rank(&self, due: Tick) -> Option<Rank> {
        if self.edges.is_listed() || !self.edges.is_registered() {
            return None;
        }
        match self.phase.get() {
            Phase::Lingering => Some(Rank::Answered),
            // There may be bytes that were not looked at.
            _ if self.edges.is_readable() => None,
            Phase::Multiplexed if self.carries_nothing() => Some(Rank::Served),
            Phase::Idle if self.served => Some(Rank::Served),
            Phase::Idle | Phase::Handshaking | Phase::Head if self.phase.deadline() <= due => Some(Rank::Overdue),
            Phase::Idle | Phase::Handshaking | Phase::Head => Some(Rank::Arriving),
            Phase::Body => Some(Rank::Body),
            Phase::Storing | Phase::Queued | Phase::Opening | Phase::Multiplexed => None,
            Phase::Busy(_) | Phase::Bridged(_) | Phase::OnLoan(_) | Phase::Flushing(_) => None,
        }
    }

    /// Bytes of an unfinished head that is counted. What was sent counts, not how large a buffer of the pool it got.
    fn unfinished_head(&self, token: Token) -> Option<usize> {
        let request = self.serial.request(self.serial.current(token))?;
        (request.counted.head > 0).then_some(request.input.len())
    }

    /// Its rank, and how much it holds of what is short.
    fn claim(&self, token: Token, resource: Resource, due: Tick) -> Option<(Rank, usize)> {
        match resource {
            Resource::Places => Some((self.rank(due).filter(|rank| *rank < Rank::Body)?, 0)),
            // A head that came with one read is complete before it is counted.
            Resource::HeadMemory => Some((Rank::Arriving, self.unfinished_head(token)?)),
            Resource::SessionMemory => {
                let held = self.stream().map_or(0, |stream| stream.session_memory());
                Some((self.rank(due).filter(|_| held > 0)?, held))
            }
        }
    }
}

impl Connections {
    /// All places are taken.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let held = self.len();
        held >= self.config.max_connections || held + self.descriptors_beside() >= self.config.max_descriptors
    }

    /// Makes room for one more connection; whether it could.
    #[cold]
    pub fn make_room(&mut self) -> bool {
        let has_room = self.evict(1) > 0 && !self.is_crowded();
        if !has_room {
            self.log.warn(Incident::NoPlace);
        }
        has_room
    }

    /// Closes a share of the connections, those of the least rank; no fewer than `least` if there are so many. How many.
    pub fn evict(&mut self, least: usize) -> usize {
        self.relieve(Resource::Places, (self.len() / SHARE).min(MOST).max(least))
    }

    /// More of this head is still to come: counts what there is so far.
    pub(super) fn count_head(&mut self, id: RequestId) {
        if let Some(request) = self.conns.request_mut(id)
            && self.buffers.count_head(request)
        {
            self.relieve(Resource::HeadMemory, MOST);
            self.tell_shortage(clock::now());
        }
    }

    /// The same of the head that is being read, if one is.
    pub(super) fn count_reading(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token).filter(|conn| conn.phase.get().is_before_body()) else { return };
        let serial = &conn.serial;
        self.count_head(serial.current(token));
    }

    /// A connection was read dry: an event is waited for. Its session may hold more than before.
    #[inline]
    pub(super) fn await_event(&mut self, token: Token) {
        self.register(token);
        if self.sessions.is_exceeded() {
            self.relieve_sessions();
        }
    }

    #[cold]
    fn relieve_sessions(&mut self) {
        let now = clock::now();
        // The table is not searched again and again where all that is held is held by requests.
        if !self.sessions.may_search(now) {
            return;
        }
        if self.relieve(Resource::SessionMemory, MOST) == 0 {
            self.sessions.search_again(now + PAUSE);
        }
        self.tell_shortage(now);
    }

    /// Has connections give way, at most so many, until there is enough of what is short or the baton has been held for long enough;
    /// one at least. Returns how many.
    #[cold]
    fn relieve(&mut self, resource: Resource, most: usize) -> usize {
        let found = self.candidates(resource, most);
        let mut count = 0;
        for candidate in found {
            if count > 0 && (self.is_relieved(resource) || self.work.is_hold_over()) {
                break;
            }
            self.give_way(candidate.token, resource);
            count += 1;
        }
        count
    }

    /// Up to `most` connections that give way first, in this order.
    fn candidates(&self, resource: Resource, most: usize) -> Vec<Candidate> {
        // Deadlines of silent connections and of unfinished heads are this long after their beginning.
        let grace = self.config.header_timeout.saturating_sub(config::HEAD_DUE);
        let due = tick_at(clock::now().saturating_add(grace));
        let candidate = |(token, conn): (Token, &Conn)| {
            let (rank, held) = conn.claim(token, resource, due)?;
            Some(Candidate { rank, held: Reverse(held / INPUT), deadline: conn.phase.deadline(), token })
        };
        let mut found: Vec<_> = self.conns.iter().filter_map(candidate).collect();
        let is_arriving = |candidate: &Candidate| candidate.rank == Rank::Arriving;
        if found.iter().filter(|candidate| is_arriving(candidate)).count() > self.len() / 2 {
            let arriving = found.iter_mut().filter(|candidate| is_arriving(candidate));
            arriving.for_each(|candidate| candidate.rank = Rank::Overdue);
        }
        if found.len() > most {
            found.select_nth_unstable(most);
            found.truncate(most);
        }
        found.sort_unstable();
        found
    }

    /// Places are never enough before all that were looked for have been freed.
    fn is_relieved(&self, resource: Resource) -> bool {
        match resource {
            Resource::Places => false,
            Resource::HeadMemory => self.buffers.are_heads_relieved(),
            Resource::SessionMemory => self.sessions.is_relieved(),
        }
    }

    fn give_way(&mut self, token: Token, resource: Resource) {
        let Some(conn) = self.conns.get(token) else { return };
        let asks = matches!(conn.phase.get(), Phase::Head | Phase::Body) || resource == Resource::HeadMemory;
        match resource {
            Resource::Places if asks => self.log.warn(Incident::HeadClosed),
            Resource::Places => {}
            Resource::HeadMemory => self.log.warn(Incident::HeadRefused),
            Resource::SessionMemory => self.log.warn(Incident::SessionClosed),
        }
        match conn.phase.get() {
            _ if asks => {
                let id = conn.serial.current(token);
                self.reject(id, &resource.rejection(), resource.counter());
            }
            Phase::Lingering => self.close(token),
            Phase::Handshaking if resource == Resource::SessionMemory => {
                self.board.handshake_failed(Reason::Crowded);
                self.close(token);
            }
            _ => {
                self.board.add(Word::Evicted, 1);
                match resource {
                    Resource::SessionMemory => self.close_gracefully(token),
                    Resource::Places | Resource::HeadMemory => self.close(token), // its descriptor is needed
                }
            }
        }
    }
}
