//! What becomes of a connection whose deadline has passed: there is one, and the phase gives its meaning.
use super::Connections;
use super::phase::Phase;
use super::reject::{After, Rejection};
use super::timeouts::BodyVerdict;
use crate::clock::SECOND;
use crate::config;
use crate::exchange::id::RequestId;
use crate::exchange::incoming::late_body;
use crate::exchange::link::Loss;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use crate::tls::{Failure, Reason};
use tricorn_proto::access_log::Outcome;
use tricorn_proto::message::{Refusal, RefusalKind};

/// The answer to a request for a file of the server's that no disk has opened in time.
const UNOPENED: Rejection<'_> = Rejection {
    status: 504,
    message: "The disk has not answered in time.",
    fields: &[],
    after: After::Keep,
    outcome: Outcome::Late,
};

impl Connections {
    /// Acts on deadlines that have passed: as many as the baton may be held for. The rest is due at once. `remind` gets
    /// requests under way whose exchanges are to be told.
    pub fn expire(&mut self, now: u64, mut remind: impl FnMut(RequestId)) {
        self.deadlines.advance(now);
        for _ in 0..config::SWEEP {
            if self.work.is_hold_over() {
                return;
            }
            let Some((tick, token)) = self.deadlines.next_fired() else { return };
            let Some(conn) = self.conns.get_mut(token) else { continue };
            if self.deadlines.is_due(token, &mut conn.phase, tick) {
                self.work.takes_step();
                if let Some(id) = self.expired(token, now) {
                    remind(id);
                }
            }
        }
    }

    /// The worker leaves: connections that are idle have less time from now on, or none.
    pub fn shorten_idle(&mut self, now: u64) {
        let last = self.deadlines.timeouts().last_of_idle(now);
        let ends_idle = self.deadlines.timeouts().ends_idle();
        for position in self.deadlines.take_to_shorten(self.conns.positions()) {
            if self.work.is_hold_over() {
                self.deadlines.leave_to_shorten(position);
                return;
            }
            let Some((token, conn)) = self.conns.at_mut(position) else { continue };
            let is_idle = matches!(conn.phase.get(), Phase::Idle);
            let is_done_with = is_idle && ends_idle && conn.is_done_with();
            match conn.phase.get() {
                Phase::Idle if is_done_with => {
                    self.work.takes_step();
                    self.end_idle(token);
                }
                Phase::Idle | Phase::Handshaking => {
                    let is_readable = is_idle && conn.edges.is_readable();
                    self.set_deadline(token, last);
                    if is_readable {
                        self.later(token);
                    }
                }
                Phase::Multiplexed => {
                    self.work.takes_step();
                    self.drain_trunk(token);
                }
                Phase::Bridged(bridge) if bridge.is_over() => {
                    self.set_deadline(token, now + config::LINGER);
                }
                _ => {}
            }
        }
    }

    /// Whether clients that were idle when the worker began to leave are gone, but for newcomers; goes on with it.
    pub fn has_parted(&mut self, now: u64) -> bool {
        self.shorten_idle(now);
        self.deadlines.has_shortened()
    }

    fn expired(&mut self, token: Token, now: u64) -> Option<RequestId> {
        let conn = self.conns.get_mut(token)?;
        let is_idle = matches!(conn.phase.get(), Phase::Idle);
        let has_unread = is_idle && conn.unread() > 0;
        let serial = &conn.serial;
        let (current, begun) = (serial.current(token), serial.begun(token));
        match conn.phase.get() {
            // The process was paused, or the deadline is a moment earlier than the turn of what has come: it is not idle.
            Phase::Idle if has_unread => {
                self.set_deadline(token, now + SECOND);
                self.later(token);
            }
            Phase::Idle => self.end_idle(token),
            Phase::Multiplexed => self.trunk_expired(token, now),
            Phase::Handshaking => self.handshake_failed(token, &Failure::new(Reason::Timeout, "it took too long")),
            Phase::Head => {
                self.board.add(Word::HeadTimeouts, 1);
                let seconds = self.config.header_timeout / SECOND;
                let detail = format!(" ({seconds} s)");
                self.refuse(current, &Refusal::new(RefusalKind::HeadTimeout, detail));
            }
            Phase::Body | Phase::Storing => self.body_expired(current, now),
            Phase::Opening => {
                self.reject(current, &UNOPENED, Word::StaticFiles);
            }
            Phase::Flushing(_) => self.flush_expired(token, now),
            Phase::Lingering => self.close(token),
            Phase::Busy(_) => return self.remind(begun),
            Phase::Bridged(_) => self.bridge_expired(token),
            Phase::Queued | Phase::OnLoan(_) => {}
        }
        None
    }

    fn body_expired(&mut self, id: RequestId, now: u64) {
        let Some(conn) = self.conns.get_mut(id.connection()) else { return };
        let (Some(request), Some(stream)) = (conn.serial.request(id), conn.stream()) else { return };
        let has_unread = || stream.is_readable();
        match self.deadlines.timeouts().judge_body(request, now, has_unread) {
            BodyVerdict::Until(until) => self.set_deadline(id.connection(), until),
            BodyVerdict::DiskHangs => {
                let detail = format!(": the disk has taken nothing for {} s", self.config.body_timeout / SECOND);
                self.refuse(id, &Refusal::new(RefusalKind::SpoolFailed, detail));
            }
            BodyVerdict::Late { is_slow } => {
                self.board.add(Word::BodyTimeouts, 1);
                let refusal = late_body(request.body.len(), is_slow, &self.config);
                self.refuse(id, &refusal);
            }
        }
    }

    fn flush_expired(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(outgoing), Some(output)) = (conn.phase.get_mut().outgoing(), &conn.output) else { return };
        if output.is_away() {
            // The job waits for no client: the time is the disk's.
            let until = now.saturating_add(self.config.write_timeout);
            self.set_deadline(token, until);
            return;
        }
        let acknowledged = output.acknowledged();
        match self.deadlines.timeouts().judge_reply(outgoing, acknowledged, now) {
            Some(until) => self.set_deadline(token, until),
            None => {
                self.cut_off(token, Loss::TimedOut);
            }
        }
    }
}
