//! When requests are due: a rate that may change, with equal or random gaps.
use serde::Deserialize;

use crate::random::Random;

/// The rate changes evenly, to `rate` within `seconds`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(from = "(f64, f64)")]
pub struct Stage {
    pub seconds: f64,
    pub rate: f64,
}

impl From<(f64, f64)> for Stage {
    fn from((seconds, rate): (f64, f64)) -> Stage {
        Stage { seconds, rate }
    }
}

/// A rate over time: straight lines, the last of them level and without end.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile(Vec<Piece>);

/// From `start` on, when `before` requests were due: the rate, and its change per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Piece {
    start: f64,
    before: f64,
    rate: f64,
    slope: f64,
}

impl Profile {
    pub fn new(rate: f64, stages: &[Stage]) -> Profile {
        let mut next = Piece { start: 0.0, before: 0.0, rate, slope: 0.0 };
        let mut pieces = Vec::with_capacity(stages.len() + 1);
        for stage in stages {
            let slope = if stage.seconds > 0.0 { (stage.rate - next.rate) / stage.seconds } else { 0.0 };
            pieces.push(Piece { slope, ..next });
            let during = (next.rate + stage.rate) / 2.0 * stage.seconds;
            next = Piece { start: next.start + stage.seconds, before: next.before + during, rate: stage.rate, slope };
        }
        pieces.push(Piece { slope: 0.0, ..next });
        Profile(pieces)
    }

    /// When so many requests were due, in seconds. None: never, since the rate has become 0.
    pub fn moment(&self, count: f64) -> Option<f64> {
        let piece = self.0.iter().rev().find(|piece| piece.before <= count)?;
        let missing = count - piece.before;
        let Piece { rate, slope, .. } = *piece;
        // The positive root of rate·t + slope·t²/2 = missing, in the form that is exact for a small slope.
        let root = (rate * rate + 2.0 * slope * missing).max(0.0).sqrt();
        let after = if missing == 0.0 { 0.0 } else { 2.0 * missing / (rate + root) };
        after.is_finite().then_some(piece.start + after)
    }
}

/// The moments at which the requests of one thread are due.
pub struct Moments {
    profile: Profile,
    /// The number of the next request among all threads', or where it stands in a Poisson process with rate 1.
    place: f64,
    /// How many threads share the requests.
    threads: f64,
    random: Option<Random>,
}

impl Moments {
    pub fn new(profile: Profile, poisson: bool, thread: usize, threads: usize) -> Moments {
        let mut random = poisson.then(|| Random::new(thread as u64 + 1));
        let threads = threads as f64;
        let place = random.as_mut().map_or(thread as f64, |random| threads * random.exponential());
        Moments { profile, place, threads, random }
    }
}

/// Seconds from the start, in order.
impl Iterator for Moments {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        let moment = self.profile.moment(self.place)?;
        // Poisson processes that run side by side are one whose rate is their sum.
        self.place += self.threads * self.random.as_mut().map_or(1.0, Random::exponential);
        Some(moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: f64, rate: f64) -> Stage {
        Stage { seconds, rate }
    }

    #[test]
    fn a_constant_rate_has_equal_gaps_and_threads_take_turns() {
        let moments = |thread| Moments::new(Profile::new(4.0, &[]), false, thread, 2).take(3).collect::<Vec<_>>();
        assert_eq!(moments(0), [0.0, 0.5, 1.0]);
        assert_eq!(moments(1), [0.25, 0.75, 1.25]);
    }

    #[test]
    fn a_ramp_is_the_inverse_of_its_area() {
        // From 0 to 100 a second in 2 s: 100 requests; then 100 a second.
        let profile = Profile::new(0.0, &[stage(2.0, 100.0)]);
        for (count, moment) in [(0.0, 0.0), (25.0, 1.0), (100.0, 2.0), (150.0, 2.5)] {
            assert!((profile.moment(count).unwrap() - moment).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn a_rate_that_falls_to_nothing_ends_the_requests() {
        let profile = Profile::new(10.0, &[stage(2.0, 0.0)]);
        assert!((profile.moment(7.5).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(profile.moment(10.5), None);
        assert_eq!(Moments::new(profile, false, 0, 1).count(), 11);
    }

    #[test]
    fn a_step_is_a_stage_without_length() {
        let profile = Profile::new(10.0, &[stage(1.0, 10.0), stage(0.0, 100.0)]);
        assert_eq!(profile.moment(110.0), Some(2.0));
    }

    #[test]
    fn random_gaps_have_the_rate() {
        let last = Moments::new(Profile::new(1000.0, &[]), true, 0, 1).nth(100_000).unwrap();
        assert!((last - 100.0).abs() < 2.0, "{last}");
    }
}
