//! A gradient limiter: how many application calls may run at once in all workers of a group.
//!
//! ```text
//!   start: a quarter of the threads, until the latency is measured
//!     └─► slow start ──latency rises──► following ──probe is due──► probing ──measured──► following
//!         limit × 2 a window             ▲    │                     half of the limit
//!             ▲                          └────┘
//!             └── the minimum turned out to have risen when only a few calls ran
//! ```
//!
//! It follows the published ones: Envoy's adaptive concurrency filter (gradient controller) and Netflix's
//! concurrency-limits (`Gradient2Limit`, `WindowedLimit`). Latency is the application's time alone; what waits is not in it.
//!
//! * `gradient = minimum × (1 + buffer) / sample`, from 0.5 (Envoy, Netflix) to 1 (Netflix). Here it is the mean of the
//!   gradients of the seven octiles. The median alone does not see a database that only a third of the requests ask, the
//!   mean latency is led astray by few slow requests; an octile at the border between the two halves of a mixture jumps,
//!   but the clamp leaves that a fourteenth of the gradient.
//! * `limit = limit × (1 − s) + (limit × gradient + headroom) × s` with `s` = 0.2 (Netflix) and `headroom = √limit` (Envoy).
//!   Either the gradient or the headroom is in force: the headroom while the gradient is above 0.87, which leaves room for
//!   noise, the gradient below. Both at once hold a limit of tens of calls, not thousands, at 1.5 to 2 times the knee.
//! * Nothing changes while less than half of the limit is used (Netflix: "don't grow the limit if we are app limited").
//! * A window lasts for at least two latencies (Netflix), for it tells of calls that began up to one latency ago.
//!
//! **The minimum latency** is measured where few calls run at once, as Envoy does, and not gathered as a minimum over
//! windows: that creeps towards the luckiest window, and while an overload lasts there is no window to gather from. Envoy
//! pins the limit to 3 for 50 requests every minute, which for calls of a second means a standstill of 17 seconds. So:
//!
//! * Windows in which no more than 3 calls ran are a measurement that costs nothing.
//! * A probe pins the limit to half of what it is: below the knee, if the limit is anywhere near it, and if it is not, the
//!   next probe halves on. Its first window is left to the calls that began before.
//! * A probe is due every half minute, with jitter, and only while the limit is reached. After a measurement that differs
//!   from the last one the next comes early: it tells overload from a service that changed, and luck from either.
//! * Slow applications are probed less often: at half of the limit for one part in 25 of the time.
//! * The limit does not fall below the concurrency with which the minimum was measured, for there the latency was the
//!   minimum. If it would, the minimum is measured again. So neither a lucky measurement nor a service that became slower
//!   lets it collapse.
//! * A minimum of more than twice the sample shrinks by a tenth a window (Netflix).
//!
//! Without samples everything stays as it is.

mod keeper;
#[cfg(test)]
mod simulation;
mod windows;

pub use keeper::Keeper;
pub use windows::GLANCE;

use tricorn_sys::clock::{MILLI, SECOND};

/// The octiles of a latency: the longest latency of the fastest eighth, two, … seven eighths of the calls.
pub const OCTILES: usize = 7;
const MEDIAN: usize = 3;
const UPPER: usize = 5;

/// How much longer than the minimum is still as short as the minimum; Envoy: 0.25.
const BUFFER: f64 = 0.08;
/// Netflix: 0.2.
const SMOOTHING: f64 = 0.2;
/// Envoy: 0.5 to 2; Netflix: to 1.
const GRADIENT: std::ops::RangeInclusive<f64> = 0.5..=1.0;
/// A gradient below this is congestion, one above it noise.
const CONGESTED: f64 = 0.87;
/// The least limit; Envoy: 3.
const FLOOR: f64 = 3.0;
/// Windows with fewer samples say nothing.
const FEWEST: u64 = 5;
/// Samples that make a measurement of the minimum; Envoy: 50.
const ENOUGH: u64 = 200;
/// … or what there is after so long; the first one is content with a window.
const PROBE_LONGEST: u64 = 5 * SECOND;
/// From one probe to the next, and how much of it is added at random; Envoy: 60 s and 15 %.
const INTERVAL: u64 = 30 * SECOND;
const JITTER: f64 = 0.15;
/// A probe is followed by so many times its duration without one.
const SPARING: u64 = 25;
/// The time from a measurement to one that comes early.
const EARLY: u64 = 3 * SECOND;
/// Part of the threads with which it starts.
const START: f64 = 0.25;
/// Bounds of a window's length, and the shortest one of a probe.
const WINDOW: (u64, u64) = (100 * MILLI, 10 * SECOND);
const PROBE_WINDOW: u64 = 20 * MILLI;

/// What a window told. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// Calls that ended.
    pub count: u64,
    /// The octiles of their latency.
    pub octiles: [u64; OCTILES],
    /// The most calls that ran at once.
    pub most: u64,
}

/// What another limiter needs to go on where one stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Saved {
    pub limit: u64,
    /// The octiles of the minimum latency.
    pub minimum: [u64; OCTILES],
    pub measured_at: u64,
    pub probe_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// The limit doubles until the latency rises (TCP's slow start).
    SlowStart,
    Following,
    Probing {
        pin: f64,
        since: u64,
        windows: u32,
    },
}

/// What became of the minimum when it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// None beyond the noise.
    None,
    Rise,
    Fall,
}

#[derive(Debug)]
pub struct Limiter {
    phase: Phase,
    /// Not rounded, and without what a probe pins it to.
    limit: f64,
    upper: f64,
    /// `None`: not measured yet.
    minimum: Option<[f64; OCTILES]>,
    measured_at: u64,
    probe_at: u64,
    measurement: Measurement,
    /// The last window was one at the floor.
    was_low: bool,
    /// At how many calls at once the minimum was measured: no reason to let fewer run.
    measured_with: f64,
    /// The minimum is measured again because it cannot be right.
    doubtful: bool,
    /// The third quartile of the last window.
    latest: u64,
    random: u64,
}

impl Limiter {
    /// `threads`: the app threads of all workers, which the limit is never above.
    pub fn new(threads: u64, now: u64, seed: u64) -> Limiter {
        let upper = threads.max(1) as f64;
        let limit = start(upper);
        Limiter {
            phase: Phase::Probing { pin: limit, since: now, windows: 0 },
            limit,
            upper,
            minimum: None,
            measured_at: now,
            probe_at: now,
            measurement: Measurement::default(),
            was_low: false,
            measured_with: FLOOR.min(upper),
            doubtful: false,
            latest: 0,
            // xorshift needs a bit that is set.
            random: seed | 1,
        }
    }

    /// Goes on where another one stopped.
    pub fn resume(saved: Saved, threads: u64, now: u64, seed: u64) -> Limiter {
        let mut limiter = Limiter::new(threads, now, seed);
        if saved.limit > 0 && saved.minimum[MEDIAN] > 0 {
            limiter.phase = Phase::Following;
            limiter.limit = saved.limit as f64;
            limiter.minimum = Some(saved.minimum.map(|octile| octile as f64));
            limiter.measured_at = saved.measured_at;
            limiter.probe_at = saved.probe_at;
            limiter.latest = saved.minimum[UPPER];
            limiter.measured_with = limiter.limit / 2.0;
        }
        limiter
    }

    pub fn saved(&self) -> Saved {
        Saved {
            limit: whole(self.limit.min(self.upper)),
            minimum: self.minimum.unwrap_or_default().map(|octile| octile as u64),
            measured_at: self.measured_at,
            probe_at: self.probe_at,
        }
    }

    /// There are so many app threads now.
    pub fn resize(&mut self, threads: u64) {
        self.upper = threads.max(1) as f64;
        if let Phase::Probing { pin, .. } = &mut self.phase
            && self.minimum.is_none()
        {
            // The first worker starts before the others.
            self.limit = start(self.upper);
            *pin = self.limit;
        }
    }

    /// The limit in force.
    pub fn limit(&self) -> u64 {
        let limit = match self.phase {
            Phase::Probing { pin, .. } => pin,
            _ => self.limit,
        };
        whole(limit.min(self.upper))
    }

    /// The median of the application's latency where few calls run at once; 0: not measured.
    pub fn min_latency(&self) -> u64 {
        self.minimum.map_or(0, |minimum| minimum[MEDIAN] as u64)
    }

    /// How long the next window has to be.
    pub fn window_length(&self) -> u64 {
        let shortest = if matches!(self.phase, Phase::Probing { .. }) { PROBE_WINDOW } else { WINDOW.0 };
        (2 * self.latest).clamp(shortest, WINDOW.1)
    }

    /// Takes in what the last window told; returns the limit in force.
    pub fn window(&mut self, window: &Window, now: u64) -> u64 {
        self.limit = self.limit.min(self.upper).max(self.floor());
        if window.count >= FEWEST {
            self.latest = window.octiles[UPPER];
            let sample = window.octiles.map(|octile| octile.max(1) as f64);
            match self.phase {
                Phase::Probing { pin, since, windows } => {
                    self.phase = Phase::Probing { pin, since, windows: windows + 1 };
                    self.probed(&sample, window.count, now);
                }
                _ => self.follow(&sample, window, now),
            }
        } else if matches!(self.phase, Phase::Probing { .. }) && self.minimum.is_some() {
            // Hardly anything runs: nothing is measured, and the next request shall not meet a pinned limit.
            self.phase = Phase::Following;
        }
        self.limit()
    }

    fn follow(&mut self, sample: &[f64; OCTILES], window: &Window, now: u64) {
        self.measure_at_the_floor(sample, window, now);
        let Some(minimum) = &mut self.minimum else { return };
        for (minimum, sample) in minimum.iter_mut().zip(sample) {
            if *minimum > 2.0 * sample {
                *minimum *= 0.9;
            }
        }
        let most = window.most as f64;
        if 2.0 * most < self.limit {
            return;
        }
        let gradient = gradient(minimum, sample);
        let limit = self.limit.floor();
        self.step(gradient);
        // Where the minimum was measured the latency is longer now: it changed, or the measurement was a lucky one.
        let doubtful = self.limit < self.measured_with && now >= self.measured_at + EARLY;
        self.limit = self.limit.max(self.measured_with);
        if self.limit > self.floor() && most >= limit && (now >= self.probe_at || doubtful) {
            let pin = (limit / 2.0).max(self.floor());
            self.phase = Phase::Probing { pin, since: now, windows: 0 };
            self.doubtful = doubtful;
            self.measurement = Measurement::default();
        }
    }

    fn step(&mut self, gradient: f64) {
        let limit = self.limit;
        let next = match (self.phase, gradient >= CONGESTED) {
            (Phase::SlowStart, true) => limit * 2.0,
            (Phase::SlowStart, false) => limit * gradient,
            (_, true) => limit + SMOOTHING * limit.sqrt(),
            (_, false) => limit * (1.0 - SMOOTHING * (1.0 - gradient)),
        };
        self.limit = next.min(self.upper).max(self.floor());
        if gradient < CONGESTED || self.limit >= self.upper {
            self.phase = Phase::Following;
        }
    }

    fn measure_at_the_floor(&mut self, sample: &[f64; OCTILES], window: &Window, now: u64) {
        let low = self.limit <= self.floor() || window.most as f64 <= self.floor();
        // Not the first one, which has calls in it that began before.
        if low && self.was_low {
            self.measurement.add(sample, window.count);
        } else {
            self.measurement = Measurement::default();
        }
        self.was_low = low;
        if let Some(measured) = self.measurement.take(ENOUGH)
            && self.measured(measured, self.floor(), now) == Change::Rise
            && self.limit <= self.floor()
        {
            self.phase = Phase::SlowStart;
        }
    }

    fn probed(&mut self, sample: &[f64; OCTILES], count: u64, now: u64) {
        let Phase::Probing { pin, since, windows } = self.phase else { return };
        if windows > 1 {
            self.measurement.add(sample, count);
        }
        let first = self.minimum.is_none();
        let enough = if first || now >= since + PROBE_LONGEST { 1 } else { ENOUGH };
        let Some(measured) = self.measurement.take(enough) else { return };
        let change = self.measured(measured, pin, now);
        let took = now.saturating_sub(since);
        let pause =
            if first || change != Change::None { EARLY.max(SPARING / 5 * took) } else { INTERVAL.max(SPARING * took) };
        self.probe_at = now + pause + (pause as f64 * JITTER * self.random()) as u64;
        self.phase = if first { Phase::SlowStart } else { Phase::Following };
    }

    /// Notes a measurement of the minimum.
    fn measured(&mut self, measured: [f64; OCTILES], with: f64, now: u64) -> Change {
        self.measured_at = now;
        self.measured_with = with;
        let doubtful = std::mem::take(&mut self.doubtful);
        let Some(minimum) = self.minimum.replace(measured) else { return Change::None };
        if gradient(&minimum, &measured) < CONGESTED {
            Change::Rise
        } else if gradient(&measured, &minimum) < CONGESTED {
            Change::Fall
        } else {
            if !doubtful {
                // Half of the luck is the last one's.
                self.minimum = Some(std::array::from_fn(|octile| (minimum[octile] + measured[octile]) / 2.0));
            }
            Change::None
        }
    }

    fn floor(&self) -> f64 {
        FLOOR.min(self.upper)
    }

    /// From 0 to 1 (Marsaglia's xorshift).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn start(upper: f64) -> f64 {
    (START * upper).max(FLOOR).min(upper)
}

fn gradient(minimum: &[f64; OCTILES], sample: &[f64; OCTILES]) -> f64 {
    let each = minimum.iter().zip(sample).map(|(minimum, sample)| {
        let ratio = minimum * (1.0 + BUFFER) / sample;
        ratio.clamp(*GRADIENT.start(), *GRADIENT.end())
    });
    each.sum::<f64>() / OCTILES as f64
}

fn whole(limit: f64) -> u64 {
    (limit as u64).max(1)
}

/// Windows that are taken together.
#[derive(Debug, Clone, Copy, Default)]
struct Measurement {
    count: u64,
    sums: [f64; OCTILES],
}

impl Measurement {
    fn add(&mut self, sample: &[f64; OCTILES], count: u64) {
        self.count += count;
        for (sum, sample) in self.sums.iter_mut().zip(sample) {
            *sum += sample * count as f64;
        }
    }

    /// The mean, if there are enough samples; then it begins anew.
    fn take(&mut self, enough: u64) -> Option<[f64; OCTILES]> {
        if self.count < enough.max(1) {
            return None;
        }
        let taken = std::mem::take(self);
        Some(taken.sums.map(|sum| sum / taken.count as f64))
    }
}
