//! How long requests wait, by balancer, by the queues inside a host, and by load.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::choose::{Balancer, Policy, Reports};
use crate::hosts::{Host, Inside};
use crate::random::Random;

const SLOTS: usize = 16;
const BALANCERS: usize = 20;
/// Seconds that a request takes, exponential with this mean.
const SERVICE: f64 = 0.02;
const LOADS: [f64; 3] = [0.7, 0.85, 0.95];
const SECOND: f64 = 1.0;

pub struct Case {
    pub policy: Policy,
    pub inside: Inside,
    /// Of what the fleet can do.
    pub load: f64,
    pub hosts: usize,
    /// So many of them take twice as long.
    pub slow: usize,
    pub balancers: usize,
    /// Seconds that are not measured, and that are.
    pub settling: f64,
    pub measured: f64,
}

#[derive(Default)]
pub struct Waits {
    /// Of 0.1 ms each.
    counts: Vec<u64>,
    requests: u64,
    sum: f64,
    /// Of each half of the time: waits that grow have not settled.
    halves: [(f64, u64); 2],
}

impl Waits {
    fn note(&mut self, wait: f64, half: usize) {
        let place = ((wait * 1e4) as usize).min(200_000);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.requests += 1;
        self.sum += wait;
        self.halves[half].0 += wait;
        self.halves[half].1 += 1;
    }

    /// Milliseconds.
    pub fn mean(&self) -> f64 {
        self.sum / self.requests.max(1) as f64 * 1e3
    }

    fn quantile(&self, share: f64) -> f64 {
        let wanted = (self.requests as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return (place + 1) as f64 / 10.0;
            }
        }
        0.0
    }

    /// Whether they are still on the way up: the second half's mean is a fifth above the first's, and is no trifle.
    fn grows(&self) -> bool {
        let [first, second] = self.halves.map(|(sum, count)| sum / count.max(1) as f64 * 1e3);
        second > 50.0 && second > 1.2 * first
    }
}

/// A request that is under way; the earliest end is the greatest.
struct Departure {
    at: f64,
    host: u32,
    balancer: u32,
    busy: f64,
}

impl PartialEq for Departure {
    fn eq(&self, other: &Self) -> bool {
        self.at.total_cmp(&other.at).is_eq()
    }
}
impl Eq for Departure {}
impl PartialOrd for Departure {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Departure {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.total_cmp(&other.at)
    }
}

/// What hosts count for their reports.
struct Counters {
    completed: Vec<u32>,
    busy: Vec<f64>,
    running: Vec<u32>,
}

pub fn simulate(case: &Case, seed: u64) -> Waits {
    let mut random = Random::new(seed);
    let mut hosts: Vec<Host> = (0..case.hosts)
        .map(|number| Host::new(SLOTS, case.inside, if number < case.slow { 2.0 } else { 1.0 }))
        .collect();
    for host in &mut hosts {
        host.settle(case.load, SERVICE, &mut random);
    }
    let mut balancers: Vec<Balancer> =
        (0..case.balancers).map(|_| Balancer::new(case.policy, case.hosts, &mut random)).collect();
    let mut reports = Reports::new(case.hosts);
    let mut counters =
        Counters { completed: vec![0; case.hosts], busy: vec![0.0; case.hosts], running: vec![0; case.hosts] };
    let mut under_way: BinaryHeap<Reverse<Departure>> = BinaryHeap::new();
    let whole = (case.hosts - case.slow) as f64 + case.slow as f64 / 2.0;
    let between = SERVICE / (case.load * whole * SLOTS as f64);
    let (end, middle) = (case.settling + case.measured, case.settling + case.measured / 2.0);
    let mut waits = Waits::default();
    let (mut now, mut report_at) = (0.0, SECOND);
    loop {
        now += random.exponential(between);
        if now >= end {
            return waits;
        }
        while now >= report_at {
            depart(report_at, &mut under_way, &mut balancers, &mut counters);
            reports.update(case.policy, &counters.completed, &counters.busy, SLOTS);
            counters.completed.fill(0);
            counters.busy.fill(0.0);
            report_at += SECOND;
        }
        depart(now, &mut under_way, &mut balancers, &mut counters);
        let balancer = random.below(case.balancers);
        let host = balancers[balancer].choose(&reports, &mut random);
        let service = random.exponential(SERVICE);
        let served = hosts[host].serve(now, service, &mut random);
        balancers[balancer].began(host);
        counters.running[host] += 1;
        under_way.push(Reverse(Departure {
            at: served.finish,
            host: host as u32,
            balancer: balancer as u32,
            busy: served.busy,
        }));
        if now >= case.settling {
            waits.note(served.wait, usize::from(now >= middle));
        }
    }
}

fn depart(
    now: f64,
    under_way: &mut BinaryHeap<Reverse<Departure>>,
    balancers: &mut [Balancer],
    counters: &mut Counters,
) {
    while under_way.peek().is_some_and(|first| first.0.at <= now) {
        if let Some(Reverse(ended)) = under_way.pop() {
            let host = ended.host as usize;
            counters.completed[host] += 1;
            counters.busy[host] += ended.busy;
            counters.running[host] -= 1;
            balancers[ended.balancer as usize].ended(host, counters.running[host]);
        }
    }
}

/// Seconds after which an M/M/1 queue at this load remembers little of its beginning: 1 / (μ (1 − √ρ)²).
fn relaxation(load: f64) -> f64 {
    SERVICE / (1.0 - load.sqrt()).powi(2)
}

pub fn equal_hosts(hosts: usize) {
    const POLICIES: [Policy; 4] = [Policy::Random, Policy::RoundRobin, Policy::PowerOfTwo, Policy::LeastConnections];
    for load in LOADS {
        for inside in [Inside::OneQueue, Inside::QueueEach] {
            for policy in POLICIES {
                let (settling, measured) = match inside {
                    Inside::OneQueue => (3.0, 3.0),
                    Inside::QueueEach => (1.5 * relaxation(load), (relaxation(load)).max(3.0)),
                };
                let case = Case { policy, inside, load, hosts, slow: 0, balancers: BALANCERS, settling, measured };
                print("waits", &case, &simulate(&case, 1));
            }
        }
    }
}

pub fn a_tenth_is_slow(hosts: usize) {
    const POLICIES: [Policy; 7] = [
        Policy::RoundRobin,
        Policy::PowerOfTwo,
        Policy::LeastConnections,
        Policy::BySpeed,
        Policy::ByIdleness,
        Policy::PowerOfTwoBySpeed,
        Policy::PowerOfTwoReported,
    ];
    for load in [0.7, 0.85] {
        for policy in POLICIES {
            let (inside, slow) = (Inside::OneQueue, hosts / 10);
            let case = Case { policy, inside, load, hosts, slow, balancers: BALANCERS, settling: 20.0, measured: 20.0 };
            print("slow", &case, &simulate(&case, 1));
        }
    }
}

fn print(table: &str, case: &Case, waits: &Waits) {
    let row = serde_json::json!({
        "table": table,
        "policy": format!("{:?}", case.policy),
        "inside": format!("{:?}", case.inside),
        "load": case.load,
        "hosts": case.hosts,
        "mean": waits.mean(),
        "p99": waits.quantile(0.99),
        "grows": waits.grows(),
        "requests": waits.requests,
    });
    println!("{row}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(policy: Policy, inside: Inside, load: f64, seconds: f64) -> Waits {
        let case =
            Case { policy, inside, load, hosts: 20, slow: 0, balancers: 4, settling: seconds / 4.0, measured: seconds };
        simulate(&case, 7)
    }

    /// The share of requests that wait in M/M/c, by the recursion of Erlang's B.
    fn erlang_c(servers: usize, load: f64) -> f64 {
        let offered = load * servers as f64;
        let blocked =
            (1..=servers).fold(1.0, |blocked, server| offered * blocked / (server as f64 + offered * blocked));
        blocked / (1.0 - load * (1.0 - blocked))
    }

    fn mean_wait(servers: usize, load: f64) -> f64 {
        erlang_c(servers, load) * SERVICE / (servers as f64 * (1.0 - load)) * 1e3
    }

    fn assert_near(found: f64, theory: f64, share: f64) {
        assert!((found / theory - 1.0).abs() < share, "{found} ms, and theory says {theory}");
    }

    #[test]
    fn a_queue_for_each_slot_is_m_m_1() {
        assert_near(one(Policy::Random, Inside::QueueEach, 0.7, 60.0).mean(), mean_wait(1, 0.7), 0.08);
    }

    #[test]
    fn one_queue_for_a_host_is_m_m_16() {
        assert_near(one(Policy::Random, Inside::OneQueue, 0.7, 60.0).mean(), mean_wait(SLOTS, 0.7), 0.12);
        assert_near(one(Policy::Random, Inside::OneQueue, 0.85, 60.0).mean(), mean_wait(SLOTS, 0.85), 0.12);
    }

    #[test]
    fn erlangs_formula_as_printed_in_tables() {
        assert!((erlang_c(5, 0.8) - 0.5541).abs() < 1e-4);
    }

    #[test]
    fn a_balancer_that_counts_waits_less_than_one_that_does_not() {
        let chance = one(Policy::Random, Inside::OneQueue, 0.85, 10.0).mean();
        let two = one(Policy::PowerOfTwo, Inside::OneQueue, 0.85, 10.0).mean();
        let least = one(Policy::LeastConnections, Inside::OneQueue, 0.85, 10.0).mean();
        assert!(least < two && two < chance, "{least} {two} {chance}");
    }

    #[test]
    fn slow_hosts_are_found_by_their_speed_and_drown_under_round_robin() {
        let of = |policy| {
            let case = Case {
                policy,
                inside: Inside::OneQueue,
                load: 0.7,
                hosts: 20,
                slow: 2,
                balancers: 4,
                settling: 5.0,
                measured: 10.0,
            };
            simulate(&case, 3)
        };
        assert!(of(Policy::RoundRobin).grows());
        let by_speed = of(Policy::BySpeed);
        assert!(!by_speed.grows() && by_speed.mean() < 5.0, "{}", by_speed.mean());
    }
}
