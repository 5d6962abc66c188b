//! Which complete requests may begin, which wait, and which are turned away.
//!
//! ```text
//!                    may_start                                   ┌─ queue_timeout is over: take_late
//!   complete ──────────────────▶ begun        insert ──▶ queue ──┼─ more than queue_limit: take_excess
//!       └──── a request waits, or may not start ─────────▲       └─ may_start: next ──▶ begun
//! ```
//!
//! [`Capacity`] knows what could begin, [`Queue`] what waits. What depends on both stands here.
use super::connections::Waits;
use super::lines::Waiting;
use super::queue::Queue;
use crate::config::Config;
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;
use crate::waiting::capacity::{Callers, Capacity};

#[derive(Debug)]
pub(super) struct Admission {
    queue: Queue,
    capacity: Capacity,
    limits: Limits,
}

/// Bounds of what waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Most requests that wait (`queue_limit`); 0: any number.
    pub waiting: usize,
    /// How long one may wait (`queue_timeout`); 0: as long as it likes.
    pub wait: u64,
    /// Most requests that run or wait (`worker_connections`).
    pub held: usize,
}

impl Limits {
    pub fn new(config: &Config) -> Limits {
        Limits { waiting: config.queue_limit, wait: config.queue_timeout, held: config.worker_connections }
    }
}

impl Admission {
    pub fn new(queue: Queue, callers: Callers, limits: Limits) -> Admission {
        Admission { queue, capacity: Capacity::new(callers), limits }
    }

    /// Requests that wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// When the request that has waited longest was complete; 0: none waits.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.queue.oldest()
    }

    /// The request waits from now on.
    pub fn insert(&mut self, id: RequestId, waits: &Waits, now: u64) {
        let Waits { trunk, complete, since } = *waits;
        let due = if self.limits.wait > 0 { since.saturating_add(self.limits.wait) } else { u64::MAX };
        self.queue.insert(Waiting { id, trunk, complete, due }, now);
    }

    /// The events were looked at.
    pub fn begin_turn(&mut self) {
        self.queue.begin_turn();
    }

    /// A request of this HTTP/2 connection has begun without waiting.
    pub fn began_at_once(&mut self, trunk: Token) {
        self.queue.began_at_once(trunk);
    }

    /// Takes the request that is served next.
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<RequestId> {
        self.queue.next(now)
    }

    /// Whether the request that is served next is one of an HTTP/2 connection.
    #[inline]
    pub fn is_stream_next(&self, now: u64) -> bool {
        self.queue.is_stream_next(now)
    }

    /// Takes the request that has waited longest.
    pub fn take_oldest(&mut self) -> Option<RequestId> {
        self.queue.take_oldest()
    }

    /// Takes those that have waited too long, the oldest first, so many at most.
    pub fn take_late(&mut self, now: u64, most: usize) -> Vec<RequestId> {
        self.queue.take_late(now, most)
    }

    /// Takes the request that would be served last, if more wait than may. `looked_at`: the time by which the queue is ordered.
    pub fn take_excess(&mut self, looked_at: u64, now: impl FnOnce() -> u64) -> Option<RequestId> {
        if self.is_over_limit(now) { self.queue.last(looked_at) } else { None }
    }

    /// Takes this request out; whether it was there.
    pub fn remove(&mut self, id: RequestId) -> bool {
        self.queue.remove(id)
    }

    /// The requests that wait, in the order in which they would be served.
    pub fn in_service_order(&self, now: u64) -> impl Iterator<Item = RequestId> {
        self.queue.in_service_order(now)
    }

    /// Whether a request that waits since then has waited too long to begin.
    #[inline]
    pub fn is_too_late(&self, since: u64, now: u64) -> bool {
        self.limits.wait > 0 && now.saturating_sub(since) >= self.limits.wait
    }

    /// More requests wait than may. `now` is asked for only if it matters.
    #[inline]
    pub fn is_over_limit(&self, now: impl FnOnce() -> u64) -> bool {
        let (limit, waiting) = (self.limits.waiting, self.queue.len());
        limit > 0 && waiting > limit && waiting > limit + self.capacity.about_to_begin(now)
    }

    /// When the next waiting request has waited too long, or is one too many; `None`: never.
    pub fn due(&self) -> Option<u64> {
        let is_beyond = self.limits.waiting > 0 && self.queue.len() > self.limits.waiting;
        let strict = self.capacity.leniency_ends().filter(|_| is_beyond).unwrap_or(u64::MAX);
        let due = self.queue.due().min(strict);
        (due != u64::MAX).then_some(due)
    }

    /// As many requests run and wait as may be held at all.
    pub fn is_full(&self) -> bool {
        self.capacity.is_full(self.queue.len(), self.limits.held)
    }

    /// More requests wait than app threads here could begin.
    pub fn waits_in_vain(&self) -> bool {
        self.queue.len() > self.capacity.ready()
    }

    /// Requests that could begin here at once, beside those that wait: what siblings are told.
    #[inline]
    pub fn offered(&self) -> usize {
        self.capacity.offered(self.queue.len())
    }

    /// What could begin, whatever waits.
    #[inline]
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    #[inline]
    pub fn capacity_mut(&mut self) -> &mut Capacity {
        &mut self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{self, QueueOrder};

    /// The only request of a connection.
    fn id(connection: u64) -> RequestId {
        RequestId::new(connection, 0)
    }

    fn waits(complete: u64, since: u64) -> Waits {
        Waits { trunk: None, complete, since }
    }

    fn of(callers: Callers, joined: usize, limits: Limits) -> Admission {
        let mut admission = Admission::new(Queue::new(QueueOrder::Fifo), callers, limits);
        admission.capacity_mut().staff(joined);
        admission
    }

    const LIMITS: Limits = Limits { waiting: 2, wait: 100, held: 5 };

    #[test]
    fn what_a_free_thread_will_take_does_not_count_for_the_limit() {
        let mut admission = of(Callers::Threads, 1, LIMITS);
        for nr in 1..=4 {
            admission.insert(id(nr), &waits(nr, nr), 10);
        }
        assert_eq!(admission.take_excess(10, || 10), Some(id(4)), "one will begin, two may wait");
        assert_eq!(admission.take_excess(10, || 10), None);
        admission.capacity_mut().began();
        assert_eq!(admission.take_excess(10, || 10), Some(id(3)));
        assert_eq!((admission.waiting(), admission.oldest()), (2, 1));
    }

    #[test]
    fn a_request_is_late_from_when_it_began_to_wait() {
        let mut admission = of(Callers::Threads, 0, LIMITS);
        admission.insert(id(1), &waits(50, 20), 50);
        assert_eq!((admission.due(), admission.take_late(119, 9)), (Some(120), vec![]));
        assert_eq!(admission.take_late(120, 9), [id(1)]);
        assert!(
            !admission.is_too_late(20, 119) && admission.is_too_late(20, 120),
            "the same moment as for those that wait"
        );
        let unlimited = of(Callers::Threads, 0, Limits { wait: 0, ..LIMITS });
        assert!(!unlimited.is_too_late(20, u64::MAX) && unlimited.due().is_none());
    }

    #[test]
    fn a_hub_that_is_held_up_is_waited_for_before_requests_are_one_too_many() {
        let mut admission = of(Callers::Hub, 9, Limits { wait: 0, ..LIMITS });
        for nr in 1..=3 {
            admission.insert(id(nr), &waits(nr, nr), 10);
        }
        admission.capacity_mut().set_stuck(true, 1_000);
        let end = 1_000 + config::MOMENT;
        assert_eq!((admission.due(), admission.is_over_limit(|| end - 1)), (Some(end), false));
        assert_eq!(admission.take_excess(10, || end), Some(id(3)));
        assert_eq!(admission.due(), None, "two may wait");
    }

    #[test]
    fn what_runs_and_waits_fills_a_worker() {
        let mut admission = of(Callers::Threads, 3, LIMITS);
        (0..3).for_each(|_| admission.capacity_mut().began());
        assert!(!admission.waits_in_vain() && !admission.is_full());
        admission.insert(id(1), &waits(10, 10), 10);
        admission.insert(id(2), &waits(11, 11), 11);
        assert!(admission.waits_in_vain() && admission.is_full() && admission.offered() == 0);
    }
}
