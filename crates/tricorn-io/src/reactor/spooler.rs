//! The spooler: a native thread that writes request bodies to disk.
//!
//! ```text
//!   reactor ── piece, file ──▶ spooler's thread: write(2)
//!      ▲                            │ file, result; the bell is an event of the poller
//!      └────────────────────────────┘
//! ```
//!
//! A write to a file waits where the disk is slow, the quota of dirty pages is used up or the server of a network file
//! system is away, whatever O_NONBLOCK says (open(2)). So nothing that holds the baton or the GIL touches a body's file: it
//! is made, written and closed here. The thread is made for the first body that goes to disk, in a process that forks no
//! more, and ends with the engine.
use crate::clock::MILLI;
use crate::config::Fault;
use crate::exchange::body::{self, Pending};
use crate::sys::poll::{Poller, Token};
use crate::sys::signals;
use crate::sys::wake::Alarm;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread needs no more than this for a `write`, and address space may be short.
const STACK: usize = 128 * 1024;
/// For how long the end of the worker waits for a write that has begun. Then the thread is left to itself: it owns all that
/// it touches.
const PATIENCE: Duration = Duration::from_nanos(1000 * MILLI);

/// A piece of a body, to be written to the end of its file.
#[derive(Debug)]
pub struct Piece {
    pub token: Token,
    /// `None`: the body has no file yet.
    pub file: Option<File>,
    pub bytes: Pending,
    /// Bytes of the body with this piece.
    pub len: u64,
}

/// What became of a piece.
#[derive(Debug)]
pub struct Written {
    pub token: Token,
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
pub struct Spooler {
    orders: Sender<Order>,
    written: Receiver<Written>,
    closed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Spooler {
    /// Makes the thread. `token` names the event that says that pieces were written.
    pub fn start(
        poller: &Poller,
        token: Token,
        directory: Option<PathBuf>,
        fault: Option<Fault>,
    ) -> io::Result<Spooler> {
        let (orders, inbox) = channel();
        let (outbox, written) = channel();
        let bell = Alarm::new()?;
        poller.add_edge(bell.as_fd(), token)?;
        let closed = Arc::new(AtomicBool::new(false));
        let writer = Writer { inbox, outbox, bell, directory, closed: closed.clone(), fault };
        let thread = std::thread::Builder::new().name("tricorn-spooler".into()).stack_size(STACK);
        let thread = thread.spawn(move || writer.run())?;
        Ok(Spooler { orders, written, closed, thread })
    }

    /// False if the thread is gone.
    pub fn write(&self, piece: Piece) -> bool {
        self.orders.send(Order::Write(piece)).is_ok()
    }

    /// Closes a file.
    pub fn close(&self, file: OwnedFd) {
        // Without the thread it is closed with the message.
        let _ = self.orders.send(Order::Close(file));
    }

    /// The next piece that was written.
    pub fn take_written(&self) -> Option<Written> {
        self.written.try_recv().ok()
    }

    /// Ends the thread: pieces that wait are dropped, as their connections are gone.
    pub fn end(self) {
        let Spooler { orders, written, closed, thread } = self;
        closed.store(true, Ordering::Relaxed);
        drop(orders);
        let end = Instant::now() + PATIENCE;
        loop {
            match written.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = thread.join(); // a panic there has been told by the hook
    }
}

/// What the thread owns.
struct Writer {
    inbox: Receiver<Order>,
    outbox: Sender<Written>,
    bell: Alarm,
    directory: Option<PathBuf>,
    closed: Arc<AtomicBool>,
    fault: Option<Fault>,
}

impl Writer {
    fn run(self) {
        signals::block_others();
        for order in &self.inbox {
            if self.closed.load(Ordering::Relaxed) {
                continue;
            }
            match order {
                Order::Close(file) => drop(file),
                Order::Write(Piece { token, file, bytes, len }) => {
                    self.stall();
                    let result = append(file, bytes.as_ref(), self.directory.as_deref());
                    if self.outbox.send(Written { token, result, bytes, len }).is_err() {
                        return;
                    }
                    self.bell.ring();
                }
            }
        }
    }

    /// For tests: a disk that hangs. Opening a FIFO waits in the kernel until the other end is opened (fifo(7)).
    fn stall(&self) {
        if let (Some(Fault::StallDisk), Some(directory)) = (self.fault, &self.directory) {
            let _ = File::open(directory.join("stall"));
        }
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
    use crate::sys::poll::{Events, ready};
    use rustix::event::PollFlags;
    use std::io::{Read, Seek, SeekFrom};

    const BELL: Token = 7;
    const WAIT: u64 = 20_000 * MILLI;

    fn piece(token: Token, file: Option<File>, bytes: &[u8]) -> Piece {
        Piece { token, file, bytes: Pending::Owned(bytes.to_vec()), len: bytes.len() as u64 }
    }

    fn next(spooler: &Spooler, poller: &Poller) -> Written {
        loop {
            if let Some(written) = spooler.take_written() {
                return written;
            }
            assert!(!ready(poller.as_fd(), PollFlags::IN, WAIT).is_empty(), "the bell rings");
            let mut events = Events::default();
            poller.wait(&mut events, Some(0)).expect("events");
            assert_eq!(events.pop().map(|event| event.token), Some(BELL));
        }
    }

    #[test]
    fn pieces_are_written_one_after_another_and_the_file_comes_back() {
        let poller = Poller::new().expect("a poller");
        let spooler = Spooler::start(&poller, BELL, None, None).expect("a thread");
        assert!(spooler.write(piece(1, None, b"one ")));
        let file = next(&spooler, &poller).result.expect("a file");
        assert!(spooler.write(piece(1, Some(file), b"two")));
        let mut written = next(&spooler, &poller);
        assert_eq!((written.token, written.len, written.bytes.as_ref()), (1, 3, b"two".as_slice()));
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
        let spooler = Spooler::start(&poller, BELL, Some("/nonexistent/uploads".into()), None).expect("a thread");
        for token in [1, 2] {
            assert!(spooler.write(piece(token, None, b"x")));
            let error = next(&spooler, &poller).result.expect_err("no directory");
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        spooler.end();
    }
}
