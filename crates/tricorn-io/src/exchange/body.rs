//! A request body that has been read: nothing, bytes in memory, or an unlinked temporary file.
use crate::config::BodyBuffer;
use crate::disk::DiskFile;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

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

impl Body {
    pub fn len(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Memory(bytes) => bytes.len() as u64,
            Body::Foreign(buffer) => buffer.filled().len() as u64,
            Body::Spooled(spool) => spool.len,
        }
    }

    /// The body on disk, if it is there or on its way.
    pub fn spool(&self) -> Option<&Spool> {
        match self {
            Body::Spooled(spool) => Some(spool),
            Body::Empty | Body::Memory(_) | Body::Foreign(_) => None,
        }
    }

    /// How long the body waited for the disk: time that is not its client's.
    pub fn waited(&self) -> u64 {
        self.spool().map_or(0, |spool| spool.waited)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A body on disk. The file has no name any more: it goes with its descriptor.
///
/// ```text
///   Unmade ──lend──▶ Lent ──give_back──▶ Here ──lend──▶ Lent …
/// ```
///
/// Only jobs of the pool write (`spooler.rs`), one after another. A job has the file while it writes; bytes that come meanwhile stay in the
/// socket, so that TCP flow control stops the client.
#[derive(Debug, Default)]
pub struct Spool {
    place: Place,
    /// Bytes received, those on their way to the disk included.
    len: u64,
    /// Bytes received that are not with the writer yet.
    pending: Pending,
    /// Since when the body waits for the disk (monotonic nanoseconds); 0: it waits for its client.
    waits_since: u64,
    /// How long it has waited for the disk so far.
    waited: u64,
}

#[derive(Debug, Default)]
enum Place {
    /// The writer makes the file with the first piece.
    #[default]
    Unmade,
    Here(DiskFile),
    Lent,
}

/// Bytes for the writer.
#[derive(Default)]
pub enum Pending {
    #[default]
    None,
    Owned(Vec<u8>),
    /// What a body in memory consisted of when it had to go to disk.
    Foreign(Box<dyn BodyBuffer>),
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.as_ref().len())
    }
}

impl AsRef<[u8]> for Pending {
    fn as_ref(&self) -> &[u8] {
        match self {
            Pending::None => &[],
            Pending::Owned(bytes) => bytes,
            Pending::Foreign(buffer) => buffer.filled(),
        }
    }
}

impl Spool {
    /// A body that begins with these bytes.
    pub fn begin(first: Pending) -> Spool {
        Spool { len: first.as_ref().len() as u64, pending: first, ..Spool::default() }
    }

    /// A file that another process has written `len` bytes to.
    pub fn adopt(file: DiskFile, len: u64) -> Spool {
        Spool { place: Place::Here(file), len, ..Spool::default() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file, unless the writer has it.
    pub fn file(&self) -> Option<&DiskFile> {
        match &self.place {
            Place::Here(file) => Some(file),
            Place::Unmade | Place::Lent => None,
        }
    }

    pub fn is_lent(&self) -> bool {
        matches!(self.place, Place::Lent)
    }

    /// Bytes that are not with the writer yet.
    pub fn pending(&self) -> usize {
        self.pending.as_ref().len()
    }

    /// Whether some of its bytes are not on disk yet.
    pub fn is_unwritten(&self) -> bool {
        self.is_lent() || self.pending() > 0
    }

    /// The vector to whose end the next bytes belong, with room for so many. [`Spool::added`] is told of them.
    pub fn gather(&mut self, room: usize, spare: impl FnOnce() -> Vec<u8>) -> Result<&mut Vec<u8>, NoMemory> {
        if !matches!(self.pending, Pending::Owned(_)) {
            let mut bytes = spare();
            let first = self.pending.as_ref();
            bytes.try_reserve(first.len()).map_err(|_| NoMemory)?;
            bytes.extend_from_slice(first);
            self.pending = Pending::Owned(bytes);
        }
        match &mut self.pending {
            Pending::Owned(bytes) => {
                bytes.try_reserve(room).map_err(|_| NoMemory)?;
                Ok(bytes)
            }
            Pending::None | Pending::Foreign(_) => Err(NoMemory),
        }
    }

    pub fn added(&mut self, count: usize) {
        self.len += count as u64;
    }

    /// Gives the writer the file, if it is made, and the pending bytes.
    pub fn lend(&mut self, now: u64) -> (Option<DiskFile>, Pending) {
        self.wait(now);
        let file = match std::mem::replace(&mut self.place, Place::Lent) {
            Place::Here(file) => Some(file),
            Place::Unmade | Place::Lent => None,
        };
        (file, std::mem::take(&mut self.pending))
    }

    pub fn give_back(&mut self, file: DiskFile) {
        self.place = Place::Here(file);
    }

    /// The file did not come back.
    pub fn give_up(&mut self) {
        self.place = Place::Unmade;
    }

    /// The body waits for the disk from now on.
    pub fn wait(&mut self, now: u64) {
        if self.waits_since == 0 {
            self.waits_since = now;
        }
    }

    /// The body waits for its client again.
    pub fn go_on(&mut self, now: u64) {
        if self.waits_since > 0 {
            self.waited += now.saturating_sub(std::mem::take(&mut self.waits_since));
        }
    }

    /// Since when the body waits for the disk; `None`: it waits for its client.
    pub fn waits_since(&self) -> Option<u64> {
        (self.waits_since > 0).then_some(self.waits_since)
    }

    /// Gives the file up for reading from its first byte.
    pub fn into_file(self) -> io::Result<File> {
        match self.place {
            Place::Here(file) => {
                let mut file = File::from(file.into_fd()?);
                file.seek(SeekFrom::Start(0))?;
                Ok(file)
            }
            Place::Unmade | Place::Lent => Err(io::Error::other("a body that is not on disk yet (defect of tricorn)")),
        }
    }

    /// All of it, for tests.
    pub fn read_all(self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.into_file()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The system has no memory for bytes whose number a client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoMemory;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Pool;
    use std::io::IoSlice;

    #[test]
    fn what_is_spooled_comes_back() {
        let mut spool = Spool::begin(Pending::Owned(b"one ".to_vec()));
        let (file, first) = spool.lend(1);
        assert!(file.is_none() && spool.is_unwritten() && spool.file().is_none());
        let file = DiskFile::temporary(None, &Pool::new(None).expect("a pool")).expect("temporary directory");
        file.write(&mut [IoSlice::new(first.as_ref())], 0).expect("disk");
        spool.give_back(file);
        assert!(!spool.is_unwritten());
        spool.gather(3, Vec::new).expect("memory").extend_from_slice(b"two");
        spool.added(3);
        assert_eq!((spool.len(), spool.pending(), spool.is_unwritten()), (7, 3, true));
        let (file, second) = spool.lend(1);
        let file = file.expect("the file of the first piece");
        file.write(&mut [IoSlice::new(second.as_ref())], 4).expect("disk");
        spool.give_back(file);
        assert_eq!(spool.read_all().expect("disk"), b"one two");
    }

    #[test]
    fn time_at_the_disk_is_not_the_clients() {
        let mut spool = Spool::begin(Pending::Owned(b"x".to_vec()));
        assert_eq!(spool.waits_since(), None);
        spool.wait(100);
        drop(spool.lend(150));
        assert_eq!(spool.waits_since(), Some(100), "in the line, and then with the writer");
        spool.go_on(180);
        assert_eq!((spool.waits_since(), Body::Spooled(spool).waited()), (None, 80));
    }

    #[test]
    fn a_body_that_is_not_on_disk_cannot_be_read_from_there() {
        assert!(Spool::begin(Pending::Owned(b"x".to_vec())).into_file().is_err());
    }
}
