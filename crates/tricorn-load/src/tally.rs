//! What was counted.
use hdrhistogram::Histogram;

use crate::tls::Handshakes;

/// Why a request got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No connection could be made.
    Connect,
    /// The answer was not complete in time.
    Timeout,
    /// The server closed the connection before its answer was complete.
    Closed,
    /// What came is no HTTP response.
    Malformed,
    /// More redirects than are followed.
    Redirects,
    /// There are no local ports left for connections.
    Ports,
    /// A WebSocket broke a rule, or echoed another message.
    Echo,
    /// The certificate of the server is refused.
    Certificate,
    /// The server sent an alert of TLS: it refuses us.
    Alert,
    /// The handshake of TLS was not complete in time.
    Handshake,
    /// What came is no TLS.
    Tls,
}

impl Failure {
    /// The server took no request, so that it gets a moment before the next one.
    pub fn is_of_connection(self) -> bool {
        use Failure::{Alert, Certificate, Connect, Handshake, Tls};
        matches!(self, Connect | Certificate | Alert | Handshake | Tls)
    }

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    pub const ALL: [(Failure, &str); 11] = [
        (Failure::Connect, "connect"),
        (Failure::Timeout, "timeout"),
        (Failure::Closed, "closed"),
        (Failure::Malformed, "malformed"),
        (Failure::Redirects, "redirects"),
        (Failure::Ports, "ports"),
        (Failure::Echo, "echo"),
        (Failure::Certificate, "certificate"),
        (Failure::Alert, "alert"),
        (Failure::Handshake, "handshake"),
        (Failure::Tls, "tls"),
    ];
}

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

/// What is counted beside answers and failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Requests that were begun.
    Sent,
    /// Requests that went out more than a millisecond after they were due.
    Late,
    /// Requests that were due and never went out.
    Unsent,
    /// Requests that waited for their answer at the end.
    Unanswered,
    /// Redirects that were followed.
    Redirected,
    /// Requests that were sent again, since the server had closed a connection that it had kept.
    Retried,
    BytesSent,
    BytesReceived,
    BodyBytes,
    /// Connections that were opened.
    Opened,
}

const COUNTS: usize = 10;

#[derive(Clone)]
pub struct Tally {
    /// From when a request was due to the end of its answer.
    pub latencies: Latencies,
    /// How long a request, or the answer of one, waited for the generator.
    pub lags: Latencies,
    statuses: Box<[u64; STATUSES]>,
    failures: [u64; Failure::ALL.len()],
    counts: [u64; COUNTS],
    /// Only where there is TLS.
    pub handshakes: Option<Box<Handshakes>>,
}

impl Tally {
    pub fn new(has_tls: bool) -> Result<Tally, String> {
        Ok(Tally {
            latencies: Latencies::new()?,
            lags: Latencies::new()?,
            statuses: Box::new([0; STATUSES]),
            failures: [0; Failure::ALL.len()],
            counts: [0; COUNTS],
            handshakes: has_tls.then(Handshakes::new).transpose()?.map(Box::new),
        })
    }

    #[inline]
    pub fn answer(&mut self, status: u16, latency: u64) {
        self.latencies.record(latency);
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
    }

    pub fn fail(&mut self, failure: Failure) {
        self.failures[failure as usize] += 1;
    }

    #[inline]
    pub fn count(&mut self, what: Count, more: u64) {
        self.counts[what as usize] += more;
    }

    pub fn counted(&self, what: Count) -> u64 {
        self.counts[what as usize]
    }

    pub fn answered(&self) -> u64 {
        self.latencies.count()
    }

    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Each status that occurred, and how often.
    pub fn statuses(&self) -> impl Iterator<Item = (usize, u64)> {
        self.statuses.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// Each kind of failure that occurred, and how often.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Failure::ALL
            .iter()
            .map(|(failure, name)| (*name, self.failures[*failure as usize]))
            .filter(|(_, count)| *count > 0)
    }

    pub fn add(&mut self, other: &Tally) {
        self.latencies.add(&other.latencies);
        self.lags.add(&other.lags);
        self.statuses.iter_mut().zip(&*other.statuses).for_each(|(all, one)| *all += one);
        self.failures.iter_mut().zip(&other.failures).for_each(|(all, one)| *all += one);
        self.counts.iter_mut().zip(&other.counts).for_each(|(all, one)| *all += one);
        if let (Some(all), Some(one)) = (&mut self.handshakes, &other.handshakes) {
            all.add(one);
        }
    }

    pub fn clear(&mut self) {
        self.latencies.clear();
        self.lags.clear();
        self.statuses.fill(0);
        self.failures.fill(0);
        self.counts.fill(0);
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.clear();
        }
    }
}

/// An hour, in microseconds.
const LONGEST: u64 = 3_600_000_000;
/// One more than the greatest status that has three digits.
const STATUSES: usize = 1000;
