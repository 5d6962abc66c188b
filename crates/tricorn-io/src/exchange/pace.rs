//! How fast a client sends its body while the application reads it, and until when it may be waited for.
//!
//! A body keeps to its minimum rate as a whole, and no single wait is longer than `body_timeout`. Time in which the application
//! does not wait is not the client's.
use crate::config::BodyRate;

#[derive(Debug, Default)]
pub struct Pace {
    /// Bytes that have come.
    came: u64,
    /// For how long they were waited for.
    waited: u64,
    /// Since when more are waited for, and until when; 0: they are not.
    waits_since: u64,
    due: u64,
}

impl Pace {
    /// The application waits from now on, unless it does already; until when it may have to.
    pub fn wait(&mut self, rate: &BodyRate, now: u64) -> u64 {
        if !self.is_waiting() {
            self.waits_since = now;
            self.due = now.saturating_add(self.left(rate).min(rate.timeout));
        }
        self.due
    }

    pub fn is_waiting(&self) -> bool {
        self.waits_since > 0
    }

    /// So many bytes came with the head, and were not waited for.
    pub fn began_with(&mut self, count: u64) {
        self.came += count;
    }

    /// So many bytes came, which ends the wait.
    pub fn came(&mut self, count: usize, now: u64) {
        self.came += count as u64;
        if self.waits_since > 0 {
            self.waited += now.saturating_sub(std::mem::take(&mut self.waits_since));
        }
    }

    /// Bytes that have come.
    pub fn bytes(&self) -> u64 {
        self.came
    }

    /// The body as a whole is slower than the minimum rate; else a single wait was too long.
    pub fn is_slow(&self, rate: &BodyRate) -> bool {
        self.left(rate) <= rate.timeout
    }

    /// For how long bytes may still be waited for at the minimum rate.
    fn left(&self, rate: &BodyRate) -> u64 {
        (rate.timeout + rate.earned_by(self.came)).saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND;

    const RATE: BodyRate = BodyRate { timeout: 10 * SECOND, bytes_per_second: 100 };

    #[test]
    fn the_first_byte_has_the_timeout() {
        let mut pace = Pace::default();
        assert_eq!(pace.wait(&RATE, 5), 5 + 10 * SECOND);
        assert!(pace.is_waiting());
    }

    #[test]
    fn a_wait_that_goes_on_keeps_its_end() {
        let mut pace = Pace::default();
        let due = pace.wait(&RATE, 5);
        assert_eq!(pace.wait(&RATE, due - 1), due);
        assert_eq!(pace.wait(&RATE, due + 1), due, "bytes that were none of the body have changed nothing");
    }

    #[test]
    fn bytes_earn_time_but_no_wait_is_longer_than_the_timeout() {
        let mut pace = Pace::default();
        pace.wait(&RATE, 1);
        pace.came(2_000, 1 + 5 * SECOND);
        assert!(!pace.is_waiting());
        let now = 60 * SECOND; // the application was busy with something else
        assert_eq!(pace.wait(&RATE, now), now + 10 * SECOND);
        assert!(!pace.is_slow(&RATE));
    }

    #[test]
    fn waits_add_up_until_the_average_is_below_the_rate() {
        let mut pace = Pace::default();
        let mut now = 1;
        for _ in 0..5 {
            pace.wait(&RATE, now);
            now += 3 * SECOND;
            pace.came(100, now); // a second's worth, in three
        }
        assert_eq!(pace.wait(&RATE, now), now, "15 s were waited, and 10 + 5 allowed");
        assert!(pace.is_slow(&RATE) && pace.bytes() == 500);
    }
}
