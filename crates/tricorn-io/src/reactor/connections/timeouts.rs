//! How long each phase of a connection may last.
//!
//! ```text
//!   Idle                 header_timeout after its acceptance, then keepalive after each reply, or until it has its age
//!   Handshaking          tls_handshake_timeout after its acceptance, whatever comes; then as a new connection
//!   Head                 header_timeout after its first byte: more bytes do not move it
//!   Body                 body_timeout and the minimum rate
//!   Storing              body_timeout for each piece that goes to disk
//!   Opening              request_timeout, or write_timeout where there is none: the disk hangs
//!   Queued, Busy         no deadline here: queue_timeout and request_timeout are others' (queue.rs, monitor/watchdog.rs)
//!   Bridged              none: how long it is spoken is the application's affair; when its call is over and the worker leaves, two seconds
//!   OnLoan               none: the borrower has them
//!   Flushing             write_timeout, again and again while the client acknowledges bytes at the minimum rate
//!   Lingering            two seconds
//! ```
//!
//! While the worker drains, a client that may send nothing at all has two seconds at most. With `closes_idle` only a newcomer
//! waits at all, for 100 ms: a connection that was served before is closed as soon as it is idle.
use super::phase::Change;
use crate::config::{self, BodyRate, Config};
use crate::exchange::body::Spool;
use crate::exchange::buffers::Request;
use crate::reactor::outgoing::Outgoing;

/// For how long bytes of a body may lie in the socket before the worker reads them: that time is not the client's.
const UNREAD: u64 = 100 * crate::clock::MILLI;

#[derive(Debug)]
pub(super) struct Timeouts {
    header: u64,
    handshake: u64,
    keepalive: u64,
    body: BodyRate,
    write: u64,
    /// How long a file may be looked for.
    opening: u64,
    /// Bytes that a client has to take within `write`.
    progress: u64,
    draining: bool,
    closes_idle: bool,
}

/// What a deadline means that has passed while a body was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyVerdict {
    /// The body has more time than the deadline said.
    Until(u64),
    /// The disk took nothing in time.
    DiskHangs,
    /// The client is late: `is_slow` with the body as a whole, or else with the next byte.
    Late { is_slow: bool },
}

impl Timeouts {
    pub fn new(config: &Config) -> Timeouts {
        Timeouts {
            header: config.header_timeout,
            handshake: config.tls.as_ref().map_or(config.header_timeout, |tls| tls.handshake_timeout),
            keepalive: config.keepalive,
            body: config.body_rate(),
            write: config.write_timeout,
            opening: config.opening_timeout(),
            progress: config.progress(),
            draining: false,
            closes_idle: config.closes_idle,
        }
    }

    /// In seconds, for tests. `body` keeps its unit.
    #[cfg(test)]
    pub const fn of_seconds(header: u64, keepalive: u64, body: BodyRate, write: u64) -> Timeouts {
        use crate::clock::SECOND;
        Timeouts {
            header: header * SECOND,
            handshake: header * SECOND,
            keepalive: keepalive * SECOND,
            body,
            write: write * SECOND,
            opening: write * SECOND,
            progress: body.bytes_per_second * write,
            draining: false,
            closes_idle: false,
        }
    }

    #[cfg(test)]
    pub const fn closes_idle(mut self) -> Timeouts {
        self.closes_idle = true;
        self
    }

    /// The worker leaves.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    #[inline]
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// The worker leaves, and a connection that was served is closed once it is idle.
    #[inline]
    pub fn ends_idle(&self) -> bool {
        self.draining && self.closes_idle
    }

    /// Until when the phase may last that follows this change. `None`: it has no deadline, or the one that was set stays.
    #[inline]
    pub fn after(&self, change: &Change, now: u64) -> Option<u64> {
        Some(match change {
            // A drain is not held up by a client that connected just before it and says nothing.
            Change::HandshakeBegun => now + self.limited(self.handshake),
            Change::Accepted | Change::HandshakeOver | Change::Multiplexed => now + self.limited(self.header),
            Change::Bytes { first } => first + self.header,
            // While draining no longer than a request takes that is on its way already: a reply begun before may have
            // promised to keep the connection.
            Change::Kept => now + self.limited(self.keepalive),
            Change::Left(_) | Change::Answered(_) => now + self.write,
            Change::Opening => now + self.opening,
            Change::Shut => now + config::LINGER,
            Change::TakenOver | Change::Head | Change::Unwritten | Change::Complete => return None,
            Change::Begun(_) | Change::Bridged(_) | Change::Lent(_) => return None,
        })
    }

    /// Until when a connection may stay that is idle when the drain begins.
    pub fn last_of_idle(&self, now: u64) -> u64 {
        // Where nothing is kept alive those that are idle have only just come.
        now + if self.keepalive == 0 { self.last_moment() } else { self.limited(self.keepalive) }
    }

    #[inline]
    fn limited(&self, patience: u64) -> u64 {
        if self.draining { patience.min(self.last_moment()) } else { patience }
    }

    /// How long the client of a worker that leaves may say nothing.
    fn last_moment(&self) -> u64 {
        if self.closes_idle { config::LAST_CALL } else { config::LINGER }
    }

    /// When more of the body is due: an average says that it comes fast enough as a whole, the silence that it comes at all.
    /// Without the latter a megabyte that came at once would pay for an hour of nothing.
    pub fn body(&self, request: &Request) -> u64 {
        let (_, since) = request.times.body_mark;
        let silence = since.max(request.times.head_complete).saturating_add(self.body.timeout);
        self.whole_body(request).min(silence)
    }

    /// A body has `body_timeout` plus the time its bytes take at the minimum rate; time in which it waits for the disk is not
    /// its client's.
    fn whole_body(&self, request: &Request) -> u64 {
        let earned = self.body.earned_by(request.body.len());
        let waited = request.body.waited();
        request.times.head_complete.saturating_add(self.body.timeout).saturating_add(earned).saturating_add(waited)
    }

    /// Until when the disk may take nothing of a body that waits for it; `None`: it does not wait.
    pub fn disk(&self, request: &Request) -> Option<u64> {
        let since = request.body.spool().and_then(Spool::waits_since)?;
        // The disk has as long for a piece as a client has for a byte.
        Some(since.saturating_add(self.body.timeout))
    }

    /// The deadline of a body has passed. `has_unread`: bytes lie in the socket; asked if it matters.
    pub fn judge_body(&self, request: &Request, now: u64, has_unread: impl FnOnce() -> bool) -> BodyVerdict {
        match self.disk(request) {
            Some(until) if now < until => return BodyVerdict::Until(until),
            Some(_) => return BodyVerdict::DiskHangs,
            None => {}
        }
        let until = self.body(request);
        if now < until {
            BodyVerdict::Until(until)
        } else if has_unread() {
            BodyVerdict::Until(now + UNREAD)
        } else {
            BodyVerdict::Late { is_slow: now >= self.whole_body(request) }
        }
    }

    /// The deadline of a reply has passed: until when it may go on; `None`: the client takes too little. A response makes
    /// progress if the client acknowledged bytes at the minimum rate since the deadline was set. Bytes sent would not tell:
    /// the kernel's send buffer hides a slow but honest reader for longer than any deadline.
    pub fn judge_reply(&self, outgoing: &mut Outgoing, acknowledged: u64, now: u64) -> Option<u64> {
        outgoing.has_progressed(acknowledged, self.progress).then(|| now + self.write)
    }
}

/// Only bytes of the body count as progress, not those that frame it: chunk sizes, extensions and trailers.
pub(super) fn note_progress(request: &mut Request, now: u64) {
    let length = request.body.len();
    if length > request.times.body_mark.0 {
        request.times.body_mark = (length, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    #[test]
    fn a_file_that_no_disk_opens_has_write_timeout() {
        let timeouts = Timeouts::of_seconds(1, 2, BodyRate { timeout: 3, bytes_per_second: 1 }, 20);
        assert_eq!(timeouts.after(&Change::Opening, 7), Some(7 + 20 * SECOND));
    }
}
