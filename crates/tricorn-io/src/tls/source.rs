//! Where a worker has its configuration from: the page of all workers, built anew when that has changed.
use super::bundle::Bundle;
use super::config::build;
use super::failure::Failure;
use super::link::Link;
use super::page::Page;
use rustls::ServerConfig;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Source {
    page: Page,
    current: Mutex<Current>,
    /// The sequence of the page that was last looked at.
    seen: AtomicU64,
}

struct Current {
    config: Arc<ServerConfig>,
    /// What the log was not told yet.
    complaint: Option<String>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Source({})", self.seen.load(Relaxed))
    }
}

impl Source {
    /// A sentence if there is no bundle in the page, or a wrong one.
    pub fn new(page: Page) -> Result<Source, String> {
        let (sequence, config) = load(&page)?;
        let current = Mutex::new(Current { config, complaint: None });
        Ok(Source { page, current, seen: AtomicU64::new(sequence) })
    }

    /// The configuration of now. Building it takes milliseconds: not under the baton.
    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let sequence = self.page.sequence();
        // An odd one: the arbiter is at it. The next handshake looks again.
        if sequence != self.seen.load(Relaxed) && sequence.is_multiple_of(2) {
            match load(&self.page) {
                Ok((sequence, config)) => {
                    self.seen.store(sequence, Relaxed);
                    current.config = config;
                }
                Err(error) => {
                    self.seen.store(sequence, Relaxed);
                    current.complaint = Some(error);
                }
            }
        }
        current.config.clone()
    }

    /// A session that begins.
    pub fn session(&self) -> Result<Link, Failure> {
        Link::new(self.config())
    }

    /// Why the configuration before the last one is still in use, once.
    pub(crate) fn take_complaint(&self) -> Option<String> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).complaint.take()
    }
}

fn load(page: &Page) -> Result<(u64, Arc<ServerConfig>), String> {
    let (sequence, bytes) = page.read().ok_or("no certificates were published")?;
    let bundle = Bundle::decode(&bytes).ok_or("what was published is of another version of tricorn")?;
    Ok((sequence, build(&bundle)?.0))
}
