//! Balancers: which host is given a request. Each knows its own requests, and what hosts report once a second.

use crate::random::Random;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    Random,
    RoundRobin,
    /// Of two hosts by chance, the one with fewer requests of this balancer.
    PowerOfTwo,
    /// The host with the fewest requests of this balancer; by chance if there are several.
    LeastConnections,
    /// By chance, in proportion to what hosts report: their speed.
    BySpeed,
    /// By chance, in proportion to what hosts report: how much of them is idle.
    ByIdleness,
    /// Two by their speed; the one with fewer requests of this balancer.
    PowerOfTwoBySpeed,
    /// Of two by chance, the one whose last response to this balancer reported fewer requests of all balancers.
    PowerOfTwoReported,
}

/// What hosts said last: once a second, smoothed over three.
pub struct Reports {
    speed: Vec<f64>,
    idle: Vec<f64>,
    /// Sums of weights up to each host, for a draw.
    sums: Vec<f64>,
}

impl Reports {
    pub fn new(hosts: usize) -> Self {
        let mut made = Self { speed: vec![1.0; hosts], idle: vec![1.0; hosts], sums: Vec::new() };
        made.weigh(&vec![1.0; hosts]);
        made
    }

    /// A second is over: of each host the requests completed, and the seconds its slots were busy.
    pub fn update(&mut self, policy: Policy, completed: &[u32], busy: &[f64], slots: usize) {
        for host in 0..self.speed.len() {
            if busy[host] > 0.0 {
                // Requests a second over the busy share: what it would complete if it were always busy.
                let speed = f64::from(completed[host]) * slots as f64 / busy[host];
                self.speed[host] += (speed - self.speed[host]) / SMOOTHED;
            }
            let idle = (1.0 - busy[host] / slots as f64).max(0.01);
            self.idle[host] += (idle - self.idle[host]) / SMOOTHED;
        }
        match policy {
            Policy::BySpeed | Policy::PowerOfTwoBySpeed => self.weigh(&self.speed.clone()),
            Policy::ByIdleness => self.weigh(&self.idle.clone()),
            _ => {}
        }
    }

    fn weigh(&mut self, weights: &[f64]) {
        let mut sum = 0.0;
        self.sums.clear();
        for weight in weights {
            sum += weight;
            self.sums.push(sum);
        }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let at = random.unit() * all;
        self.sums.partition_point(|sum| *sum <= at).min(self.sums.len() - 1)
    }
}

const SMOOTHED: f64 = 3.0;

pub struct Balancer {
    policy: Policy,
    /// What the last response of each host said: its requests of all balancers.
    reported: Vec<u32>,
    /// Its requests under way, for each host.
    counts: Vec<u32>,
    turn: usize,
    ranks: Ranks,
}

impl Balancer {
    pub fn new(policy: Policy, hosts: usize, random: &mut Random) -> Self {
        Self {
            policy,
            reported: vec![0; hosts],
            counts: vec![0; hosts],
            turn: random.below(hosts),
            ranks: Ranks::new(hosts),
        }
    }

    pub fn choose(&mut self, reports: &Reports, random: &mut Random) -> usize {
        let hosts = self.counts.len();
        match self.policy {
            Policy::Random => random.below(hosts),
            Policy::RoundRobin => {
                self.turn = (self.turn + 1) % hosts;
                self.turn
            }
            Policy::LeastConnections => self.ranks.fewest(random),
            Policy::BySpeed | Policy::ByIdleness => reports.draw(random),
            Policy::PowerOfTwo => {
                let (one, other) = (random.below(hosts), random.below(hosts));
                if self.counts[other] < self.counts[one] { other } else { one }
            }
            Policy::PowerOfTwoReported => {
                let (one, other) = (random.below(hosts), random.below(hosts));
                if self.reported[other] < self.reported[one] { other } else { one }
            }
            Policy::PowerOfTwoBySpeed => {
                let (one, other) = (reports.draw(random), reports.draw(random));
                if self.counts[other] < self.counts[one] { other } else { one }
            }
        }
    }

    pub fn began(&mut self, host: usize) {
        self.counts[host] += 1;
        if self.policy == Policy::LeastConnections {
            self.ranks.moved(host, self.counts[host] - 1, self.counts[host]);
        }
    }

    /// `running` are the requests that the host still has, of all balancers.
    pub fn ended(&mut self, host: usize, running: u32) {
        self.counts[host] -= 1;
        self.reported[host] = running;
        if self.policy == Policy::LeastConnections {
            self.ranks.moved(host, self.counts[host] + 1, self.counts[host]);
        }
    }
}

/// Hosts by their counts: the least is found without a look at each.
struct Ranks {
    of_count: Vec<Vec<usize>>,
    /// Where each host stands in the list of its count.
    place: Vec<usize>,
}

impl Ranks {
    fn new(hosts: usize) -> Self {
        Self { of_count: vec![(0..hosts).collect()], place: (0..hosts).collect() }
    }

    fn fewest(&self, random: &mut Random) -> usize {
        let least = self.of_count.iter().find(|hosts| !hosts.is_empty());
        least.map_or(0, |hosts| hosts[random.below(hosts.len())])
    }

    fn moved(&mut self, host: usize, from: u32, to: u32) {
        let (from, to, place) = (from as usize, to as usize, self.place[host]);
        self.of_count[from].swap_remove(place);
        if let Some(other) = self.of_count[from].get(place) {
            self.place[*other] = place;
        }
        if self.of_count.len() <= to {
            self.of_count.resize_with(to + 1, Vec::new);
        }
        self.place[host] = self.of_count[to].len();
        self.of_count[to].push(host);
    }
}
