//! The limiter on simulated services, with real scoreboards and a simulated clock.

use super::Limiter;
use super::windows::GLANCE;
use super::windows::Windows;
use crate::scoreboard::{APP_TIME, Scoreboard, State, Word};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tricorn_sys::clock::{MILLI, SECOND};

const WORKERS: usize = 4;

/// How long a call takes without others.
#[derive(Clone, Copy)]
enum Noise {
    /// Up to a fifth more or less.
    Even,
    Exponential,
    /// One in ten takes 30 times as long, and needs no connection.
    TenthSlow,
    /// Six in ten are answered from a cache in a twentieth of the time, without a connection.
    Cached,
}

#[derive(Clone, Copy, PartialEq)]
enum Event {
    Arrival,
    /// A call ends that began then; whether it gives a connection back.
    End {
        began: u64,
        worker: usize,
        connection: bool,
    },
}

struct Simulation {
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    kinds: Vec<Event>,
    boards: Vec<Scoreboard>,
    limiter: Limiter,
    windows: Windows,
    random: u64,
    noise: Noise,
    /// Mean latency of a call without others, nanoseconds.
    base: u64,
    /// Connections of the database: the knee.
    connections: u64,
    connected: u64,
    /// Calls that wait for a connection.
    waiting: VecDeque<(u64, usize)>,
    running: Vec<u64>,
    /// Arrivals per second; 0: there is always one more.
    rate: f64,
    arriving: bool,
    queue: u64,
    ended: u64,
    glance_at: u64,
    /// The limit at every glance.
    limits: Vec<u64>,
}

impl Simulation {
    fn new(threads: u64, connections: u64, base: u64, noise: Noise, seed: u64) -> Simulation {
        let each = threads as usize / WORKERS;
        let boards: Vec<Scoreboard> = (0..WORKERS).map(|_| Scoreboard::private(each)).collect();
        for board in &boards {
            board.begin(each);
            board.state(State::Serving);
        }
        Simulation {
            now: 0,
            events: BinaryHeap::new(),
            kinds: Vec::new(),
            limiter: Limiter::new(threads, 0, seed.wrapping_mul(0x2545_f491_4f6c_dd1d)),
            windows: Windows::new(boards.iter().copied(), 0),
            boards,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            noise,
            base,
            connections,
            connected: 0,
            waiting: VecDeque::new(),
            running: vec![0; WORKERS],
            rate: 0.0,
            arriving: false,
            queue: 0,
            ended: 0,
            glance_at: 0,
            limits: Vec::new(),
        }
    }

    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn at(&mut self, due: u64, event: Event) {
        self.events.push(Reverse((due, self.kinds.len() as u64)));
        self.kinds.push(event);
    }

    /// Runs for so long; returns what ended in a second.
    fn run(&mut self, time: u64) -> f64 {
        let (until, before) = (self.now + time, self.ended);
        self.limits.clear();
        if self.rate > 0.0 && !self.arriving {
            self.arriving = true;
            self.arrive();
        }
        while self.now < until {
            self.admit();
            let due = self.events.peek().map_or(u64::MAX, |Reverse((due, _))| *due);
            if due >= self.glance_at {
                self.now = self.glance_at;
                self.glance_at += GLANCE;
                self.glance();
            } else if let Some(Reverse((due, index))) = self.events.pop() {
                self.now = due;
                match self.kinds[index as usize] {
                    Event::Arrival => {
                        self.queue += 1;
                        self.arrive();
                    }
                    Event::End { began, worker, connection } => self.end(began, worker, connection),
                }
            }
        }
        (self.ended - before) as f64 / (time as f64 / SECOND as f64)
    }

    fn arrive(&mut self) {
        let pause = -self.random().ln() / self.rate * SECOND as f64;
        self.at(self.now + pause as u64, Event::Arrival);
    }

    fn admit(&mut self) {
        while (self.rate == 0.0 || self.queue > 0) && self.running.iter().sum::<u64>() < self.limiter.limit() {
            self.queue = self.queue.saturating_sub(1);
            let worker = (0..WORKERS).min_by_key(|worker| self.running[*worker]).unwrap();
            self.running[worker] += 1;
            self.boards[worker].set(Word::InFlight, self.running[worker]);
            let kind = self.random();
            let base = self.base as f64;
            match self.noise {
                Noise::TenthSlow if kind < 0.1 => self.sleep(30.0 * base, worker),
                Noise::Cached if kind < 0.6 => self.sleep(base / 20.0, worker),
                _ if self.connected < self.connections => {
                    self.connected += 1;
                    self.query(self.now, worker);
                }
                _ => self.waiting.push_back((self.now, worker)),
            }
        }
    }

    fn sleep(&mut self, time: f64, worker: usize) {
        let time = time * (0.8 + 0.4 * self.random());
        self.at(self.now + time as u64, Event::End { began: self.now, worker, connection: false });
    }

    fn query(&mut self, began: u64, worker: usize) {
        let random = self.random();
        let factor = if matches!(self.noise, Noise::Exponential) { -random.ln() } else { 0.8 + 0.4 * random };
        let time = (self.base as f64 * factor) as u64;
        self.at(self.now + time, Event::End { began, worker, connection: true });
    }

    fn end(&mut self, began: u64, worker: usize, connection: bool) {
        self.ended += 1;
        self.running[worker] -= 1;
        self.boards[worker].set(Word::InFlight, self.running[worker]);
        self.boards[worker].observe(APP_TIME, self.now - began);
        if connection {
            self.connected -= 1;
        }
        while self.connected < self.connections
            && let Some((began, worker)) = self.waiting.pop_front()
        {
            self.connected += 1;
            self.query(began, worker);
        }
    }

    fn glance(&mut self) {
        let length = self.limiter.window_length();
        if let Some(window) = self.windows.look(self.boards.iter().copied(), length, self.now) {
            self.limiter.window(&window, self.now);
        }
        self.limits.push(self.limiter.limit());
    }

    /// The median of the limit in the last run.
    fn median(&self) -> f64 {
        let mut limits = self.limits.clone();
        limits.sort_unstable();
        limits[limits.len() / 2] as f64
    }

    /// What the service can do in a second.
    fn capacity(&self) -> f64 {
        self.connections as f64 / (self.base as f64 / SECOND as f64)
    }
}

const SEEDS: std::ops::RangeInclusive<u64> = 1..=3;

/// The limit as a share of the knee, and the goodput as a share of what the service can do.
fn shares(service: &mut Simulation, time: u64) -> (f64, f64) {
    let goodput = service.run(time) / service.capacity();
    (service.median() / service.connections as f64, goodput)
}

/// Whether a limit is within 35 % of the knee, or two calls: a whole number cannot be nearer to a small one.
fn is_near(share: f64, service: &Simulation) -> bool {
    (share - 1.0).abs() <= (2.0 / service.connections as f64).max(0.4)
}

#[test]
fn under_overload_the_limit_is_at_the_knee_and_costs_no_goodput() {
    for noise in [Noise::Even, Noise::Exponential] {
        for (threads, knee, base) in [(64, 4, 20), (64, 8, 20), (64, 32, 20), (64, 32, 5), (16, 8, 5), (400, 100, 20)] {
            for seed in SEEDS {
                let mut service = Simulation::new(threads, knee, base * MILLI, noise, seed);
                let (_, first) = shares(&mut service, 30 * SECOND);
                let (limit, goodput) = shares(&mut service, 120 * SECOND);
                assert!(is_near(limit, &service), "{threads} {knee} {base} {seed}: {limit:.2} of the knee");
                assert!(
                    first > 0.85 && goodput > 0.95,
                    "{threads} {knee} {base} {seed}: {first:.3}, then {goodput:.3}"
                );
            }
        }
    }
}

#[test]
fn where_latency_does_not_depend_on_concurrency_every_thread_may_run() {
    for noise in [Noise::Even, Noise::Exponential, Noise::TenthSlow, Noise::Cached] {
        for seed in SEEDS {
            let mut service = Simulation::new(64, 64, 20 * MILLI, noise, seed);
            service.run(30 * SECOND);
            service.run(60 * SECOND);
            let full = service.limits.iter().filter(|limit| **limit >= 60).count();
            let share = full as f64 / service.limits.len() as f64;
            assert!(service.median() >= 60.0 && share > 0.8, "{seed}: {}, {share:.2}", service.median());
        }
    }
}

#[test]
fn a_latency_that_changes_for_good_is_followed_within_a_minute() {
    for noise in [Noise::Even, Noise::Exponential] {
        for seed in SEEDS {
            let mut service = Simulation::new(64, 16, 20 * MILLI, noise, seed);
            service.run(60 * SECOND);
            for base in [60, 20, 30, 20, 5, 20] {
                service.base = base * MILLI;
                let (_, meanwhile) = shares(&mut service, 60 * SECOND);
                let (limit, goodput) = shares(&mut service, 60 * SECOND);
                assert!(is_near(limit, &service), "{seed}: {limit:.2} of the knee at {base} ms");
                assert!(meanwhile > 0.8 && goodput > 0.94, "{seed}: {meanwhile:.3}, then {goodput:.3} at {base} ms");
            }
        }
    }
}

#[test]
fn a_service_that_loses_connections_is_limited_to_what_is_left() {
    for seed in SEEDS {
        let mut service = Simulation::new(64, 32, 20 * MILLI, Noise::Even, seed);
        service.run(60 * SECOND);
        for connections in [6, 32] {
            service.connections = connections;
            service.run(60 * SECOND);
            let (limit, goodput) = shares(&mut service, 60 * SECOND);
            assert!(is_near(limit, &service), "{seed}: {limit:.2} of {connections}");
            assert!(goodput > 0.95, "{seed}: {goodput:.3} with {connections}");
        }
    }
}

#[test]
fn one_slow_request_in_ten_neither_lifts_nor_breaks_the_limit() {
    for seed in SEEDS {
        let mut service = Simulation::new(64, 8, 20 * MILLI, Noise::TenthSlow, seed);
        service.run(30 * SECOND);
        let (_, goodput) = shares(&mut service, 120 * SECOND);
        // Nine in ten use the connections; the slow ones, meanwhile, hold 30 / 9 times as many threads.
        assert!(goodput * 0.9 > 0.75, "{seed}: {goodput}");
        assert!((25.0..=55.0).contains(&service.median()), "{seed}: {}", service.median());
    }
}

#[test]
fn a_database_that_only_four_in_ten_requests_ask_is_protected_too() {
    for seed in SEEDS {
        let mut service = Simulation::new(64, 8, 20 * MILLI, Noise::Cached, seed);
        service.run(30 * SECOND);
        let (limit, goodput) = shares(&mut service, 120 * SECOND);
        assert!(goodput * 0.4 > 0.95 && limit < 2.5, "{seed}: {limit} {goodput}");
    }
}

#[test]
fn half_a_load_is_not_restrained_and_an_overload_is_over_when_it_ends() {
    for seed in SEEDS {
        let mut service = Simulation::new(64, 16, 20 * MILLI, Noise::Exponential, seed);
        let capacity = service.capacity();
        service.rate = capacity / 2.0;
        service.run(30 * SECOND);
        let mut longest = 0;
        for _ in 0..600 {
            service.run(SECOND / 10);
            longest = longest.max(service.queue);
        }
        assert!(longest <= 32, "{seed}: {longest} waited");
        service.rate = 3.0 * capacity;
        let goodput = service.run(30 * SECOND);
        assert!(goodput > 0.95 * capacity, "{seed}: {goodput}");
        // A few requests a second: the limit stays as it is, for nothing tells of a better one.
        service.queue = 0;
        service.rate = 0.2;
        service.run(SECOND);
        let limit = service.limiter.saved().limit;
        service.run(600 * SECOND);
        assert!(service.limiter.limit() + 2 >= limit, "{seed}: {} after {limit}", service.limiter.limit());
    }
}

#[test]
fn calls_of_seconds_are_not_kept_waiting_for_measurements() {
    for seed in SEEDS {
        let mut service = Simulation::new(64, 32, 1000 * MILLI, Noise::Even, seed);
        let (_, first) = shares(&mut service, 60 * SECOND);
        let (limit, goodput) = shares(&mut service, 300 * SECOND);
        assert!(first > 0.7 && is_near(limit, &service) && goodput > 0.95, "{seed}: {first} {limit} {goodput}");
    }
}
