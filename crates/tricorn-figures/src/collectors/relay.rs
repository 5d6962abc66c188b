//! Messages on their way to a collector: gathered by threads of calls, sent by the monitor when they are due.
use super::batch::Batch;
use super::socket::{Address, Socket, wait_for_room};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tricorn_sys::clock::{self, MILLI, SECOND};

/// Most bytes of messages kept; those that come on top are dropped.
const MOST: usize = 4 << 20;
/// Buffers that grew beyond this go back to the system once they are empty.
const KEPT: usize = 256 << 10;
/// Time until a full socket is tried again: doubled from the first to the last.
const FULL: std::ops::RangeInclusive<u64> = MILLI..=100 * MILLI;
/// How long a relay that ends waits for a collector that is slow.
const PATIENCE: u64 = SECOND;

/// What becomes of messages.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// The collector, for the error log.
    pub name: &'static str,
    /// Messages share a piece of at most so many bytes, with a newline between them; 0: each goes alone.
    pub most: usize,
    /// How long (nanoseconds) a piece that is not full waits for more.
    pub gather: u64,
    /// What the socket does not take is kept and sent later. Otherwise it is lost: yesterday's numbers help no one.
    pub keeps: bool,
}

#[derive(Debug)]
pub struct Relay {
    policy: Policy,
    pending: Mutex<Batch>,
    writer: Mutex<Writer>,
    /// Bytes that the writer has taken over and not sent yet.
    taken: AtomicUsize,
    /// The monitor does not know yet when it is to send.
    unseen: AtomicBool,
    /// When pending messages are to be sent (monotonic nanoseconds); 0: there are none.
    due_at: AtomicU64,
    /// Not to be sent before.
    retry_at: AtomicU64,
    lost: AtomicU64,
}

#[derive(Debug)]
struct Writer {
    socket: Socket,
    batch: Batch,
    /// The piece that is at it, and how much of it a stream has taken.
    piece: usize,
    written: usize,
    /// How many messages the last datagram had.
    before: u64,
    delay: u64,
    trouble: Trouble,
}

impl Relay {
    pub fn new(policy: Policy, socket: Socket) -> Relay {
        let trouble = Trouble::default();
        let writer = Writer { socket, batch: Batch::default(), piece: 0, written: 0, before: 0, delay: 0, trouble };
        Relay {
            policy,
            pending: Mutex::default(),
            writer: Mutex::new(writer),
            taken: AtomicUsize::new(0),
            unseen: AtomicBool::new(false),
            due_at: AtomicU64::new(0),
            retry_at: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Adds messages, if there is room. Whether the monitor does not know yet that it has something to do.
    pub fn add<'m>(&self, messages: impl Iterator<Item = &'m [u8]>) -> bool {
        let mut pending = locked(&self.pending);
        let (mut began, mut lost) = (false, 0);
        for message in messages {
            if pending.len() + message.len() + self.taken.load(Relaxed) > MOST {
                lost += 1;
            } else {
                began |= pending.push(message, self.policy.most);
            }
        }
        if began {
            let is_full = pending.pieces() > 1 || self.policy.gather == 0;
            let now = clock::now();
            if is_full || self.due_at.load(Relaxed) == 0 {
                self.due_at.store(if is_full { now } else { now + self.policy.gather }, Relaxed);
            }
        }
        drop(pending);
        if lost > 0 {
            self.lost.fetch_add(lost, Relaxed);
        }
        // As in `AccessLog::add`: either the monitor sees the messages, or this sees that it covers.
        began && !self.unseen.load(Relaxed) && !self.unseen.swap(true, SeqCst)
    }

    /// Messages that were dropped so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The monitor has to have a look.
    #[inline]
    pub fn is_unseen(&self) -> bool {
        self.unseen.load(SeqCst)
    }

    /// In how many nanoseconds something is to be sent.
    pub fn due_in(&self, now: u64) -> Option<u64> {
        let due_at = self.due_at.load(Relaxed);
        (due_at != 0).then(|| due_at.max(self.retry_at.load(Relaxed)).saturating_sub(now))
    }

    /// For the monitor: sends what is due. Waits for nothing. What the error log should be told.
    pub fn tend(&self, now: u64) -> Option<String> {
        // Before the messages are looked at: one that is added after that says so itself.
        if self.unseen.load(Relaxed) {
            self.unseen.swap(false, SeqCst);
        }
        if self.due_in(now) != Some(0) {
            return None;
        }
        let mut writer = locked(&self.writer);
        let _ = self.send_some(&mut writer, now, false); // it has seen to that
        writer.trouble.notice.take()
    }

    /// Sends what it can in time; the rest is lost. For the end of the worker.
    pub fn flush(&self) {
        let end = clock::now() + PATIENCE;
        while let Some(full) = self.send_all() {
            let now = clock::now();
            if now >= end {
                break;
            }
            wait_for_room(full.as_fd(), (end - now).min(*FULL.end()));
        }
        self.give_up();
    }

    /// Sends all it has, as far as the socket takes it. A copy of the socket if it is full.
    pub fn send_all(&self) -> Option<OwnedFd> {
        let mut writer = locked(&self.writer);
        let is_full = self.send_some(&mut writer, clock::now(), true) == Err(Errno::AGAIN);
        is_full.then(|| writer.socket.copy_fd()).flatten()
    }

    /// Drops what it has.
    fn give_up(&self) {
        locked(&self.writer).give_up(&self.lost);
        let mut pending = locked(&self.pending);
        self.lost.fetch_add(pending.messages_from(0), Relaxed);
        pending.clear(0);
        self.due_at.store(0, Relaxed);
    }

    /// Looks at the socket.
    pub fn socket<T>(&self, look: impl FnOnce(&Socket) -> T) -> T {
        look(&locked(&self.writer).socket)
    }

    /// Connects at once.
    pub fn connect(&self) -> io::Result<()> {
        locked(&self.writer).socket.open()
    }

    /// Drops what it has, and closes the connection.
    pub fn close(&self) {
        self.give_up();
        locked(&self.writer).socket.disconnect();
    }

    /// Follows the collector's name. Whether it leads elsewhere.
    pub fn move_to(&self, to: SocketAddr) -> bool {
        let moved = locked(&self.writer).socket.move_to(to);
        if moved {
            self.retry_at.store(0, Relaxed);
        }
        moved
    }

    /// Counts a message that was never made.
    pub fn lose(&self) {
        self.lost.fetch_add(1, Relaxed);
    }

    /// Begins anew in a forked process: what its parent keeps is the parent's. No other thread held a lock when it forked.
    pub fn after_fork(&self) {
        let mut writer = locked(&self.writer);
        writer.give_up(&self.lost);
        writer.before = 0;
        writer.socket.after_fork();
        locked(&self.pending).clear(0);
        self.taken.store(0, Relaxed);
        self.due_at.store(0, Relaxed);
        self.retry_at.store(0, Relaxed);
        self.lost.store(0, Relaxed);
    }

    /// Sends what was left, then what has come since: `all` of it, or without a piece that waits for more.
    fn send_some(&self, writer: &mut Writer, now: u64, all: bool) -> Result<(), Errno> {
        let mut result = writer.send(now, &self.lost);
        if result.is_ok() {
            self.take_over(writer, now, all);
            result = writer.send(now, &self.lost);
        }
        let retry_in = match result {
            Ok(()) => {
                writer.trouble.end(&self.policy, self.lost());
                0
            }
            Err(error) => {
                if error != Errno::AGAIN && !writer.socket.is_connectionless() {
                    writer.trouble.begin(&self.policy, writer.socket.address(), error, self.lost());
                }
                if self.policy.keeps {
                    writer.put_off(error, now)
                } else {
                    writer.give_up(&self.lost);
                    0
                }
            }
        };
        self.taken.store(writer.batch.bytes_from(writer.piece), Relaxed);
        self.retry_at.store(if retry_in == 0 { 0 } else { now + retry_in }, Relaxed);
        if retry_in > 0 {
            let _pending = locked(&self.pending);
            self.due_at.store(now, Relaxed);
        }
        result
    }

    /// The writer, which has sent all that it had, gets what was added.
    fn take_over(&self, writer: &mut Writer, now: u64, all: bool) {
        writer.batch.clear(KEPT);
        (writer.piece, writer.written) = (0, 0);
        let mut pending = locked(&self.pending);
        std::mem::swap(&mut writer.batch, &mut *pending);
        let due_at = if !all && self.policy.gather > 0 && writer.batch.pieces() > 1 {
            writer.batch.move_last(&mut pending);
            now + self.policy.gather
        } else {
            0
        };
        self.due_at.store(due_at, Relaxed);
        self.taken.store(writer.batch.len(), Relaxed);
    }
}

impl Writer {
    /// Sends pieces until there are none, or the socket takes no more.
    fn send(&mut self, now: u64, lost: &AtomicU64) -> Result<(), Errno> {
        while let Some((piece, messages)) = self.batch.piece(self.piece) {
            let result = self.socket.send(piece, &mut self.written, now);
            if self.socket.was_refused() {
                lost.fetch_add(self.before, Relaxed);
                self.before = 0;
            }
            match result {
                Ok(sent) if self.socket.is_stream() && self.written + sent < piece.len() => self.written += sent,
                Ok(_) => (self.piece, self.written, self.before, self.delay) = (self.piece + 1, 0, messages, 0),
                Err(Errno::MSGSIZE) => {
                    lost.fetch_add(messages, Relaxed);
                    (self.piece, self.written) = (self.piece + 1, 0);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// In how many nanoseconds the next try is worth it.
    fn put_off(&mut self, error: Errno, now: u64) -> u64 {
        if error != Errno::AGAIN {
            self.delay = 0;
            return self.socket.retry_at().saturating_sub(now).max(*FULL.start());
        }
        self.delay = (self.delay * 2).clamp(*FULL.start(), *FULL.end());
        self.delay
    }

    fn give_up(&mut self, lost: &AtomicU64) {
        lost.fetch_add(self.batch.messages_from(self.piece), Relaxed);
        self.batch.clear(KEPT);
        (self.piece, self.written) = (0, 0);
    }
}

/// What the error log is told of: once when a collector is not there, once when it is again.
#[derive(Debug, Default)]
struct Trouble {
    /// Messages lost when it began.
    since: Option<u64>,
    notice: Option<String>,
}

impl Trouble {
    fn begin(&mut self, policy: &Policy, address: &Address, error: Errno, lost: u64) {
        if self.since.is_some() {
            return;
        }
        self.since = Some(lost);
        let place = match address {
            Address::Udp(address) | Address::Tcp(address) => address.to_string(),
            Address::Unix { path, .. } => path.display().to_string(),
            Address::Unresolved(_) => "an unknown address".into(),
        };
        let kept = if policy.keeps {
            format!("up to {} MiB of messages are kept", MOST >> 20)
        } else {
            "messages are lost".into()
        };
        let name = policy.name;
        self.notice = Some(format!("Cannot reach {name} at {place}: {error}. Retrying; meanwhile {kept}"));
    }

    fn end(&mut self, policy: &Policy, lost: u64) {
        if let Some(before) = self.since.take() {
            let lost = lost - before;
            self.notice = Some(format!("Connected to {} again; {lost} messages were lost", policy.name));
        }
    }
}

/// The lists here stay whole whatever panicked while they were held.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
