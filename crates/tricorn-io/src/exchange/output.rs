//! The output of a connection: its stream, what the socket has not taken, and whose turn it is to send (`turn.rs`).
//!
//! ```text
//!   Output (the owner's: the reactor, or the exchange's lane) ──┐
//!   Watched (the monitor's: streams, late answers) ─────────────┼──▶ stream, and under one lock: turn, outbox, counters
//!   jobs of the pool (`output/files.rs`: what lies in files) ───┘
//! ```
//!
//! There is one [`Output`] of a connection. It moves with the right to answer and to read: the reactor has it between two requests,
//! and the exchange during one. Besides it only a job keeps the socket open for longer than a call of send(2). Nobody waits under the
//! lock, neither for a disk nor for the client; the monitor takes it only if it is free.
use super::outbox::{Flush, Outbox, SharedBytes};
use super::overflow::{Full, Held, Store};
use super::turn::{Asked, Turn};
use crate::stream::Stream;
use crate::sys::poll::Token;
use crate::sys::wake::Alarm;
use rustix::fd::BorrowedFd;
use sending::{Loan, Sending, Shared};
use std::sync::{Arc, Mutex, MutexGuard};

mod files;
mod sending;
mod watched;

pub use files::{DiskLocks, DiskOutcome, Disks, Lent};
pub use sending::{FULL, Piece, Progress, When};
pub use watched::{LateAnswer, Watched};

/// The owner's handle. It is dropped when the connection is closed.
pub struct Output(Arc<Shared>);

/// The end of an exchange, as its connection sees it.
#[derive(Default)]
pub struct Concluded {
    /// Bytes of the reply that are with the kernel.
    pub sent: u64,
    /// The client has not taken all of it.
    pub waits: bool,
    /// That waits for other answers, and not for the client.
    pub is_held: bool,
}

impl Output {
    pub fn new(stream: Stream) -> Output {
        Output(Arc::new(Shared { stream, sending: Mutex::default() }))
    }

    /// The connection, to be read from.
    #[inline]
    pub fn stream(&self) -> &Stream {
        &self.0.stream
    }

    /// For pollers, and for what may only look.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.0.stream.socket()
    }

    /// The connection, if nothing else has to do with it.
    pub fn into_stream(self) -> Option<Stream> {
        let shared = self.0.clone();
        drop(self);
        Arc::into_inner(shared).map(|shared| shared.stream)
    }

    /// For the monitor. `token`: the connection's.
    pub fn watched(&self, token: Token) -> Watched {
        Watched { shared: Arc::downgrade(&self.0), token }
    }

    #[inline]
    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.0.sending()
    }
}

/// Sending.
impl Output {
    #[inline]
    pub fn send<K: FnOnce() -> SharedBytes>(&mut self, piece: Piece<'_, K>, when: When) -> Progress {
        let stream = &self.0.stream;
        let sending = &mut *self.sending();
        if !sending.turn.begin() {
            return Progress::Gone;
        }
        match (piece, when) {
            (Piece::Bytes { head, body, tail, .. }, When::Together) if sending.may_hold(body) => {
                if let Some(channel) = stream.channel() {
                    head.extend_from_slice(body);
                    head.extend_from_slice(tail);
                    return sending.hold_in(channel, head);
                }
                sending.rest().outbox.push_all([head, body, tail]);
                sending.turn = Turn::Held;
                Progress::Held
            }
            (Piece::Bytes { head, body, tail, .. }, When::Streaming { gather: true, mark }) => {
                let outbox = &mut sending.rest().outbox;
                outbox.push_all([head, body, tail]);
                if outbox.in_memory() < FULL {
                    return Progress::Left { is_news: sending.turn.leave() };
                }
                let progress = sending.flush(stream);
                sending.leave(progress, mark)
            }
            (piece, When::Streaming { mark, .. }) => {
                let progress = sending.send(stream, piece);
                sending.leave(progress, mark)
            }
            (piece, _) => sending.send(stream, piece),
        }
    }

    /// Sends a response of the server's own, where nothing waits. How many bytes of it are with the kernel.
    pub fn reply(&mut self, bytes: &[u8]) -> (u64, Progress) {
        let sending = &mut *self.sending();
        let keep = || Box::new(bytes.to_vec()) as SharedBytes;
        let piece = Piece::Bytes { head: &mut Vec::new(), body: bytes, tail: b"", keep };
        let progress = sending.send(&self.0.stream, piece);
        let sent = sending.total_sent();
        sending.end_count();
        (sent, progress)
    }

    /// Sends what fits, and nothing if something waits already: for interim responses that may be left out.
    pub fn send_optional(&mut self, bytes: &[u8]) {
        let mut sending = self.sending();
        if sending.is_clear() {
            sending.sent += self.0.stream.send_once(bytes) as u64;
        }
    }

    /// Sends `head`, and behind it as much of a part of a file as the socket takes: `most` bytes at most, which the page cache has. Nothing of
    /// the file if something waits before it.
    pub fn send_cached(
        &mut self,
        head: &[u8],
        file: BorrowedFd<'_>,
        part: (&mut u64, &mut u64),
        most: u64,
    ) -> Progress {
        self.sending().send_cached(&self.0.stream, head, file, part, most)
    }

    /// Leaves bytes in the outbox until the owner flushes it.
    pub fn queue(&mut self, bytes: &[u8]) {
        self.sending().rest().outbox.push(bytes);
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn flush(&mut self) -> Progress {
        self.sending().flush(&self.0.stream)
    }

    /// The same for a producer that goes on when no more than `level` bytes wait in memory: these are left to the monitor. With the
    /// bytes sent so far that had to wait.
    pub fn flush_to(&mut self, level: usize) -> (Progress, u64) {
        let sending = &mut *self.sending();
        let progress = sending.flush(&self.0.stream);
        (sending.leave(progress, level), sending.queued_sent())
    }

    /// Leaves what waits to the monitor, whatever it is. Whether that is to be told.
    pub fn leave(&mut self) -> bool {
        let sending = &mut *self.sending();
        !sending.is_clear() && sending.turn.leave()
    }

    /// Nothing more is sent of what waits.
    #[cold]
    pub fn clear(&mut self) {
        if let Some(rest) = &mut self.sending().rest {
            rest.outbox.clear(&mut rest.spent);
        }
    }
}

/// What waits.
impl Output {
    #[inline]
    pub fn is_clear(&self) -> bool {
        self.sending().is_clear()
    }

    /// Bytes that wait in memory.
    pub fn in_memory(&self) -> usize {
        self.sending().rest.as_ref().map_or(0, |rest| rest.outbox.in_memory())
    }

    /// Some of what waits was put on disk, or is on its way there.
    pub fn is_on_disk(&self) -> bool {
        self.sending().rest.as_ref().is_some_and(|rest| rest.outbox.is_on_disk())
    }

    /// Whether a descriptor is held for what waits.
    pub fn has_file(&self) -> bool {
        self.sending().rest.as_ref().is_some_and(|rest| rest.outbox.has_file())
    }

    /// Bytes of this reply that are with the kernel.
    pub fn sent(&self) -> u64 {
        self.sending().total_sent()
    }

    /// Those of them that had to wait.
    pub fn queued_sent(&self) -> u64 {
        self.sending().queued_sent()
    }

    /// Those of the latter that the client has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        match self.queued_sent() {
            0 => 0,
            sent => sent.saturating_sub(self.0.stream.unacknowledged()),
        }
    }

    /// Counts what waits in memory, from now on, for all responses.
    pub fn share(&mut self, held: &Arc<Held>) {
        self.sending().rest().outbox.share(held);
    }

    /// Owners of bytes that are sent or on disk. To be dropped by a thread that holds the GIL.
    pub fn take_spent(&mut self) -> Vec<SharedBytes> {
        self.sending().rest.as_mut().map_or_else(Vec::new, |rest| std::mem::take(&mut rest.spent))
    }
}

/// Files, and the jobs that are at them.
impl Output {
    /// Has what waits in a file sent, if that is next. `token`: the connection's.
    pub fn lend(&mut self, disks: &Arc<Disks>, token: Token) -> Lent {
        self.0.lend(disks, token)
    }

    /// Has what waits in memory put on disk, the first `keep` bytes excepted. Whether there is anything to be put there.
    pub fn store(&mut self, disks: &Arc<Disks>, held: &Held, store: &Store, keep: usize) -> Result<bool, Full> {
        self.0.store(disks, held, store, keep)
    }

    /// Whether what was to be put on disk last is still in memory, which is told once.
    pub fn take_store_failure(&mut self) -> bool {
        self.sending().rest.as_mut().is_some_and(|rest| std::mem::take(&mut rest.store_failed))
    }

    /// Readable once the job is back that is at what is sent next. `None`: there is none, or the system has no descriptor.
    pub fn await_job(&mut self) -> Option<Arc<Alarm>> {
        let sending = &mut *self.sending();
        let rest = sending.rest.as_mut().filter(|rest| rest.is_away())?;
        let alarm = match &rest.waiter {
            Some(alarm) => alarm.clone(),
            None => rest.waiter.insert(Arc::new(Alarm::new().ok()?)).clone(),
        };
        alarm.clear();
        Some(alarm)
    }

    /// Something happens to the connection. Whether a job is at what is sent next: its return will tell.
    #[inline]
    pub fn note_event(&mut self) -> bool {
        let Some(rest) = &mut self.sending().rest else { return false };
        if let Loan::Out { had_event } = &mut rest.loan {
            *had_event = true;
        }
        rest.is_away()
    }

    /// Whether a job is at what is sent next.
    pub fn is_away(&self) -> bool {
        self.sending().rest.as_ref().is_some_and(|rest| rest.is_away())
    }
}

/// The monitor's answer to a request that is too late.
impl Output {
    /// From now on, and until the owner sends something, the monitor may answer. Nothing waits here.
    pub fn expect(&mut self, asked: Asked) {
        let mut sending = self.sending();
        if sending.is_clear() {
            sending.turn.expect(asked);
        }
    }

    /// Only the owner answers from now on; false if the monitor has.
    #[inline]
    pub fn begin(&mut self) -> bool {
        self.sending().turn.begin()
    }
}

/// From one owner to another.
impl Output {
    /// An exchange ends, and the reactor sends what waits.
    #[inline]
    pub fn conclude(&mut self, spent: &mut Vec<SharedBytes>) -> Concluded {
        let sending = &mut *self.sending();
        let is_held = sending.turn.restart() == Turn::Held;
        let sent = sending.total_sent();
        sending.end_count();
        let Some(rest) = &mut sending.rest else { return Concluded { sent, ..Concluded::default() } };
        spent.append(&mut rest.spent);
        if !rest.outbox.is_empty() {
            return Concluded { sent, waits: true, is_held };
        }
        sending.rest = None;
        Concluded { sent, ..Concluded::default() }
    }

    /// Takes out what waits. Owners of bytes that are sent go to `spent`.
    pub fn take_outbox(&mut self, spent: &mut Vec<SharedBytes>) -> Outbox {
        let mut sending = self.sending();
        sending.turn.restart();
        let Some(mut rest) = sending.rest.take() else { return Outbox::default() };
        spent.append(&mut rest.spent);
        rest.outbox
    }

    /// Goes on with the reply that was begun there, as far as that is counted.
    pub fn follow(&mut self, before: &Output) {
        self.sending().sent = before.sent();
    }

    /// Puts in what is to be sent. Nothing waits here.
    pub fn put_outbox(&mut self, outbox: Outbox) {
        self.sending().rest().outbox = outbox;
    }
}

/// For the reactor, between two exchanges.
impl Output {
    /// Sends about `most` bytes of what waits in memory; `None`: more can be sent. With the bytes sent.
    pub fn flush_some(&mut self, most: usize, spent: &mut Vec<SharedBytes>) -> (Option<Flush>, u64) {
        let mut sending = self.sending();
        let Some(rest) = &mut sending.rest else { return (Some(Flush::Empty), 0) };
        let before = rest.outbox.sent();
        let flush = rest.outbox.flush_some(&self.0.stream, spent, most);
        (flush, rest.outbox.sent() - before)
    }
}

impl Drop for Output {
    /// Nothing more is sent, and what owners gave is dropped by this thread, and not by the monitor's.
    fn drop(&mut self) {
        let rest = {
            let mut sending = self.sending();
            sending.turn.restart();
            sending.rest.take()
        };
        drop(rest);
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Output({:?})", self.0.stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::responder::late_page;
    use rustix::io;
    use std::cell::Cell;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use tricorn_proto::message::{Method, Version};

    fn pair() -> (Output, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("a socket");
        (Output::new(Stream::new(ours.into())), theirs)
    }

    fn disks() -> Arc<Disks> {
        Arc::new(Disks::new(crate::disk::Pool::new(None).expect("a pool")).0)
    }

    fn unwatched(_: BorrowedFd<'_>) -> io::Result<()> {
        panic!("there is room")
    }

    /// Gives bytes that are gathered. Whether the monitor is to be told.
    fn gather(output: &mut Output, bytes: &[u8]) -> bool {
        let keep = || Box::new(bytes.to_vec()) as SharedBytes;
        let piece = Piece::Bytes { head: &mut Vec::new(), body: bytes, tail: b"", keep };
        match output.send(piece, When::Streaming { gather: true, mark: usize::MAX }) {
            Progress::Left { is_news } => is_news,
            progress => panic!("{progress:?}"),
        }
    }

    #[test]
    fn what_is_left_goes_out_with_the_tick_and_only_once() {
        let disks = disks();
        let (mut output, mut theirs) = pair();
        let watched = output.watched(7);
        let mut outbox = Outbox::default();
        outbox.push(b"ab");
        outbox.push_shared(Box::new(b"cd".to_vec()), 0, 2);
        output.put_outbox(outbox);
        assert!(!watched.send_left(&disks, unwatched) && !output.is_clear(), "it was not left");
        assert!(output.leave());
        assert!(watched.send_left(&disks, unwatched), "more may follow");
        assert!(!watched.send_left(&disks, unwatched));
        assert_eq!((output.sent(), output.take_spent().len()), (4, 1));
        drop(output);
        assert!(watched.is_gone() && !watched.send_left(&disks, unwatched));
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("a socket");
        assert_eq!(got, "abcd");
    }

    #[test]
    fn the_rest_of_a_reply_that_is_over_is_the_reactors() {
        let disks = disks();
        let (mut output, mut theirs) = pair();
        assert!(gather(&mut output, b"rest"));
        let watched = output.watched(7);
        assert!(output.conclude(&mut Vec::new()).waits);
        assert!(!watched.send_left(&disks, unwatched), "the monitor leaves it alone");
        assert_eq!(output.flush_some(usize::MAX, &mut Vec::new()), (Some(Flush::Empty), 4));
        let concluded = output.conclude(&mut Vec::new());
        assert!(!concluded.waits && gather(&mut output, b"!"), "the next reply begins anew");
        output.flush();
        drop(output);
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("a socket");
        assert_eq!(got, "rest!");
    }

    #[test]
    fn a_full_socket_is_watched_until_all_is_sent() {
        let disks = disks();
        let (mut output, mut theirs) = pair();
        let watched = output.watched(7);
        let length = 1 << 20;
        output.queue(&vec![b'x'; length]);
        assert!(output.leave() && !output.leave(), "it is listed");
        let count = Cell::new(0);
        let watch = |_: BorrowedFd<'_>| {
            count.set(count.get() + 1);
            Ok(())
        };
        assert!(watched.send_left(&disks, |_| Err(io::Errno::NOMEM)), "it cannot be waited for");
        assert!(!watched.send_left(&disks, watch));
        assert!(!output.is_clear() && !output.leave(), "the kernel tells of it");
        let mut got = vec![0; length];
        let reader = std::thread::spawn(move || theirs.read_exact(&mut got).map(|()| theirs));
        while !reader.is_finished() {
            watched.send_left(&disks, watch);
        }
        let _theirs = reader.join().expect("a reader").expect("all of it");
        assert!(count.get() > 0);
        while watched.send_left(&disks, watch) {}
        assert!(gather(&mut output, b"more"), "all was sent: it is new again");
        assert!(watched.send_left(&disks, watch));
        assert!(!gather(&mut output, b"and more"));
        assert!(watched.send_left(&disks, watch) && !watched.send_left(&disks, watch));
    }

    #[test]
    fn the_monitor_waits_for_no_owner() {
        let disks = disks();
        let (mut output, _theirs) = pair();
        output.expect(Asked { method: Method::Get, version: Version::Http11, request_id: Box::default() });
        let watched = output.watched(7);
        let sending = output.sending();
        assert_eq!((watched.send_left(&disks, unwatched), watched.answer_late(b"date")), (true, LateAnswer::Busy));
        drop(sending);
        assert_eq!((watched.send_left(&disks, unwatched), watched.answer_late(b"date")), (false, LateAnswer::Sent));
        assert_eq!(watched.answer_late(b"date"), LateAnswer::NotWanted);
    }

    #[test]
    fn the_first_answer_is_the_only_one() {
        let (mut output, mut theirs) = pair();
        let watched = output.watched(7);
        let asked = |id: &[u8]| Asked { method: Method::Head, version: Version::Http11, request_id: id.into() };
        assert_eq!(watched.answer_late(b"no exchange"), LateAnswer::NotWanted);
        output.expect(asked(b"another request"));
        assert!(output.begin());
        assert_eq!(watched.answer_late(b"begun"), LateAnswer::NotWanted);
        output.conclude(&mut Vec::new());
        output.expect(asked(b"id"));
        assert_eq!(watched.answer_late(b"date"), LateAnswer::Sent);
        assert!(!output.begin());
        let page = late_page(b"date", Method::Head, Version::Http11, b"id");
        assert_eq!(output.conclude(&mut Vec::new()).sent, page.len() as u64);
        assert_eq!(watched.answer_late(b"over"), LateAnswer::NotWanted);
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("our side is closed");
        assert_eq!(got.as_bytes(), page);
        assert!(got.contains("\r\nX-Request-ID: id\r\n") && got.ends_with("\r\n\r\n"), "{got}");
    }

    #[test]
    fn bytes_that_are_dropped_with_a_connection_do_not_stay_with_the_monitor() {
        struct Bytes(Arc<[u8; 5]>);
        impl AsRef<[u8]> for Bytes {
            fn as_ref(&self) -> &[u8] {
                &*self.0
            }
        }
        let (mut output, _theirs) = pair();
        let owner = Arc::new(*b"bytes");
        let mut outbox = Outbox::default();
        outbox.push_shared(Box::new(Bytes(owner.clone())), 0, 5);
        output.put_outbox(outbox);
        output.leave();
        let monitors = output.watched(7).shared.upgrade();
        drop(output);
        assert!(monitors.is_some() && Arc::strong_count(&owner) == 1, "this thread has dropped them");
    }

    #[test]
    fn an_idle_connection_has_a_small_one() {
        assert!(size_of::<Shared>() <= 96, "{}", size_of::<Shared>());
    }
}
