//! What becomes of a connection whose deadline has passed: there is one, and the phase gives its meaning.
use super::Reactor;
use super::conn::Phase;
use crate::clock::{MILLI, SECOND};
use crate::config::Config;
use crate::exchange::body::Spool;
use crate::exchange::buffers::Request;
use crate::exchange::incoming::late_body;
use crate::exchange::outbox::Outbox;
use crate::scoreboard::Word;
use crate::sys::fds::unacknowledged;
use crate::sys::poll::{Token, ready};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd};
use tricorn_proto::http1::{Refusal, RefusalKind};

impl Reactor {
    #[inline]
    pub(super) fn set_deadline(&mut self, token: Token, at: u64) {
        if let Some(conn) = self.conns.get_mut(token) {
            self.deadlines.set(token, conn, at);
        }
    }

    /// Acts on every deadline that has passed.
    pub(super) fn expire(&mut self, now: u64) {
        self.end_pause(now);
        let fired = self.deadlines.take_fired(now);
        for (tick, token) in fired.iter().copied() {
            let Some(conn) = self.conns.get_mut(token) else { continue };
            let waits_for_us = conn.phase == Phase::Queued || conn.phase == Phase::Busy && !conn.attended.reminded;
            if self.deadlines.is_due(token, conn, tick, !waits_for_us) {
                self.expired(token, now);
            }
        }
        self.deadlines.give_back(fired);
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
            Phase::Body | Phase::Storing => self.body_expired(token, now),
            Phase::Flushing { .. } => self.flush_expired(token, now),
            Phase::Lingering => self.close(token),
            Phase::Busy => self.remind(token),
            Phase::Queued => {}
        }
    }

    fn body_expired(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(request), Some(socket)) = (conn.request.as_deref(), &conn.socket) else { return };
        if let Some(since) = request.body.spool().and_then(Spool::waits_since) {
            self.disk_expired(token, since, now);
            return;
        }
        let allowed = body_deadline(request, &self.config);
        if now < allowed {
            self.set_deadline(token, allowed);
            return;
        }
        if !ready(socket.as_fd(), PollFlags::IN, 0).is_empty() {
            self.set_deadline(token, now + UNREAD);
            return;
        }
        self.board.add(Word::BodyTimeouts, 1);
        let refusal = late_body(request.body.len(), now >= average_deadline(request, &self.config), &self.config);
        self.refuse(token, &refusal);
    }

    /// The body waits for the disk, not for its client: it has as long for a piece as a client has for a byte.
    fn disk_expired(&mut self, token: Token, since: u64, now: u64) {
        if now < since.saturating_add(self.config.body_timeout) {
            self.await_disk(token);
            return;
        }
        let detail = format!(": the disk has taken nothing for {} s", self.config.body_timeout / SECOND);
        self.refuse(token, &Refusal::new(RefusalKind::SpoolFailed, detail));
    }

    /// A response makes progress if the client acknowledged bytes at the minimum rate since the deadline was set. Bytes
    /// sent would not tell: the kernel's send buffer hides a slow but honest reader for longer than any deadline.
    fn flush_expired(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(outgoing), Some(socket)) = (&mut conn.outgoing, &conn.socket) else { return };
        let acknowledged = acknowledged(&outgoing.outbox, socket.as_fd());
        let wanted = self.config.progress();
        if acknowledged >= outgoing.acknowledged + wanted {
            outgoing.acknowledged = acknowledged;
            self.set_deadline(token, now + self.config.write_timeout);
            return;
        }
        self.board.add(Word::WriteTimeouts, 1);
        self.close(token);
    }
}

/// For how long bytes of a body may lie in the socket before the worker reads them: that time is not the client's.
const UNREAD: u64 = 100 * MILLI;

/// Bytes of an outbox that the client has.
pub(super) fn acknowledged(outbox: &Outbox, socket: BorrowedFd<'_>) -> u64 {
    outbox.sent().saturating_sub(unacknowledged(socket).unwrap_or(0))
}

/// When more of the body is due: an average says that it comes fast enough as a whole, the silence that it comes at all.
/// Without the latter a megabyte that came at once would pay for an hour of nothing.
pub(super) fn body_deadline(request: &Request, config: &Config) -> u64 {
    let (_, since) = request.body_mark;
    let silence = since.max(request.head_complete).saturating_add(config.body_timeout);
    average_deadline(request, config).min(silence)
}

/// A body has `body_timeout` plus the time its bytes take at the minimum rate; time in which it waits for the disk is not
/// its client's.
fn average_deadline(request: &Request, config: &Config) -> u64 {
    let earned = config.body_rate().earned_by(request.body.len());
    let waited = request.body.waited();
    request.head_complete.saturating_add(config.body_timeout).saturating_add(earned).saturating_add(waited)
}

/// Only bytes of the body count as progress, not those that frame it: chunk sizes, extensions and trailers.
pub(super) fn note_progress(request: &mut Request, now: u64) {
    let length = request.body.len();
    if length > request.body_mark.0 {
        request.body_mark = (length, now);
    }
}
