//! What a peer may do in a time: token buckets, and the ratio of bytes to payload.
//!
//! Resets of both sides spend the same tokens, so a client that makes the server reset its streams (MadeYouReset,
//! CVE-2025-8671) is no case of its own.

use super::violation::Violation;

/// So many at once, and so many in each second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    pub burst: u32,
    pub per_second: u32,
}

/// A token bucket. Counts in thousandths, so that one token comes with each millisecond at 1,000 per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    rate: Rate,
    /// Thousandths of a token.
    left: u64,
    /// Milliseconds of the last spending.
    since: u64,
}

impl Budget {
    pub fn new(rate: Rate, now: u64) -> Budget {
        Budget { rate, left: u64::from(rate.burst) * 1000, since: now }
    }

    /// Spends one token; `false` if there is none.
    pub fn spend(&mut self, now: u64) -> bool {
        let earned = now.saturating_sub(self.since).saturating_mul(u64::from(self.rate.per_second));
        self.since = self.since.max(now);
        self.left = self.left.saturating_add(earned).min(u64::from(self.rate.burst) * 1000);
        match self.left.checked_sub(1000) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

/// nginx's ratio test: an eighth of what came may not exceed the payload by more than 1 MiB.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overhead {
    bytes: u64,
    payload: u64,
}

impl Overhead {
    /// Counts bytes that came, whatever they were.
    pub fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Counts content of requests and responses.
    pub fn payload(&mut self, bytes: usize) {
        self.payload += bytes as u64;
    }

    pub fn is_excessive(&self) -> bool {
        self.bytes / 8 > self.payload + (1 << 20)
    }
}

/// WINDOW_UPDATE frames are free as far as DATA sent has earned them: ten for each frame, as with Envoy, and two for each 4 KiB. Go's
/// clients send one for the stream and one for the connection whenever their application has read so much.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Allowance(u32);

impl Allowance {
    pub fn earn(&mut self, bytes: usize) {
        let earned = PER_FRAME.saturating_add(u32::try_from(bytes / 2048).unwrap_or(u32::MAX));
        self.0 = self.0.saturating_add(earned).min(MAX_ALLOWANCE);
    }

    pub fn use_one(&mut self) -> bool {
        let is_free = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        is_free
    }
}

const PER_FRAME: u32 = 10;

/// Those for 8 MiB that wait at the client are sent at once when it reads them.
const MAX_ALLOWANCE: u32 = 10_000;

/// All that a connection may spend.
#[derive(Debug)]
pub(super) struct Budgets {
    resets: Budget,
    control: Budget,
    overhead: Overhead,
    updates: Allowance,
}

impl Budgets {
    pub fn new(resets: Rate, control: Rate, now: u64) -> Budgets {
        Budgets {
            resets: Budget::new(resets, now),
            control: Budget::new(control, now),
            overhead: Overhead::default(),
            updates: Allowance::default(),
        }
    }

    /// A stream was reset by either side, or refused.
    pub fn spend_reset(&mut self, now: u64) -> Result<(), Violation> {
        if self.resets.spend(now) { Ok(()) } else { Err(Violation::Resets) }
    }

    /// A frame came that carries nothing of a request.
    pub fn spend_control(&mut self, now: u64) -> Result<(), Violation> {
        if self.control.spend(now) { Ok(()) } else { Err(Violation::ControlFrames) }
    }

    /// A WINDOW_UPDATE came.
    pub fn spend_update(&mut self, now: u64) -> Result<(), Violation> {
        if self.updates.use_one() { Ok(()) } else { self.spend_control(now) }
    }

    pub fn received(&mut self, bytes: usize) -> Result<(), Violation> {
        self.overhead.received(bytes);
        if self.overhead.is_excessive() { Err(Violation::Overhead) } else { Ok(()) }
    }

    /// Content of a request, or a head, was received.
    pub fn payload(&mut self, bytes: usize) {
        self.overhead.payload(bytes);
    }

    /// A frame of DATA was sent.
    pub fn data_sent(&mut self, bytes: usize) {
        self.overhead.payload(bytes);
        self.updates.earn(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_burst_and_then_a_rate() {
        let mut budget = Budget::new(Rate { burst: 3, per_second: 2 }, 0);
        let mut spent = |now| budget.spend(now);
        assert_eq!([spent(0), spent(0), spent(0), spent(0)], [true, true, true, false]);
        assert_eq!([spent(499), spent(500), spent(500), spent(999)], [false, true, false, false]);
        assert!(spent(1000));
        assert_eq!([100_000; 5].map(&mut spent), [true, true, true, false, false], "the burst is the most");
    }

    #[test]
    fn a_clock_that_goes_back_earns_nothing_twice() {
        let mut budget = Budget::new(Rate { burst: 1, per_second: 1 }, 5000);
        assert!(budget.spend(5000) && !budget.spend(0) && !budget.spend(5000) && budget.spend(6000));
    }

    #[test]
    fn window_updates_are_free_as_far_as_data_has_earned_them() {
        let mut allowance = Allowance::default();
        let free = |allowance: &mut Allowance| (0..).take_while(|_| allowance.use_one()).count();
        assert_eq!(free(&mut allowance), 0);
        allowance.earn(100);
        assert_eq!(free(&mut allowance), 10);
        allowance.earn(16 << 10);
        assert_eq!(free(&mut allowance), 18);
        (0..10_000).for_each(|_| allowance.earn(usize::MAX));
        assert_eq!(free(&mut allowance), 10_000);
    }

    #[test]
    fn bytes_without_payload_are_excessive_after_eight_mebibytes() {
        let mut overhead = Overhead::default();
        overhead.received(8 << 20);
        assert!(!overhead.is_excessive());
        overhead.received(8);
        assert!(overhead.is_excessive());
        overhead.payload(1);
        assert!(!overhead.is_excessive());
    }
}
