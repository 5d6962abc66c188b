//! Where requests are: of those that take longer than `profile_after`, why; and of all of them, while a profile is taken.
//!
//! ```text
//!   a request begins ─rings, if none is under way─▶ sampler (a thread): plan ──▶ frames of the thread: read from memory, without the GIL
//!                                                     │                    └──▶ frames of a greenlet or task that waits: the hub
//!   a request ends early ──▶ counts (one in 13)       ▼                         is rung for, and tells them when it comes
//!                                    └────────────▶ routes ──▶ a file without a name, which the arbiter reads
//! ```
//!
//! * `sampling/` of tricorn-diagnosis: which requests are looked at, when, and what is kept of them.
//! * `monitor/sampler/`: the thread.
use crate::clock::{self, MILLI};
use crate::scoreboard::routes::Routes;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::wake::Alarm;
use crate::waiting::sleeper::Sleeper;
use rustix::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tricorn_diagnosis::sampling::counts::{Counts, ONE_IN};
use tricorn_diagnosis::sampling::{Named, route};

/// What the sampler and the calls tell each other.
pub struct Sampling {
    /// How long a request runs before it is looked at; 0: none is.
    pub after: u64,
    pub alarm: Arc<Alarm>,
    pub sleeper: Sleeper,
    pub counts: Counts,
    /// Routes of requests that were looked at and are over.
    pub named: Mutex<Vec<Named>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The route of a call that ends.
#[derive(Clone, Copy)]
pub struct Ended {
    pub routes: Routes,
    pub route: u16,
    /// How long the call took.
    pub length: u64,
}

impl Sampling {
    pub fn new(after: u64) -> io::Result<Sampling> {
        let alarm = Arc::new(Alarm::new()?);
        Ok(Sampling {
            after,
            sleeper: Sleeper::new(alarm.clone()),
            alarm,
            counts: Counts::default(),
            named: Mutex::default(),
            thread: Mutex::default(),
        })
    }

    /// A call has begun, and stands on the scoreboard; with a full barrier since: a sampler that does not see the call is seen
    /// by it lying down.
    #[inline]
    pub fn began(&self, started: u64) {
        if self.after > 0 {
            self.sleeper.wake_by(started.saturating_add(self.after));
        }
    }

    /// The call in this slot is about to end. `route`: if its application has told one. Under the baton.
    #[inline]
    pub fn ends(&self, board: Scoreboard, slot: usize, route: Option<Ended>) {
        if self.after == 0 {
            return;
        }
        if let Some(ended) = route.filter(|ended| ended.length >= self.after) {
            self.name(board, slot, ended);
        }
        if board.get(Word::Requests).is_multiple_of(ONE_IN) {
            self.count(board, slot, route);
        }
    }

    /// Before the scoreboard says that the call is over: the sampler, which sees that, finds the name.
    #[cold]
    fn name(&self, board: Scoreboard, slot: usize, ended: Ended) {
        let Some((line, length)) = board.call_line(slot) else { return };
        let Some(name) = ended.routes.name(usize::from(ended.route)) else { return };
        let (started, hash) = (board.call_started(slot), ended.hash(&line[..length]));
        let mut named = lock(&self.named);
        if named.len() < MOST_NAMED {
            named.push(Named { slot, started, hash, name: route::with_method(&line[..length], &name) });
        }
    }

    #[cold]
    fn count(&self, board: Scoreboard, slot: usize, route: Option<Ended>) {
        let started = board.call_started(slot);
        if started == 0 || clock::now().saturating_sub(started) >= self.after {
            return;
        }
        if let Some((line, length)) = board.call_line(slot) {
            let line = &line[..length];
            self.counts.add(route.map_or_else(|| route::hash(line), |ended| ended.hash(line)));
        }
    }

    pub fn is_on(&self) -> bool {
        self.after > 0
    }

    pub fn keep_thread(&self, handle: JoinHandle<()>) {
        *lock(&self.thread) = Some(handle);
    }

    /// Ends the sampler, once the engine is closed.
    pub fn end(&self) {
        self.alarm.ring();
        if let Some(handle) = lock(&self.thread).take() {
            let _ = handle.join(); // a panic of it costs the profile only
        }
    }

    /// Its descriptor, which has to be made quiet in a child of the application.
    pub fn alarm(&self) -> &Alarm {
        &self.alarm
    }
}

impl Ended {
    fn hash(&self, line: &[u8]) -> u64 {
        route::hash_of_named(line, self.routes.hash(self.route))
    }
}

/// Names that wait for the sampler.
const MOST_NAMED: usize = 256;

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The share of a processor that the sampler may have is one in so many.
pub const SHARE: u64 = 100;
/// That of a profile, which is taken for a while.
pub const SHARE_OF_PROFILE: u64 = 10;
/// Between two reports, at least.
pub const REPORTS: u64 = 500 * MILLI;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_counted_as_early_if_it_is_not_slow() {
        let board = Scoreboard::private(1);
        board.begin(1);
        board.call_begins(0, clock::now(), [b"GET", b" ", b"/a"]);
        let route = route::hash(b"GET /a");
        for (after, counted) in [(u64::MAX, ONE_IN), (1, 0)] {
            let sampling = Sampling::new(after).expect("a descriptor");
            while clock::now() <= board.call_started(0) + 1 {}
            sampling.ends(board, 0, None);
            assert_eq!(sampling.counts.of(route), counted);
        }
    }

    #[test]
    fn one_request_of_so_many_is_counted() {
        let board = Scoreboard::private(1);
        board.begin(1);
        board.call_begins(0, clock::now(), [b"GET", b" ", b"/a"]);
        let sampling = Sampling::new(u64::MAX).expect("a descriptor");
        for requests in 0..5 * ONE_IN {
            board.set(Word::Requests, requests);
            sampling.ends(board, 0, None);
        }
        assert_eq!(sampling.counts.of(route::hash(b"GET /a")), 5 * ONE_IN);
    }

    #[test]
    fn a_route_that_the_application_tells_is_that_of_the_profile() {
        let (board, routes) = (Scoreboard::private(1), Routes::private(2, 1).expect("pages"));
        board.begin(1);
        board.call_begins(0, 7, [b"GET", b" ", b"/users/anna"]);
        let ended = Ended { routes, route: routes.place("/users/{name}"), length: 50 };
        for (after, names) in [(100, 0), (50, 1)] {
            let sampling = Sampling::new(after).expect("a descriptor");
            sampling.ends(board, 0, Some(ended));
            let named = lock(&sampling.named);
            assert!(named.iter().all(|named| named.name == "GET /users/{name}" && named.started == 7), "{named:?}");
            assert_eq!(named.len(), names, "only what was looked at needs a name");
        }
        let sampling = Sampling::new(u64::MAX).expect("a descriptor");
        board.call_begins(0, clock::now(), [b"GET", b" ", b"/users/bob"]);
        sampling.ends(board, 0, Some(ended));
        assert_eq!(sampling.counts.of(ended.hash(b"GET /users/anna")), ONE_IN, "two paths, one route");
        assert_ne!(ended.hash(b"GET /users/anna"), ended.hash(b"PUT /users/anna"));
    }
}
