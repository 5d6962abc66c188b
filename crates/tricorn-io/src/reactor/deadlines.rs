//! Deadlines: one per connection, its meaning given by the connection's phase.
use super::Reactor;
use super::conn::{Phase, Token};
use crate::buffers::Request;
use crate::clock::SECOND;
use crate::config::Config;
use crate::scoreboard::Word;
use crate::sys::fds::unacknowledged;
use crate::wheel::tick_at;
use rustix::fd::AsFd;
use tricorn_proto::http1::{Refusal, RefusalKind};

impl Reactor {
    /// Moves a connection's deadline; only an earlier one than the wheel knows of costs more than a store.
    #[inline]
    pub(super) fn set_deadline(&mut self, token: Token, at: u64) {
        let due = tick_at(at);
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.deadline = due;
        if conn.wheel_at == 0 || due < conn.wheel_at {
            conn.wheel_at = self.wheel.insert(token, due);
        }
    }

    /// Acts on every deadline that has passed.
    pub(super) fn expire(&mut self, now: u64) {
        self.end_pause(now);
        let mut fired = std::mem::take(&mut self.fired);
        self.wheel.advance(now, &mut fired);
        for (tick, token) in fired.drain(..) {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            if conn.wheel_at != tick {
                continue; // an earlier entry was made since
            }
            conn.wheel_at = 0;
            if conn.phase == Phase::Queued || conn.phase == Phase::Busy && !conn.attended.reminded {
                continue; // set anew when the exchange ends
            }
            if conn.deadline > tick {
                conn.wheel_at = self.wheel.insert(token, conn.deadline);
            } else {
                self.expired(token, now);
            }
        }
        self.fired = fired;
    }

    fn expired(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        match conn.phase {
            _ if conn.is_admin() => self.close(token),
            Phase::Idle => {
                self.board.add(Word::IdleCloses, 1);
                self.close(token);
            }
            Phase::Head => {
                self.board.add(Word::HeadTimeouts, 1);
                let seconds = self.config.header_timeout / SECOND;
                let detail = format!(" ({seconds} s)");
                self.refuse(token, &Refusal::new(RefusalKind::HeadTimeout, detail));
            }
            Phase::Body => self.body_expired(token, now),
            Phase::Flushing { .. } => self.flush_expired(token, now),
            Phase::Lingering => self.close(token),
            Phase::Busy => self.remind(token),
            Phase::Queued => {}
        }
    }

    fn body_expired(&mut self, token: Token, now: u64) {
        let Some(request) = self.conns.get_mut(token).and_then(|conn| conn.request.as_deref()) else { return };
        let allowed = body_deadline(request, &self.config);
        if now < allowed {
            self.set_deadline(token, allowed);
            return;
        }
        self.board.add(Word::BodyTimeouts, 1);
        let (length, rate) = (request.body.len(), self.config.body_min_rate);
        let detail = format!(" ({length} bytes so far, slower than {rate} bytes/s)");
        self.refuse(token, &Refusal::new(RefusalKind::BodyTimeout, detail));
    }

    /// A response makes progress if the client acknowledged bytes at the minimum rate since the deadline was set. Bytes
    /// sent would not tell: the kernel's send buffer hides a slow but honest reader for longer than any deadline.
    fn flush_expired(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(outgoing), Some(socket)) = (&mut conn.outgoing, &conn.socket) else { return };
        let acknowledged = outgoing.outbox.sent().saturating_sub(unacknowledged(socket.as_fd()).unwrap_or(0));
        let wanted = self.config.body_min_rate.saturating_mul(self.config.write_timeout / SECOND).max(1);
        if acknowledged >= outgoing.acknowledged + wanted {
            outgoing.acknowledged = acknowledged;
            self.set_deadline(token, now + self.config.write_timeout);
            return;
        }
        self.board.add(Word::WriteTimeouts, 1);
        self.close(token);
    }
}

/// A body has `body_timeout` plus the time its bytes take at the minimum rate.
pub(super) fn body_deadline(request: &Request, config: &Config) -> u64 {
    let earned = request.body.len().saturating_mul(SECOND) / config.body_min_rate.max(1);
    request.head_complete.saturating_add(config.body_timeout).saturating_add(earned)
}
