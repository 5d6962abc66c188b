//! How many calls a worker may have under way, and how many requests could begin now.
//!
//! ```text
//!   joined   app threads that are there for calls, or the most that a hub runs      ─┐
//!   share    the most that this worker may have, of a limit of all workers           ├─▶ free = min(joined, share) - busy
//!   busy     calls under way                                                         ─┘
//!   stuck    no thread has come for a while: what is free cannot begin
//! ```
use crate::config;
use crate::exchange::buffers::POOLED;

/// What runs the calls of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callers {
    /// App threads with one call each. A thread comes for a request when it is free.
    Threads,
    /// One thread with an event loop. It comes for as many requests as it may run.
    Hub,
}

#[derive(Debug)]
pub struct Capacity {
    callers: Callers,
    busy: usize,
    share: usize,
    joined: usize,
    stuck: bool,
    /// When that began or ended.
    turned: u64,
}

impl Capacity {
    pub fn new(callers: Callers) -> Capacity {
        Capacity { callers, busy: 0, share: usize::MAX, joined: 0, stuck: false, turned: 0 }
    }

    /// Calls under way.
    #[inline]
    pub fn busy(&self) -> usize {
        self.busy
    }

    #[inline]
    pub fn began(&mut self) {
        self.busy += 1;
    }

    #[inline]
    pub fn ended(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// App threads came or left; so many are there.
    pub fn staff(&mut self, joined: usize) {
        self.joined = joined;
    }

    /// This worker may have so many calls under way. Whether that is new.
    pub fn set_share(&mut self, share: usize) -> bool {
        let before = std::mem::replace(&mut self.share, share);
        before != share
    }

    /// No app thread is there, though not all are in calls; or one is back. Whether that is new.
    pub fn set_stuck(&mut self, stuck: bool, now: u64) -> bool {
        if self.stuck == stuck {
            return false;
        }
        (self.stuck, self.turned) = (stuck, now);
        true
    }

    /// Whether the thread that asks may begin a call. A thread that asks is free; a hub may have calls enough.
    #[inline]
    pub fn may_start(&self) -> bool {
        self.busy < self.share && (!self.is_hub() || self.busy < self.joined)
    }

    /// Calls that could be added.
    #[inline]
    pub fn free(&self) -> usize {
        self.joined.min(self.share).saturating_sub(self.busy)
    }

    /// Calls that could be added by threads that are there.
    #[inline]
    pub fn ready(&self) -> usize {
        if self.stuck { 0 } else { self.free() }
    }

    /// Requests that do not count for `queue_limit`: a thread is about to come for them. A hub that is held up for a moment
    /// begins all that it may when it comes. `now` is asked for only if it matters.
    #[inline]
    pub fn about_to_begin(&self, now: impl FnOnce() -> u64) -> usize {
        if self.is_hub() && now() < self.moment_ends() { self.free() } else { self.ready() }
    }

    /// When a hub that does not come is taken for one that will not come soon; `None`: no hub is waited for.
    pub fn leniency_ends(&self) -> Option<u64> {
        (self.is_hub() && self.stuck).then(|| self.moment_ends())
    }

    fn moment_ends(&self) -> u64 {
        self.turned.saturating_add(config::MOMENT)
    }

    /// What siblings are told: requests that could begin here at once, when so many wait already.
    #[inline]
    pub fn offered(&self, waiting: usize) -> usize {
        let free = self.ready().saturating_sub(waiting);
        if self.is_hub() { free.min(config::HUB_FREE) } else { free }
    }

    /// All `most` places are taken by calls and by requests that wait. A hub may run `most` calls, and others wait beside
    /// them, within `queue_limit`.
    #[inline]
    pub fn is_full(&self, waiting: usize, most: usize) -> bool {
        !self.is_hub() && self.busy + waiting >= most
    }

    /// So many calls are under way that each of them waits for something, and for long.
    #[inline]
    pub fn has_many(&self) -> bool {
        self.is_hub() && self.busy > POOLED
    }

    #[inline]
    fn is_hub(&self) -> bool {
        self.callers == Callers::Hub
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(callers: Callers, joined: usize) -> Capacity {
        let mut capacity = Capacity::new(callers);
        capacity.staff(joined);
        capacity
    }

    #[test]
    fn calls_take_what_is_free_and_give_it_back() {
        let mut capacity = of(Callers::Threads, 2);
        capacity.began();
        assert_eq!((capacity.busy(), capacity.free(), capacity.ready()), (1, 1, 1));
        capacity.began();
        assert_eq!((capacity.free(), capacity.offered(0)), (0, 0));
        capacity.ended();
        assert_eq!((capacity.free(), capacity.offered(0), capacity.offered(1)), (1, 1, 0));
    }

    #[test]
    fn a_share_bounds_what_threads_could_take() {
        let mut capacity = of(Callers::Threads, 4);
        assert!(capacity.set_share(1) && !capacity.set_share(1));
        assert_eq!(capacity.free(), 1);
        capacity.began();
        assert!(!capacity.may_start());
        assert_eq!(capacity.free(), 0);
    }

    #[test]
    fn a_thread_that_asks_is_free_and_a_hub_may_have_enough() {
        for (callers, may_start) in [(Callers::Threads, true), (Callers::Hub, false)] {
            let mut capacity = of(callers, 1);
            capacity.began();
            assert_eq!(capacity.may_start(), may_start);
        }
    }

    #[test]
    fn what_is_stuck_offers_nothing() {
        let mut capacity = of(Callers::Threads, 3);
        assert!(capacity.set_stuck(true, 5) && !capacity.set_stuck(true, 6));
        assert_eq!((capacity.free(), capacity.ready(), capacity.offered(0)), (3, 0, 0));
        assert_eq!(capacity.about_to_begin(|| 5), 0, "a thread that does not come will not come soon");
        assert_eq!(capacity.leniency_ends(), None);
    }

    #[test]
    fn a_hub_that_is_held_up_for_a_moment_is_about_to_come() {
        let mut capacity = of(Callers::Hub, 3);
        capacity.set_stuck(true, 1_000);
        let end = 1_000 + config::MOMENT;
        assert_eq!(capacity.leniency_ends(), Some(end));
        assert_eq!((capacity.about_to_begin(|| end - 1), capacity.about_to_begin(|| end)), (3, 0));
    }

    #[test]
    fn a_hub_offers_a_few_at_a_time() {
        assert_eq!(of(Callers::Hub, 1_000).offered(0), config::HUB_FREE);
        assert_eq!(of(Callers::Threads, 1_000).offered(0), 1_000);
    }

    #[test]
    fn waiting_requests_take_places_of_threads_and_none_of_a_hub() {
        for (callers, is_full) in [(Callers::Threads, true), (Callers::Hub, false)] {
            let mut capacity = of(callers, 4);
            capacity.began();
            assert!(!capacity.is_full(2, 4));
            assert_eq!(capacity.is_full(3, 4), is_full);
        }
    }
}
