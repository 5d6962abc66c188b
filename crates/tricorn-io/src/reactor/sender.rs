//! The sender: a native thread that sends what responses have in files.
//!
//! ```text
//!   reactor ── the rest of a reply ──▶ sender's thread: sendfile(2)
//!      ▲                                   │ what is left; the bell is an event of the poller
//!      └───────────────────────────────────┘
//! ```
//!
//! sendfile(2) waits for the disk where the file is not in the page cache, and no flag keeps it from that. So no thread that
//! holds the baton sends from a file: it lends the rest of the reply, with a second handle of the connection. The
//! thread is made for the first of them, in a process that forks no more, and ends with the engine.
use super::tokens::SPOOLED;
use crate::config::{self, Config, Fault};
use crate::exchange::outbox::{Flush, Outbox, SharedBytes};
use crate::stream::Stream;
use crate::sys::poll::{Poller, Token};
use crate::sys::signals;
use crate::sys::wake::Alarm;
use rustix::fd::{AsRawFd, RawFd};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread needs no more than this, and address space may be short.
const STACK: usize = 128 * 1024;
/// For how long the end of the worker waits for a read from disk that has begun. Then the thread is left to itself: it owns
/// all that it touches.
const PATIENCE: Duration = Duration::from_secs(1);

/// The rest of a reply, lent to the thread.
pub(super) struct Loan {
    pub token: Token,
    stream: Stream,
    pub outbox: Outbox,
    /// Owners of bytes that are sent.
    pub spent: Vec<SharedBytes>,
    /// Bytes that the thread has sent.
    pub sent: u64,
    /// What came of it; `None`: more can be sent.
    pub flush: Option<Flush>,
}

/// What the reactor holds of the thread.
pub struct Sender {
    poller: Arc<Poller>,
    /// For tests: the directory whose disk may hang.
    stalls: Option<PathBuf>,
    running: Option<Running>,
    /// Descriptors of connections that the thread has.
    lent: Vec<RawFd>,
}

struct Running {
    orders: mpsc::Sender<Loan>,
    done: mpsc::Receiver<Loan>,
    closed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Sender {
    pub fn new(config: &Config, poller: Arc<Poller>) -> Sender {
        Sender::on(poller, config.upload_dir.clone().filter(|_| config.fault == Some(Fault::StallDisk)))
    }

    fn on(poller: Arc<Poller>, stalls: Option<PathBuf>) -> Sender {
        Sender { poller, stalls, running: None, lent: Vec::new() }
    }

    /// Gives the thread the rest of a reply. Without a thread or a descriptor it comes back at once.
    pub(super) fn lend(&mut self, token: Token, stream: &Stream, outbox: Outbox) -> Result<(), Outbox> {
        let Ok(stream) = stream.second() else { return Err(outbox) };
        let running = match &self.running {
            Some(running) => running,
            None => match Running::start(&self.poller, self.stalls.clone()) {
                Ok(running) => self.running.insert(running),
                Err(_) => return Err(outbox),
            },
        };
        let number = stream.socket().as_raw_fd();
        let loan = Loan { token, stream, outbox, spent: Vec::new(), sent: 0, flush: None };
        running.orders.send(loan).map_err(|returned| returned.0.outbox)?;
        self.lent.push(number);
        Ok(())
    }

    /// The next that comes back.
    pub(super) fn take(&mut self) -> Option<Loan> {
        let loan = self.running.as_ref()?.done.try_recv().ok()?;
        let number = loan.stream.socket().as_raw_fd();
        self.lent.retain(|lent| *lent != number);
        Some(loan)
    }

    /// The descriptors that the thread has.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.lent.iter().copied()
    }

    /// The thread, to be ended without the baton.
    pub fn part(&mut self) -> Option<Ending> {
        self.running.take().map(Ending)
    }
}

/// A thread that is to end.
pub struct Ending(Running);

impl Ending {
    /// Ends the thread. Owners of bytes that were not sent are for a thread that holds the GIL.
    pub fn end(self) -> Vec<SharedBytes> {
        let Running { orders, done, closed, thread } = self.0;
        closed.store(true, Ordering::Relaxed);
        drop(orders);
        let (end, mut spent) = (Instant::now() + PATIENCE, Vec::new());
        loop {
            match done.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(mut loan) => {
                    spent.append(&mut loan.spent);
                    loan.outbox.clear(&mut spent);
                }
                Err(mpsc::RecvTimeoutError::Timeout) => return spent,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = thread.join(); // a panic there has been told by the hook
        spent
    }
}

impl Running {
    /// Makes the thread.
    fn start(poller: &Poller, stalls: Option<PathBuf>) -> io::Result<Running> {
        let (orders, inbox) = mpsc::channel();
        let (outbox, done) = mpsc::channel();
        let bell = Alarm::new()?;
        poller.add_edge(bell.as_fd(), SPOOLED)?;
        let closed = Arc::new(AtomicBool::new(false));
        let thread = Thread { inbox, outbox, bell, closed: closed.clone(), stalls };
        let builder = std::thread::Builder::new().name("tricorn-sender".into()).stack_size(STACK);
        let thread = builder.spawn(move || thread.run())?;
        Ok(Running { orders, done, closed, thread })
    }
}

/// What the thread owns.
struct Thread {
    inbox: mpsc::Receiver<Loan>,
    outbox: mpsc::Sender<Loan>,
    bell: Alarm,
    closed: Arc<AtomicBool>,
    stalls: Option<PathBuf>,
}

impl Thread {
    fn run(self) {
        signals::block_others();
        for mut loan in &self.inbox {
            if !self.closed.load(Ordering::Relaxed) {
                self.stall();
                send(&mut loan);
            }
            if self.outbox.send(loan).is_err() {
                return;
            }
            self.bell.ring();
        }
    }

    /// Opening a FIFO waits in the kernel until the other end is opened (fifo(7)).
    fn stall(&self) {
        if let Some(directory) = &self.stalls {
            let _ = File::open(directory.join("stall"));
        }
    }
}

/// Sends until the socket takes no more, or others should have their turn.
fn send(loan: &mut Loan) {
    let before = loan.outbox.sent();
    loan.flush = loan.outbox.flush_some(&mut loan.stream, &mut loan.spent, config::TURN);
    loan.sent = loan.outbox.sent() - before;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll::{Events, ready};
    use rustix::event::PollFlags;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_file_is_sent_by_the_thread_and_what_the_client_does_not_take_comes_back() {
        let poller = Arc::new(Poller::new().expect("a poller"));
        let mut sender = Sender::on(poller.clone(), None);
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("a socket");
        let ours = Stream::new(ours.into());
        let mut file = crate::exchange::body::new_file(None).expect("disk");
        let bytes: Vec<u8> = (0..3_000_000u32).map(|nr| (nr % 251) as u8).collect();
        file.write_all(&bytes).expect("disk");
        let mut outbox = Outbox::default();
        outbox.push_file(file.into(), 0, bytes.len() as u64);
        let (mut got, mut piece) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            sender.lend(7, &ours, outbox).expect("a thread");
            assert_eq!(sender.descriptors().count(), 1);
            assert!(!ready(poller.as_fd(), PollFlags::IN, 20_000_000_000).is_empty(), "the bell rings");
            poller.wait(&mut Events::default(), Some(0)).expect("events");
            let loan = sender.take().expect("it comes back");
            assert_eq!((loan.token, sender.descriptors().count()), (7, 0));
            outbox = loan.outbox;
            if loan.flush == Some(Flush::Empty) {
                break;
            }
            let count = theirs.read(&mut piece).expect("a socket");
            got.extend_from_slice(&piece[..count]);
        }
        drop((ours, outbox));
        theirs.read_to_end(&mut got).expect("a socket");
        assert!(got == bytes, "{} bytes", got.len());
        assert!(sender.part().expect("it runs").end().is_empty());
    }
}
