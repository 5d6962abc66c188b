//! What is begun next: events and requests that wait, by what app threads can do.
use super::admission::Admission;
use super::connections::Waits;
use crate::clock;
use crate::exchange::id::RequestId;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::{Event, Events, Token};
use crate::turn::TURN;
use std::collections::VecDeque;

pub(super) struct Dispatch {
    board: Scoreboard,
    admission: Admission,
    events: Events,
    /// When the events were last looked at.
    looked_at: u64,
    /// A stream was to be served next when they were: what has come is read before it begins.
    reads_first: bool,
    /// The wake pipe had something.
    is_woken: bool,
    /// Requests under way whose exchanges are to be told that something happened to their connections.
    ready: VecDeque<RequestId>,
    /// The worker leaves: nothing could begin here that a sibling has.
    is_leaving: bool,
}

impl Dispatch {
    pub fn new(board: Scoreboard, admission: Admission) -> Dispatch {
        Dispatch {
            board,
            admission,
            events: Events::default(),
            looked_at: 0,
            reads_first: false,
            is_woken: false,
            ready: VecDeque::new(),
            is_leaving: false,
        }
    }

    /// What waits, and what could begin.
    #[inline]
    pub fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Something can be done before the next look at the events.
    #[inline]
    pub fn has_any(&self) -> bool {
        !self.events.is_empty() || !self.ready.is_empty()
    }
}

/// Events.
impl Dispatch {
    /// Takes over the events of a wait, which ended now. An unfinished batch is never replaced.
    pub fn arrived(&mut self, batch: &mut Events, now: u64) {
        debug_assert!(self.events.is_empty());
        std::mem::swap(&mut self.events, batch);
        self.looked_at = now;
        self.reads_first = self.admission.is_stream_next(now);
        self.admission.begin_turn();
    }

    /// All that was at hand has been read.
    pub fn has_read(&mut self) {
        self.reads_first = false;
    }

    #[inline]
    pub fn looked_at(&self) -> u64 {
        self.looked_at
    }

    #[inline]
    pub fn events(&self) -> &Events {
        &self.events
    }

    #[inline]
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    pub fn wake(&mut self) {
        self.is_woken = true;
    }

    #[inline]
    pub fn is_woken(&self) -> bool {
        self.is_woken
    }

    #[inline]
    pub fn take_woken(&mut self) -> bool {
        std::mem::take(&mut self.is_woken)
    }

    /// Something happened that the exchange of this request is to be told.
    pub fn add_ready(&mut self, id: RequestId) {
        self.ready.push_back(id);
    }

    #[inline]
    pub fn next_ready(&mut self) -> Option<RequestId> {
        self.ready.pop_front()
    }
}

/// Requests that wait. What siblings see of them is told by [`Dispatch::publish`].
impl Dispatch {
    /// The request waits from now on.
    pub fn insert(&mut self, id: RequestId, waits: &Waits, now: u64) {
        self.admission.insert(id, waits, now);
        self.publish();
    }

    /// Takes the request that is served next. The clock as it was when the events came is good enough here.
    #[inline]
    pub fn next_request(&mut self) -> Option<RequestId> {
        let id = self.admission.next(self.looked_at)?;
        self.publish();
        Some(id)
    }

    /// A request has begun without waiting here.
    #[inline]
    pub fn began_at_once(&mut self, trunk: Option<Token>) {
        if let Some(trunk) = trunk {
            self.admission.began_at_once(trunk);
        }
    }

    /// Whether what is served next is a request of an HTTP/2 connection, and the events were looked at a turn ago: those whose requests
    /// have come meanwhile are to stand in the queue before a client with many streams has one turn after another.
    #[inline]
    pub fn defers_stream(&self) -> bool {
        self.admission.is_stream_next(self.looked_at) && (self.reads_first || self.is_turn_over(clock::now()))
    }

    /// Whether the events are to be looked at before the next request begins.
    #[inline]
    pub fn awaits_look(&self) -> bool {
        self.events.is_empty() && self.admission.is_stream_next(self.looked_at) && self.is_turn_over(clock::now())
    }

    #[inline]
    pub fn is_turn_over(&self, now: u64) -> bool {
        now.saturating_sub(self.looked_at) > TURN
    }

    /// Takes the request that has waited longest.
    pub fn take_oldest(&mut self) -> Option<RequestId> {
        self.admission.take_oldest()
    }

    /// Takes those that have waited too long, the oldest first, so many at most.
    pub fn take_late(&mut self, now: u64, most: usize) -> Vec<RequestId> {
        self.admission.take_late(now, most)
    }

    /// Takes the request that would be served last, if more wait than may.
    pub fn take_excess(&mut self, now: impl FnOnce() -> u64) -> Option<RequestId> {
        self.admission.take_excess(self.looked_at, now)
    }

    /// Takes this request out; whether it was there.
    pub fn remove(&mut self, id: RequestId) -> bool {
        self.admission.remove(id)
    }

    /// The first request that may go to a sibling, in the order in which they would be served.
    pub fn find(&self, may_move: impl Fn(RequestId) -> bool) -> Option<RequestId> {
        self.admission.in_service_order(self.looked_at).find(|id| may_move(*id))
    }

    /// Tells siblings what waits here.
    pub fn publish(&self) {
        self.board.set(Word::Queued, self.admission.waiting() as u64);
        self.board.set(Word::Oldest, self.admission.oldest());
        self.publish_free();
    }
}

/// Calls, and those who make them.
impl Dispatch {
    #[inline]
    pub fn began(&mut self) {
        self.admission.capacity_mut().began();
        self.publish_calls();
    }

    #[inline]
    pub fn ended(&mut self) {
        self.admission.capacity_mut().ended();
        self.publish_calls();
    }

    fn publish_calls(&self) {
        self.board.set(Word::InFlight, self.admission.capacity().busy() as u64);
        self.publish_free();
    }

    /// So many app threads serve.
    pub fn set_threads(&mut self, threads: usize) {
        self.admission.capacity_mut().staff(threads);
        self.publish_free();
    }

    /// How many calls this worker may have under way.
    pub fn set_share(&mut self, share: usize) {
        if self.admission.capacity_mut().set_share(share) {
            self.publish_free();
        }
    }

    /// No app thread is there, whatever their count says; or one is back.
    pub fn set_stuck(&mut self, stuck: bool, now: u64) {
        if self.admission.capacity_mut().set_stuck(stuck, now) {
            self.publish_free();
        }
    }

    /// The worker leaves: siblings send nothing here.
    pub fn leave(&mut self) {
        self.is_leaving = true;
        self.publish_free();
    }

    /// Tells siblings how many requests could begin here at once.
    #[inline]
    fn publish_free(&self) {
        let free = if self.is_leaving { 0 } else { self.admission.offered() };
        self.board.set(Word::Free, free as u64);
    }
}
