//! Who makes room: beyond `max_connections`, or when descriptors run out, connections are closed, least claim first.
//!
//! nginx closes connections that wait for a first byte or a next request, the longest waiting first, and none whose head has
//! begun. HAProxy stops to accept. Unfinished heads can fill the first, and idle connections the second, until their deadlines.
//! Here the order is that of [`Claim`].
use super::Connections;
use super::conn::Conn;
use super::phase::Phase;
use super::reject::{After, Rejection, Unbegun};
use crate::clock;
use crate::config;
use crate::reactor::warnings::Incident;
use crate::reactor::wheel::{Tick, tick_at};
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use tricorn_proto::access_log::Outcome;

/// A 32nd of the connections is closed at a time, so that the table is not searched for each newcomer, and no more than this:
/// the baton is held meanwhile.
const SHARE: usize = 32;
const MOST: usize = config::STEPS as usize;

const CROWDED: Rejection<'_> = Rejection::for_now(
    "This server has more connections than it can hold; the request was not begun.",
    Unbegun::Capacity,
    After::Close,
    Outcome::Evicted,
);

/// What a connection can say for itself. The least gives way first; of equal ones that with the earliest deadline, which is
/// the one that has waited longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// It has been answered and closed; only the client's end is waited for.
    Answered,
    /// No request since it was accepted, or an unfinished head, for longer than [`config::HEAD_DUE`].
    Overdue,
    /// It has been served, and may be again: its client expects that it is closed some day (RFC 9112 section 9.3.1).
    Served,
    /// Its head is on its way. Where these are the majority they count as overdue: heads that are sent at once do not add up.
    Arriving,
}

impl Conn {
    /// `None`: it is not closed for others. `due`: a head that is late enough to be overdue has this deadline or an earlier one.
    fn claim(&self, due: Tick) -> Option<Claim> {
        if self.edges.is_listed() || !self.edges.is_registered() {
            return None;
        }
        match self.phase.get() {
            Phase::Lingering => Some(Claim::Answered),
            // There may be bytes that were not looked at.
            _ if self.edges.is_readable() => None,
            Phase::Multiplexed if self.carries_nothing() => Some(Claim::Served),
            Phase::Idle if self.served => Some(Claim::Served),
            Phase::Idle | Phase::Handshaking | Phase::Head if self.phase.deadline() <= due => Some(Claim::Overdue),
            Phase::Idle | Phase::Handshaking | Phase::Head => Some(Claim::Arriving),
            Phase::Body | Phase::Storing | Phase::Queued | Phase::Multiplexed => None,
            Phase::Busy(_) | Phase::Bridged(_) | Phase::OnLoan(_) | Phase::Flushing(_) => None,
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

    /// Closes a share of the connections, those with the least claim; no fewer than `least` if there are so many. How many.
    pub fn evict(&mut self, least: usize) -> usize {
        let wanted = (self.len() / SHARE).min(MOST).max(least);
        // Deadlines of silent connections and of unfinished heads are this long after their beginning.
        let grace = self.config.header_timeout.saturating_sub(config::HEAD_DUE);
        let due = tick_at(clock::now().saturating_add(grace));
        let conns = &self.conns;
        let mut found: Vec<(Claim, Tick, Token)> =
            conns.iter().filter_map(|(token, conn)| Some((conn.claim(due)?, conn.phase.deadline(), token))).collect();
        let arriving = found.iter().filter(|(claim, ..)| *claim == Claim::Arriving).count();
        if arriving > self.len() / 2 {
            found.iter_mut().filter(|(claim, ..)| *claim == Claim::Arriving).for_each(|found| found.0 = Claim::Overdue);
        }
        if found.len() > wanted {
            found.select_nth_unstable(wanted);
            found.truncate(wanted);
        }
        for (_, _, token) in &found {
            self.close_for_others(*token);
        }
        found.len()
    }

    fn close_for_others(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token) else { return };
        match conn.phase.get() {
            Phase::Head => {
                let serial = &conn.serial;
                let id = serial.current(token);
                self.log.warn(Incident::HeadClosed);
                self.reject(id, &CROWDED, Word::Evicted);
            }
            Phase::Lingering => self.close(token),
            _ => {
                self.board.add(Word::Evicted, 1);
                self.close(token);
            }
        }
    }
}
