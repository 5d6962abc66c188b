//! The closed model: each client sends its next request when the last one was answered.
use crate::clock::{SECOND, nanoseconds};
use crate::plan;
use crate::random::Random;

pub struct Closed {
    think: Option<(f64, f64)>,
    /// Nanoseconds between two requests of a client, at least.
    gap: u64,
    random: Random,
    /// For each client the place in its origin's cycle.
    turns: Vec<usize>,
}

impl Closed {
    /// `clients` of this thread, of which `streams` share a connection.
    pub fn new(plan: &plan::Closed, (clients, streams): (usize, usize), thread: usize) -> Closed {
        Closed {
            think: plan.think,
            gap: plan.pace.map_or(0, |pace| nanoseconds(streams as f64 / pace)),
            random: Random::new(thread as u64 ^ 0x7468_696e_6b21),
            // Clients begin with different requests.
            turns: (0..clients).collect(),
        }
    }

    /// When the client of this number, among all, sends its first request.
    pub fn hatched(plan: &plan::Closed, number: usize) -> u64 {
        plan.hatch_rate.map_or(0, |rate| (number as f64 / rate * SECOND as f64) as u64)
    }

    /// When a client sends its next request: one was begun then, and has come to its end now.
    #[inline]
    pub fn next(&mut self, begun: u64, now: u64) -> u64 {
        match self.think {
            Some((low, high)) => now + nanoseconds(self.random.between(low, high)),
            None => now.max(begun + self.gap),
        }
    }

    /// The next request of a client, of those of its origin.
    #[inline]
    pub fn request(&mut self, client: usize, cycle: &[u32]) -> u32 {
        if cycle.len() == 1 {
            return cycle[0];
        }
        let turn = &mut self.turns[client];
        *turn += 1;
        cycle[*turn % cycle.len()]
    }
}
