//! The access log's lines: gathered in memory, written by the monitor, whatever becomes of whoever reads them.
//!
//! No application waits for its log: a reader that stops, a full disk or a closed pipe let lines gather up to a bound, and
//! beyond it whole lines are dropped and counted. What is kept is tried again, ever less often, and lines leave whole and
//! in order: one that was written in part is continued before anything else is.
use crate::clock::{self, MILLI, SECOND};
use crate::sink::Sink;
use rustix::io;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most bytes of lines kept; those that come on top are dropped.
const MOST: usize = 8 << 20;
/// Buffers that grew beyond this go back to the system once they are empty.
const KEPT: usize = 1 << 20;
/// Time until a failed write is tried again: doubled from the first to the last.
const RETRY: std::ops::RangeInclusive<u64> = MILLI..=SECOND;
/// A reader that is merely slow is looked after more often.
const SLOW: u64 = 100 * MILLI;
/// How long a closing log waits for a reader, and for a disk.
const PATIENCE: u64 = 5 * SECOND;
const DISK_PATIENCE: u64 = SECOND;

/// Where lines go. One per worker.
#[derive(Debug)]
pub struct AccessLog {
    pending: Mutex<Vec<u8>>,
    writer: Mutex<Writer>,
    waiting: AtomicBool,
    /// Bytes the writer has taken over and not written yet.
    taken: AtomicUsize,
    /// Not to be tried before (monotonic nanoseconds).
    retry_at: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    sink: Sink,
    lines: Vec<u8>,
    written: usize,
    /// Time between the last two tries; 0: all is well.
    delay: u64,
    /// Lines lost when the trouble began that was told last; `None`: none was.
    told: Option<u64>,
    notice: Option<String>,
}

impl AccessLog {
    /// `-` is standard output; anything else a file that is appended to.
    pub fn open(target: &str) -> io::Result<AccessLog> {
        let sink = Sink::open(target)?;
        let writer = Writer { sink, lines: Vec::new(), written: 0, delay: 0, told: None, notice: None };
        Ok(AccessLog {
            pending: Mutex::default(),
            writer: Mutex::new(writer),
            waiting: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            retry_at: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        })
    }

    /// Adds the line that `render` appends, if there is room. Whether none waited before.
    pub fn add(&self, render: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut pending = locked(&self.pending);
        let before = pending.len();
        render(&mut pending);
        if pending.len() + self.taken.load(Relaxed) > MOST {
            pending.truncate(before);
            self.lost.fetch_add(1, Relaxed);
        }
        drop(pending);
        // The first one is a full barrier, see `Engine::log`. Whoever sees that others wait will be written with them.
        !self.waiting.load(Relaxed) && !self.waiting.swap(true, SeqCst)
    }

    /// Lines dropped so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Lines wait.
    pub fn has_pending(&self) -> bool {
        self.waiting.load(SeqCst)
    }

    /// Lines wait, and may be written now.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.waiting.load(Relaxed) && {
            let retry_at = self.retry_at.load(Relaxed);
            retry_at == 0 || clock::now() >= retry_at
        }
    }

    /// When lines that could not be written are to be tried again; `None` if there are none.
    pub fn retry_in(&self, now: u64) -> Option<u64> {
        let retry_at = self.retry_at.load(Relaxed);
        (retry_at != 0).then(|| retry_at.saturating_sub(now))
    }

    /// What the error log should be told, once.
    pub fn take_notice(&self) -> Option<String> {
        locked(&self.writer).notice.take()
    }

    /// Writes what is taken without waiting; for the monitor.
    pub fn write_some(&self) {
        let mut writer = locked(&self.writer);
        // Before the lines are taken: one that is added after that says so itself.
        self.waiting.store(false, Relaxed);
        // What was left from the last time, then what has come since.
        let before = writer.written;
        let mut result = writer.write();
        if result.is_ok() && self.refill(&mut writer) {
            result = writer.write();
        }
        self.taken.store(writer.left(), Relaxed);
        let retry = match result {
            Ok(()) => {
                writer.is_well(self.lost());
                0
            }
            Err(error) => {
                self.waiting.store(true, Relaxed);
                let progress = writer.written != before;
                writer.has_trouble(error, progress, self.lost());
                clock::now() + writer.delay
            }
        };
        self.retry_at.store(retry, Relaxed);
    }

    /// Writes everything that is taken in time; what is not is lost. For the end of the worker.
    pub fn flush(&self) {
        crate::sys::without_sigpipe(|| {
            let mut writer = locked(&self.writer);
            let begin = clock::now();
            loop {
                self.refill(&mut writer);
                match writer.write() {
                    Ok(()) if locked(&self.pending).is_empty() => break,
                    Ok(()) => {}
                    Err(error) if !writer.sink.wait(error, begin, PATIENCE, DISK_PATIENCE) => {
                        let lines = writer.give_up() + count(&std::mem::take(&mut *locked(&self.pending)));
                        self.lost.fetch_add(lines, Relaxed);
                        break;
                    }
                    Err(_) => {}
                }
            }
            self.taken.store(0, Relaxed);
            self.waiting.store(false, Relaxed);
            self.retry_at.store(0, Relaxed);
        });
    }

    /// Opens the file anew, after it was rotated away. Lines so far go to the old one as far as it takes them.
    pub fn reopen(&self) -> io::Result<()> {
        let mut writer = locked(&self.writer);
        let Some(sink) = writer.sink.again()? else { return Ok(()) };
        let written = crate::sys::without_sigpipe(|| writer.write());
        if written.is_ok() && self.refill(&mut writer) {
            let _ = crate::sys::without_sigpipe(|| writer.write()); // what is left goes to the new file
        }
        writer.sink = sink;
        // A line that the old file has in part would be torn: the new one gets it whole.
        writer.written = line_start(&writer.lines, writer.written);
        self.taken.store(writer.left(), Relaxed);
        self.waiting.store(true, Relaxed);
        self.retry_at.store(0, Relaxed);
        Ok(())
    }

    /// Takes over the lines that were added, if all before them are written; whether there are any.
    fn refill(&self, writer: &mut Writer) -> bool {
        if writer.left() > 0 {
            return true;
        }
        writer.lines.clear();
        writer.written = 0;
        if writer.lines.capacity() > KEPT {
            writer.lines = Vec::new();
        }
        let mut pending = locked(&self.pending);
        std::mem::swap(&mut writer.lines, &mut pending);
        self.taken.store(writer.lines.len(), Relaxed);
        !writer.lines.is_empty()
    }
}

impl Writer {
    fn left(&self) -> usize {
        self.lines.len() - self.written
    }

    /// Writes until all lines are with the system, or it takes no more.
    fn write(&mut self) -> io::Result<()> {
        while self.left() > 0 {
            self.written += self.sink.write(&self.lines[self.written..])?;
        }
        Ok(())
    }

    fn is_well(&mut self, lost: u64) {
        self.delay = 0;
        if let Some(before) = self.told.take() {
            self.notice = Some(format!("The access log is written again; {} lines were lost", lost - before));
        }
    }

    /// Puts the next try off, the further the longer nothing was written; tells the trouble once.
    fn has_trouble(&mut self, error: io::Errno, progress: bool, lost: u64) {
        let slow = error == io::Errno::AGAIN;
        let longest = if slow { SLOW } else { *RETRY.end() };
        self.delay = if progress { 0 } else { self.delay };
        self.delay = (self.delay * 2).clamp(*RETRY.start(), longest);
        // A slow reader is nobody's trouble until a line is lost.
        if self.told.is_none() && (!slow || self.left() > MOST / 2) {
            self.told = Some(lost);
            let why = if slow { "its reader does not keep up".into() } else { error.to_string() };
            self.notice = Some(format!(
                "The access log cannot be written: {why}. Up to {} MiB of lines are kept, others are lost",
                MOST >> 20
            ));
        }
    }

    /// Forgets what is left; how many lines that is.
    fn give_up(&mut self) -> u64 {
        let lines = count(&self.lines[self.written..]);
        self.lines.clear();
        self.written = 0;
        lines
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Where the line begins of which the byte at `at` is one.
fn line_start(lines: &[u8], at: usize) -> usize {
    lines[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1)
}

/// The lists here stay whole whatever panicked while they were held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
