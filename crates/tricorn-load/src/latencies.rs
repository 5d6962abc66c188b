//! Durations, and how they are spread.
use hdrhistogram::Histogram;

/// Durations in nanoseconds.
#[derive(Clone)]
pub struct Latencies {
    /// Microseconds, to three digits.
    pub histogram: Histogram<u64>,
    pub min: u64,
    pub max: u64,
    sum: f64,
    squares: f64,
}

impl Latencies {
    pub fn new() -> Result<Latencies, String> {
        let histogram = Histogram::new_with_bounds(1, LONGEST, 3).map_err(|error| error.to_string())?;
        Ok(Latencies { histogram, min: u64::MAX, max: 0, sum: 0.0, squares: 0.0 })
    }

    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.histogram.saturating_record(nanoseconds.saturating_add(500) / 1000);
        self.min = self.min.min(nanoseconds);
        self.max = self.max.max(nanoseconds);
        self.sum += nanoseconds as f64;
        self.squares += nanoseconds as f64 * nanoseconds as f64;
    }

    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Seconds.
    pub fn mean(&self) -> f64 {
        self.sum / self.count() as f64 / 1e9
    }

    /// Seconds.
    pub fn standard_deviation(&self) -> f64 {
        let mean = self.mean();
        (self.squares / self.count() as f64 / 1e18 - mean * mean).max(0.0).sqrt()
    }

    /// Seconds. None while nothing was counted.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        (self.count() > 0).then(|| {
            // A bucket's upper end may lie beyond what occurred.
            let micros = self.histogram.value_at_quantile(share);
            (micros as f64 * 1e-6).clamp(self.min as f64 * 1e-9, self.max as f64 * 1e-9)
        })
    }

    pub fn add(&mut self, other: &Latencies) {
        // Both have the same bounds, so it fits.
        let _ = self.histogram.add(&other.histogram);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.min, self.max, self.sum, self.squares) = (u64::MAX, 0, 0.0, 0.0);
    }
}

/// An hour, in microseconds.
const LONGEST: u64 = 3_600_000_000;
