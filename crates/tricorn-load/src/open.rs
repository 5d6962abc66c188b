//! The open model: requests come when they are due, whatever became of those before.
use std::collections::VecDeque;
use std::iter::Peekable;

use crate::clock::nanoseconds;
use crate::plan::Arrivals;
use crate::random::Random;
use crate::rate::{Moments, Profile};
use crate::request::Requests;

/// A request, and when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub due: u64,
    pub request: u32,
    /// It was due while all connections were busy.
    pub is_held: bool,
}

pub struct Open {
    source: Peekable<Source>,
    /// Clients with a connection that rests, by origin; the one that rested longest comes first.
    resting: Vec<VecDeque<u32>>,
    /// Requests that are due, by origin, while all connections are busy.
    backlog: Vec<VecDeque<Arrival>>,
    /// Most clients.
    most: usize,
    opens_all: bool,
    /// Chooses among the clients that rest.
    random: Option<Random>,
}

impl Open {
    pub fn new(
        plan: &crate::plan::Open,
        requests: &Requests,
        (thread, threads): (usize, usize),
        streams: usize,
    ) -> Open {
        let origins = requests.origins.len();
        let source = match &plan.arrivals {
            Arrivals::Rate { rate, stages, poisson } => Source::Rate {
                moments: Moments::new(Profile::new(*rate, stages), *poisson, thread, threads),
                cycle: requests.cycle.clone(),
                turn: thread,
                threads,
            },
            Arrivals::Replay { .. } => {
                let mine = requests.replay.iter().skip(thread).step_by(threads).copied().collect();
                Source::Replay { entries: mine }
            }
        };
        Open {
            source: source.peekable(),
            resting: vec![VecDeque::new(); origins],
            backlog: vec![VecDeque::new(); origins],
            most: crate::request::share(plan.connections, thread, threads) * streams,
            opens_all: plan.opens_all,
            random: plan.any_connection.then(|| Random::new(thread as u64 ^ 0x7069_636b)),
        }
    }

    /// When the next request is due. None: there is none.
    #[inline]
    pub fn next_due(&mut self) -> Option<u64> {
        self.source.peek().map(|arrival| arrival.due)
    }

    /// The next request, if it is due.
    #[inline]
    pub fn due(&mut self, now: u64) -> Option<Arrival> {
        self.source.next_if(|arrival| arrival.due <= now)
    }

    /// A client that rests; there are `count` clients. None while those that rest are to be left alone.
    #[inline]
    pub fn take(&mut self, origin: u32, count: usize) -> Option<u32> {
        if self.opens_all && count < self.most {
            return None;
        }
        let resting = &mut self.resting[origin as usize];
        match &mut self.random {
            None => resting.pop_front(),
            Some(random) => {
                let place = (random.unit() * resting.len() as f64) as usize;
                resting.swap_remove_front(place)
            }
        }
    }

    /// A client has nothing to do.
    #[inline]
    pub fn rest(&mut self, origin: u32, client: u32) {
        self.resting[origin as usize].push_back(client);
    }

    pub fn may_add_client(&self, count: usize) -> bool {
        count < self.most
    }

    /// All clients of the origin are busy.
    pub fn hold(&mut self, origin: u32, arrival: Arrival) {
        self.backlog[origin as usize].push_back(Arrival { is_held: true, ..arrival });
    }

    /// A request that was held.
    #[inline]
    pub fn held(&mut self, origin: u32) -> Option<Arrival> {
        self.backlog[origin as usize].pop_front()
    }

    /// A client that rests, and a request that it can take.
    pub fn match_held(&mut self) -> Option<(u32, Arrival)> {
        let pairs = self.resting.iter_mut().zip(&mut self.backlog);
        let (resting, backlog) =
            pairs.into_iter().find(|(resting, backlog)| !resting.is_empty() && !backlog.is_empty())?;
        resting.pop_front().zip(backlog.pop_front())
    }

    pub fn count_held(&self) -> usize {
        self.backlog.iter().map(VecDeque::len).sum()
    }
}

enum Source {
    Rate { moments: Moments, cycle: Vec<u32>, turn: usize, threads: usize },
    Replay { entries: VecDeque<(u64, u32)> },
}

impl Iterator for Source {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match self {
            Source::Rate { moments, cycle, turn, threads } => {
                let due = nanoseconds(moments.next()?);
                let request = cycle[*turn % cycle.len()];
                *turn += *threads;
                Some(Arrival { due, request, is_held: false })
            }
            Source::Replay { entries } => {
                entries.pop_front().map(|(due, request)| Arrival { due, request, is_held: false })
            }
        }
    }
}
