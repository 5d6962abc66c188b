//! What was seen.
use std::collections::BTreeMap;

use crate::tls::Handshake;

#[derive(Default)]
pub struct Report {
    /// Nanoseconds from a message to the end of its echo.
    pub latencies: Vec<u64>,
    /// What went wrong, and how often.
    pub errors: BTreeMap<String, usize>,
    /// Whether the server agreed to permessage-deflate.
    pub deflate: bool,
    pub handshakes: Vec<Handshake>,
}

impl Report {
    pub fn note(&mut self, error: String) {
        *self.errors.entry(error).or_default() += 1;
    }
}
