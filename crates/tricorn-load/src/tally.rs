//! What was counted.
use crate::client::Moved;
use crate::failure::Failure;
use crate::latencies::Latencies;
use crate::reasons::Reasons;
use crate::tls::Handshakes;

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
    /// What the server said of its errors, or which rule it broke, over HTTP/2.
    pub http2_errors: Reasons,
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
            http2_errors: Reasons::default(),
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

    pub fn count_moved(&mut self, moved: Moved) {
        self.count(Count::BytesSent, moved.sent);
        self.count(Count::BytesReceived, moved.received);
        self.count(Count::BodyBytes, moved.body);
        self.count(Count::Opened, moved.opened);
        moved.http2_errors.into_iter().for_each(|error| self.http2_errors.note(error));
        if let Some(handshakes) = &mut self.handshakes {
            moved.handshakes.into_iter().for_each(|handshake| handshakes.count(handshake));
            moved.reasons.into_iter().for_each(|reason| handshakes.reasons.note(reason));
        }
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
        self.http2_errors.add(&other.http2_errors);
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
        self.http2_errors.clear();
        if let Some(handshakes) = &mut self.handshakes {
            handshakes.clear();
        }
    }
}

/// One more than the greatest status that has three digits.
const STATUSES: usize = 1000;
