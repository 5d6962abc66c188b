//! Scrapes that wait for the application's metrics, which lie in files.
//!
//! ```text
//!   a scrape ── known for less than FRESH ────────────────▶ answer
//!       └────── waits ── a native thread reads the files ──▶ answer to all that wait
//!                  └──── the disk hangs for ADMIN_READING ──▶ answer without them (serve.rs)
//! ```
//!
//! A read of a file may wait for a disk, and the text of a large application takes milliseconds, so that neither is done under the
//! baton. The thread is made for one reading, and ends with it.
use super::super::disk_thread::{DiskThread, stall};
use super::super::tokens::SCRAPED;
use crate::clock::SECOND;
use crate::config::Failpoint;
use crate::metrics::Reading;
use crate::sys::poll::{Poller, Token};
use std::path::Path;
use std::sync::Arc;

/// For how long a reading is told again: several Prometheus servers may ask at once.
const FRESH: u64 = SECOND;

#[derive(Debug)]
pub(super) struct Scrapes {
    poller: Arc<Poller>,
    thread: Option<DiskThread<(), Reading>>,
    /// The last reading, and when it came.
    known: Option<(u64, Reading)>,
    waiting: Vec<Token>,
}

impl Scrapes {
    pub fn new(poller: Arc<Poller>) -> Scrapes {
        Scrapes { poller, thread: None, known: None, waiting: Vec::new() }
    }

    /// Whether this one waits for the files of the directory, which are read from now on.
    pub fn must_wait(&mut self, token: Token, directory: &Path, fault: Option<Failpoint>, now: u64) -> bool {
        let waits = self.reading(now).is_none() && self.reads(directory, fault);
        if waits {
            self.waiting.push(token);
        }
        waits
    }

    /// Without a thread, which the system may refuse, the metrics are told without them.
    fn reads(&mut self, directory: &Path, fault: Option<Failpoint>) -> bool {
        if self.thread.is_none() {
            let directory = directory.to_owned();
            let read = move |(), is_closed: bool| {
                if fault == Some(Failpoint::StallDisk) {
                    stall(&directory);
                }
                (!is_closed).then(|| Reading::of(&directory))
            };
            let thread = DiskThread::start("tricorn-metrics", &self.poller, SCRAPED, read).ok();
            self.thread = thread.filter(|thread| thread.order(()).is_ok());
        }
        self.thread.is_some()
    }

    /// The thread has rung: those that wait for it.
    pub fn came(&mut self, now: u64) -> Vec<Token> {
        let Some(reading) = self.thread.as_ref().and_then(DiskThread::take) else { return Vec::new() };
        self.known = Some((now, reading));
        self.thread = None; // it has no more orders, and ends
        std::mem::take(&mut self.waiting)
    }

    /// This one waits no longer.
    pub fn leave(&mut self, token: Token) {
        self.waiting.retain(|waiting| *waiting != token);
    }

    /// What the application has counted, if it is known.
    pub fn reading(&self, now: u64) -> Option<&Reading> {
        self.known.as_ref().filter(|(came, _)| now.saturating_sub(*came) < FRESH).map(|(_, reading)| reading)
    }
}
