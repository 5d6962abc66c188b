//! What the access log is written to: a file, a pipe, a socket or a terminal. No write waits for a reader.
use rustix::event::PollFlags;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fchmod, fstat, open, stat};
use rustix::io::{self, Errno};
use rustix::net::{SendFlags, send};
use std::path::{Path, PathBuf};
use tricorn_sys::clock;
use tricorn_sys::poll::ready;

/// A pipe takes this much whole or not at all (PIPE_BUF).
const PIPE_PIECE: usize = 4096;
/// A file takes what it is given.
const FILE_PIECE: usize = 256 * 1024;
const USUAL: Mode = Mode::from_raw_mode(0o644);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Writing to it waits for the disk, which may hang: `log_thread.rs` does it.
    File,
    /// A pipe or a terminal; no write waits, for the description is ours alone and says so.
    Stream,
    /// As above, but others have the same description: whether there is room is asked first.
    SharedStream,
    Socket,
}

#[derive(Debug)]
pub struct Sink {
    file: OwnedFd,
    kind: Kind,
    /// `None`: standard output, which is never opened anew.
    path: Option<PathBuf>,
    /// For tests (`AccessLog::with_stalls`).
    pub hangs: bool,
}

impl Sink {
    /// `-` is standard output; anything else a path.
    pub fn open(target: &str) -> io::Result<Sink> {
        if target == "-" { standard_output() } else { at_path(Path::new(target), None) }
    }

    /// The same path opened again; `None` where there is none.
    pub fn again(&self) -> io::Result<Option<Sink>> {
        // Who may read the file of before, may read the new one.
        let mode = fstat(&self.file).ok().map(|found| Mode::from_raw_mode(found.st_mode));
        let again = self.path.as_deref().map(|path| at_path(path, mode)).transpose()?;
        Ok(again.map(|sink| Sink { hangs: self.hangs, ..sink }))
    }

    pub fn is_file(&self) -> bool {
        self.kind == Kind::File
    }

    /// Writes the first of `lines`, as many as go together. Returns how many bytes were taken, at least one.
    pub fn write(&self, lines: &[u8]) -> io::Result<usize> {
        let piece = match self.kind {
            Kind::File => next_piece(lines, FILE_PIECE, true),
            _ => next_piece(lines, PIPE_PIECE, false),
        };
        if self.hangs {
            self.hang();
        }
        loop {
            let result = match self.kind {
                Kind::File | Kind::Stream => io::write(&self.file, piece),
                Kind::SharedStream if self.has_room(0) => io::write(&self.file, piece),
                Kind::SharedStream => Err(Errno::AGAIN),
                Kind::Socket => send(&self.file, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            };
            match result {
                Err(Errno::INTR) => {}
                Ok(0) => return Err(Errno::NOSPC), // a device that takes nothing and says nothing
                result => return result,
            }
        }
    }

    /// After a failed write: waits until another try may succeed; false if `begin` is too long ago. `patience` is for
    /// readers, `disk_patience` for everything else. A reader that is gone is not waited for.
    pub fn wait(&self, error: Errno, begin: u64, patience: u64, disk_patience: u64) -> bool {
        let patience = match error {
            Errno::AGAIN => patience,
            Errno::PIPE | Errno::CONNRESET => return false,
            _ => disk_patience,
        };
        let left = (begin + patience).saturating_sub(clock::now());
        if left == 0 {
            return false;
        }
        if error == Errno::AGAIN {
            self.has_room(left);
        } else {
            std::thread::sleep(std::time::Duration::from_nanos(left.min(50 * clock::MILLI)));
        }
        true
    }

    /// A disk that does not answer. Opening a FIFO waits in the kernel until the other end is opened (fifo(7)).
    #[cold]
    fn hang(&self) {
        if let (Kind::File, Some(path)) = (self.kind, &self.path) {
            let _ = std::fs::File::open(path.with_extension("stall"));
        }
    }

    /// Waits up to `nanos` for room.
    fn has_room(&self, nanos: u64) -> bool {
        !ready(self.file.as_fd(), PollFlags::OUT, nanos).is_empty()
    }
}

/// `mode`: of a file that is made; `None`: as the process makes files.
fn at_path(path: &Path, mode: Option<Mode>) -> io::Result<Sink> {
    let is_pipe = stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    // Opened for reading too, a pipe is there with and without a reader, and need not be opened again when its
    // reader is started again (fifo(7)).
    let access = if is_pipe { OFlags::RDWR } else { OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE };
    let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let made = if is_pipe { None } else { open(path, flags | OFlags::EXCL, USUAL).ok() };
    if let (Some(made), Some(mode)) = (&made, mode) {
        let _ = fchmod(made, mode);
    }
    let file = made.map_or_else(|| open(path, flags, USUAL), Ok)?;
    let kind = if type_of(&file) == FileType::RegularFile { Kind::File } else { Kind::Stream };
    Ok(Sink { file, kind, path: Some(path.into()), hangs: false })
}

fn standard_output() -> io::Result<Sink> {
    let file = io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let (file, kind) = match type_of(&file) {
        // The description is shared with the other workers, and with it the position: it must not be opened anew.
        FileType::RegularFile => (file, Kind::File),
        FileType::Socket => (file, Kind::Socket),
        _ => match a_description_of_our_own(&file) {
            Ok(own) => (own, Kind::Stream),
            Err(_) => (file, Kind::SharedStream),
        },
    };
    Ok(Sink { file, kind, path: None, hangs: false })
}

/// O_NONBLOCK belongs to the open file description, which we share with the process that started us: it cannot be set on that.
fn a_description_of_our_own(file: &OwnedFd) -> io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    open(path, OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

fn type_of(file: &OwnedFd) -> FileType {
    fstat(file).map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
}

/// As many whole lines as fit, so that the lines of several workers do not run into one another. A longer line goes alone:
/// `whole` if its reader takes any length in one piece, else as far as it fits.
fn next_piece(lines: &[u8], most: usize, whole: bool) -> &[u8] {
    let window = &lines[..lines.len().min(most)];
    let newline = |bytes: &[u8]| bytes.iter().position(|byte| *byte == b'\n');
    match window.iter().rposition(|byte| *byte == b'\n') {
        Some(newline) => &window[..=newline],
        None if whole => newline(lines).map_or(lines, |newline| &lines[..=newline]),
        None => window,
    }
}

#[cfg(test)]
mod tests {
    use super::next_piece;

    #[test]
    fn pieces_are_whole_lines_where_that_is_possible() {
        assert_eq!(next_piece(b"one\ntwo\n", 100, false), b"one\ntwo\n");
        assert_eq!(next_piece(b"one\ntwo\n", 6, false), b"one\n");
        assert_eq!(next_piece(b"a long line\nnext\n", 6, false), b"a long");
        assert_eq!(next_piece(b"a long line\nnext\n", 6, true), b"a long line\n");
        assert_eq!(next_piece(b"unfinished", 6, true), b"unfinished");
    }
}
