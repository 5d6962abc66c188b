//! The spooler: a native thread that writes request bodies to disk.
//!
//! A write to a file waits where the disk is slow, the quota of dirty pages is used up or the server of a network file
//! system is away, whatever O_NONBLOCK says (open(2)). So nothing that holds the baton or the GIL touches a body's file: it
//! is made, written and closed by a thread of its own (`disk_thread.rs`).
use super::disk_thread::{DiskThread, stall};
use crate::config::Failpoint;
use crate::exchange::body::{self, Pending};
use crate::exchange::id::RequestId;
use crate::sys::poll::{Poller, Token};
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A piece of a body, to be written to the end of its file.
#[derive(Debug)]
pub struct Piece {
    /// Whose body it is.
    pub id: RequestId,
    /// `None`: the body has no file yet.
    pub file: Option<File>,
    pub bytes: Pending,
    /// Bytes of the body with this piece.
    pub len: u64,
}

/// What became of a piece.
#[derive(Debug)]
pub struct Written {
    pub id: RequestId,
    pub result: io::Result<File>,
    /// Its bytes, so that their memory can be used again.
    pub bytes: Pending,
    /// Bytes of the body with this piece.
    pub len: u64,
}

#[derive(Debug)]
enum Order {
    Write(Piece),
    /// Closing the last descriptor of a file without a name frees its blocks, which takes time where there are many.
    Close(OwnedFd),
}

/// What the reactor holds of the thread.
#[derive(Debug)]
pub struct Spooler(DiskThread<Order, Written>);

impl Spooler {
    /// Makes the thread. `token` names the event that says that pieces were written.
    pub fn start(
        poller: &Poller,
        token: Token,
        directory: Option<PathBuf>,
        fault: Option<Failpoint>,
    ) -> io::Result<Spooler> {
        let write = move |order: Order, is_closed: bool| match order {
            Order::Write(Piece { id, file, bytes, len }) if !is_closed => {
                if let (Some(Failpoint::StallDisk), Some(directory)) = (fault, &directory) {
                    stall(directory);
                }
                let result = append(file, bytes.as_ref(), directory.as_deref());
                Some(Written { id, result, bytes, len })
            }
            Order::Write(_) => None,
            Order::Close(file) => {
                drop(file);
                None
            }
        };
        DiskThread::start("tricorn-spooler", poller, token, write).map(Spooler)
    }

    /// False if the thread is gone.
    pub fn write(&self, piece: Piece) -> bool {
        self.0.order(Order::Write(piece)).is_ok()
    }

    /// Closes a file.
    pub fn close(&self, file: OwnedFd) {
        // Without the thread it is closed with the order that comes back.
        let _ = self.0.order(Order::Close(file));
    }

    /// The next piece that was written.
    pub fn take_written(&self) -> Option<Written> {
        self.0.take()
    }

    /// Ends the thread: pieces that wait are dropped, as their connections are gone.
    pub fn end(self) {
        self.0.end(drop);
    }
}

fn append(file: Option<File>, bytes: &[u8], directory: Option<&Path>) -> io::Result<File> {
    let mut file = match file {
        Some(file) => file,
        None => body::new_file(directory)?,
    };
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MILLI;
    use crate::sys::poll::{Events, ready};
    use rustix::event::PollFlags;
    use std::io::{Read, Seek, SeekFrom};

    const WRITTEN: Token = 7;
    const WAIT: u64 = 20_000 * MILLI;

    fn piece(connection: u64, file: Option<File>, bytes: &[u8]) -> Piece {
        Piece {
            id: RequestId::new(connection, 0),
            file,
            bytes: Pending::Owned(bytes.to_vec()),
            len: bytes.len() as u64,
        }
    }

    fn next(spooler: &Spooler, poller: &Poller) -> Written {
        loop {
            if let Some(written) = spooler.take_written() {
                return written;
            }
            assert!(!ready(poller.as_fd(), PollFlags::IN, WAIT).is_empty(), "the wake-up comes");
            let mut events = Events::default();
            poller.wait(&mut events, Some(0)).expect("events");
            assert_eq!(events.pop().map(|event| event.token), Some(WRITTEN));
        }
    }

    #[test]
    fn pieces_are_written_one_after_another_and_the_file_comes_back() {
        let poller = Poller::new().expect("a poller");
        let spooler = Spooler::start(&poller, WRITTEN, None, None).expect("a thread");
        assert!(spooler.write(piece(1, None, b"one ")));
        let file = next(&spooler, &poller).result.expect("a file");
        assert!(spooler.write(piece(1, Some(file), b"two")));
        let mut written = next(&spooler, &poller);
        assert_eq!((written.id.connection(), written.len, written.bytes.as_ref()), (1, 3, b"two".as_slice()));
        let file = written.result.as_mut().expect("a file");
        file.seek(SeekFrom::Start(0)).expect("disk");
        let mut text = String::new();
        file.read_to_string(&mut text).expect("disk");
        assert_eq!(text, "one two");
        spooler.end();
    }

    #[test]
    fn a_directory_that_is_gone_is_an_error_and_not_the_end() {
        let poller = Poller::new().expect("a poller");
        let spooler = Spooler::start(&poller, WRITTEN, Some("/nonexistent/uploads".into()), None).expect("a thread");
        for token in [1, 2] {
            assert!(spooler.write(piece(token, None, b"x")));
            let error = next(&spooler, &poller).result.expect_err("no directory");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        spooler.end();
    }
}
