//! What is to be sent, and how: read from JSON.
//!
//! ```text
//!   {"targets": [{"address": {"tcp": ["127.0.0.1", 8000]}, "host": "127.0.0.1:8000", "path": "/", "weight": 1}],
//!    "request": {"method": "GET", "headers": [["Accept", "*/*"]], "body": ""},
//!    "model": {"closed": {"connections": 50}},
//!    "bounds": {"requests": 200}}
//! ```
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::rate::Stage;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Replaced by the recorded ones of a replay, which go to the first target's address.
    pub targets: Vec<Target>,
    #[serde(default)]
    pub request: Request,
    pub model: Model,
    #[serde(default)]
    pub bounds: Bounds,
    #[serde(default)]
    pub connection: Connection,
    /// For targets with a server name.
    #[serde(default)]
    pub tls: Tls,
    #[serde(default)]
    pub threads: Threads,
    /// Messages and their echoes instead of requests.
    #[serde(default)]
    pub websocket: Option<WebSocket>,
    /// Requests are sent over HTTP/2: as agreed by ALPN over TLS, with prior knowledge without.
    #[serde(default)]
    pub http2: Option<Http2>,
    /// Of so many requests is kept what became of each.
    #[serde(default)]
    pub samples: usize,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    pub address: Address,
    /// The field Host.
    pub host: String,
    /// With its query.
    pub path: String,
    #[serde(default = "one")]
    pub weight: f64,
    /// There is TLS, with a server of this name.
    #[serde(default)]
    pub server_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    Tcp(String, u16),
    /// A path; with a leading NUL an abstract name.
    Unix(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub method: String,
    pub headers: Vec<(String, String)>,
    #[serde(deserialize_with = "base64")]
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// Clients that send their next request when the last one was answered.
    Closed(Closed),
    /// Requests that come when they are due, whatever became of those before.
    Open(Open),
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closed {
    pub connections: usize,
    /// Clients that begin, per second; without it all begin at once.
    #[serde(default)]
    pub hatch_rate: Option<f64>,
    /// Seconds between an answer and the next request: at least, at most.
    #[serde(default)]
    pub think: Option<(f64, f64)>,
    /// Most requests per second of each connection.
    #[serde(default)]
    pub pace: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// Most of them. They are opened when they are needed.
    pub connections: usize,
    pub arrivals: Arrivals,
    /// The first requests open them all, one each.
    #[serde(default)]
    pub opens_all: bool,
    /// A request takes any of the free connections, instead of the one that rested longest.
    #[serde(default)]
    pub any_connection: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    Rate {
        /// Requests per second: at the beginning, then as the stages say.
        rate: f64,
        #[serde(default)]
        stages: Vec<Stage>,
        /// Random gaps instead of equal ones.
        #[serde(default)]
        poisson: bool,
    },
    /// Seconds from the beginning, in order; method, path.
    Replay { entries: Vec<(f64, String, String)> },
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// No more requests are begun than these, and none after so many seconds.
    pub requests: Option<u64>,
    pub seconds: Option<f64>,
    /// Seconds of load before the counting begins.
    pub warmup: f64,
    /// Seconds that requests under way are waited for at the end.
    pub drain: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Connection {
    /// Otherwise each request has a connection of its own.
    pub keep_alive: bool,
    /// Seconds from the request to the end of its answer; 0: without end.
    pub timeout: f64,
    pub follows_redirects: bool,
    /// Addresses that are not this machine's are allowed.
    pub remote: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Threads {
    /// 0: one.
    pub count: usize,
    /// The processors that the threads are pinned to, in turn.
    pub cpus: Vec<usize>,
}

/// Files are in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// The certificate of the server is checked.
    pub verify: bool,
    /// Authorities instead of the system's.
    pub ca_file: Option<String>,
    /// Who we are, if the server asks.
    pub cert_file: Option<String>,
    /// Without it the key stands in `cert_file`.
    pub key_file: Option<String>,
    pub min: Version,
    pub max: Version,
    /// A connection anew resumes with a ticket of the server's.
    pub resumes: bool,
    /// X25519MLKEM768 is offered for the exchange of keys.
    pub post_quantum: bool,
    /// Cipher suites that are offered, by IANA's names; empty: all.
    pub suites: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Version {
    #[serde(rename = "1.2")]
    Tls12,
    #[serde(rename = "1.3")]
    Tls13,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSocket {
    /// Bytes of a message.
    pub size: usize,
    pub binary: bool,
    pub deflate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Http2 {
    /// Most requests at a time on each connection.
    pub streams: usize,
}

impl Default for Request {
    fn default() -> Request {
        Request { method: "GET".into(), headers: Vec::new(), body: Vec::new() }
    }
}

impl Default for Tls {
    fn default() -> Tls {
        Tls {
            verify: true,
            ca_file: None,
            cert_file: None,
            key_file: None,
            min: Version::Tls12,
            max: Version::Tls13,
            resumes: true,
            post_quantum: true,
            suites: Vec::new(),
        }
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { requests: None, seconds: None, warmup: 0.0, drain: 5.0 }
    }
}

impl Default for Connection {
    fn default() -> Connection {
        Connection { keep_alive: true, timeout: 20.0, follows_redirects: false, remote: false }
    }
}

impl Plan {
    /// # Errors
    /// A sentence with what is wrong.
    pub fn from_json(text: &[u8]) -> Result<Plan, String> {
        let plan: Plan = serde_json::from_slice(text).map_err(|error| format!("the plan cannot be read: {error}"))?;
        plan.check()?;
        Ok(plan)
    }

    pub fn connections(&self) -> usize {
        match &self.model {
            Model::Closed(closed) => closed.connections,
            Model::Open(open) => open.connections,
        }
    }

    /// Most requests at a time on each connection.
    pub fn streams(&self) -> usize {
        self.http2.map_or(1, |http2| http2.streams)
    }

    pub fn has_tls(&self) -> bool {
        self.targets.iter().any(|target| target.server_name.is_some())
    }

    /// How many threads there is something to do for.
    pub fn thread_count(&self) -> usize {
        self.threads.count.clamp(1, self.connections().max(1))
    }

    fn check(&self) -> Result<(), String> {
        let replay_is_bounded = matches!(&self.model, Model::Open(Open { arrivals: Arrivals::Replay { .. }, .. }));
        let numbers = [
            ("bounds.seconds", self.bounds.seconds.unwrap_or(0.0)),
            ("bounds.warmup", self.bounds.warmup),
            ("bounds.drain", self.bounds.drain),
            ("connection.timeout", self.connection.timeout),
        ];
        if let Some((name, number)) = numbers.into_iter().find(|(_, number)| !(0.0..LONGEST).contains(number)) {
            return Err(format!("{name}: expected seconds, got {number}"));
        }
        if self.targets.is_empty() {
            return Err("targets: expected at least one".into());
        }
        if self.connections() == 0 {
            return Err("connections: expected at least one".into());
        }
        if let Some(http2) = self.http2 {
            self.check_http2(http2)?;
        }
        if self.bounds.requests.is_none() && self.bounds.seconds.is_none() && !replay_is_bounded {
            return Err("bounds: expected a number of requests, or of seconds".into());
        }
        if let Some(target) = self.targets.iter().find(|target| !(target.weight > 0.0 && target.weight.is_finite())) {
            return Err(format!("weight of {}: expected a positive number, got {}", target.path, target.weight));
        }
        match &self.model {
            Model::Closed(closed) => closed.check(),
            Model::Open(open) => open.check(),
        }
    }
}

impl Plan {
    fn check_http2(&self, Http2 { streams }: Http2) -> Result<(), String> {
        if !(1..=MOST_STREAMS).contains(&streams) {
            return Err(format!("streams: expected 1 to {MOST_STREAMS}, got {streams}"));
        }
        if streams > 1 && !self.connection.keep_alive {
            return Err("streams: a connection for each request has one stream".into());
        }
        if self.websocket.is_some() {
            return Err("WebSockets over HTTP/2 (RFC 8441) are not in this version".into());
        }
        Ok(())
    }
}

impl Closed {
    fn check(&self) -> Result<(), String> {
        positive("hatch_rate", self.hatch_rate)?;
        positive("pace", self.pace)?;
        match self.think {
            Some((low, high)) if !(0.0 <= low && low <= high && high < LONGEST) => {
                Err(format!("think: expected two numbers of seconds in order, got {low} and {high}"))
            }
            _ => Ok(()),
        }
    }
}

impl Open {
    fn check(&self) -> Result<(), String> {
        match &self.arrivals {
            Arrivals::Rate { rate, stages, .. } => {
                let is_rate = |rate: f64| (0.0..1e9).contains(&rate);
                let is_stage = |stage: &Stage| (0.0..LONGEST).contains(&stage.seconds) && is_rate(stage.rate);
                let some = is_rate(*rate) && (*rate > 0.0 || stages.iter().any(|stage| stage.rate > 0.0));
                if some && stages.iter().all(is_stage) {
                    Ok(())
                } else {
                    Err("rate: expected a positive number".into())
                }
            }
            Arrivals::Replay { entries } if entries.is_empty() => Err("replay: expected at least one request".into()),
            Arrivals::Replay { entries } => {
                let is_ordered = entries.windows(2).all(|pair| pair[0].0 <= pair[1].0);
                let is_placed = entries.iter().all(|(offset, _, _)| (0.0..LONGEST).contains(offset));
                if is_ordered && is_placed {
                    Ok(())
                } else {
                    Err("replay: expected requests in the order of time".into())
                }
            }
        }
    }
}

fn positive(name: &str, number: Option<f64>) -> Result<(), String> {
    match number {
        Some(number) if !(number > 0.0 && number.is_finite()) => {
            Err(format!("{name}: expected a positive number, got {number}"))
        }
        _ => Ok(()),
    }
}

fn base64<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
}

fn one() -> f64 {
    1.0
}

/// More than servers allow: nghttp2 and Envoy have 100 by default, nginx 128.
const MOST_STREAMS: usize = 100_000;
/// Ten years of seconds: no clock here overflows.
const LONGEST: f64 = 315_360_000.0;
