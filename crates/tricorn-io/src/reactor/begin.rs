//! How complete requests enter the queue and leave it: begun, turned away, or left by their clients.
use super::Reactor;
use super::connections::{After, Outcome, Rejection, Unbegun};
use super::warnings::Incident;
use crate::clock;
use crate::config;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::exchange::lost::Lent;
use crate::scoreboard::Word;
use tricorn_proto::access_log;

const OVERLOADED: Rejection<'_> = Rejection::for_now(
    "This server has more requests than it can serve; the request was not begun.",
    Unbegun::Queue,
    After::Keep,
    access_log::Outcome::QueueFull,
);

impl Reactor {
    /// The request waits from now on, and its client is watched.
    pub fn enqueue(&mut self, id: RequestId) {
        let now = clock::now();
        let Some(waits) = self.connections.note_wait(id, now) else { return };
        self.dispatch.insert(id, &waits, now);
        self.connections.count_file(id);
        self.connections.await_turn(id);
    }

    /// A request that has waited becomes an exchange, unless it has waited too long.
    pub fn begin_waiting(&mut self, id: RequestId) -> Option<Box<Exchange>> {
        let now = clock::now();
        self.connections.wall_mut().refresh(now);
        let mut exchange = self.begin(id, now)?;
        exchange.timing.started = now;
        Some(exchange)
    }

    /// A complete request becomes an exchange, unless it waited too long or its client has left.
    pub(super) fn begin(&mut self, id: RequestId, now: u64) -> Option<Box<Exchange>> {
        let waits = self.connections.note_wait(id, now)?;
        if self.dispatch.admission().is_too_late(waits.since, now) {
            self.shed(id, Word::QueueLate);
            return None;
        }
        if now.saturating_sub(waits.complete) > config::HALF_CLOSE && self.connections.has_client_left(id, now) {
            self.left_queue(id);
            return None;
        }
        let mut exchange = self.connections.check_out(id)?;
        self.dispatch.began();
        if self.dispatch.admission().capacity().has_many() {
            exchange.request.trim();
        }
        self.act_on_updates();
        Some(exchange)
    }

    /// An exchange was dropped, and its socket with it. Nothing can be said to the client but that.
    #[cold]
    pub fn lose(&mut self, lent: Lent) {
        self.dispatch.ended();
        self.connections.lose(lent);
        self.act_on_updates();
    }

    /// Turns away what is beyond `queue_limit` and `queue_timeout`: as much as the baton may be held for. The rest is due at
    /// once.
    pub fn trim_queue(&mut self, now: u64) {
        let before = self.dispatch.admission().waiting();
        for id in self.dispatch.take_late(now, (config::STEPS / config::REJECTION_STEPS) as usize) {
            self.shed(id, Word::QueueLate);
        }
        while !self.connections.work().is_hold_over()
            && let Some(id) = self.dispatch.take_excess(clock::now)
        {
            self.shed(id, Word::QueueFull);
        }
        if self.dispatch.admission().waiting() < before {
            self.dispatch.publish();
        }
        self.act_on_updates();
    }

    /// Answers 503 to a request that is not to be run. Its connection is kept if it could be.
    fn shed(&mut self, id: RequestId, why: Word) {
        let is_full = matches!(why, Word::QueueFull);
        let outcome = if is_full { access_log::Outcome::QueueFull } else { access_log::Outcome::QueueLate };
        if self.connections.reject(id, &Rejection { outcome, ..OVERLOADED }, why).is_none() {
            return;
        }
        self.connections.warn(if is_full { Incident::QueueFull } else { Incident::QueueLate });
        self.connections.tell_overload(clock::now());
    }

    /// The client of a waiting request has gone: the answer would not be read.
    fn left_queue(&mut self, id: RequestId) {
        self.unqueue(id);
        self.board.add(Word::LeftQueue, 1);
        self.connections.close(id.connection());
    }

    fn unqueue(&mut self, id: RequestId) {
        if self.dispatch.remove(id) {
            self.dispatch.publish();
        }
    }

    /// Acts on what came of a look at a connection. The request that is complete by it.
    #[inline]
    pub(super) fn act(&mut self, outcome: Outcome) -> Option<RequestId> {
        match outcome {
            Outcome::Complete(id) => return Some(id),
            Outcome::LeftQueue(id) => self.left_queue(id),
            Outcome::Unqueued(id) => self.unqueue(id),
            Outcome::Ready(id) => self.dispatch.add_ready(id),
            Outcome::Handshake(token) => self.accepting.queue_handshake(token),
        }
        None
    }
}
