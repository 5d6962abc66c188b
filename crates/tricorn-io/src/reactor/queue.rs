//! Complete requests that wait to be begun: their order, and how long they may wait.
//!
//! Requests stand by the time at which they became complete, whichever way they came. The first is served first, unless the
//! queue has not been empty for so long that it would only pass its delay on (`queue_order = adaptive`): then the newest is,
//! whose client is the most likely to be there still. Of an HTTP/2 connection one request stands in the queue at a time (`lines.rs`).
use super::lines::{Lines, Waiting};
use crate::config::{self, QueueOrder};
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;
use std::collections::VecDeque;

#[derive(Debug)]
pub struct Queue {
    order: QueueOrder,
    /// By `complete`.
    waiting: VecDeque<Waiting>,
    /// Those behind others of their connection.
    lines: Lines,
    /// Connections whose request has left the queue: the next of each takes its place before another request is taken.
    left: Vec<Token>,
    /// Connections of which a request has begun without waiting here, since the events were looked at. They have had their turn, too.
    at_once: Vec<Token>,
    /// Since when it has not been empty.
    stands_since: u64,
    /// Not later than the first `due` of those that wait, while some do.
    due: u64,
}

impl Queue {
    pub fn new(order: QueueOrder) -> Queue {
        Queue {
            order,
            waiting: VecDeque::new(),
            lines: Lines::default(),
            left: Vec::new(),
            at_once: Vec::new(),
            stands_since: 0,
            due: u64::MAX,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.lines.count()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a request. One that came by the channel may have waited for longer than those that are here.
    pub fn insert(&mut self, waiting: Waiting, now: u64) {
        if self.is_empty() {
            (self.stands_since, self.due) = (now, waiting.due);
        }
        self.due = self.due.min(waiting.due);
        if let Some(trunk) = waiting.trunk
            && self.at_once.contains(&trunk)
            && self.lines.begin(trunk)
        {
            self.left.push(trunk);
        }
        if let Some(waiting) = self.lines.join(waiting) {
            let before = self.waiting.iter().rposition(|other| other.complete <= waiting.complete);
            self.waiting.insert(before.map_or(0, |before| before + 1), waiting);
        }
    }

    /// A request of this connection has begun without waiting: the next one stands behind whoever has asked meanwhile.
    #[inline]
    pub fn began_at_once(&mut self, trunk: Token) {
        if self.at_once.last() != Some(&trunk) {
            self.at_once.push(trunk);
        }
    }

    /// The events were looked at: another turn begins.
    #[inline]
    pub fn begin_turn(&mut self) {
        self.at_once.clear();
    }

    /// Takes the request that is served next.
    #[inline]
    pub fn next(&mut self, now: u64) -> Option<RequestId> {
        let newest_first = self.is_newest_first(now);
        self.follow(newest_first);
        let next = if newest_first { self.waiting.pop_back() } else { self.waiting.pop_front() };
        self.taken(next)
    }

    /// Takes the request that would be served last: the newest, or the oldest if the newest are first. What waits behind another of its
    /// connection comes after all that do not.
    pub fn last(&mut self, now: u64) -> Option<RequestId> {
        if let Some(waiting) = self.lines.take_last() {
            return Some(waiting.id);
        }
        let last = if self.is_newest_first(now) { self.waiting.pop_front() } else { self.waiting.pop_back() };
        self.taken(last)
    }

    /// Takes the request that has waited longest.
    pub fn take_oldest(&mut self) -> Option<RequestId> {
        self.follow(false);
        let oldest = self.waiting.pop_front();
        self.taken(oldest)
    }

    #[inline]
    fn taken(&mut self, waiting: Option<Waiting>) -> Option<RequestId> {
        let waiting = waiting?;
        self.left.extend(waiting.trunk);
        Some(waiting.id)
    }

    /// Connections whose request has left the queue: the next one of each stands where it is served last. Late, so that whoever has asked
    /// while that request was served stands before it.
    #[inline]
    fn follow(&mut self, newest_first: bool) {
        while let Some(trunk) = self.left.pop() {
            let Some(mut next) = self.lines.follow(trunk, newest_first) else { continue };
            if newest_first {
                next.complete = self.waiting.front().map_or(u64::MAX, |first| first.complete).min(next.complete);
                self.waiting.push_front(next);
            } else {
                next.complete = self.waiting.back().map_or(0, |last| last.complete).max(next.complete);
                self.waiting.push_back(next);
            }
        }
    }

    /// Takes those that have waited too long, so many at most: the oldest first, then those behind others of their connections.
    pub fn take_late(&mut self, now: u64, most: usize) -> Vec<RequestId> {
        if now < self.due {
            return Vec::new();
        }
        let (mut late, mut due) = (Vec::new(), u64::MAX);
        let mut stays = |waiting: &Waiting| {
            let stays = waiting.due > now || late.len() == most;
            if stays {
                due = due.min(waiting.due);
            } else {
                late.push(waiting.id);
            }
            stays
        };
        self.waiting.retain(|waiting| {
            let stays = stays(waiting);
            self.left.extend(waiting.trunk.filter(|_| !stays));
            stays
        });
        self.lines.retain(&mut stays);
        self.due = due;
        late
    }

    /// Takes this request out; whether it was there.
    pub fn remove(&mut self, id: RequestId) -> bool {
        match self.waiting.iter().position(|waiting| waiting.id == id) {
            Some(position) => {
                let removed = self.waiting.remove(position);
                self.taken(removed).is_some()
            }
            None => self.lines.remove(id),
        }
    }

    /// The requests, in the order in which they would be served.
    pub fn in_service_order(&self, now: u64) -> impl Iterator<Item = RequestId> {
        let (count, newest_first) = (self.waiting.len(), self.is_newest_first(now));
        let position = move |nth| if newest_first { count - 1 - nth } else { nth };
        let first = (0..count).filter_map(move |nth| self.waiting.get(position(nth)));
        first.chain(self.lines.iter()).map(|waiting| waiting.id)
    }

    /// When the request in front was complete, by its place in the queue; 0: none waits.
    #[inline]
    pub fn oldest(&self) -> u64 {
        self.waiting.front().or_else(|| self.lines.iter().next()).map_or(0, |waiting| waiting.complete)
    }

    /// Whether the request that is served next is one of an HTTP/2 connection.
    #[inline]
    pub fn is_stream_next(&self, now: u64) -> bool {
        let next = if self.is_newest_first(now) { self.waiting.back() } else { self.waiting.front() };
        next.map_or(self.lines.count() > 0, |waiting| waiting.trunk.is_some())
    }

    /// When a request may have waited too long; `u64::MAX`: never.
    #[inline]
    pub fn due(&self) -> u64 {
        // Those that were begun in time leave theirs behind.
        if self.is_empty() { u64::MAX } else { self.due }
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

    fn waiting(id: RequestId, complete: u64, due: u64) -> Waiting {
        Waiting { id, trunk: None, complete, due }
    }

    /// A request of an HTTP/2 connection.
    fn stream(trunk: u64, nr: u64, due: u64) -> Waiting {
        Waiting { trunk: Some(trunk), ..waiting(id(100 * trunk + nr), nr, due) }
    }

    fn connections(ids: impl IntoIterator<Item = RequestId>) -> Vec<u64> {
        ids.into_iter().map(RequestId::connection).collect()
    }

    fn of(order: QueueOrder, complete: &[u64]) -> Queue {
        let mut queue = Queue::new(order);
        for (connection, complete) in (1..).zip(complete) {
            queue.insert(waiting(id(connection), *complete, NEVER), 100);
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
        queue.insert(waiting(id(2), 20, NEVER), later);
        queue.insert(waiting(id(3), 30, NEVER), later);
        assert_eq!(served(queue, later + config::STANDING), [2, 3]);
    }

    #[test]
    fn those_that_waited_too_long_are_taken_once() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        for (connection, due) in [(1, 50), (2, 90), (3, 40)] {
            queue.insert(waiting(id(connection), connection, due), 0);
        }
        assert_eq!((queue.due(), queue.take_late(39, 9)), (40, vec![]));
        assert_eq!(queue.take_late(50, 1), [id(1)], "no more than were asked for");
        assert_eq!((queue.due(), queue.take_late(50, 9)), (40, vec![id(3)]));
        assert_eq!((queue.due(), queue.len()), (90, 1));
        assert_eq!(queue.next(60), Some(id(2)));
        assert_eq!(queue.due(), NEVER, "it was begun in time");
        queue.insert(waiting(id(4), 4, 200), 95);
        assert_eq!((queue.due(), queue.take_oldest()), (200, Some(id(4))));
        assert_eq!(queue.take_late(90, 9), [], "it is not there any more");
        assert_eq!((queue.due(), queue.oldest(), queue.is_empty()), (NEVER, 0, true));
    }

    #[test]
    fn requests_of_one_connection_wait_each_for_itself() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        let streams = [1, 3].map(|stream| RequestId::new(7, stream));
        for (complete, stream) in (1..).zip(streams) {
            queue.insert(waiting(stream, complete, NEVER), 0);
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

    /// Requests 100, 101 … of one HTTP/2 connection, and of others that came after them.
    fn greedy(order: QueueOrder) -> Queue {
        let mut queue = Queue::new(order);
        (0..4).for_each(|nr| queue.insert(stream(1, nr, NEVER), 0));
        queue.insert(waiting(id(7), 10, NEVER), 0);
        (0..2).for_each(|nr| queue.insert(stream(2, 11 + nr, NEVER), 0));
        queue
    }

    #[test]
    fn connections_with_many_streams_have_one_turn_in_each_round() {
        let mut queue = greedy(QueueOrder::Fifo);
        assert_eq!((queue.len(), queue.oldest()), (7, 0));
        assert_eq!(connections(queue.in_service_order(0))[..3], [100, 7, 211]);
        assert_eq!(connections((0..3).filter_map(|_| queue.next(0))), [100, 7, 211]);
        queue.insert(waiting(id(8), 20, NEVER), 0);
        assert_eq!(served(queue, 0), [101, 8, 212, 102, 103]);
    }

    #[test]
    fn who_has_asked_while_a_stream_was_served_stands_before_the_next_of_its_connection() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        (0..3).for_each(|nr| queue.insert(stream(1, nr, NEVER), 0));
        assert_eq!((queue.next(0), queue.len(), queue.oldest()), (Some(id(100)), 2, 1));
        assert!(queue.is_stream_next(0) && !queue.is_empty());
        queue.insert(waiting(id(7), 50, NEVER), 50);
        assert!(!queue.is_stream_next(50));
        assert_eq!(served(queue, 50), [7, 101, 102]);
    }

    #[test]
    fn who_has_asked_while_a_stream_was_served_that_had_not_waited_stands_before_the_next_of_its_connection() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        queue.began_at_once(1);
        (1..3).for_each(|nr| queue.insert(stream(1, nr, NEVER), 0));
        queue.insert(stream(2, 9, NEVER), 10);
        assert!((queue.len(), queue.oldest()) == (3, 9) && queue.is_stream_next(10));
        queue.insert(waiting(id(7), 50, NEVER), 50);
        assert_eq!(served(queue, 50), [209, 7, 101, 102]);
        let mut queue = Queue::new(QueueOrder::Fifo);
        queue.began_at_once(1);
        queue.insert(stream(1, 1, NEVER), 0);
        assert!(queue.is_stream_next(0) && queue.oldest() == 1, "nothing is held back");
        assert_eq!(served(queue, 0), [101]);
        let mut queue = Queue::new(QueueOrder::Fifo);
        queue.began_at_once(1);
        queue.begin_turn();
        queue.insert(stream(1, 2, NEVER), 20);
        queue.insert(waiting(id(7), 50, NEVER), 50);
        assert_eq!(served(queue, 50), [102, 7], "the events were looked at since");
    }

    #[test]
    fn the_newest_come_first_in_a_queue_that_stands_and_streams_behind_others_last() {
        let queue = greedy(QueueOrder::Adaptive);
        assert_eq!(served(queue, 2 * config::STANDING), [211, 7, 100, 212, 103, 102, 101]);
    }

    #[test]
    fn streams_behind_others_are_the_first_beyond_a_limit() {
        let mut queue = greedy(QueueOrder::Fifo);
        let beyond: Vec<_> = (0..7).filter_map(|_| queue.last(0)).collect();
        assert_eq!(connections(beyond), [103, 102, 212, 101, 211, 7, 100]);
        assert_eq!((queue.is_empty(), queue.len()), (true, 0));
    }

    #[test]
    fn each_stream_waits_for_as_long_as_it_may() {
        let mut queue = Queue::new(QueueOrder::Fifo);
        for (nr, due) in [(0, 90), (1, 50), (2, 70)] {
            queue.insert(stream(1, nr, due), 0);
        }
        queue.insert(waiting(id(7), 10, 95), 0);
        assert_eq!((queue.due(), connections(queue.take_late(50, 9))), (50, vec![101]));
        assert_eq!((queue.due(), connections(queue.take_late(90, 1))), (70, vec![100]));
        assert_eq!(connections(queue.in_service_order(0)), [7, 102], "it follows the first");
        assert_eq!((connections(queue.take_late(90, 9)), queue.due(), queue.len()), (vec![102], 95, 1));
    }

    /// Any order of arrivals, ends and removals: each request leaves once, in the order of its connection, and no connection has two
    /// turns before another one that waits has its first.
    #[test]
    fn nobody_waits_for_two_requests_of_another_connection() {
        let mut seed = 7_u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let mut queue = Queue::new(QueueOrder::Fifo);
            // Those that wait: which, of whom, and whom they have seen served since they came.
            let mut model: Vec<(RequestId, u64, Vec<u64>)> = Vec::new();
            for now in 1..200 {
                let owner = random(5);
                match random(8) {
                    0..=3 => {
                        let trunk = Some(owner).filter(|owner| *owner > 0);
                        let id = id(1000 * owner + now);
                        queue.insert(Waiting { id, trunk, complete: now, due: NEVER }, now);
                        model.push((id, owner, Vec::new()));
                    }
                    4 if !model.is_empty() => {
                        let (id, ..) = model.remove(random(model.len() as u64) as usize);
                        assert!(queue.remove(id) && !queue.remove(id));
                    }
                    _ => {
                        let next = queue.next(now);
                        assert_eq!(next.is_none(), model.is_empty(), "nothing is held back");
                        let Some(next) = next else { continue };
                        let position = model.iter().position(|(id, ..)| *id == next).expect("it waits");
                        let (_, owner, _) = model.remove(position);
                        let earlier = |(_, other, _): &(_, u64, _)| *other == owner;
                        assert!(!model[..position].iter().any(earlier), "in the order of its connection");
                        let mut seen_by = Vec::new();
                        for (_, other, seen) in &mut model {
                            if owner > 0 && *other != owner && !seen_by.contains(other) {
                                assert!(!seen.contains(&owner), "two of {owner} before one of {other}");
                                seen.push(owner);
                            }
                            // Others of an HTTP/2 connection stand behind its first; of others each has a place.
                            if *other > 0 {
                                seen_by.push(*other);
                            }
                        }
                    }
                }
                assert_eq!(queue.len(), model.len());
                assert_eq!(queue.in_service_order(now).count(), model.len());
            }
        }
    }
}
