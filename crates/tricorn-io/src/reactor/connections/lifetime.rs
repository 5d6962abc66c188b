//! For how long a connection is used: so many requests (`connection_max_requests`), so much time (`connection_max_age`).
//!
//! A reply says that it is the last (`Connection: close`), so that no request is lost; none is ended within. Clients and pools of
//! load balancers connect anew from time to time, and meet servers that were added since.
use crate::config::Config;
use crate::reactor::wheel::{Tick, tick_at};
use crate::sys::random_seed;

/// Of a connection that may have any age.
pub const NEVER: Tick = 0;

/// The age of each connection is longer or shorter by up to this part of it: those that began together do not end together.
const SPREAD: u64 = 10;

/// Four and a half years, in nanoseconds: half of what ticks of 32 bits can tell.
const LONGEST: u64 = 1 << 57;

#[derive(Debug)]
pub(super) struct Lifetime {
    /// The number of the last request of a connection.
    last: u32,
    /// Nanoseconds; 0: any age.
    age: u64,
    /// What the next age is drawn from; never 0.
    random: u64,
}

impl Lifetime {
    pub fn new(config: &Config) -> Lifetime {
        let mut seed = [0; 8];
        seed.copy_from_slice(&random_seed()[..8]);
        Lifetime::of(config.connection_max_requests, config.connection_max_age, u64::from_ne_bytes(seed))
    }

    pub fn of(requests: u64, age: u64, seed: u64) -> Lifetime {
        let last = requests.checked_sub(1).map_or(u32::MAX, |last| u32::try_from(last).unwrap_or(u32::MAX));
        Lifetime { last, age: age.min(LONGEST), random: seed | 1 }
    }

    /// From when on a request is the last of a connection that is accepted now.
    #[inline]
    pub fn draw(&mut self, now: u64) -> Tick {
        if self.age == 0 { NEVER } else { self.draw_age(now) }
    }

    fn draw_age(&mut self, now: u64) -> Tick {
        // xorshift64 (G. Marsaglia, 2003): ages are no secret.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let most = self.age / SPREAD;
        let jitter = self.random % (2 * most + 1);
        tick_at(now.saturating_add(self.age - most).saturating_add(jitter)).max(1)
    }

    /// Whether the request with this number, complete at `now`, is the last of its connection.
    #[inline]
    pub fn is_last(&self, number: u32, last_from: Tick, now: u64) -> bool {
        // With NEVER the first side is the greatest number there is.
        number >= self.last || last_from.wrapping_sub(1) < tick_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    #[test]
    fn without_limits_no_request_is_the_last() {
        let mut lifetime = Lifetime::of(0, 0, 7);
        let end = lifetime.draw(SECOND);
        assert_eq!(end, NEVER);
        assert!(!lifetime.is_last(u32::MAX - 1, end, 1_000_000_000 * SECOND));
    }

    #[test]
    fn the_number_of_requests_is_kept_exactly() {
        let lifetime = Lifetime::of(3, 0, 7);
        assert_eq!([0, 1, 2, 3].map(|number| lifetime.is_last(number, NEVER, 0)), [false, false, true, true]);
        assert!(Lifetime::of(1, 0, 7).is_last(0, NEVER, 0), "each request has a connection of its own");
    }

    #[test]
    fn ages_differ_by_a_tenth_in_either_direction() {
        let (mut lifetime, now) = (Lifetime::of(0, 1_000 * SECOND, 7), 50 * SECOND);
        let ends: Vec<Tick> = (0..1_000).map(|_| lifetime.draw(now)).collect();
        let (first, last) = (tick_at(now + 900 * SECOND), tick_at(now + 1_100 * SECOND));
        assert!(ends.iter().all(|end| (first..=last).contains(end)));
        let span = last - first;
        assert!(ends.iter().any(|end| *end < first + span / 10) && ends.iter().any(|end| *end > last - span / 10));
        assert!(!lifetime.is_last(5, first, now + 899 * SECOND) && lifetime.is_last(5, first, now + 901 * SECOND));
    }

    #[test]
    fn the_longest_age_there_is_does_not_overflow() {
        let mut lifetime = Lifetime::of(u64::MAX, u64::MAX, 7);
        for _ in 0..1_000 {
            let end = lifetime.draw(LONGEST / 2);
            assert!(!lifetime.is_last(0, end, LONGEST));
        }
    }
}
