//! All that is told of each request outside of the process: the access log, syslog's access lines, statsd's metrics.
use crate::access_log::AccessLog;
use crate::collectors::Relay;
use crate::scoreboard::{Scoreboard, Word};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tricorn_proto::access_log::{Format, Record};
use tricorn_proto::statsd::Metrics;
use tricorn_proto::syslog::Frame;
use tricorn_sys::clock;

/// A thread keeps buffers of so many bytes.
const LONG: usize = 16 << 10;

thread_local! {
    /// Where this thread renders; with the one that is at it, meanwhile.
    static SCRATCH: Cell<(Vec<u8>, Vec<u8>)> = const { Cell::new((Vec::new(), Vec::new())) };
}

/// One per worker.
#[derive(Debug, Default)]
pub struct Logs {
    /// With the format of lines, which syslog has too; `None`: there are none.
    pub format: Option<Format>,
    pub access: Option<Arc<AccessLog>>,
    pub syslog: Option<(Frame, Relay)>,
    pub statsd: Option<(Metrics, Relay)>,
    /// Another writer makes the lines (`hand_over_lines`).
    pub lines_handed_over: AtomicBool,
}

impl Logs {
    /// Something is told of each request.
    #[inline]
    pub fn are_on(&self) -> bool {
        self.has_lines() || self.statsd.is_some()
    }

    /// A line is made of each request.
    #[inline]
    pub fn has_lines(&self) -> bool {
        let has_target = self.access.is_some() || self.syslog.is_some();
        self.format.is_some() && has_target && !self.lines_handed_over.load(Ordering::Relaxed)
    }

    /// Makes no more lines: the application has attached filters or handlers of its own, so Python makes them.
    ///
    /// Metrics go on. The flag guards no other data; called before the first request, it is seen by every thread.
    pub fn hand_over_lines(&self) {
        self.lines_handed_over.store(true, Ordering::Relaxed);
    }

    /// Tells of a request. Whether the monitor does not know yet that it has something to do.
    ///
    /// The record may run Python code, and come back here: nothing is locked meanwhile.
    pub fn tell(&self, record: &Record<'_>) -> bool {
        let (mut line, mut framed) = SCRATCH.take();
        let mut is_news = false;
        if let Some(format) = self.format.as_ref().filter(|_| self.has_lines()) {
            line.clear();
            format.render(record, &mut line);
            if let Some(access) = &self.access {
                is_news |= access.add(&line);
            }
            if let Some((frame, relay)) = &self.syslog {
                framed.clear();
                frame.render(clock::timestamp, line.strip_suffix(b"\n").unwrap_or(&line), &mut framed);
                is_news |= relay.add(std::iter::once(framed.as_slice()));
            }
        }
        if let Some((metrics, relay)) = &self.statsd {
            line.clear();
            metrics.render(record.micros, record.status, record.queue_micros, &mut line);
            let lines = line.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            is_news |= relay.add(lines);
        }
        if line.capacity() <= LONG && framed.capacity() <= LONG {
            SCRATCH.set((line, framed));
        }
        is_news
    }

    fn relays(&self) -> impl Iterator<Item = &Relay> {
        let syslog = self.syslog.iter().map(|(_, relay)| relay);
        syslog.chain(self.statsd.iter().map(|(_, relay)| relay))
    }

    /// The monitor has to have a look.
    #[inline]
    pub fn need_a_look(&self) -> bool {
        self.access.as_ref().is_some_and(|access| access.is_due()) || self.relays().any(Relay::is_unseen)
    }

    /// In how many nanoseconds the monitor has something to do.
    pub fn due_in(&self, now: u64) -> Option<u64> {
        let access = self.access.as_ref().and_then(|access| access.retry_in(now));
        self.relays().filter_map(|relay| relay.due_in(now)).chain(access).min()
    }

    /// For the monitor: sees to it that what is due is written. `tell` is given what the error log should be told.
    pub fn tend(&self, now: u64, board: Scoreboard, mut tell: impl FnMut(String)) {
        if let Some(access) = &self.access {
            access.tend(now);
            board.set(Word::LogLost, access.lost());
            access.take_notice().into_iter().for_each(&mut tell);
        }
        self.relays().filter_map(|relay| relay.tend(now)).for_each(tell);
        self.count(board);
    }

    fn count(&self, board: Scoreboard) {
        if let Some((_, relay)) = &self.syslog {
            board.set(Word::SyslogLost, relay.lost());
        }
        if let Some((_, relay)) = &self.statsd {
            board.set(Word::StatsdLost, relay.lost());
        }
    }

    /// Writes everything that is taken in time. How many lines of the access log were lost with that.
    pub fn flush(&self, board: Scoreboard) -> u64 {
        self.relays().for_each(Relay::flush);
        self.count(board);
        let Some(access) = &self.access else { return 0 };
        let before = access.lost();
        access.flush();
        board.set(Word::LogLost, access.lost());
        access.lost() - before
    }

    /// Lets threads go, when they have written what they can.
    pub fn dismiss(&self) {
        if let Some(access) = &self.access {
            access.dismiss();
        }
    }
}
