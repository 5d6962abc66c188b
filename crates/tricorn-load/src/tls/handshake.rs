//! Handshakes: what was agreed, how long it took, and what went wrong.
use std::collections::BTreeMap;

use crate::latencies::Latencies;
use crate::reasons::Reasons;

/// One that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// From the first bytes of TLS that went out.
    pub nanoseconds: u64,
    pub is_resumed: bool,
    pub agreed: Agreed,
}

/// Names as IANA has them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Agreed {
    pub version: String,
    pub suite: String,
    /// Of the key exchange; empty where TLS 1.2 resumes, which has none.
    pub group: String,
}

/// All of a thread.
#[derive(Clone)]
pub struct Handshakes {
    pub full: Latencies,
    pub resumed: Latencies,
    pub agreed: BTreeMap<Agreed, u64>,
    /// What was wrong with TLS, in words, and how often.
    pub reasons: Reasons,
}

impl Handshakes {
    pub fn new() -> Result<Handshakes, String> {
        let (full, resumed) = (Latencies::new()?, Latencies::new()?);
        Ok(Handshakes { full, resumed, agreed: BTreeMap::new(), reasons: Reasons::default() })
    }

    pub fn count(&mut self, handshake: Handshake) {
        let latencies = if handshake.is_resumed { &mut self.resumed } else { &mut self.full };
        latencies.record(handshake.nanoseconds);
        *self.agreed.entry(handshake.agreed).or_default() += 1;
    }

    pub fn add(&mut self, other: &Handshakes) {
        self.full.add(&other.full);
        self.resumed.add(&other.resumed);
        for (agreed, count) in &other.agreed {
            *self.agreed.entry(agreed.clone()).or_default() += count;
        }
        self.reasons.add(&other.reasons);
    }

    pub fn clear(&mut self) {
        self.full.clear();
        self.resumed.clear();
        self.agreed.clear();
        self.reasons.clear();
    }
}
