//! Hosts with slots, and one queue before them or one before each.

use crate::random::Random;

/// How requests wait inside a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inside {
    /// The first slot that is free takes the oldest request: tricorn.
    OneQueue,
    /// A connection belongs to a worker, and its requests wait for that one: gunicorn, uvicorn, granian.
    QueueEach,
}

pub struct Host {
    /// When each slot will have done what was given to it, in seconds.
    free_at: Vec<f64>,
    inside: Inside,
    /// How much longer a request takes here.
    slowness: f64,
}

pub struct Served {
    pub wait: f64,
    pub finish: f64,
    pub busy: f64,
}

impl Host {
    pub fn new(slots: usize, inside: Inside, slowness: f64) -> Self {
        Self { free_at: vec![0.0; slots], inside, slowness }
    }

    /// As it is after a long time under `load` with a queue for each slot: an M/M/1 queue is empty with 1 − load,
    /// and else its work is exponential with the mean service / (1 − load). A good start for other balancers, too.
    pub fn settle(&mut self, load: f64, service: f64, random: &mut Random) {
        if self.inside == Inside::QueueEach {
            for free_at in &mut self.free_at {
                if random.unit() < load {
                    *free_at = random.exponential(service / (1.0 - load));
                }
            }
        }
    }

    pub fn serve(&mut self, now: f64, service: f64, random: &mut Random) -> Served {
        let slot = match self.inside {
            Inside::OneQueue => self.first_free(),
            Inside::QueueEach => random.below(self.free_at.len()),
        };
        let begin = self.free_at[slot].max(now);
        let busy = service * self.slowness;
        self.free_at[slot] = begin + busy;
        Served { wait: begin - now, finish: begin + busy, busy }
    }

    /// How long a request that arrives now would wait.
    pub fn wait(&self, now: f64) -> f64 {
        (self.free_at[self.first_free()] - now).max(0.0)
    }

    fn first_free(&self) -> usize {
        let mut first = 0;
        for (slot, free_at) in self.free_at.iter().enumerate() {
            if *free_at < self.free_at[first] {
                first = slot;
            }
        }
        first
    }
}
