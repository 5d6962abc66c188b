//! Requests that another worker answers, without their connections (`loan.rs`): a session of TLS is this process's, and so is a trunk.
//!
//! ```text
//!   Queued ── lend ──▶ OnLoan ── an event of our end of the pair, of the client; room ──▶ carry_loan
//!                         │ the client leaves: our end is closed, and the borrower finds that its client has left
//!                         │ the borrower dies: the response is cut off, and the request is begun nowhere else
//!                         ▼ the response is complete
//!                      Flushing ──▶ the next request, or the end
//! ```
//!
//! Carrying needs no Python: any thread that runs the reactor does it, the monitor while no app thread can.
use super::Connections;
use super::conn::has_left;
use super::loan::{Carried, Loan};
use super::phase::{Change, Phase};
use crate::clock;
use crate::exchange::id::RequestId;
use crate::reactor::outgoing::{Outgoing, Then};
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::{Event, Token};
use tricorn_proto::message::Version;

impl Connections {
    /// The request is another worker's now, which answers it at the other end of `near`.
    pub fn lend(&mut self, id: RequestId, near: Stream) {
        let token = id.connection();
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(mut request) = conn.serial.take_request(id) else { return };
        let method = (request.head.version < Version::Http2).then_some(request.head.kind);
        let loan = Loan::new(near, method, request.times.complete, conn.edges.is_hangup());
        conn.phase.enter(Change::Lent(Box::new(loan)));
        self.extra.loan_begins();
        self.board.add(Word::Lent, 1);
        self.keep_excess(id, &mut request);
        self.recycle(request);
        if self.conns.watch_near(token).is_err() {
            self.close(token); // no memory in the kernel
        }
    }

    fn loan(&mut self, token: Token) -> Option<&mut Loan> {
        match self.conns.get_mut(token)?.phase.get_mut() {
            Phase::OnLoan(loan) => Some(loan),
            _ => None,
        }
    }

    /// Something happened to our end of the pair.
    pub(super) fn borrower_acted(&mut self, token: Token, event: Event) {
        if let Some(loan) = self.loan(token) {
            loan.edges.came(event);
            if self.work.is_turn_over() {
                self.later(token);
            } else {
                self.carry_loan(token);
            }
        }
    }

    /// Something happened to the connection, or it is its turn.
    pub(super) fn client_of_loan_acted(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token) else { return };
        let (Phase::OnLoan(loan), Some(stream)) = (conn.phase.get(), conn.stream()) else { return };
        if conn.edges.is_hangup() && has_left(stream.socket(), loan.half, loan.complete, clock::now()) {
            self.client_of_loan_left(token);
        } else {
            self.carry_loan(token);
        }
    }

    fn client_of_loan_left(&mut self, token: Token) {
        self.board.add(Word::ClientGone, 1);
        self.close(token);
    }

    /// Passes on what the borrower has said, until there is nothing or the turn is over.
    pub(super) fn carry_loan(&mut self, token: Token) {
        let mut scratch = self.buffers.take_scratch(0);
        let carried = loop {
            let Some(conn) = self.conns.get_mut(token) else { break Carried::All };
            let (Phase::OnLoan(loan), Some(output)) = (conn.phase.get_mut(), &conn.output) else { break Carried::All };
            match loan.carry(output.stream(), &mut scratch, &mut self.chores.spent) {
                Carried::Bytes(count) => {
                    self.work.moved(output.stream(), count);
                    self.board.add(Word::BytesOut, count as u64);
                    if self.work.is_turn_over() || !self.work.takes_step() {
                        break Carried::Bytes(count);
                    }
                }
                carried => break carried,
            }
        };
        self.buffers.give_scratch(scratch);
        match carried {
            Carried::All => self.register(token), // the client's room makes an event
            Carried::Bytes(_) => self.later(token),
            Carried::Over(then) => self.end_loan(token, then),
            Carried::Cut => self.close(token),
            Carried::ClientGone => self.client_of_loan_left(token),
        }
    }

    /// Nothing more comes: what the client has not taken is sent as it takes it.
    fn end_loan(&mut self, token: Token, then: Then) {
        let now = clock::now();
        let Some(held) = self.loan(token).map(Loan::take_held) else { return };
        self.extra.loan_ends();
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(output) = &mut conn.output else { return };
        if !held.is_empty() {
            output.put_outbox(held);
        }
        let outgoing = Outgoing::new(output, then);
        self.deadlines.enter(token, &mut conn.phase, Change::Left(outgoing), now);
        self.flush(token, false, now);
    }
}
