//! Scrapes that wait for the application's metrics, which lie in files.
//!
//! ```text
//!   a scrape ── known for less than FRESH ────────────────▶ answer
//!       └────── waits ── a job reads the files ──▶ answer to all that wait
//!                  └──── the disk hangs for ADMIN_READING ──▶ answer without them (serve.rs)
//! ```
//!
//! A read of a file may wait for a disk, and the text of a large application takes milliseconds, so that neither is done under the
//! baton, but by a job.
use crate::clock::SECOND;
use crate::config::Failpoint;
use crate::disk::{Job, Place, Pool, stall};
use crate::metrics::Reading;
use crate::sys::poll::Token;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

/// For how long a reading is told again: several Prometheus servers may ask at once.
const FRESH: u64 = SECOND;

#[derive(Debug)]
pub(super) struct Scrapes {
    pool: Pool,
    read: (Sender<Reading>, Receiver<Reading>),
    is_reading: bool,
    /// The last reading, and when it came.
    known: Option<(u64, Reading)>,
    waiting: Vec<Token>,
}

impl Scrapes {
    pub fn new(pool: Pool) -> Scrapes {
        Scrapes { pool, read: channel(), is_reading: false, known: None, waiting: Vec::new() }
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
        if !self.is_reading {
            let stalls = fault == Some(Failpoint::StallDisk);
            let job = Read { directory: directory.to_owned(), stalls, read: self.read.0.clone() };
            self.is_reading = self.pool.submit(Place::METRICS, Box::new(job)).is_ok();
        }
        self.is_reading
    }

    /// Those that wait for a reading that has come.
    pub fn came(&mut self, now: u64) -> Vec<Token> {
        let Ok(reading) = self.read.1.try_recv() else { return Vec::new() };
        self.known = Some((now, reading));
        self.is_reading = false;
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

struct Read {
    directory: PathBuf,
    /// For tests: the disk may hang.
    stalls: bool,
    read: Sender<Reading>,
}

impl Job for Read {
    fn run(self: Box<Self>) -> bool {
        if self.stalls {
            stall(&self.directory, 0);
        }
        // The reactor may be gone.
        self.read.send(Reading::of(&self.directory)).is_ok()
    }

    fn give_up(self: Box<Self>) {}
}
