//! The phases of a connection, and the changes that lead from one to another.
//!
//! ```text
//!            Bytes                Head                  Complete
//!   Idle ───────────▶ Head ───────────────▶ Body ──────────────────▶ Queued ◀── TakenOver ── Idle
//!    ▲ ▲               │                     │ Unwritten                ▲ │
//!    │ │               └──────── Head ───────┤                          │ │ Begun
//!    │ │                   (no body)         └──▶ Storing ── Complete ──┘ ▼
//!    │ └────────────────────── Kept ───────────────────────────────────  Busy
//!    │                                                                    │ Left
//!    └──── Kept ─────────────── Flushing ◀────────────────────────────────┤ Bridged
//!                                  ▲                                      ▼
//!                                  └───────────── Left ─────────────── Bridged       (its application has the socket)
//!
//!   Queued ── Opening ──▶ Opening ── Begun ──▶ Busy                         (a file of the server's is looked for on a disk)
//!                            └────── Complete ──▶ Queued                    (there is none, and the application may have an answer)
//!   Queued ── Lent ──▶ OnLoan ── Left ──▶ Flushing                         (another worker answers, TLS and HTTP/2)
//!   Queued ── Complete ──▶ Queued                                          (its body came while it waited)
//!
//!   Idle ── HandshakeBegun ──▶ Handshaking ── HandshakeOver ──▶ Idle       (by a listener with TLS)
//!   Idle, Head ── Multiplexed ──▶ Multiplexed                              (HTTP/2: the phases above are those of its streams)
//!   Idle, Head, Body, Storing, Queued, Opening ── Answered ──▶ Flushing
//!   any ── Shut ──▶ Lingering ──▶ closed
//! ```
//!
//! Rule: no other file decides which phase follows. When a phase ends by itself is said in `timeouts.rs`.
use super::attended::Attended;
use super::bridge::Bridge;
use super::loan::Loan;
use crate::reactor::outgoing::Outgoing;
use crate::stream::Stream;
use rustix::fd::RawFd;

#[derive(Debug, Default)]
pub(super) enum Phase {
    /// Nothing of a request has come.
    #[default]
    Idle,
    /// It carries streams, whose entries have phases of their own.
    Multiplexed,
    /// A handshake of TLS is under way, or is waited for.
    Handshaking,
    /// A part of a head has come.
    Head,
    /// The head is complete, the body is not.
    Body,
    /// The body is complete, and its last bytes are being written to disk.
    Storing,
    /// A complete request waits for an app thread.
    Queued,
    /// A job looks for the file that is asked for.
    Opening,
    /// An exchange is under way and owns the socket.
    Busy(Lent),
    /// An exchange is under way, its application has taken the socket, and the client speaks TLS.
    Bridged(Box<Bridge>),
    /// Another worker answers the request, and its response is passed on.
    OnLoan(Box<Loan>),
    /// The application is done; the rest of the reply is sent as the client takes it.
    Flushing(Outgoing),
    /// Our side is closed; input is read and thrown away until the peer closes or the deadline passes.
    Lingering,
}

/// What is known of a connection while an exchange has its socket.
#[derive(Debug)]
pub(super) struct Lent {
    /// The number of the socket.
    pub socket: RawFd,
    /// What the exchange wants to be told of.
    pub attended: Attended,
}

/// What leads to another phase.
#[derive(Debug)]
pub(super) enum Change {
    /// The connection is new.
    Accepted,
    /// It begins with a handshake of TLS.
    HandshakeBegun,
    /// The handshake is over, or there is none.
    HandshakeOver,
    /// The client speaks HTTP/2.
    Multiplexed,
    /// The connection is new here, and came with a complete request.
    TakenOver,
    /// A head has begun to come at the time `first`, and its rest is waited for.
    Bytes { first: u64 },
    /// The head is complete.
    Head,
    /// The body has come to its end, but for bytes that are not on disk.
    Unwritten,
    /// The request can begin.
    Complete,
    /// A job has begun to look for the file that is asked for.
    Opening,
    /// An exchange got the socket, which has this number.
    Begun(RawFd),
    /// The application has taken the socket, and the session stays here.
    Bridged(Box<Bridge>),
    /// The request went to another worker, without its connection.
    Lent(Box<Loan>),
    /// The exchange is over, or the loan, and the client has not taken all of the reply.
    Left(Outgoing),
    /// The request never meets the application, and the client has not taken all of the answer.
    Answered(Outgoing),
    /// The reply is with the kernel, and another request may follow.
    Kept,
    /// Our side of the connection was closed.
    Shut,
}

impl Phase {
    /// Goes on to the next phase. A change that the table does not list is a defect, and changes nothing.
    #[inline]
    pub fn enter(&mut self, change: Change) {
        *self = match (&*self, change) {
            (Phase::Idle, Change::Accepted) | (Phase::Handshaking, Change::HandshakeOver) => Phase::Idle,
            (Phase::Idle, Change::HandshakeBegun) => Phase::Handshaking,
            (Phase::Idle | Phase::Head, Change::Multiplexed) => Phase::Multiplexed,
            (Phase::Idle, Change::TakenOver) => Phase::Queued,
            (Phase::Idle, Change::Bytes { .. }) => Phase::Head,
            (Phase::Idle | Phase::Head, Change::Head) => Phase::Body,
            (Phase::Body, Change::Unwritten) => Phase::Storing,
            // A request that waits may become whole: its body came after it.
            (Phase::Body | Phase::Storing | Phase::Queued | Phase::Opening, Change::Complete) => Phase::Queued,
            (Phase::Queued, Change::Opening) => Phase::Opening,
            (Phase::Queued | Phase::Opening, Change::Begun(socket)) => {
                Phase::Busy(Lent { socket, attended: Attended::default() })
            }
            (Phase::Busy(_), Change::Bridged(bridge)) => Phase::Bridged(bridge),
            (Phase::Queued, Change::Lent(loan)) => Phase::OnLoan(loan),
            (Phase::Busy(_) | Phase::Bridged(_) | Phase::OnLoan(_), Change::Left(outgoing)) => {
                Phase::Flushing(outgoing)
            }
            (
                Phase::Busy(_) | Phase::Bridged(_) | Phase::OnLoan(_) | Phase::Flushing(_) | Phase::Lingering,
                change @ Change::Answered(_),
            ) => {
                debug_assert!(false, "{change:?} where a reply is sent");
                return;
            }
            (_, Change::Answered(outgoing)) => Phase::Flushing(outgoing),
            // Requests that wait may be turned away.
            (Phase::Queued | Phase::Opening | Phase::Busy(_) | Phase::Flushing(_), Change::Kept) => Phase::Idle,
            (Phase::Idle | Phase::Head, Change::Kept) => Phase::Idle,
            (_, Change::Shut) => Phase::Lingering,
            (phase, change) => {
                debug_assert!(false, "{change:?} while {phase:?}");
                return;
            }
        };
    }

    /// Whether a deadline ends this phase. A request that waits for the application or is with it has none of the connection's,
    /// but for a timer of its exchange. Nor has a bridge before its call is over. Of a loan the borrower keeps the deadlines.
    #[inline]
    pub fn has_deadline(&self) -> bool {
        match self {
            Phase::Queued | Phase::OnLoan(_) => false,
            Phase::Busy(lent) => lent.attended.reminded,
            Phase::Bridged(bridge) => bridge.is_over(),
            _ => true,
        }
    }

    /// No head is complete.
    #[inline]
    pub fn is_before_body(&self) -> bool {
        matches!(self, Phase::Idle | Phase::Head)
    }

    #[inline]
    pub fn is_body(&self) -> bool {
        matches!(self, Phase::Body)
    }

    /// What comes is a body: that of a request that waits, too, if it was not all there before.
    #[inline]
    pub fn is_behind_head(&self) -> bool {
        matches!(self, Phase::Body | Phase::Queued)
    }

    #[inline]
    pub fn is_busy(&self) -> bool {
        matches!(self, Phase::Busy(_))
    }

    /// Our end of a pair, if there is one.
    pub fn near(&self) -> Option<&Stream> {
        match self {
            Phase::Bridged(bridge) => bridge.near(),
            Phase::OnLoan(loan) => Some(loan.near()),
            _ => None,
        }
    }

    #[inline]
    pub fn is_bridged(&self) -> bool {
        matches!(self, Phase::Bridged(_))
    }

    /// What its exchange wants to be told of, while there is one.
    #[inline]
    pub fn attended(&mut self) -> Option<&mut Attended> {
        match self {
            Phase::Busy(lent) => Some(&mut lent.attended),
            _ => None,
        }
    }

    /// The rest of a reply.
    #[inline]
    pub fn outgoing(&mut self) -> Option<&mut Outgoing> {
        match self {
            Phase::Flushing(outgoing) => Some(outgoing),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left() -> Change {
        Change::Left(Outgoing::default())
    }

    /// The name of the phase to which these changes lead.
    fn after(changes: impl IntoIterator<Item = Change>) -> String {
        let mut phase = Phase::default();
        changes.into_iter().for_each(|change| phase.enter(change));
        let text = format!("{phase:?}");
        text.split(['(', ' ']).next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_request_goes_through_its_phases_and_the_connection_is_idle_again() {
        use Change::{Accepted, Begun, Bytes, Complete, Head, Kept, Unwritten};
        let life = || [Accepted, Bytes { first: 1 }, Head, Unwritten, Complete, Begun(9), left(), Kept];
        let names: Vec<_> = (1..=life().len()).map(|count| after(life().into_iter().take(count))).collect();
        assert_eq!(names, ["Idle", "Head", "Body", "Storing", "Queued", "Busy", "Flushing", "Idle"]);
    }

    #[test]
    fn a_request_that_comes_with_one_read_waits_for_no_byte() {
        assert_eq!(after([Change::Head, Change::Complete, Change::Begun(9), Change::Kept]), "Idle");
    }

    #[test]
    fn a_request_that_waits_may_be_turned_away() {
        assert_eq!(after([Change::TakenOver, Change::Kept]), "Idle");
        assert_eq!(after([Change::TakenOver, Change::Shut]), "Lingering");
    }

    #[test]
    fn a_connection_whose_application_has_the_socket_sends_the_rest_and_ends() {
        let taken = || [Change::TakenOver, Change::Begun(9), Change::Bridged(Box::new(Bridge::parted()))];
        assert_eq!(after(taken()), "Bridged");
        assert_eq!(after(taken().into_iter().chain([left()])), "Flushing");
        assert_eq!(after(taken().into_iter().chain([Change::Shut])), "Lingering");
    }

    #[test]
    fn a_file_is_looked_for_before_its_request_is_begun() {
        use Change::{Begun, Complete, Kept, Opening, TakenOver};
        assert_eq!(after([TakenOver, Opening]), "Opening");
        assert_eq!(after([TakenOver, Opening, Begun(9), left()]), "Flushing");
        assert_eq!(after([TakenOver, Opening, Complete, Begun(9)]), "Busy", "the application answers");
        assert_eq!(after([TakenOver, Opening, Kept]), "Idle", "it was turned away");
    }

    #[test]
    fn a_request_may_be_answered_before_the_application_has_it() {
        for before in [vec![], vec![Change::Bytes { first: 1 }], vec![Change::Head], vec![Change::TakenOver]] {
            let answered = Change::Answered(Outgoing::default());
            assert_eq!(after(before.into_iter().chain([answered])), "Flushing");
        }
    }

    #[test]
    fn the_deadline_counts_unless_the_application_is_waited_for() {
        let mut phase = Phase::default();
        assert!(phase.has_deadline());
        phase.enter(Change::TakenOver);
        assert!(!phase.has_deadline());
        phase.enter(Change::Begun(9));
        assert!(!phase.has_deadline());
        phase.attended().expect("it is busy").reminded = true;
        assert!(phase.has_deadline(), "for its exchange");
        phase.enter(Change::Bridged(Box::new(Bridge::parted())));
        assert!(!phase.has_deadline(), "how long it is spoken is the application's affair");
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "Begun(9) while Head")]
    fn an_unfinished_head_is_not_begun() {
        after([Change::Bytes { first: 1 }, Change::Begun(9)]);
    }
}
