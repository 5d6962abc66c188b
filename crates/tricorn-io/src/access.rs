//! The access log's lines: gathered in memory, written by the monitor, never by an application's thread unless the
//! reader of the log is so slow that memory would grow without bound.
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::FileType;
use rustix::io::{self, Errno};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lines beyond this are written by whoever adds one, so that no line is lost and memory stays bounded.
const MOST: usize = 1 << 20;
/// POSIX's smallest atomic pipe write; a pipe that polls writable takes this much without blocking (pipe(7)).
const PIPE_PIECE: usize = 4096;
/// A file takes what it is given.
const FILE_PIECE: usize = 256 * 1024;

/// Where lines go. One per worker.
#[derive(Debug)]
pub struct AccessLog {
    pending: Mutex<Vec<u8>>,
    sink: Mutex<Sink>,
    waiting: AtomicBool,
}

#[derive(Debug)]
struct Sink {
    file: OwnedFd,
    /// `None`: standard output, which is never opened anew.
    path: Option<PathBuf>,
    piece: usize,
    writing: Vec<u8>,
    written: usize,
}

impl AccessLog {
    /// `-` is standard output; anything else a file that is appended to.
    pub fn open(target: &str) -> io::Result<AccessLog> {
        let (file, path) = match target {
            "-" => (io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?, None),
            path => (append_to(path.as_ref())?, Some(PathBuf::from(path))),
        };
        let piece = piece_of(&file);
        let sink = Sink { file, path, piece, writing: Vec::new(), written: 0 };
        Ok(AccessLog { pending: Mutex::default(), sink: Mutex::new(sink), waiting: AtomicBool::new(false) })
    }

    /// Adds what `render` appends.
    pub fn add(&self, render: impl FnOnce(&mut Vec<u8>)) {
        let mut pending = locked(&self.pending);
        render(&mut pending);
        let full = pending.len() > MOST;
        drop(pending);
        self.waiting.store(true, Relaxed);
        if full {
            self.flush();
        }
    }

    pub fn has_pending(&self) -> bool {
        self.waiting.load(Relaxed)
    }

    /// Writes what a reader takes at once; for the monitor.
    pub fn write_some(&self) {
        let mut sink = locked(&self.sink);
        // Before the lines are taken: one that is added after that says so itself.
        self.waiting.store(false, Relaxed);
        self.refill(&mut sink);
        while sink.written < sink.writing.len() && sink.is_ready() {
            if sink.write_piece().is_err() {
                break;
            }
        }
        if sink.written < sink.writing.len() {
            self.waiting.store(true, Relaxed);
        }
    }

    /// Writes everything, however long it takes.
    pub fn flush(&self) {
        let mut sink = locked(&self.sink);
        self.waiting.store(false, Relaxed);
        loop {
            self.refill(&mut sink);
            if sink.written >= sink.writing.len() || sink.write_piece().is_err() {
                break;
            }
        }
    }

    /// Opens the file anew, after it was rotated away.
    pub fn reopen(&self) -> io::Result<()> {
        self.flush();
        let mut sink = locked(&self.sink);
        if let Some(path) = &sink.path {
            sink.file = append_to(path)?;
            sink.piece = piece_of(&sink.file);
        }
        Ok(())
    }

    fn refill(&self, sink: &mut Sink) {
        if sink.written == sink.writing.len() {
            sink.writing.clear();
            sink.written = 0;
            std::mem::swap(&mut sink.writing, &mut *locked(&self.pending));
        }
    }
}

impl Sink {
    fn is_ready(&self) -> bool {
        if self.piece == FILE_PIECE {
            return true;
        }
        let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
        let now = crate::sys::poll::timespec(0);
        matches!(poll(&mut fds, Some(&now)), Ok(1))
    }

    fn write_piece(&mut self) -> io::Result<()> {
        match io::write(&self.file, next_piece(&self.writing[self.written..], self.piece)) {
            Ok(count) => self.written += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut fds = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)];
                let _ = poll(&mut fds, None);
            }
            Err(error) => {
                // A full disk or a closed pipe must not stop the service; the lines are lost.
                self.written = self.writing.len();
                return Err(error);
            }
        }
        Ok(())
    }
}

/// As many whole lines as fit a piece, so that the lines of several workers do not run into one another.
fn next_piece(pending: &[u8], most: usize) -> &[u8] {
    let window = &pending[..pending.len().min(most)];
    match window.iter().rposition(|byte| *byte == b'\n') {
        Some(newline) => &window[..=newline],
        None => window,
    }
}

fn piece_of(file: &OwnedFd) -> usize {
    let is_file = rustix::fs::fstat(file).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
    if is_file { FILE_PIECE } else { PIPE_PIECE }
}

fn append_to(path: &std::path::Path) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o644))
}

/// The lists here stay whole whatever panicked while they were held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_whole_and_in_order_over_a_rotation() {
        let directory = std::env::temp_dir().join(format!("tricorn-access-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("directory");
        let path = directory.join("access.log");
        let rotated = directory.join("access.log.1");
        let log = AccessLog::open(path.to_str().expect("utf-8")).expect("file");
        log.add(|out| out.extend_from_slice(b"one\n"));
        log.write_some();
        std::fs::rename(&path, &rotated).expect("rename");
        log.add(|out| out.extend_from_slice(b"two\n"));
        log.reopen().expect("reopen");
        log.add(|out| out.extend_from_slice(b"three\n"));
        log.flush();
        assert_eq!(std::fs::read(&rotated).expect("read"), b"one\ntwo\n");
        assert_eq!(std::fs::read(&path).expect("read"), b"three\n");
        std::fs::remove_dir_all(&directory).expect("cleanup");
    }
}
