//! A request body that has been read: nothing, bytes in memory, or an unlinked temporary file.
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use std::any::Any;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

#[derive(Default)]
pub enum Body {
    #[default]
    Empty,
    Memory(Vec<u8>),
    /// In an object of the gateway's own, to be given to the application without a copy.
    Foreign(Box<dyn BodyBuffer>),
    Spooled(Spool),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = match self {
            Body::Empty => "nowhere",
            Body::Memory(_) => "in memory",
            Body::Foreign(_) => "in the gateway's memory",
            Body::Spooled(_) => "on disk",
        };
        write!(f, "Body({} bytes {place})", self.len())
    }
}

/// Memory for one body of known length that belongs to the gateway (a Python `bytes` object that is being filled).
pub trait BodyBuffer: Send + Sync {
    /// The bytes so far.
    fn filled(&self) -> &[u8];
    /// Adds bytes, of which there are never more than the length asked for.
    fn append(&mut self, bytes: &[u8]);
    /// Reads up to `room` bytes to the end of those so far (`crate::receive` does it).
    fn receive(&mut self, socket: BorrowedFd<'_>, room: usize) -> Received;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// What a read brought: a number of bytes, or the system's error.
pub type Received = rustix::io::Result<usize>;

/// Makes a buffer for a body of so many bytes. Only called on app threads, which hold the GIL.
pub type Allocate = fn(usize) -> Option<Box<dyn BodyBuffer>>;

impl Body {
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::Foreign(buffer) => buffer.filled().len() as u64,
            Body::Spooled(spool) => spool.len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A body on disk. The file has no name any more: it goes with its descriptor.
#[derive(Debug)]
pub struct Spool {
    file: File,
    len: u64,
}

impl Spool {
    /// Makes the file, in this directory or the system's for temporary files, and moves to it what was in memory.
    pub fn begin(first: &[u8], directory: Option<&Path>) -> io::Result<Spool> {
        let file = match directory {
            Some(directory) => nameless(directory)?,
            None => nameless(&std::env::temp_dir())?,
        };
        let mut spool = Spool { file, len: 0 };
        spool.append(first)?;
        Ok(spool)
    }

    /// A file that another process has written `len` bytes to.
    pub fn adopt(file: File, len: u64) -> Spool {
        Spool { file, len }
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Gives the file up for reading from its first byte.
    pub fn into_file(mut self) -> io::Result<File> {
        self.file.seek(SeekFrom::Start(0))?;
        Ok(self.file)
    }

    /// All of it, for tests.
    pub fn read_all(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Whether bodies can be kept in this directory: makes a file there, which is gone at once.
pub fn can_spool_to(directory: &Path) -> io::Result<()> {
    nameless(directory).map(drop)
}

/// O_TMPFILE where the file system has it, else a file unlinked as soon as it is open.
fn nameless(directory: &Path) -> io::Result<File> {
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::open(directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(fd) => Ok(File::from(fd)),
        Err(_) => unlinked(directory),
    }
}

fn unlinked(directory: &Path) -> io::Result<File> {
    for attempt in 0..16u32 {
        let path = directory.join(format!("tricorn-{}-{}-{attempt}", std::process::id(), crate::clock::now()));
        match std::fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spooled_comes_back() {
        let mut spool = Spool::begin(b"one ", None).expect("temporary directory");
        spool.append(b"two").expect("disk");
        assert_eq!(spool.read_all().expect("disk"), b"one two");
        assert_eq!(Body::Spooled(spool).len(), 7);
    }

    #[test]
    fn a_directory_that_cannot_take_a_body_says_why() {
        let missing = Path::new("/nonexistent/uploads");
        assert_eq!(Spool::begin(b"x", Some(missing)).expect_err("no such directory").kind(), io::ErrorKind::NotFound);
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
