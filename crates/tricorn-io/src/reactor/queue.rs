//! Complete requests that wait for an app thread: their order, their limits, and what becomes of those that are beyond them.
use super::Reactor;
use super::reject::{After, Rejection};
use crate::clock;
use crate::config::{self, QueueOrder};
use crate::exchange::Exchange;
use crate::scoreboard::Word;
use crate::sys::fds;
use crate::sys::poll::{Token, ready};
use rustix::event::PollFlags;
use rustix::fd::{AsFd, BorrowedFd};

const OVERLOADED: Rejection<'_> =
    Rejection::for_now("This server has more requests than it can serve; the request was not begun.", After::Keep);

impl Reactor {
    /// The request waits from now on, and its client is watched.
    pub fn enqueue(&mut self, token: Token) {
        let now = clock::now();
        if self.ready.is_empty() {
            self.stands_since = now;
        }
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(request) = conn.request.as_deref_mut() else { return };
        request.note_wait(conn.trusted, now);
        if self.config.queue_timeout > 0 {
            self.queue_due = self.queue_due.min(request.waits_since.saturating_add(self.config.queue_timeout));
        }
        // One that came by the channel may have waited for longer than those that are here.
        let complete = request.complete;
        let is_older = |other: &Token| {
            self.conns
                .get(*other)
                .and_then(|conn| conn.request.as_deref())
                .is_none_or(|other| other.complete <= complete)
        };
        let at = self.ready.iter().rposition(is_older).map_or(0, |before| before + 1);
        self.ready.insert(at, token);
        self.count_file(token);
        self.tell_queue();
        self.register(token);
    }

    /// The request that is served next.
    pub(super) fn next_ready(&mut self) -> Option<Token> {
        let token = if self.is_newest_first() { self.ready.pop_back() } else { self.ready.pop_front() }?;
        self.tell_queue();
        Some(token)
    }

    fn is_newest_first(&self) -> bool {
        // The clock as it was when the events came is good enough here.
        self.config.queue_order == QueueOrder::Adaptive
            && self.polled.saturating_sub(self.stands_since) > config::STANDING
    }

    /// Positions in `ready`, in the order in which they would be served.
    pub(super) fn service_order(&self) -> impl Iterator<Item = usize> + use<> {
        let (count, newest_first) = (self.ready.len(), self.is_newest_first());
        (0..count).map(move |nth| if newest_first { count - 1 - nth } else { nth })
    }

    pub(super) fn tell_queue(&mut self) {
        self.board.set(Word::Queued, self.ready.len() as u64);
        let oldest = self.ready.front().copied().and_then(|token| self.conns.get_mut(token));
        let since = oldest.and_then(|conn| conn.request.as_deref()).map_or(0, |request| request.complete);
        self.board.set(Word::Oldest, since);
        self.tell_free();
    }

    /// Since when the longest waiting request waits; 0: nothing waits.
    pub fn oldest(&self) -> u64 {
        self.board.get(Word::Oldest)
    }

    /// Tells siblings how many requests could begin here at once.
    #[inline]
    pub fn tell_free(&self) {
        let mut free = if self.draining { 0 } else { self.ready_threads().saturating_sub(self.ready.len()) };
        if self.config.hub {
            free = free.min(config::HUB_FREE);
        }
        self.board.set(Word::Free, free as u64);
    }

    /// App threads that may begin a request.
    #[inline]
    pub fn free_threads(&self) -> usize {
        self.joined.min(self.share).saturating_sub(self.busy)
    }

    /// Those of them that are there.
    #[inline]
    fn ready_threads(&self) -> usize {
        if self.stuck { 0 } else { self.free_threads() }
    }

    /// Requests that do not count for `queue_limit`: they wait for nobody but whoever is about to come. A hub that is held up
    /// for a moment begins all that it may when it comes.
    #[inline]
    fn about_to_begin(&self) -> usize {
        let is_back_soon = self.config.hub && clock::now() < self.moment_ends();
        if is_back_soon { self.free_threads() } else { self.ready_threads() }
    }

    /// When a hub that has not come is taken for one that will not come soon.
    fn moment_ends(&self) -> u64 {
        self.stuck_since.saturating_add(config::MOMENT)
    }

    /// More requests wait than app threads here could begin.
    pub fn waits_in_vain(&self) -> bool {
        self.ready.len() > self.ready_threads()
    }

    #[inline]
    pub fn may_start(&self) -> bool {
        // A thread that asks is free; a hub may have calls enough.
        self.busy < self.share && (!self.config.hub || self.busy < self.joined)
    }

    /// An app thread came or left.
    pub fn staff(&mut self, joined: usize) {
        self.joined = joined;
        self.tell_free();
    }

    /// How many calls this worker may have under way.
    pub fn set_share(&mut self, share: usize) {
        if self.share != share {
            self.share = share;
            self.tell_free();
        }
    }

    /// No app thread is there, whatever their count says; or one is back.
    pub fn set_stuck(&mut self, stuck: bool) {
        if self.stuck != stuck {
            self.stuck = stuck;
            self.stuck_since = clock::now();
            self.tell_free();
        }
    }

    /// A complete request becomes an exchange, unless it waited too long or its client has left.
    pub(super) fn begin(&mut self, token: Token, now: u64) -> Option<Exchange> {
        let conn = self.conns.get_mut(token)?;
        let request = conn.request.as_deref_mut()?;
        request.note_wait(conn.trusted, now);
        if self.config.queue_timeout > 0 && now.saturating_sub(request.waits_since) > self.config.queue_timeout {
            self.shed(token, Word::QueueLate);
            return None;
        }
        let waited = now.saturating_sub(request.complete);
        if waited > config::HALF_CLOSE
            && let Some(socket) = &conn.socket
            && has_left(socket.as_fd(), conn.hangup, request.complete, now)
        {
            self.left_queue(token);
            return None;
        }
        self.start(token)
    }

    /// Turns away what is beyond `queue_limit` and `queue_timeout`.
    pub fn trim_queue(&mut self, now: u64) {
        let before = self.ready.len();
        if now >= self.queue_due {
            self.expire_queue(now);
        }
        if self.is_over_limit() {
            let most = self.config.queue_limit + self.about_to_begin();
            while self.ready.len() > most {
                // Whoever would be served last: the newest, or the oldest if the newest are first.
                let last = if self.is_newest_first() { self.ready.pop_front() } else { self.ready.pop_back() };
                let Some(token) = last else { break };
                self.shed(token, Word::QueueFull);
            }
        }
        if self.ready.len() < before {
            self.tell_queue();
        }
    }

    #[inline]
    pub fn is_over_limit(&self) -> bool {
        let limit = self.config.queue_limit;
        limit > 0 && self.ready.len() > limit + self.about_to_begin()
    }

    /// When the next waiting request has waited too long, or is one too many; `None`: never.
    pub fn queue_due(&self) -> Option<u64> {
        let limit = self.config.queue_limit;
        let is_lenient = self.config.hub && self.stuck && limit > 0 && self.ready.len() > limit;
        let strict = if is_lenient { self.moment_ends() } else { u64::MAX };
        let due = self.queue_due.min(strict);
        (due != u64::MAX).then_some(due)
    }

    #[cold]
    fn expire_queue(&mut self, now: u64) {
        self.queue_due = u64::MAX;
        let mut waiting = std::mem::take(&mut self.ready);
        waiting.retain(|token| {
            let Some(request) = self.conns.get_mut(*token).and_then(|conn| conn.request.as_deref()) else {
                return false;
            };
            let due = request.waits_since.saturating_add(self.config.queue_timeout);
            if due > now {
                self.queue_due = self.queue_due.min(due);
                return true;
            }
            self.shed(*token, Word::QueueLate);
            false
        });
        self.ready = waiting;
    }

    /// Answers 503 to a request that is not to be run. Its connection is kept if it could be.
    fn shed(&mut self, token: Token, why: Word) {
        if self.reject(token, &OVERLOADED, why).is_none() {
            return;
        }
        match why {
            Word::QueueFull => self.overload.full += 1,
            _ => self.overload.late += 1,
        }
        self.tell_overload(clock::now());
    }

    /// The client of a waiting request has gone: nobody would read the answer.
    pub(super) fn left_queue(&mut self, token: Token) {
        if let Some(position) = self.ready.iter().position(|waiting| *waiting == token) {
            self.ready.remove(position);
            self.tell_queue();
        }
        self.board.add(Word::LeftQueue, 1);
        self.close(token);
    }
}

/// Whether nobody is at the other end any more, for all that can be told. A client that closed its sending side together
/// with its request still listens; `half`: it is known to have done so in time.
pub(super) fn has_left(socket: BorrowedFd<'_>, half: bool, complete: u64, now: u64) -> bool {
    let seen = ready(socket, PollFlags::RDHUP, 0);
    if seen.is_empty() {
        return false;
    }
    if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
        return true;
    }
    // Nobody may have looked when that happened. It was the last that came from there.
    let at = fds::silence(socket).map_or(now, |millis| now.saturating_sub(millis * clock::MILLI));
    !half && at.saturating_sub(complete) > config::HALF_CLOSE
}
