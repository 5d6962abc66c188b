//! An hour of a horizontal autoscaler: which metric it scales on, and what clients see of that.
//!
//! ```text
//! arrivals ─▶ a ready pod by chance ─▶ one queue of 16 slots ─▶ counters, a second each
//!                    ▲                                             │ the last 30
//!                    └── pods, ready 30 s after their start ◀── every 15 s: metric / target
//! ```

use std::collections::VecDeque;

use crate::hosts::{Host, Inside};
use crate::random::Random;

const SLOTS: usize = 16;
const SERVICE: f64 = 0.2;
/// Seconds that a request waits at most; then it is shed with 503.
const PATIENCE: f64 = 2.0;
const LATE: f64 = 0.25;
const HOUR: usize = 3600;

/// Of Kubernetes' HorizontalPodAutoscaler.
const SYNC: usize = 15;
const TOLERANCE: f64 = 0.1;
const STABILISED: usize = 300;
const BOOT: usize = 30;
const WINDOW: usize = 30;
const LEAST: usize = 4;
const MOST: usize = 60;

/// What a call takes of a processor: the application mostly waits.
const CPU_SHARE: f64 = 0.03;
const BASE: f64 = 257.6;
/// At 5 times the base: 1288 a second × 0.2 s / 16 slots / 0.7.
const TARGET: f64 = 0.7;
const QUEUE_TARGET: f64 = 0.05;

#[derive(Clone, Copy, Debug)]
enum Metric {
    /// The pod requests a whole processor.
    Cpu,
    /// Also: processor time, where the request is what the pod takes when it is full.
    BusyShare,
    RunningAndWaiting,
    Demand,
    QueueTime,
    QueueTimeUpBusyShareDown,
}

#[derive(Clone, Copy, Debug)]
enum Hour {
    /// Five times as many clients within a minute, for 25 minutes.
    Crowd,
    /// The same clients, but calls take 2.5 times as long for 25 minutes.
    SlowCalls,
    /// From the base to five times of it and back.
    Sine,
}

impl Hour {
    /// Arrivals a second, and seconds that a call takes.
    fn at(self, second: usize) -> (f64, f64) {
        let at = second as f64;
        let raised = ((at - 600.0) / 60.0).clamp(0.0, 1.0) - ((at - 2100.0) / 60.0).clamp(0.0, 1.0);
        match self {
            Hour::Crowd => (BASE * (1.0 + 4.0 * raised), SERVICE),
            Hour::SlowCalls => (2.0 * BASE, SERVICE * (1.0 + 1.5 * raised)),
            Hour::Sine => (BASE * (3.0 - 2.0 * (at / HOUR as f64 * std::f64::consts::TAU).cos()), SERVICE),
        }
    }
}

/// What all pods have counted in one second.
#[derive(Default, Clone)]
struct Second {
    arrived: f64,
    completed: f64,
    /// Seconds of slots, and of requests in the house.
    busy: f64,
    present: f64,
    waits: Vec<f64>,
}

/// Seconds by their number; a request that is under way counts in some that are to come.
struct Counters(Vec<Second>);

impl Counters {
    fn new() -> Self {
        Self(vec![Second::default(); HOUR + 60])
    }

    fn spread(&mut self, from: f64, to: f64, field: impl Fn(&mut Second) -> &mut f64) {
        let mut at = from;
        while at < to {
            let number = at as usize;
            let until = to.min((number + 1) as f64);
            match self.0.get_mut(number) {
                Some(second) => *field(second) += until - at,
                None => return,
            }
            at = until;
        }
    }

    fn note(&mut self, now: f64, wait: f64, finish: f64) {
        self.spread(now + wait, finish, |second| &mut second.busy);
        self.spread(now, finish, |second| &mut second.present);
        self.0[now as usize].waits.push(wait);
        if let Some(second) = self.0.get_mut(finish as usize) {
            second.completed += 1.0;
        }
    }

    /// The sums of the last seconds before this one.
    fn last(&self, second: usize) -> Second {
        let mut sum = Second::default();
        for one in &self.0[second.saturating_sub(WINDOW)..second] {
            sum.arrived += one.arrived;
            sum.completed += one.completed;
            sum.busy += one.busy;
            sum.present += one.present;
            sum.waits.extend(&one.waits);
        }
        sum
    }
}

impl Second {
    fn queue_time(&mut self) -> f64 {
        self.waits.sort_by(f64::total_cmp);
        let place = (self.waits.len() as f64 * 0.95) as usize;
        self.waits.get(place).copied().unwrap_or(0.0)
    }
}

struct Pod {
    host: Host,
    ready_at: usize,
}

struct Scaler {
    metric: Metric,
    recommended: VecDeque<(usize, usize)>,
}

impl Scaler {
    /// How many pods there should be: the recommendation of each metric, and the largest of the last five minutes.
    fn look(&mut self, second: usize, pods: usize, ready: usize, counted: &mut Second) -> usize {
        let capacity = (SLOTS * ready * WINDOW.min(second)) as f64;
        let busy = counted.busy / capacity;
        let per_pods = |value: f64, target: f64| average(value, target, pods, ready);
        let wanted = match self.metric {
            Metric::Cpu => per_pods(busy * CPU_SHARE * SLOTS as f64, TARGET),
            Metric::BusyShare => per_pods(busy, TARGET),
            Metric::RunningAndWaiting => per_pods(counted.present / capacity, TARGET),
            Metric::Demand => {
                let call = if counted.completed > 0.0 { counted.busy / counted.completed } else { 0.0 };
                per_pods(counted.arrived * call / capacity, TARGET)
            }
            Metric::QueueTime => whole(counted.queue_time() / QUEUE_TARGET, ready, pods),
            Metric::QueueTimeUpBusyShareDown => {
                whole(counted.queue_time() / QUEUE_TARGET, ready, pods).max(per_pods(busy, TARGET))
            }
        };
        self.recommended.push_back((second, wanted));
        while self.recommended.front().is_some_and(|(at, _)| at + STABILISED < second) {
            self.recommended.pop_front();
        }
        let stable = self.recommended.iter().map(|(_, wanted)| *wanted).max().unwrap_or(wanted);
        let wanted = if wanted > pods { wanted.min(2 * pods) } else { stable.min(pods) };
        wanted.clamp(LEAST, MOST)
    }
}

/// A metric of each pod. Those that are not ready count as idle when there is too much, as Kubernetes has it.
fn average(value: f64, target: f64, pods: usize, ready: usize) -> usize {
    let ratio = value / target;
    if (ratio - 1.0).abs() <= TOLERANCE {
        return pods;
    }
    if ratio < 1.0 || ready == pods {
        return (ratio * ready as f64).ceil() as usize;
    }
    let damped = ratio * ready as f64 / pods as f64;
    if damped <= 1.0 + TOLERANCE { pods } else { (damped * pods as f64).ceil() as usize }
}

/// A metric of them all.
fn whole(ratio: f64, ready: usize, pods: usize) -> usize {
    if (ratio - 1.0).abs() <= TOLERANCE { pods } else { (ratio * ready as f64).ceil() as usize }
}

#[derive(Default)]
struct Told {
    requests: u64,
    shed: u64,
    late: u64,
    pod_seconds: usize,
    most: usize,
    turns: usize,
}

fn run(metric: Metric, hour: Hour) -> Told {
    let mut random = Random::new(11);
    let mut counters = Counters::new();
    let mut scaler = Scaler { metric, recommended: VecDeque::new() };
    let start = hour.at(0);
    let pod = |ready_at| Pod { host: Host::new(SLOTS, Inside::OneQueue, 1.0), ready_at };
    let first = (start.0 * start.1 / SLOTS as f64 / TARGET).ceil() as usize;
    let mut pods: Vec<Pod> = (0..first.max(LEAST)).map(|_| pod(0)).collect();
    let mut told = Told::default();
    let mut direction = 0_i32;
    for second in 0..HOUR {
        if second > 0 && second.is_multiple_of(SYNC) {
            let ready = pods.iter().filter(|pod| pod.ready_at <= second).count();
            let wanted = scaler.look(second, pods.len(), ready, &mut counters.last(second));
            let step = (wanted as i32 - pods.len() as i32).signum();
            told.turns += usize::from(step != 0 && direction != 0 && step != direction);
            direction = if step == 0 { direction } else { step };
            // What is not ready goes first: it is the newest.
            pods.truncate(wanted);
            while pods.len() < wanted {
                pods.push(pod(second + BOOT));
            }
        }
        told.pod_seconds += pods.len();
        told.most = told.most.max(pods.len());
        let ready = pods.iter().filter(|pod| pod.ready_at <= second).count();
        serve(second, hour, &mut pods[..ready], &mut counters, &mut told, &mut random);
    }
    told
}

/// The arrivals of one second.
fn serve(second: usize, hour: Hour, ready: &mut [Pod], counters: &mut Counters, told: &mut Told, random: &mut Random) {
    let (rate, service) = hour.at(second);
    let mut now = second as f64 + random.exponential(1.0 / rate);
    while now < (second + 1) as f64 {
        told.requests += 1;
        counters.0[second].arrived += 1.0;
        let host = &mut ready[random.below(ready.len())].host;
        let wait = host.wait(now);
        if wait > PATIENCE {
            told.shed += 1;
        } else {
            told.late += u64::from(wait > LATE);
            let served = host.serve(now, random.exponential(service), random);
            counters.note(now, served.wait, served.finish);
        }
        now += random.exponential(1.0 / rate);
    }
}

pub fn metrics() {
    const METRICS: [Metric; 6] = [
        Metric::Cpu,
        Metric::BusyShare,
        Metric::RunningAndWaiting,
        Metric::Demand,
        Metric::QueueTime,
        Metric::QueueTimeUpBusyShareDown,
    ];
    for hour in [Hour::Crowd, Hour::SlowCalls, Hour::Sine] {
        for metric in METRICS {
            let told = run(metric, hour);
            let share = |count: u64| count as f64 / told.requests as f64;
            let row = serde_json::json!({
                "table": "scale",
                "hour": format!("{hour:?}"),
                "metric": format!("{metric:?}"),
                "shed": share(told.shed),
                "late": share(told.late),
                "pod_hours": told.pod_seconds as f64 / HOUR as f64,
                "most": told.most,
                "turns": told.turns,
                "requests": told.requests,
            });
            println!("{row}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_the_target_stays() {
        assert_eq!(average(0.75, 0.7, 10, 10), 10);
        assert_eq!(average(1.4, 0.7, 10, 10), 20);
        assert_eq!(average(0.35, 0.7, 10, 10), 5);
    }

    #[test]
    fn pods_that_start_count_as_idle() {
        assert_eq!(average(1.4, 0.7, 20, 10), 20, "as many as were needed are on their way");
        assert_eq!(average(2.8, 0.7, 20, 10), 40);
    }

    #[test]
    fn a_request_counts_in_each_second_that_it_is_under_way() {
        let mut counters = Counters::new();
        counters.note(0.5, 1.0, 2.25);
        let busy: Vec<f64> = counters.0[..4].iter().map(|second| second.busy).collect();
        assert_eq!(busy, [0.0, 0.5, 0.25, 0.0]);
        assert_eq!(counters.0[2].completed, 1.0);
    }

    #[test]
    fn demand_is_met_by_the_pods_that_it_needs() {
        let told = run(Metric::Demand, Hour::Crowd);
        // 1288 a second × 0.2 s / 16 slots / 0.7 are 23; a tenth less is within the tolerance.
        assert!((21..=25).contains(&told.most), "{}", told.most);
        assert_eq!(told.turns, 1, "up, and down");
    }

    #[test]
    fn processor_time_says_nothing_of_calls_that_wait() {
        let told = run(Metric::Cpu, Hour::Crowd);
        assert_eq!(told.most, 5, "those of the beginning");
        assert!(told.shed as f64 > 0.5 * told.requests as f64);
    }
}
