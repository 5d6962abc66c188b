//! How complete requests enter the queue and leave it: begun, turned away, or left by their clients.
use super::Reactor;
use super::conn::Conn;
use super::reject::{After, Rejection, Unbegun};
use super::warnings::Incident;
use super::wire::Wire;
use crate::clock;
use crate::config;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::scoreboard::Word;
use crate::sys::fds;
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::BorrowedFd;
use tricorn_proto::access_log::Outcome;

const OVERLOADED: Rejection<'_> = Rejection::for_now(
    "This server has more requests than it can serve; the request was not begun.",
    Unbegun::Queue,
    After::Keep,
    Outcome::QueueFull,
);

impl Reactor {
    /// The request waits from now on, and its client is watched.
    pub fn enqueue(&mut self, id: RequestId) {
        let now = clock::now();
        let Some(conn) = self.conns.get_mut(id.connection()) else { return };
        let Some(request) = conn.wire.request_mut(id) else { return };
        request.note_wait(conn.origin.trusted, now);
        self.admission.insert(id, request.times.complete, request.times.waits_since, now);
        self.count_file(id);
        self.publish_queue();
        self.register(id.connection());
    }

    /// The request that is served next. The clock as it was when the events came is good enough here.
    pub(super) fn next_ready(&mut self) -> Option<RequestId> {
        let id = self.admission.next(self.work.looked_at())?;
        self.publish_queue();
        Some(id)
    }

    pub(super) fn publish_queue(&mut self) {
        self.board.set(Word::Queued, self.admission.waiting() as u64);
        self.board.set(Word::Oldest, self.admission.oldest());
        self.publish_free();
    }

    /// When the longest waiting request was complete; 0: nothing waits.
    pub fn oldest(&self) -> u64 {
        self.admission.oldest()
    }

    /// Tells siblings how many requests could begin here at once.
    #[inline]
    pub fn publish_free(&self) {
        let free = if self.is_draining() { 0 } else { self.admission.offered() };
        self.board.set(Word::Free, free as u64);
    }

    /// More requests wait than app threads here could begin.
    pub fn waits_in_vain(&self) -> bool {
        self.admission.waits_in_vain()
    }

    #[inline]
    pub fn may_start(&self) -> bool {
        self.admission.capacity().may_start()
    }

    /// Calls under way.
    pub fn busy(&self) -> usize {
        self.admission.capacity().busy()
    }

    /// An app thread came or left.
    pub fn staff(&mut self, joined: usize) {
        self.admission.capacity_mut().staff(joined);
        self.publish_free();
    }

    /// How many calls this worker may have under way.
    pub fn set_share(&mut self, share: usize) {
        if self.admission.capacity_mut().set_share(share) {
            self.publish_free();
        }
    }

    /// No app thread is there, whatever their count says; or one is back.
    pub fn set_stuck(&mut self, stuck: bool) {
        if self.admission.capacity_mut().set_stuck(stuck, clock::now()) {
            self.publish_free();
        }
    }

    /// A complete request becomes an exchange, unless it waited too long or its client has left.
    pub(super) fn begin(&mut self, id: RequestId, now: u64) -> Option<Box<Exchange>> {
        let conn = self.conns.get_mut(id.connection())?;
        let request = conn.wire.request_mut(id)?;
        request.note_wait(conn.origin.trusted, now);
        if self.admission.is_too_late(request.times.waits_since, now) {
            self.shed(id, Word::QueueLate);
            return None;
        }
        let waited = now.saturating_sub(request.times.complete);
        if waited > config::HALF_CLOSE && conn.client_has_left(id, conn.edges.is_hangup(), now) {
            self.left_queue(id);
            return None;
        }
        self.start(id)
    }

    /// The client of a waiting request did something; `half`: it had closed its sending side before.
    pub(super) fn client_acted(&mut self, id: RequestId, half: bool) {
        let conn = self.conns.get(id.connection());
        if conn.is_some_and(|conn| conn.client_has_left(id, half, clock::now())) {
            self.left_queue(id);
        }
    }

    /// Turns away what is beyond `queue_limit` and `queue_timeout`: as much as the baton may be held for. The rest is due at
    /// once.
    pub fn trim_queue(&mut self, now: u64) {
        let before = self.admission.waiting();
        for id in self.admission.take_late(now, (config::STEPS / config::REJECTION_STEPS) as usize) {
            self.shed(id, Word::QueueLate);
        }
        while !self.work.is_hold_over()
            && let Some(id) = self.admission.take_excess(self.work.looked_at(), clock::now)
        {
            self.shed(id, Word::QueueFull);
        }
        if self.admission.waiting() < before {
            self.publish_queue();
        }
    }

    #[inline]
    pub fn is_over_limit(&self) -> bool {
        self.admission.is_over_limit(clock::now)
    }

    /// When the next waiting request has waited too long, or is one too many; `None`: never.
    pub fn queue_due(&self) -> Option<u64> {
        self.admission.due()
    }

    /// Answers 503 to a request that is not to be run. Its connection is kept if it could be.
    fn shed(&mut self, id: RequestId, why: Word) {
        let is_full = matches!(why, Word::QueueFull);
        let outcome = if is_full { Outcome::QueueFull } else { Outcome::QueueLate };
        if self.reject(id, &Rejection { outcome, ..OVERLOADED }, why).is_none() {
            return;
        }
        self.log.warn(if is_full { Incident::QueueFull } else { Incident::QueueLate });
        self.tell_overload(clock::now());
    }

    /// The client of a waiting request has gone: the answer would not be read.
    fn left_queue(&mut self, id: RequestId) {
        if self.admission.remove(id) {
            self.publish_queue();
        }
        self.board.add(Word::LeftQueue, 1);
        self.close(id.connection());
    }
}

impl Conn {
    /// Whether the client of a request has left that has not begun. `half` as for [`has_left`].
    fn client_has_left(&self, id: RequestId, half: bool, now: u64) -> bool {
        let Wire::Http1(http1) = &self.wire;
        let (Some(request), Some(stream)) = (http1.request(id), self.stream()) else { return false };
        has_left(stream.socket(), half, request.times.complete, now)
    }
}

/// Whether the client has left, for all that can be told. A client that closed its sending side together
/// with its request still listens; `half`: it is known to have done so in time.
pub(super) fn has_left(socket: BorrowedFd<'_>, half: bool, complete: u64, now: u64) -> bool {
    let seen = ready(socket, PollFlags::RDHUP, 0);
    if seen.is_empty() {
        return false;
    }
    if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
        return true;
    }
    // Perhaps no thread looked when that happened. It was the last that came from there.
    let at = fds::silence(socket).map_or(now, |millis| now.saturating_sub(millis * clock::MILLI));
    !half && at.saturating_sub(complete) > config::HALF_CLOSE
}
