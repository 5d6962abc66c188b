//! Events of connections, and connections whose turn it is: what each phase makes of them.
use super::Connections;
use super::outcome::Outcome;
use super::phase::Phase;
use crate::clock;
use crate::exchange::id::RequestId;
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::{Event, Token};

impl Connections {
    pub fn on_event(&mut self, event: Event) -> Option<Outcome> {
        let conn = self.conns.get_mut(event.token)?;
        let half = conn.edges.came(event);
        match conn.phase.get() {
            // The turn's bytes are used up. A head is read all the same: it is short.
            Phase::Body | Phase::Flushing(_) | Phase::Bridged(_) | Phase::OnLoan(_)
                if self.work.is_turn_over() && !event.error =>
            {
                self.later(event.token);
                None
            }
            Phase::Idle | Phase::Head | Phase::Body if event.readable || event.hangup || event.error => {
                self.read(event.token)
            }
            Phase::Multiplexed => {
                self.read_trunk(event.token);
                None
            }
            Phase::Flushing(_) => {
                self.flush(event.token, event.error, clock::now());
                None
            }
            Phase::Bridged(_) => {
                self.carry(event.token);
                None
            }
            Phase::OnLoan(_) => {
                self.client_of_loan_acted(event.token);
                None
            }
            Phase::Lingering => {
                self.discard(event.token);
                None
            }
            Phase::Queued => {
                let serial = &conn.serial;
                let id = serial.current(event.token);
                self.client_acted(id, half)
            }
            Phase::Opening => {
                let id = conn.serial.current(event.token);
                self.left_file(id, half);
                None
            }
            Phase::Busy(_) => self.busy_event(event).map(Outcome::Ready),
            Phase::Handshaking => self.handshake_event(event),
            Phase::Idle | Phase::Head | Phase::Body | Phase::Storing => None,
        }
    }

    /// Something happened to our end of a pair.
    pub fn near_event(&mut self, token: Token, event: Event) {
        match self.conns.get(token).map(|conn| conn.phase.get()) {
            Some(Phase::Bridged(_)) => self.application_acted(token, event),
            Some(Phase::OnLoan(_)) => self.borrower_acted(token, event),
            _ => {}
        }
    }

    pub fn look_again(&mut self, token: Token) -> Option<Outcome> {
        let conn = self.conns.get_mut(token)?;
        conn.edges.unlist();
        if conn.is_stream() {
            return self.look_at_stream(token);
        }
        match conn.phase.get() {
            Phase::Multiplexed => {
                self.read_trunk(token);
                None
            }
            Phase::Idle | Phase::Handshaking | Phase::Head | Phase::Body => self.read(token),
            Phase::Lingering => {
                self.discard(token);
                None
            }
            Phase::Flushing(_) => {
                self.flush(token, false, clock::now());
                None
            }
            Phase::Bridged(_) => {
                self.carry(token);
                None
            }
            Phase::OnLoan(_) => {
                self.client_of_loan_acted(token);
                None
            }
            Phase::Busy(_) => self.may_be_readable(token).map(Outcome::Ready),
            Phase::Queued => self.take_rest(token),
            Phase::Storing | Phase::Opening => None,
        }
    }

    /// The client of a waiting request did something; `half`: it had closed its sending side before.
    fn client_acted(&mut self, id: RequestId, half: bool) -> Option<Outcome> {
        if let Some(outcome) = self.take_rest(id.connection()) {
            return Some(outcome);
        }
        let conn = self.conns.get_mut(id.connection())?;
        if conn.edges.is_listed() {
            return None; // what it has sent is not read to its end
        }
        if conn.client_has_left(id, half, clock::now()) {
            return Some(Outcome::LeftQueue(id));
        }
        if conn.edges.is_readable() && self.may_read_ahead(id) {
            self.later(id.connection());
        }
        None
    }

    /// The client of a request whose file is looked for did something: it may have left. `half` as for [`Self::client_acted`].
    fn left_file(&mut self, id: RequestId, half: bool) {
        let Some(conn) = self.conns.get_mut(id.connection()) else { return };
        if conn.client_has_left(id, half, clock::now()) {
            self.board.add(Word::ClientGone, 1);
            self.close(id.connection());
        }
    }

    /// Something happened to a connection whose handshake is under way.
    fn handshake_event(&mut self, event: Event) -> Option<Outcome> {
        let conn = self.conns.get_mut(event.token)?;
        // Room for output matters only if there is some.
        if !(event.readable || event.hangup || event.error) {
            let owes = conn.stream().is_none_or(Stream::owes);
            if !owes {
                return None;
            }
            conn.edges.may_be_readable();
        }
        self.read(event.token)
    }
}
