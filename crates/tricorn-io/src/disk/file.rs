//! A file that jobs append to, or send from.
use super::pool::{Job, Place, Pool};
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::fork::is_child;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::{self, Errno};
use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An open file. Whoever drops it, a thread of the pool closes it: the last descriptor of a file without a name frees its blocks,
/// which takes milliseconds where there are many, and one of a network file system asks its server.
#[derive(Debug)]
pub struct DiskFile {
    /// `None`: it is somebody else's.
    fd: Option<OwnedFd>,
    place: Place,
    pool: Pool,
    /// Counted until it is closed.
    reserved: Option<Arc<Reserved>>,
}

impl DiskFile {
    /// A file that was opened elsewhere.
    pub fn new(fd: OwnedFd, pool: &Pool) -> DiskFile {
        let place = Place::of(fd.as_fd());
        DiskFile { fd: Some(fd), place, pool: pool.clone(), reserved: None }
    }

    /// Makes a file without a name in this directory, or in the system's for temporary files. Waits for the disk.
    pub fn temporary(directory: Option<&Path>, pool: &Pool) -> std::io::Result<DiskFile> {
        let fd = Some(OwnedFd::from(new_file(directory)?));
        Ok(DiskFile { fd, place: Place::TEMPORARY, pool: pool.clone(), reserved: None })
    }

    /// Until the file is closed these bytes are counted.
    pub fn counted(mut self, reserved: Arc<Reserved>) -> DiskFile {
        self.reserved = Some(reserved);
        self
    }

    /// Where its jobs are to be done.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Writes all of the slices, from `at` on. Waits for the disk.
    pub fn write(&self, mut slices: &mut [IoSlice<'_>], mut at: u64) -> std::io::Result<()> {
        while !slices.is_empty() {
            match io::pwritev(self, &slices[..slices.len().min(MOST)], at) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    at += count as u64;
                    IoSlice::advance_slices(&mut slices, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A second descriptor.
    pub fn duplicate(&self) -> io::Result<DiskFile> {
        let fd = io::fcntl_dupfd_cloexec(self, 3)?;
        Ok(DiskFile { fd: Some(fd), place: self.place, pool: self.pool.clone(), reserved: self.reserved.clone() })
    }

    /// The descriptor, for a new owner, who closes it.
    pub fn into_fd(mut self) -> io::Result<OwnedFd> {
        self.fd.take().ok_or(Errno::BADF)
    }
}

impl AsFd for DiskFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // Only its owner takes it, and drops the rest. AT_FDCWD is no file: EBADF.
        self.fd.as_ref().map_or(rustix::fs::CWD, OwnedFd::as_fd)
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        let Some(fd) = self.fd.take() else { return };
        if Pool::is_here() || is_child() {
            return;
        }
        // Without a thread it is closed with the job that comes back.
        let _ = self.pool.submit(self.place, Box::new(Close { fd, reserved: self.reserved.take() }));
    }
}

#[expect(dead_code, reason = "to be dropped, in this order")]
struct Close {
    fd: OwnedFd,
    reserved: Option<Arc<Reserved>>,
}

impl Job for Close {
    fn run(self: Box<Self>) -> bool {
        false
    }

    fn give_up(self: Box<Self>) {}
}

/// Bytes of a gauge that one holder has, given back when the last handle is dropped.
#[derive(Debug)]
pub struct Reserved {
    board: Scoreboard,
    word: Word,
    bytes: AtomicU64,
}

impl Reserved {
    pub fn new(board: Scoreboard, word: Word) -> Reserved {
        Reserved { board, word, bytes: AtomicU64::new(0) }
    }

    /// Counts so many bytes more, unless all holders together would have more than `most`.
    pub fn grow(&self, count: u64, most: u64) -> bool {
        let before = self.board.raise(self.word, count);
        let fits = before.saturating_add(count) <= most;
        if fits {
            self.bytes.fetch_add(count, Ordering::Relaxed);
        } else {
            self.board.lower(self.word, count);
        }
        fits
    }

    /// So many bytes are not needed.
    pub fn shrink(&self, count: u64) {
        self.bytes.fetch_sub(count, Ordering::Relaxed);
        self.board.lower(self.word, count);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // What a child of the application has is the parent's as well, and counts for it.
        if !is_child() {
            self.board.lower(self.word, *self.bytes.get_mut());
        }
    }
}

/// Most slices that one call writes.
const MOST: usize = 64;

/// Makes a file for a body, in this directory or the system's for temporary files.
pub fn new_file(directory: Option<&Path>) -> std::io::Result<File> {
    match directory {
        Some(directory) => nameless(directory),
        None => nameless(&std::env::temp_dir()),
    }
}

/// Whether bodies can be kept in this directory: makes a file there, which is gone at once.
pub fn can_spool_to(directory: &Path) -> std::io::Result<()> {
    nameless(directory).map(drop)
}

/// The directory in which bodies are kept, if what is kept there takes memory and not disk (tmpfs(5)).
pub fn spools_to_memory(directory: Option<&Path>) -> Option<PathBuf> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
    let kind = rustix::fs::statfs(&directory).ok()?.f_type as u64 & 0xffff_ffff;
    matches!(kind, TMPFS | RAMFS).then_some(directory)
}

/// O_TMPFILE where the file system has it, else a file unlinked as soon as it is open.
pub fn nameless(directory: &Path) -> std::io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(fd) => Ok(File::from(fd)),
        Err(_) => unlinked(directory),
    }
}

fn unlinked(directory: &Path) -> std::io::Result<File> {
    for attempt in 0..16u32 {
        let path = directory.join(format!("tricorn-{}-{}-{attempt}", std::process::id(), crate::clock::now()));
        match std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn pool() -> Pool {
        Pool::new(None).expect("a pool")
    }

    #[test]
    fn slices_are_written_where_they_belong() {
        let pool = pool();
        let file = DiskFile::temporary(None, &pool).expect("disk");
        let (first, second) = (vec![b'a'; 3], vec![b'b'; 2]);
        let mut slices = [IoSlice::new(&first), IoSlice::new(&second)];
        file.write(&mut slices, 0).expect("disk");
        file.write(&mut [IoSlice::new(b"c")], 4).expect("disk");
        let mut got = vec![0; 8];
        let count = io::pread(&file, &mut got, 0).expect("disk");
        assert_eq!(&got[..count], b"aaabc");
    }

    #[test]
    fn what_a_file_takes_is_counted_until_it_is_closed() {
        let (pool, board) = (pool(), Scoreboard::private(1));
        let disk = || board.get(Word::ResponseDiskBytes);
        let reserved = Arc::new(Reserved::new(board, Word::ResponseDiskBytes));
        let file = DiskFile::temporary(None, &pool).expect("disk").counted(reserved.clone());
        assert!(reserved.grow(10, 12) && !reserved.grow(3, 12));
        reserved.shrink(4);
        assert_eq!(disk(), 6);
        drop(reserved);
        assert_eq!(disk(), 6, "the file is there");
        drop(file);
        pool.end();
        assert_eq!(disk(), 0);
    }

    #[test]
    fn a_directory_that_cannot_take_a_file_says_why() {
        let missing = Path::new("/nonexistent/uploads");
        let error = DiskFile::temporary(Some(missing), &pool()).expect_err("no such directory");
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_without_o_tmpfile_has_no_name_either() {
        let directory = std::env::temp_dir().join(format!("tricorn-body-test-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("directory");
        let mut file = unlinked(&directory).expect("file");
        file.write_all(b"x").expect("disk");
        assert_eq!(std::fs::read_dir(&directory).expect("directory").count(), 0);
        std::fs::remove_dir(&directory).expect("directory");
    }
}
