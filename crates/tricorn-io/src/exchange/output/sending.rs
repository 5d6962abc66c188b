//! What is behind the lock of an output, and how bytes are sent under it.
use crate::disk::DiskFile;
use crate::exchange::outbox::{Flush, Outbox, SharedBytes};
use crate::exchange::turn::Turn;
use crate::stream::{Channel, Stream};
use crate::sys::wake::Alarm;
use rustix::fd::BorrowedFd;
use rustix::io::{Errno, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Larger pieces are sent from where they are, others copied behind the head.
const COPY: usize = 16 * 1024;
/// Bytes gathered before they are sent anyway.
pub const FULL: usize = 16 * 1024;

pub(super) struct Shared {
    pub stream: Stream,
    pub sending: Mutex<Sending>,
}

/// Kept small: idle connections have it, too.
#[derive(Default)]
pub(super) struct Sending {
    pub turn: Turn,
    /// Bytes of this reply that never waited. Those that did are counted by the outbox.
    pub sent: u64,
    /// Made when the socket does not take all of a reply.
    pub rest: Option<Box<Rest>>,
}

#[derive(Default)]
pub(super) struct Rest {
    pub outbox: Outbox,
    /// Owners of bytes that are sent or on disk, to be dropped by a thread that holds the GIL.
    pub spent: Vec<SharedBytes>,
    pub loan: Loan,
    /// The last bytes that were to go to disk are still in memory.
    pub store_failed: bool,
    /// A job has found that no more can be sent, which the owner finds here: the file it cannot send stays in front.
    pub is_broken: bool,
    /// The exchange is over, and has counted what was sent until then.
    pub is_over: bool,
    /// Rung when a job comes back.
    pub waiter: Option<Arc<Alarm>>,
}

/// The file in front, while it waits to be sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Loan {
    /// It is here.
    #[default]
    None,
    /// It is here, and the socket was full when a job was last done with it.
    Full,
    /// A job sends it. `had_event`: there may be room since.
    Out { had_event: bool },
}

impl Rest {
    /// A job is at what is in front.
    pub fn is_away(&self) -> bool {
        matches!(self.loan, Loan::Out { .. }) || self.outbox.begins_with_storing()
    }

    /// Sends what lies in memory, as far as the socket takes it and no file is in front.
    pub fn flush(&mut self, stream: &Stream) -> Flush {
        if self.is_broken { Flush::Gone } else { self.outbox.flush(stream, &mut self.spent) }
    }

    pub fn tell_waiter(&self) {
        self.waiter.iter().for_each(|alarm| alarm.ring());
    }
}

/// A part of a reply.
pub enum Piece<'p, K> {
    /// `head`, `body` and `tail`, in one system call where possible. `head` is scratch: small bodies are copied to it. `keep` is
    /// called if the bytes of the body must outlive the call; it gives an owner of the same bytes.
    Bytes { head: &'p mut Vec<u8>, body: &'p [u8], tail: &'p [u8], keep: K },
    /// So many bytes of a file from an offset, between others.
    File { head: &'p [u8], file: (Arc<DiskFile>, u64, u64), tail: &'p [u8] },
}

/// When a piece is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// At once, as far as the socket takes it.
    Now,
    /// More is to come, and what does not go out at once is left to the monitor, if it is no more than `mark` bytes. `gather`: it
    /// travels with the pieces behind it.
    Streaming { gather: bool, mark: usize },
    /// It is a whole answer, which may wait for others.
    Together,
}

/// The outcome of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All is with the kernel.
    Sent,
    /// The rest is left to the monitor. `is_news`: which is to be told.
    Left { is_news: bool },
    /// So many bytes wait in memory for the client, and perhaps others in files.
    Waits { bytes: usize },
    /// The answer waits for others.
    Held,
    /// The client reads no more, or was answered in the owner's place.
    Gone,
}

impl Shared {
    #[inline]
    pub fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless another thread is sending.
    pub fn try_sending(&self) -> Option<MutexGuard<'_, Sending>> {
        match self.sending.try_lock() {
            Ok(sending) => Some(sending),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Sending {
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.rest.as_ref().is_none_or(|rest| rest.outbox.is_empty())
    }

    #[inline]
    pub fn rest(&mut self) -> &mut Box<Rest> {
        self.rest.get_or_insert_default()
    }

    pub fn queued_sent(&self) -> u64 {
        self.rest.as_ref().map_or(0, |rest| rest.outbox.sent())
    }

    #[inline]
    pub fn total_sent(&self) -> u64 {
        self.sent + self.queued_sent()
    }

    /// The reply is over, and what was sent of it is counted: all that is sent from now on is for the reactor to count.
    pub fn end_count(&mut self) {
        self.sent = 0;
        if let Some(rest) = &mut self.rest {
            rest.is_over = true;
        }
    }

    /// Gives a whole answer to a trunk, which sends it with others. Nothing waits here.
    pub fn hold_in(&mut self, channel: &dyn Channel, bytes: &[u8]) -> Progress {
        let done = match channel.hold(bytes) {
            Ok(count) => count,
            Err(Errno::AGAIN) => 0,
            Err(_) => return Progress::Gone,
        };
        self.sent += done as u64;
        if done == bytes.len() {
            return Progress::Sent;
        }
        let outbox = &mut self.rest().outbox;
        outbox.push(&bytes[done..]);
        Progress::Waits { bytes: outbox.in_memory() }
    }

    pub fn may_hold(&self, body: &[u8]) -> bool {
        body.len() <= COPY && self.is_clear()
    }

    /// Leaves what waits to the monitor, if it is no more than `most` bytes in memory.
    #[inline]
    pub fn leave(&mut self, progress: Progress, most: usize) -> Progress {
        match progress {
            Progress::Waits { bytes } if bytes <= most => Progress::Left { is_news: self.turn.leave() },
            progress => progress,
        }
    }

    #[inline]
    pub fn send<K: FnOnce() -> SharedBytes>(&mut self, stream: &Stream, piece: Piece<'_, K>) -> Progress {
        match piece {
            Piece::Bytes { head, body, tail, keep } => self.send_bytes(stream, head, body, tail, keep),
            Piece::File { head, file: (file, offset, count), tail } => {
                let outbox = &mut self.rest().outbox;
                outbox.push(head);
                outbox.push_file(file, offset, count);
                outbox.push(tail);
                self.flush(stream)
            }
        }
    }

    #[inline]
    fn send_bytes(
        &mut self,
        stream: &Stream,
        head: &mut Vec<u8>,
        body: &[u8],
        tail: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Progress {
        let apart = body.len() > COPY;
        if !apart {
            head.extend_from_slice(body);
            head.extend_from_slice(tail);
        }
        let (body, tail) = if apart { (body, tail) } else { (b"".as_slice(), b"".as_slice()) };
        let count = head.len() + body.len() + tail.len();
        let mut done = 0;
        if self.is_clear() {
            if count == 0 {
                return Progress::Sent;
            }
            let result = if apart {
                stream.send_slices(&[IoSlice::new(head), IoSlice::new(body), IoSlice::new(tail)])
            } else {
                stream.send(head)
            };
            match result {
                Ok(count) => done = count,
                Err(Errno::AGAIN) => {}
                Err(_) => return Progress::Gone,
            }
            self.sent += done as u64;
            if done == count {
                return Progress::Sent;
            }
        }
        self.queue_rest(done, (head, body, tail), keep);
        self.flush(stream)
    }

    /// Queues what a send did not take: the head and the tail as copies, the body by reference.
    #[cold]
    fn queue_rest(
        &mut self,
        done: usize,
        (head, body, tail): (&[u8], &[u8], &[u8]),
        keep: impl FnOnce() -> SharedBytes,
    ) {
        let outbox = &mut self.rest().outbox;
        outbox.push(&head[done.min(head.len())..]);
        let at = done.saturating_sub(head.len());
        if at < body.len() {
            outbox.push_shared(keep(), at, body.len());
        }
        outbox.push(&tail[at.saturating_sub(body.len())..]);
    }

    /// Sends `head`, and behind it as much of a part of a file as the socket takes: `most` bytes at most, which the page cache has.
    pub fn send_cached(
        &mut self,
        stream: &Stream,
        head: &[u8],
        file: BorrowedFd<'_>,
        (offset, left): (&mut u64, &mut u64),
        most: u64,
    ) -> Progress {
        if !self.turn.begin() {
            return Progress::Gone;
        }
        let mut done = 0;
        if self.is_clear() {
            match stream.send_before_more(head) {
                Ok(count) => done = count,
                Err(Errno::AGAIN) => {}
                Err(_) => return Progress::Gone,
            }
            self.sent += done as u64;
            if done == head.len() {
                // Of an error the next attempt tells.
                if let Ok(count) = stream.send_file(file, offset, left, most) {
                    self.sent += count as u64;
                }
                return Progress::Sent;
            }
        }
        self.rest().outbox.push(&head[done..]);
        self.flush(stream)
    }

    pub fn flush(&mut self, stream: &Stream) -> Progress {
        let Some(rest) = &mut self.rest else { return Progress::Sent };
        match rest.flush(stream) {
            Flush::Empty => Progress::Sent,
            Flush::Blocked | Flush::Disk => Progress::Waits { bytes: rest.outbox.in_memory() },
            Flush::Gone | Flush::Truncated => Progress::Gone,
        }
    }
}
