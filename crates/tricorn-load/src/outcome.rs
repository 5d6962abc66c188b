//! What came of a run, as JSON.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use crate::driver::{Done, Shared};
use crate::latencies::Latencies;
use crate::reasons::Reasons;
use crate::samples::Samples;
use crate::tally::{Count, Tally};
use crate::tls::Handshakes;

/// Seconds, bytes, and microseconds in the histogram.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    pub schema: &'static str,
    pub seconds: f64,
    pub sent: u64,
    pub answered: u64,
    /// Answers per second.
    pub rate: f64,
    pub bytes: Bytes,
    pub latency: BTreeMap<&'static str, f64>,
    /// HDR histogram, V2, compressed, in base64.
    pub histogram: String,
    pub statuses: BTreeMap<String, u64>,
    pub errors: BTreeMap<&'static str, u64>,
    pub unsent: u64,
    #[serde(flatten)]
    pub rest: Rest,
    /// Only where there is TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Secured>,
    pub generator: Generator,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<Samples>,
}

/// What TLS came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Secured {
    pub full: Shaken,
    pub resumed: Shaken,
    /// Handshakes by what was agreed in them.
    pub versions: BTreeMap<String, u64>,
    pub suites: BTreeMap<String, u64>,
    pub groups: BTreeMap<String, u64>,
    /// What was wrong, in words.
    pub reasons: Reasons,
}

/// Handshakes of a kind. Latency counts from their first bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Shaken {
    pub count: u64,
    pub latency: BTreeMap<&'static str, f64>,
}

/// What is rarely anything else than zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rest {
    /// Requests that went out more than a millisecond after they were due.
    pub late: u64,
    pub unanswered: u64,
    pub redirected: u64,
    pub retried: u64,
    /// Connections that were opened since the counting began.
    pub opened: u64,
    /// What the server said of its errors, or which rule it broke, over HTTP/2.
    #[serde(skip_serializing_if = "Reasons::is_empty")]
    pub http2_errors: Reasons,
    /// The run was stopped before its end.
    pub stopped: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bytes {
    pub sent: u64,
    pub received: u64,
    /// Received bytes that are content.
    pub body: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Generator {
    pub cpu_seconds: f64,
    /// Of the time of its busiest thread the part in which it ran.
    pub cpu_share: f64,
    /// The same, with the time in which it could have run.
    pub busy_share: f64,
    pub threads: usize,
    pub send_lag_p99: f64,
    /// What was measured is rather the generator than the server.
    pub bottleneck: bool,
}

impl Outcome {
    pub fn new(tally: Tally, mut done: Vec<Done>, stopped: bool) -> Outcome {
        let kept = done.iter_mut().filter_map(|done| done.samples.take());
        let samples = kept.reduce(|mut all, one| {
            all.add(one);
            all
        });
        let longest = done.iter().map(|done| done.ended).max().unwrap_or_default();
        let seconds = longest as f64 / 1e9;
        let answered = tally.answered();
        Outcome {
            schema: SCHEMA,
            seconds,
            sent: tally.counted(Count::Sent),
            answered,
            rate: if seconds > 0.0 { answered as f64 / seconds } else { 0.0 },
            bytes: Bytes {
                sent: tally.counted(Count::BytesSent),
                received: tally.counted(Count::BytesReceived),
                body: tally.counted(Count::BodyBytes),
            },
            latency: figures(&tally.latencies),
            histogram: encoded(&tally.latencies),
            statuses: tally.statuses().map(|(status, count)| (status.to_string(), count)).collect(),
            errors: tally.failures().collect(),
            unsent: tally.counted(Count::Unsent),
            rest: Rest {
                late: tally.counted(Count::Late),
                unanswered: tally.counted(Count::Unanswered),
                redirected: tally.counted(Count::Redirected),
                retried: tally.counted(Count::Retried),
                opened: tally.counted(Count::Opened),
                http2_errors: tally.http2_errors.clone(),
                stopped,
            },
            tls: tally.handshakes.as_deref().map(Secured::new),
            generator: Generator::new(&tally, &done),
            samples,
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Secured {
    fn new(handshakes: &Handshakes) -> Secured {
        let shaken = |of: &Latencies| Shaken { count: of.count(), latency: figures(of) };
        let mut secured = Secured {
            full: shaken(&handshakes.full),
            resumed: shaken(&handshakes.resumed),
            versions: BTreeMap::new(),
            suites: BTreeMap::new(),
            groups: BTreeMap::new(),
            reasons: handshakes.reasons.clone(),
        };
        for (agreed, count) in &handshakes.agreed {
            *secured.versions.entry(agreed.version.clone()).or_default() += count;
            *secured.suites.entry(agreed.suite.clone()).or_default() += count;
            if !agreed.group.is_empty() {
                *secured.groups.entry(agreed.group.clone()).or_default() += count;
            }
        }
        secured
    }
}

impl Generator {
    fn new(tally: &Tally, done: &[Done]) -> Generator {
        let share = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        let most = |shares: &mut dyn Iterator<Item = f64>| shares.fold(0.0, f64::max);
        let busy_share = most(&mut done.iter().map(|done| share(done.usage.cpu + done.usage.runnable, done.ended)));
        let send_lag_p99 = tally.lags.quantile(0.99).unwrap_or_default();
        let is_slow = send_lag_p99 > tally.latencies.quantile(0.5).unwrap_or_default().max(SLOW);
        Generator {
            cpu_seconds: done.iter().map(|done| done.usage.cpu).sum::<u64>() as f64 / 1e9,
            cpu_share: most(&mut done.iter().map(|done| share(done.usage.cpu, done.ended))),
            busy_share,
            threads: done.len(),
            send_lag_p99,
            bottleneck: tally.answered() > 0 && (busy_share > BUSY || is_slow),
        }
    }
}

/// Seconds.
fn figures(latencies: &Latencies) -> BTreeMap<&'static str, f64> {
    if latencies.count() == 0 {
        return BTreeMap::new();
    }
    let mut figures = BTreeMap::from([
        ("min", latencies.min as f64 / 1e9),
        ("mean", latencies.mean()),
        ("max", latencies.max as f64 / 1e9),
        ("standard_deviation", latencies.standard_deviation()),
    ]);
    figures.extend(QUANTILES.iter().filter_map(|(name, share)| Some((*name, latencies.quantile(*share)?))));
    figures
}

fn encoded(latencies: &Latencies) -> String {
    let mut bytes = Vec::new();
    // Writing into memory fails for no reason.
    let _ = V2DeflateSerializer::new().serialize(&latencies.histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// How a run is going.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Progress {
    pub seconds: f64,
    pub sent: u64,
    pub answered: u64,
    pub failed: u64,
    pub late: u64,
    pub connections: usize,
    /// Answers per second since the last progress.
    pub rate: f64,
    /// Since the beginning.
    pub latency: BTreeMap<&'static str, f64>,
}

impl Progress {
    /// `now`: nanoseconds since the counting began.
    pub(crate) fn next(before: &Progress, shared: &[Shared], now: u64) -> Progress {
        let connections = shared.iter().map(|shared| shared.connections.load(Ordering::Relaxed)).sum();
        let mut all: Option<Tally> = None;
        for shared in shared {
            let Ok(tally) = shared.tally.lock() else { continue };
            match &mut all {
                Some(all) => all.add(&tally),
                None => all = Some(tally.clone()),
            }
        }
        all.map_or_else(Progress::default, |all| Progress::of(before, &all, now, connections))
    }

    pub(crate) fn of(before: &Progress, tally: &Tally, now: u64, connections: usize) -> Progress {
        let seconds = now as f64 / 1e9;
        let passed = seconds - before.seconds;
        let more = tally.answered().saturating_sub(before.answered);
        Progress {
            seconds,
            sent: tally.counted(Count::Sent),
            answered: tally.answered(),
            failed: tally.failed(),
            late: tally.counted(Count::Late),
            connections,
            rate: if passed > 0.0 { more as f64 / passed } else { 0.0 },
            latency: figures(&tally.latencies),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

const SCHEMA: &str = "tricorn-load/1";
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999)];
/// Part of its time in which a thread may be busy, or want to be, without a warning.
const BUSY: f64 = 0.9;
/// Seconds that a request may wait for the generator without a warning.
const SLOW: f64 = 0.001;
