//! Writes request bodies to disk: a job for each piece, one at a time for a body.
use crate::disk::{DiskFile, Job, Place, Pool};
use crate::exchange::body::Pending;
use crate::exchange::id::RequestId;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A piece of a body, to be written to the end of its file.
#[derive(Debug)]
pub struct Piece {
    /// Whose body it is.
    pub id: RequestId,
    /// `None`: the body has no file yet.
    pub file: Option<DiskFile>,
    pub bytes: Pending,
    /// Bytes of the body with this piece.
    pub len: u64,
}

/// A piece that was written, or could not be.
#[derive(Debug)]
pub struct Written {
    pub id: RequestId,
    pub result: io::Result<DiskFile>,
    /// Its bytes, so that their memory can be used again.
    pub bytes: Pending,
    /// Bytes of the body with this piece.
    pub len: u64,
}

/// The reactor's end of the pool.
#[derive(Debug)]
pub struct Spooler {
    pool: Pool,
    directory: Option<PathBuf>,
    written: Sender<Written>,
    inbox: Receiver<Written>,
}

/// The pool has no thread.
#[derive(Debug)]
pub struct NoThread;

impl Spooler {
    pub fn new(pool: Pool, directory: Option<PathBuf>) -> Spooler {
        let (written, inbox) = channel();
        Spooler { pool, directory, written, inbox }
    }

    /// Has a piece written.
    pub fn write(&self, piece: Piece) -> Result<(), NoThread> {
        let place = piece.file.as_ref().map_or(Place::TEMPORARY, DiskFile::place);
        let job =
            Write { pool: self.pool.clone(), piece, directory: self.directory.clone(), written: self.written.clone() };
        self.pool.submit(place, Box::new(job)).map_err(|_| NoThread)
    }

    /// The next piece that was written.
    pub fn take_written(&self) -> Option<Written> {
        self.inbox.try_recv().ok()
    }
}

struct Write {
    pool: Pool,
    piece: Piece,
    directory: Option<PathBuf>,
    written: Sender<Written>,
}

impl Job for Write {
    fn run(self: Box<Self>) -> bool {
        let Write { pool, piece: Piece { id, file, bytes, len }, directory, written } = *self;
        let file = file.map_or_else(|| DiskFile::temporary(directory.as_deref(), &pool), Ok);
        let result = file.and_then(|file| {
            let piece = bytes.as_ref();
            file.write(&mut [IoSlice::new(piece)], len - piece.len() as u64)?;
            Ok(file)
        });
        // The reactor may be gone.
        let _ = written.send(Written { id, result, bytes, len });
        true
    }

    /// Its connection is gone.
    fn give_up(self: Box<Self>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MILLI;
    use crate::sys::poll::ready;
    use rustix::event::PollFlags;

    const WAIT: u64 = 20_000 * MILLI;

    fn piece(file: Option<DiskFile>, bytes: &[u8], len: u64) -> Piece {
        Piece { id: RequestId::new(1, 0), file, bytes: Pending::Owned(bytes.to_vec()), len }
    }

    fn next(spooler: &Spooler) -> Written {
        loop {
            if let Some(written) = spooler.take_written() {
                return written;
            }
            assert!(!ready(spooler.pool.news(), PollFlags::IN, WAIT).is_empty(), "the wake-up comes");
        }
    }

    #[test]
    fn pieces_are_written_one_after_another_and_the_file_comes_back() {
        let spooler = Spooler::new(Pool::new(None).expect("a pool"), None);
        assert!(spooler.write(piece(None, b"one ", 4)).is_ok());
        let file = next(&spooler).result.expect("a file");
        assert!(spooler.write(piece(Some(file), b"two", 7)).is_ok());
        let written = next(&spooler);
        assert_eq!((written.id.connection(), written.len, written.bytes.as_ref()), (1, 7, b"two".as_slice()));
        let mut text = [0; 16];
        let count = rustix::io::pread(written.result.expect("a file"), &mut text, 0).expect("disk");
        assert_eq!(&text[..count], b"one two");
        spooler.pool.end();
        assert!(spooler.write(piece(None, b"late", 4)).is_err());
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error_and_not_the_end() {
        let spooler = Spooler::new(Pool::new(None).expect("a pool"), Some("/nonexistent/uploads".into()));
        for _ in 0..2 {
            assert!(spooler.write(piece(None, b"x", 1)).is_ok());
            let error = next(&spooler).result.expect_err("no directory");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
