//! The access log's lines: gathered in memory, written by a native thread, whatever becomes of their reader.
//!
//! The monitor writes them to a pipe, a socket or a terminal, where no write waits. A write to a file may wait for its disk:
//! a thread of its own does that (`log_thread.rs`), and the monitor never waits for it.
//!
//! No application waits for its log: a reader that stops, a full disk or a closed pipe let lines gather up to a bound, and
//! beyond it whole lines are dropped and counted. What is kept is tried again, ever less often, and lines leave whole and
//! in order: one that was written in part is continued before anything else is.

mod log_thread;
mod sink;

use log_thread::{Log, LogThread, Outcome};
use rustix::io;
use sink::Sink;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use tricorn_sys::clock::{self, MILLI, SECOND};
use tricorn_sys::fork::is_child;

/// Most bytes of lines kept; those that come on top are dropped.
const MOST: usize = 8 << 20;
/// Buffers that grew beyond this go back to the system once they are empty.
const KEPT: usize = 1 << 20;
/// Time until a failed write is tried again: doubled from the first to the last.
const RETRY: std::ops::RangeInclusive<u64> = MILLI..=SECOND;
/// A reader that is merely slow is looked after more often.
const SLOW: u64 = 100 * MILLI;
/// How long a closing log waits for a reader, or for a disk that does not answer; and for one that refuses. A rotation waits
/// for a disk as well, perhaps on an application's thread.
const PATIENCE: u64 = 5 * SECOND;
const DISK_PATIENCE: u64 = SECOND;
/// A write to a file that has not returned for so long is told.
const HANGS: u64 = SECOND;

const LATE: &str = "its disk has not answered for a second; it is opened anew when the disk answers";

/// Where lines go. One per worker.
#[derive(Debug)]
pub struct AccessLog {
    pending: Mutex<Pending>,
    /// Held while lines are written: to a file perhaps for long, but then by the thread alone.
    writer: Mutex<Writer>,
    waiting: AtomicBool,
    taken: Taken,
    /// Not to be tried before (monotonic nanoseconds).
    retry_at: AtomicU64,
    lost: AtomicU64,
    /// Its writes wait for a disk.
    is_file: AtomicBool,
    thread: LogThread,
    trouble: Trouble,
}

#[derive(Debug, Default)]
struct Pending {
    bytes: Vec<u8>,
    lines: u64,
}

/// What the writer has taken over and not written yet.
#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicUsize,
    lines: AtomicU64,
}

impl Taken {
    fn set(&self, bytes: usize, lines: u64) {
        self.bytes.store(bytes, Relaxed);
        self.lines.store(lines, Relaxed);
    }
}

#[derive(Debug)]
struct Writer {
    sink: Sink,
    lines: Vec<u8>,
    written: usize,
    /// Time between the last two tries; 0: all is well.
    delay: u64,
}

impl AccessLog {
    /// `-` is standard output; anything else a file that is appended to.
    pub fn open(target: &str) -> io::Result<AccessLog> {
        let sink = Sink::open(target)?;
        let is_file = AtomicBool::new(sink.is_file());
        let writer = Writer { sink, lines: Vec::new(), written: 0, delay: 0 };
        Ok(AccessLog {
            pending: Mutex::default(),
            writer: Mutex::new(writer),
            waiting: AtomicBool::new(false),
            taken: Taken::default(),
            retry_at: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            is_file,
            thread: LogThread::default(),
            trouble: Trouble::default(),
        })
    }

    /// For tests: a write hangs while the same path with the extension `stall` is a FIFO that is not open for writing.
    #[must_use]
    pub fn with_stalls(self, stalls: bool) -> AccessLog {
        locked(&self.writer).sink.hangs = stalls;
        self
    }

    /// Adds a line, if there is room. Whether none waited before.
    pub fn add(&self, line: &[u8]) -> bool {
        let mut pending = locked(&self.pending);
        if pending.bytes.len() + line.len() + self.taken.bytes.load(Relaxed) > MOST {
            self.lost.fetch_add(1, Relaxed);
        } else {
            pending.bytes.extend_from_slice(line);
            pending.lines += 1;
        }
        drop(pending);
        // The first one is a full barrier, see `Engine::tell`. A thread that sees lines of others wait has its own written with them.
        !self.waiting.load(Relaxed) && !self.waiting.swap(true, SeqCst)
    }

    /// Lines dropped so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Lines wait, may be written now, and the thread does not look for them.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.waiting.load(Relaxed) && !self.thread.is_awake() && {
            let retry_at = self.retry_at.load(Relaxed);
            retry_at == 0 || clock::now() >= retry_at
        }
    }

    /// When lines that could not be written are to be tried again, or a write that hangs is to be looked at; `None` if there
    /// are none.
    pub fn retry_in(&self, now: u64) -> Option<u64> {
        if self.thread.is_awake() {
            let stuck = self.thread.stuck_for(now).map(|stuck| HANGS.saturating_sub(stuck));
            return if self.trouble.is_told() { Some(SECOND) } else { stuck };
        }
        let retry_at = self.retry_at.load(Relaxed);
        (retry_at != 0).then(|| retry_at.saturating_sub(now))
    }

    /// What the error log should be told, once.
    pub fn take_notice(&self) -> Option<String> {
        self.trouble.take_notice()
    }

    /// For the monitor: sees to it that lines which are due are written. Waits for nothing.
    pub fn tend(self: &Arc<Self>, now: u64) {
        if self.thread.stuck_for(now).is_some_and(|stuck| stuck >= HANGS) {
            self.trouble.begin("its disk does not answer", self.lost());
        }
        if !self.is_due() {
            return;
        }
        if !self.is_file.load(Relaxed) {
            match self.writer.try_lock() {
                Ok(mut writer) => self.write_with(&mut writer),
                Err(TryLockError::Poisoned(writer)) => self.write_with(&mut writer.into_inner()),
                Err(TryLockError::WouldBlock) => {} // it is being opened anew
            }
        } else if let Err(error) = self.thread.wake(self) {
            self.trouble.begin(&format!("no thread can be started for it: {error}"), self.lost());
            self.retry_at.store(now + *RETRY.end(), Relaxed);
        }
    }

    /// Writes what is taken. It waits for a disk, but for no reader.
    pub fn write_some(&self) {
        self.write_with(&mut locked(&self.writer));
    }

    fn write_with(&self, writer: &mut Writer) {
        // Before the lines are taken: one that is added after that says so itself.
        self.waiting.store(false, Relaxed);
        // What was left from the last time, then what has come since.
        let before = writer.written;
        let mut result = writer.write(&self.taken);
        if result.is_ok() && self.refill(writer) {
            result = writer.write(&self.taken);
        }
        let retry = match result {
            Ok(()) => {
                writer.delay = 0;
                self.trouble.end(self.lost());
                0
            }
            Err(error) => {
                self.waiting.store(true, Relaxed);
                let progress = writer.written != before;
                if let Some(why) = writer.put_off(error, progress) {
                    self.trouble.begin(&why, self.lost());
                }
                clock::now() + writer.delay
            }
        };
        self.retry_at.store(retry, Relaxed);
    }

    /// Writes everything that is taken in time; what is not is lost. For the end of the worker.
    pub fn flush(self: &Arc<Self>) {
        let has_lines = self.waiting.load(SeqCst) || self.taken.bytes.load(Relaxed) > 0;
        if self.thread.exists() || (self.is_file.load(Relaxed) && has_lines) {
            match self.thread.end(self, PATIENCE) {
                Outcome::Done(()) => return,
                Outcome::Late => return self.give_up(self.taken.lines.load(Relaxed)),
                Outcome::NoThread(_) => {}
            }
        }
        self.flush_now();
    }

    /// Lets the thread go, if there is one, when it has written what it can.
    pub fn dismiss(self: &Arc<Self>) {
        if self.thread.exists() {
            self.thread.end(self, 0);
        }
    }

    /// `flush` on this thread.
    fn flush_now(&self) {
        tricorn_sys::without_sigpipe(|| {
            let mut writer = locked(&self.writer);
            let begin = clock::now();
            loop {
                self.refill(&mut writer);
                match writer.write(&self.taken) {
                    Ok(()) if locked(&self.pending).bytes.is_empty() => break,
                    Ok(()) => {}
                    Err(error) if !writer.sink.wait(error, begin, PATIENCE, DISK_PATIENCE) => {
                        self.give_up(writer.give_up());
                        break;
                    }
                    Err(_) => {}
                }
            }
            self.taken.set(0, 0);
            self.waiting.store(false, Relaxed);
            self.retry_at.store(0, Relaxed);
        });
    }

    /// Lines that wait are lost, and so many that were taken over.
    fn give_up(&self, taken: u64) {
        let pending = std::mem::take(&mut *locked(&self.pending));
        self.lost.fetch_add(taken + pending.lines, Relaxed);
    }

    /// Opens the file anew, after it was rotated away. Lines so far go to the old one as far as it takes them.
    pub fn reopen(self: &Arc<Self>) -> std::io::Result<()> {
        if is_child() {
            return Ok(()); // the thread is the parent's, and so are locks that it held
        }
        if self.is_file.load(Relaxed) || self.thread.exists() {
            match self.thread.reopen(self, DISK_PATIENCE) {
                Outcome::Done(result) => return result,
                Outcome::Late => return Err(std::io::Error::other(LATE)),
                Outcome::NoThread(error) => return Err(error),
            }
        }
        self.reopen_now()
    }

    /// `reopen` on this thread.
    fn reopen_now(&self) -> std::io::Result<()> {
        let mut writer = locked(&self.writer);
        let Some(sink) = writer.sink.again()? else { return Ok(()) };
        let written = tricorn_sys::without_sigpipe(|| writer.write(&self.taken));
        if written.is_ok() && self.refill(&mut writer) {
            let _ = tricorn_sys::without_sigpipe(|| writer.write(&self.taken)); // what is left goes to the new file
        }
        self.is_file.store(sink.is_file(), Relaxed);
        writer.sink = sink;
        // A line that the old file has in part would be torn: the new one gets it whole.
        writer.written = line_start(&writer.lines, writer.written);
        writer.note_left(&self.taken);
        self.waiting.store(true, SeqCst);
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
        std::mem::swap(&mut writer.lines, &mut pending.bytes);
        self.taken.set(writer.lines.len(), std::mem::take(&mut pending.lines));
        !writer.lines.is_empty()
    }
}

impl Log for AccessLog {
    fn thread(&self) -> &LogThread {
        &self.thread
    }

    fn due_in(&self, now: u64) -> Option<u64> {
        self.waiting.load(SeqCst).then(|| self.retry_at.load(Relaxed).saturating_sub(now))
    }

    fn write_some(&self) {
        AccessLog::write_some(self);
    }

    fn flush_now(&self) {
        AccessLog::flush_now(self);
    }

    fn reopen_now(&self) -> std::io::Result<()> {
        AccessLog::reopen_now(self)
    }
}

impl Writer {
    fn left(&self) -> usize {
        self.lines.len() - self.written
    }

    /// Writes until all lines are with the system, or it takes no more.
    fn write(&mut self, taken: &Taken) -> io::Result<()> {
        while self.left() > 0 {
            self.written += self.sink.write(&self.lines[self.written..])?;
            self.note_left(taken);
        }
        Ok(())
    }

    fn note_left(&self, taken: &Taken) {
        taken.set(self.left(), count(&self.lines[self.written..]));
    }

    /// Puts the next try off, the further the longer nothing was written. Why, if it is to be told.
    fn put_off(&mut self, error: io::Errno, progress: bool) -> Option<String> {
        let slow = error == io::Errno::AGAIN;
        let longest = if slow { SLOW } else { *RETRY.end() };
        self.delay = if progress { 0 } else { self.delay };
        self.delay = (self.delay * 2).clamp(*RETRY.start(), longest);
        match slow {
            false => Some(error.to_string()),
            // A slow reader is no trouble until a line is lost.
            true => (self.left() > MOST / 2).then(|| "its reader does not keep up".into()),
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

/// What the error log is told of: once when lines cannot be written, once when they are written again.
#[derive(Debug, Default)]
struct Trouble {
    told: AtomicBool,
    has_notice: AtomicBool,
    /// Never held while anything waits.
    words: Mutex<Words>,
}

#[derive(Debug, Default)]
struct Words {
    /// Lines lost when the trouble began.
    lost: u64,
    notice: Option<String>,
}

impl Trouble {
    fn is_told(&self) -> bool {
        self.told.load(Relaxed)
    }

    fn begin(&self, why: &str, lost: u64) {
        if self.is_told() {
            return;
        }
        let mut words = locked(&self.words);
        if !self.told.swap(true, Relaxed) {
            words.lost = lost;
            let most = MOST >> 20;
            words.notice =
                Some(format!("Cannot write the access log: {why}. Keeping up to {most} MiB of lines, dropping others"));
            self.has_notice.store(true, Relaxed);
        }
    }

    fn end(&self, lost: u64) {
        if !self.is_told() {
            return;
        }
        let mut words = locked(&self.words);
        if self.told.swap(false, Relaxed) {
            let lost = lost - words.lost;
            words.notice = Some(format!("The access log is being written again; {lost} lines were lost"));
            self.has_notice.store(true, Relaxed);
        }
    }

    fn take_notice(&self) -> Option<String> {
        if !self.has_notice.load(Relaxed) {
            return None;
        }
        let mut words = locked(&self.words);
        self.has_notice.store(false, Relaxed);
        words.notice.take()
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
