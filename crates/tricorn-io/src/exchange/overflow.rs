//! Bytes of responses that their clients have not taken: memory, and beyond a mark a temporary file.
//!
//! [`Held`] counts for all responses of a worker. A [`Share`] is the memory of one of them, an [`Overflow`] its file; both
//! give back what they hold when they are dropped, whatever ended the response. A file has no name: it goes with its
//! descriptor. The pool's threads write and send it (`output/files.rs`).
use crate::disk::{DiskFile, Reserved};
use crate::scoreboard::{Scoreboard, Share, Word};
use crate::sys::poll::Token;
use std::path::PathBuf;
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
    pub fn disk(&self) -> u64 {
        self.board.get(Word::ResponseDiskBytes)
    }
}

/// Bytes stay in memory, since a limit is reached.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// Whose file is made where, and how many bytes it may hold.
#[derive(Debug, Clone)]
pub struct Store {
    pub token: Token,
    pub directory: Option<PathBuf>,
    /// Most bytes of one response, and of all.
    pub each: u64,
    pub total: u64,
}

/// The file of one response: written at its end, sent from its beginning.
///
/// It does not shrink: when all of it is sent it is closed, and the next bytes make another one. It is counted by its length, which is
/// what it takes of the disk.
#[derive(Debug)]
pub(super) struct Overflow {
    /// Made by the job that writes first.
    pub file: Option<Arc<DiskFile>>,
    pub reserved: Arc<Reserved>,
    /// Its length, with what is being written.
    pub length: u64,
}

impl Overflow {
    pub fn new(held: &Held) -> Overflow {
        let reserved = Arc::new(Reserved::new(held.board, Word::ResponseDiskBytes));
        Overflow { file: None, reserved, length: 0 }
    }

    /// Counts so many bytes more at its end. Where they belong.
    pub fn reserve(&mut self, count: u64, store: &Store) -> Result<u64, Full> {
        if self.length.saturating_add(count) > store.each || !self.reserved.grow(count, store.total) {
            return Err(Full);
        }
        self.length += count;
        Ok(self.length - count)
    }

    /// The last bytes that were counted were not written. What a failed write left behind the end is written over.
    pub fn cut(&mut self, count: u64) {
        self.length -= count;
        self.reserved.shrink(count);
    }

    /// Nobody but the caller has this file besides: all that was written there is sent.
    pub fn is_idle(&self, file: &Arc<DiskFile>) -> bool {
        self.file.as_ref().is_some_and(|own| Arc::ptr_eq(own, file) && Arc::strong_count(own) == 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(each: u64, total: u64) -> Store {
        Store { token: 0, directory: None, each, total }
    }

    #[test]
    fn one_response_and_all_together_have_limits() {
        let held = Held::new(Scoreboard::private(1));
        let mut files = [Overflow::new(&held), Overflow::new(&held)];
        assert_eq!(files[0].reserve(10, &limits(10, 12)).ok(), Some(0));
        assert!(files[0].reserve(1, &limits(10, 12)).is_err(), "one response may not have more");
        assert!(files[1].reserve(3, &limits(10, 12)).is_err(), "nor may all");
        assert_eq!(files[1].reserve(1, &limits(10, 12)).ok(), Some(0));
        assert_eq!(files[1].reserve(1, &limits(10, 12)).ok(), Some(1));
        files[1].cut(1);
        assert_eq!((held.disk(), files[1].length), (11, 1));
        drop(files);
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
