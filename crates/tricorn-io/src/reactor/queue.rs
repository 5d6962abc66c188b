//! Complete requests that wait to be begun: their order, and how long they may wait.
//!
//! Requests stand by the time at which they became complete, whichever way they came. The first is served first, unless the
//! queue has not been empty for so long that it would only pass its delay on (`queue_order = adaptive`): then the newest is,
//! whose client is the most likely to be there still.
use crate::config::{self, QueueOrder};
use crate::exchange::id::RequestId;
use std::collections::VecDeque;

#[derive(Debug)]
struct Waiting {
    id: RequestId,
    complete: u64,
    /// Until when it may wait; `u64::MAX`: as long as it likes.
    due: u64,
}

#[derive(Debug)]
pub struct Queue {
    order: QueueOrder,
    /// By `complete`.
    waiting: VecDeque<Waiting>,
    /// Since when it has not been empty.
    stands_since: u64,
    /// Not later than the first `due` of those that wait, while some do.
    due: u64,
}

impl Queue {
    pub fn new(order: QueueOrder) -> Queue {
        Queue { order, waiting: VecDeque::new(), stands_since: 0, due: u64::MAX }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds a request. One that came by the channel may have waited for longer than those that are here.
    pub fn insert(&mut self, id: RequestId, complete: u64, due: u64, now: u64) {
        if self.waiting.is_empty() {
            (self.stands_since, self.due) = (now, due);
        }
        self.due = self.due.min(due);
        let at = self.waiting.iter().rposition(|other| other.complete <= complete).map_or(0, |before| before + 1);
        self.waiting.insert(at, Waiting { id, complete, due });
    }

    /// Takes the request that is served next.
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<RequestId> {
        let next = if self.is_newest_first(now) { self.waiting.pop_back() } else { self.waiting.pop_front() };
        next.map(|waiting| waiting.id)
    }

    /// Takes the request that would be served last: the newest, or the oldest if the newest are first.
    pub fn last(&mut self, now: u64) -> Option<RequestId> {
        let last = if self.is_newest_first(now) { self.waiting.pop_front() } else { self.waiting.pop_back() };
        last.map(|waiting| waiting.id)
    }

    /// Takes the request that has waited longest.
    pub fn take_oldest(&mut self) -> Option<RequestId> {
        self.waiting.pop_front().map(|waiting| waiting.id)
    }

    /// Takes all that have waited too long, the oldest first.
    pub fn take_late(&mut self, now: u64, most: usize) -> Vec<RequestId> {
        if now < self.due {
            return Vec::new();
        }
        self.due = u64::MAX;
        let mut late = Vec::new();
        self.waiting.retain(|waiting| {
            let stays = waiting.due > now || late.len() == most;
            if stays {
                self.due = self.due.min(waiting.due);
            } else {
                late.push(waiting.id);
            }
            stays
        });
        late
    }

    /// Takes this request out; whether it was there.
    pub fn remove(&mut self, id: RequestId) -> bool {
        match self.waiting.iter().position(|waiting| waiting.id == id) {
            Some(position) => self.waiting.remove(position).is_some(),
            None => false,
        }
    }

    /// The requests, in the order in which they would be served.
    pub fn in_service_order(&self, now: u64) -> impl Iterator<Item = RequestId> {
        let (count, newest_first) = (self.waiting.len(), self.is_newest_first(now));
        let position = move |nth| if newest_first { count - 1 - nth } else { nth };
        (0..count).filter_map(move |nth| self.waiting.get(position(nth))).map(|waiting| waiting.id)
    }

    /// When the request that has waited longest was complete; 0: none waits.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.waiting.front().map_or(0, |waiting| waiting.complete)
    }

    /// When a request may have waited too long; `u64::MAX`: never.
    #[inline]
    pub fn due(&self) -> u64 {
        // Those that were begun in time leave theirs behind.
        if self.waiting.is_empty() { u64::MAX } else { self.due }
    }

    fn is_newest_first(&self, now: u64) -> bool {
        self.order == QueueOrder::Adaptive && now.saturating_sub(self.stands_since) > config::STANDING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: u64 = u64::MAX;

    /// The only request of a connection.
    fn id(connection: u64) -> RequestId {
        RequestId::new(connection, 0)
    }

    fn connections(ids: impl IntoIterator<Item = RequestId>) -> Vec<u64> {
        ids.into_iter().map(RequestId::connection).collect()
    }

    fn of(order: QueueOrder, complete: &[u64]) -> Queue {
        let mut queue = Queue::new(order);
        for (connection, complete) in (1..).zip(complete) {
            queue.insert(id(connection), *complete, NEVER, 100);
        }
        queue
    }

    fn served(mut queue: Queue, now: u64) -> Vec<u64> {
        connections(std::iter::from_fn(|| queue.next(now)))
    }

    #[test]
    fn who_was_complete_first_is_served_first_whenever_it_came() {
        let queue = of(QueueOrder::Fifo, &[10, 30, 20, 30, 5]);
        assert_eq!(queue.oldest(), 5);
        assert_eq!(connections(queue.in_service_order(NEVER)), [5, 1, 3, 2, 4]);
        assert_eq!(served(queue, NEVER), [5, 1, 3, 2, 4]);
    }

    #[test]
    fn a_queue_that_stands_serves_the_newest() {
        let stands = 100 + config::STANDING;
        assert_eq!(served(of(QueueOrder::Adaptive, &[10, 20, 30]), stands), [1, 2, 3]);
        let mut queue = of(QueueOrder::Adaptive, &[10, 20, 30]);
        assert_eq!(connections(queue.in_service_order(stands + 1)), [3, 2, 1]);
        assert_eq!(queue.last(stands + 1), Some(id(1)));
        assert_eq!(served(queue, stands + 1), [3, 2]);
    }

    #[test]
    fn a_queue_that_was_empty_stands_from_then_on() {
        let mut queue = of(QueueOrder::Adaptive, &[10]);
        assert_eq!(queue.next(100), Some(id(1)));
        let later = 100 + 2 * config::STANDING;
        queue.insert(id(2), 20, NEVER, later);
        queue.insert(id(3), 30, NEVER, later);
        assert_eq!(served(queue, later + config::STANDING), [2, 3]);
    }

    #[test]
    fn those_that_waited_too_long_are_taken_once() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        for (connection, due) in [(1, 50), (2, 90), (3, 40)] {
            queue.insert(id(connection), connection, due, 0);
        }
        assert_eq!((queue.due(), queue.take_late(39, 9)), (40, vec![]));
        assert_eq!(queue.take_late(50, 1), [id(1)], "no more than were asked for");
        assert_eq!((queue.due(), queue.take_late(50, 9)), (40, vec![id(3)]));
        assert_eq!((queue.due(), queue.len()), (90, 1));
        assert_eq!(queue.next(60), Some(id(2)));
        assert_eq!(queue.due(), NEVER, "it was begun in time");
        queue.insert(id(4), 4, 200, 95);
        assert_eq!((queue.due(), queue.take_oldest()), (200, Some(id(4))));
        assert_eq!(queue.take_late(90, 9), [], "it is not there any more");
        assert_eq!((queue.due(), queue.oldest(), queue.is_empty()), (NEVER, 0, true));
    }

    #[test]
    fn requests_of_one_connection_wait_each_for_itself() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        let streams = [1, 3].map(|stream| RequestId::new(7, stream));
        for (complete, stream) in (1..).zip(streams) {
            queue.insert(stream, complete, NEVER, 0);
        }
        assert!(queue.remove(streams[0]) && !queue.remove(streams[0]));
        assert_eq!(queue.next(0), Some(streams[1]));
    }

    #[test]
    fn one_that_leaves_is_gone() {
        let mut queue = of(QueueOrder::Fifo, &[10, 20]);
        assert!(queue.remove(id(1)) && !queue.remove(id(1)));
        assert_eq!((queue.last(NEVER), queue.take_oldest()), (Some(id(2)), None));
    }
}
