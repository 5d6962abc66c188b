//! What went wrong, in words, and how often.
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Reasons(BTreeMap<String, u64>);

impl Reasons {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, reason: &str) -> u64 {
        self.0.get(reason).copied().unwrap_or_default()
    }

    /// Reasons beyond the limit are not kept: a server may put anything into them.
    pub fn note(&mut self, reason: String) {
        if self.0.len() < MOST || self.0.contains_key(&reason) {
            *self.0.entry(reason).or_default() += 1;
        }
    }

    pub fn add(&mut self, other: &Reasons) {
        for (reason, count) in &other.0 {
            *self.0.entry(reason.clone()).or_default() += count;
        }
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Reasons that differ, at most.
const MOST: usize = 20;
