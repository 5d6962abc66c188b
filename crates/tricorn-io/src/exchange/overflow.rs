//! What responses hold that their clients have not taken: memory, and beyond a mark a temporary file.
//!
//! [`Held`] counts for all responses of a worker. A [`Share`] is the memory of one of them, an [`Overflow`] its file; both
//! give back what they hold when they are dropped, whatever ended the response. A file has no name: it goes with its
//! descriptor. It is written by app threads only, neither under the baton nor with the GIL.
use super::body::nameless;
use crate::scoreboard::{Scoreboard, Share, Word};
use crate::sys::fork::is_child;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{self, Errno};
use std::fs::File;
use std::io::{Error, ErrorKind, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// Bytes that all responses of a worker hold: the gauges of the scoreboard are the counters.
#[derive(Debug)]
pub struct Held {
    board: Scoreboard,
}

impl Held {
    pub fn new(board: Scoreboard) -> Held {
        Held { board }
    }

    pub fn memory(&self) -> u64 {
        self.board.get(Word::ResponseBytes)
    }

    /// The memory of one response, which has none yet.
    pub fn share(&self) -> Share {
        Share::new(self.board, Word::ResponseBytes)
    }

    #[cfg(test)]
    fn disk(&self) -> u64 {
        self.board.get(Word::ResponseDiskBytes)
    }

    /// Counts so many bytes on disk, unless that is more than `most`.
    fn reserve(&self, count: u64, most: u64) -> bool {
        let before = self.board.raise(Word::ResponseDiskBytes, count);
        let fits = before.saturating_add(count) <= most;
        if !fits {
            self.release(count);
        }
        fits
    }

    fn release(&self, count: u64) {
        if is_child() {
            return; // the file is the parent's as well, and counts for it
        }
        self.board.lower(Word::ResponseDiskBytes, count);
    }
}

/// Why bytes stay in memory.
#[derive(Debug)]
pub enum Unstored {
    /// A limit is reached.
    Full,
    /// The file system says no.
    Failed(Error),
}

/// Where files are made, and how many bytes they may hold.
#[derive(Debug, Clone, Copy)]
pub struct Store<'a> {
    pub held: &'a Arc<Held>,
    pub directory: Option<&'a Path>,
    /// Most bytes of one response, and of all.
    pub each: u64,
    pub total: u64,
}

/// The file of one response: written at its end, sent from its beginning.
///
/// ```text
///   0 ─────── sent ─────── written
///      gone      waits
/// ```
///
/// It does not shrink before all of it is sent. It is counted by its length, which is what it takes of the disk.
#[derive(Debug)]
pub struct Overflow {
    file: File,
    held: Arc<Held>,
    sent: u64,
    written: u64,
}

impl Overflow {
    pub fn new(store: &Store<'_>) -> std::io::Result<Overflow> {
        let file = match store.directory {
            Some(directory) => nameless(directory)?,
            None => nameless(&std::env::temp_dir())?,
        };
        Ok(Overflow { file, held: store.held.clone(), sent: 0, written: 0 })
    }

    /// Bytes that wait to be sent.
    pub fn waiting(&self) -> u64 {
        self.written - self.sent
    }

    /// Adds `count` bytes, those of the slices. All of them or none: what a failed write left behind the end is written over.
    pub fn append(&mut self, store: &Store<'_>, slices: &mut [IoSlice<'_>], count: u64) -> Result<(), Unstored> {
        if self.waiting() == 0 {
            self.rewind().map_err(Unstored::Failed)?;
        }
        if self.written + count > store.each || !self.held.reserve(count, store.total) {
            return Err(Unstored::Full);
        }
        if let Err(error) = write_all_at(self.file.as_fd(), slices, self.written) {
            self.held.release(count);
            return Err(Unstored::Failed(error));
        }
        self.written += count;
        Ok(())
    }

    /// All is sent: the disk gets back what the file took.
    fn rewind(&mut self) -> std::io::Result<()> {
        if self.written > 0 {
            self.file.set_len(0)?;
            self.held.release(self.written);
            (self.sent, self.written) = (0, 0);
        }
        Ok(())
    }

    /// The file, and the position from which it is to be sent, which the sender moves by what it has sent.
    pub fn unsent(&mut self) -> (BorrowedFd<'_>, &mut u64) {
        (self.file.as_fd(), &mut self.sent)
    }
}

impl Drop for Overflow {
    fn drop(&mut self) {
        self.held.release(self.written);
    }
}

/// Most slices that one call writes.
const MOST: usize = 64;

fn write_all_at(file: BorrowedFd<'_>, mut slices: &mut [IoSlice<'_>], mut at: u64) -> std::io::Result<()> {
    while !slices.is_empty() {
        match io::pwritev(file, &slices[..slices.len().min(MOST)], at) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn add(overflow: &mut Overflow, store: &Store<'_>, bytes: &[u8]) -> bool {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut slices = [IoSlice::new(first), IoSlice::new(second)];
        overflow.append(store, &mut slices, bytes.len() as u64).is_ok()
    }

    fn send(overflow: &mut Overflow, socket: &UnixStream, most: usize) -> usize {
        let count = most.min(overflow.waiting() as usize);
        let (file, at) = overflow.unsent();
        rustix::fs::sendfile(socket, file, Some(at), count).expect("sockets")
    }

    #[test]
    fn a_file_is_counted_until_it_is_sent_and_written_from_its_beginning_again() {
        let held = Arc::new(Held::new(Scoreboard::private(1)));
        let store = Store { held: &held, directory: None, each: 10, total: 100 };
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let mut overflow = Overflow::new(&store).expect("disk");
        assert!(add(&mut overflow, &store, b"abcdef"));
        assert!(!add(&mut overflow, &store, b"ghijk"), "one response may not have more");
        assert!(add(&mut overflow, &store, b"ghij"));
        assert_eq!((held.disk(), overflow.waiting()), (10, 10));
        assert_eq!(send(&mut overflow, &ours, 4), 4);
        assert!(!add(&mut overflow, &store, b"k"), "the file does not shrink while some of it waits");
        assert_eq!(send(&mut overflow, &ours, 100), 6);
        assert!(add(&mut overflow, &store, b"klm"));
        assert_eq!(overflow.file.metadata().expect("disk").len(), 3);
        assert_eq!(held.disk(), 3);
        assert_eq!(send(&mut overflow, &ours, 100), 3);
        drop(overflow);
        assert_eq!(held.disk(), 0);
        drop(ours);
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "abcdefghijklm");
    }

    #[test]
    fn all_files_together_have_a_limit() {
        let held = Arc::new(Held::new(Scoreboard::private(1)));
        let store = Store { held: &held, directory: None, each: 10, total: 12 };
        let mut files: Vec<_> = (0..2).map(|_| Overflow::new(&store).expect("disk")).collect();
        assert!(add(&mut files[0], &store, b"0123456789"));
        assert!(!add(&mut files[1], &store, b"012"));
        assert!(add(&mut files[1], &store, b"01"));
        files.clear();
        assert_eq!(held.disk(), 0);
    }

    #[test]
    fn the_shares_of_memory_add_up() {
        let held = Arc::new(Held::new(Scoreboard::private(1)));
        let (mut one, mut two) = (held.share(), held.share());
        one.set(10);
        two.set(5);
        one.set(3);
        assert_eq!(held.memory(), 8);
        drop(one);
        assert_eq!(held.memory(), 5);
    }
}
