//! All that moves bytes to the client of one exchange.
//!
//! ```text
//!   send ──▶ stream: what the socket takes at once
//!     │ the rest
//!     ▼
//!   outbox ──flush──▶ stream          between two pieces of a stream it lies in the cork (`corked.rs`)
//! ```
//!
//! Before the first byte the claim is asked (`claim.rs`): the monitor may have answered. After a loss (`link.rs`)
//! everything is dropped.
use super::claim::HeldClaim;
use super::cork::Cork;
use super::corked::Corked;
use super::link::{Link, Loss};
use super::outbox::{Flush, Outbox, SharedBytes};
use super::overflow::{self, Overflow, Store, Unstored};
use super::patience::Patience;
use crate::stream::Stream;
use crate::tls::Facts;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice};
use std::sync::Arc;

mod first_byte;

/// What became of bytes given to an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// With the kernel, or queued below the mark: go on.
    Accepted,
    /// The client is too far behind: call [`Engine::make_room`](crate::Engine::make_room) before the next piece.
    OverMark,
    /// The client reads no more.
    Gone,
}

/// Larger pieces are sent from where they are, others copied behind the head.
const COPY: usize = 16 * 1024;

/// The sending side of an exchange: nothing else writes to its client.
///
/// Its module sees three fields, to take an exchange apart in place: a copy of the output would cost every request.
pub struct Output {
    /// With `request_timeout`: whether the reply is still ours. Dropped before the stream.
    claim: Option<HeldClaim>,
    /// Dropped before the stream, too, which it has lent.
    corked: Corked,
    pub(super) stream: Stream,
    link: Link,
    pub(super) outbox: Outbox,
    /// Bytes in the outbox beyond which the application waits.
    mark: usize,
    /// How the client takes what was put on disk.
    behind: Option<Patience>,
    /// A file of which the client has taken all, to be closed.
    idle_file: Option<Box<Overflow>>,
    /// Owners of bytes that are sent or on disk.
    pub(super) spent: Vec<SharedBytes>,
    /// Bytes sent at once; those that had to wait are counted by the outbox.
    sent: u64,
    /// A whole answer may be held back and sent with others (`Reactor::send_held`); afterwards, whether it was.
    hold: bool,
}

impl Output {
    #[inline]
    pub fn new(stream: Stream) -> Output {
        Output {
            claim: None,
            corked: Corked::default(),
            stream,
            link: Link::default(),
            outbox: Outbox::default(),
            mark: usize::MAX,
            behind: None,
            idle_file: None,
            spent: Vec::new(),
            sent: 0,
            hold: false,
        }
    }

    /// The connection, to be read from.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// What is known of the session, if the client speaks TLS.
    pub fn facts(&self) -> Option<&Arc<Facts>> {
        self.stream.facts()
    }

    /// For pollers, and for what may only look.
    #[inline]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// From now on this speaks to another stream. The one of before, and what its client has not taken; `None`: a part of that is a
    /// file's, and all stays as it is.
    #[cold]
    pub fn redirect(&mut self, other: Stream) -> Option<(Stream, Outbox)> {
        self.close_cork();
        if self.outbox.has_file() {
            return None;
        }
        self.sent += self.outbox.sent();
        let stream = std::mem::replace(&mut self.stream, other);
        Some((stream, std::mem::take(&mut self.outbox)))
    }

    /// Bytes of the client that have come and were not read.
    pub fn unread(&self) -> u64 {
        self.stream.unread()
    }
}

/// Sending.
impl Output {
    /// Sends `out`, `piece` and `after`, in one system call where possible. `out` is scratch: small pieces are copied to it.
    ///
    /// `keep` is called if the bytes of the piece must outlive this call; it gives an owner of the same bytes.
    #[inline]
    pub fn send(&mut self, out: &mut Vec<u8>, piece: &[u8], after: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        if piece.len() > COPY {
            return self.send_apart(out, piece, after, keep);
        }
        if let Some(lost) = self.begin() {
            return lost;
        }
        out.extend_from_slice(piece);
        out.extend_from_slice(after);
        let mut done = 0;
        if self.outbox.is_empty() {
            if out.is_empty() {
                return Sent::Accepted;
            }
            match self.stream.send(out) {
                Ok(count) => done = count,
                Err(Errno::AGAIN) => {}
                Err(_) => return self.lose(Loss::Gone),
            }
            self.sent += done as u64;
            if done == out.len() {
                return Sent::Accepted;
            }
        }
        self.queue_rest(done, out, None, keep)
    }

    /// The same without a copy of the piece, whatever its size.
    pub fn send_apart(&mut self, first: &[u8], piece: &[u8], after: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        if let Some(lost) = self.begin() {
            return lost;
        }
        let mut done = 0;
        if self.outbox.is_empty() {
            let slices = [IoSlice::new(first), IoSlice::new(piece), IoSlice::new(after)];
            match self.stream.send_slices(&slices[..if after.is_empty() { 2 } else { 3 }]) {
                Ok(count) => done = count,
                Err(Errno::AGAIN) => {}
                Err(_) => return self.lose(Loss::Gone),
            }
            self.sent += done as u64;
            if done == first.len() + piece.len() + after.len() {
                return Sent::Accepted;
            }
        }
        self.queue_rest(done, first, Some((piece, after)), keep)
    }

    /// Sends a piece of which more are to come. One that comes right after another is gathered in the cork.
    #[inline]
    pub fn send_piece(
        &mut self,
        out: &mut Vec<u8>,
        piece: &[u8],
        after: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        self.uncork();
        if self.outbox.has_idle_file() {
            self.idle_file = self.outbox.take_overflow();
        }
        let sent = if self.corked.is_rapid(piece) {
            self.gather([out, piece, after])
        } else {
            self.send(out, piece, after, keep)
        };
        if sent == Sent::Accepted {
            self.recork();
        }
        sent
    }

    /// Sends `count` bytes of a file from `offset`, between other bytes.
    pub fn send_file(&mut self, out: &[u8], (file, offset, count): (OwnedFd, u64, u64), after: &[u8]) -> Sent {
        if let Some(lost) = self.begin() {
            return lost;
        }
        self.outbox.push(out);
        self.outbox.push_file(file, offset, count);
        self.outbox.push(after);
        self.hold = false;
        self.flush()
    }

    /// The same for the last of a body, of which only what lies in memory is sent: the disk is not waited for, nor does a
    /// client that reads as fast as we send keep the thread.
    pub fn leave_file(&mut self, out: &[u8], file: (OwnedFd, u64, u64), after: &[u8]) -> Sent {
        self.outbox.leave_files();
        self.send_file(out, file, after)
    }

    /// Sends what fits, and nothing if something waits already: for interim responses that may be left out.
    pub fn send_optional(&mut self, bytes: &[u8]) {
        if self.outbox.is_empty() {
            self.sent += self.stream.send_once(bytes) as u64;
        }
    }

    /// Leaves bytes in the outbox until [`Output::flush`].
    pub fn queue(&mut self, bytes: &[u8]) {
        self.outbox.push(bytes);
    }

    /// Sends what waits, as far as the socket takes it.
    pub fn flush(&mut self) -> Sent {
        match self.outbox.flush(&mut self.stream, &mut self.spent) {
            Flush::Empty => Sent::Accepted,
            Flush::Blocked if self.outbox.in_memory() > self.mark => Sent::OverMark,
            Flush::Blocked => Sent::Accepted,
            Flush::Gone | Flush::Truncated => self.lose(Loss::Gone),
        }
    }

    /// Before anything is sent: what is told instead, where that is of no use or not ours to do.
    #[inline]
    fn begin(&mut self) -> Option<Sent> {
        if self.link.is_lost() {
            return Some(Sent::Gone);
        }
        if !self.may_write() {
            return Some(self.lose(Loss::Gone));
        }
        self.uncork();
        None
    }

    /// Queues what a send did not take: the first bytes as a copy, the piece by reference, what follows it.
    #[cold]
    fn queue_rest(
        &mut self,
        done: usize,
        first: &[u8],
        apart: Option<(&[u8], &[u8])>,
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        self.outbox.push(&first[done.min(first.len())..]);
        if let Some((piece, after)) = apart {
            let at = done.saturating_sub(first.len());
            if at < piece.len() {
                self.outbox.push_shared(keep(), at, piece.len());
            }
            self.outbox.push(&after[at.saturating_sub(piece.len())..]);
        }
        self.flush()
    }

    /// Queues a piece, and sends all that waits if it is enough.
    fn gather(&mut self, parts: [&[u8]; 3]) -> Sent {
        self.outbox.push_all(parts);
        if self.outbox.in_memory() >= super::cork::FULL { self.flush() } else { Sent::Accepted }
    }
}

/// The end of a reply, and of the connection.
impl Output {
    /// A whole answer may be held back.
    #[inline]
    pub fn may_hold(&mut self, may: bool) {
        self.hold = may;
    }

    /// Leaves a whole answer in the outbox, if that may be. Else it is to be sent.
    #[inline]
    pub fn hold_back(&mut self, parts: [&[u8]; 3]) -> bool {
        let [_, piece, _] = parts;
        self.hold =
            self.hold && piece.len() <= COPY && self.outbox.is_empty() && !self.corked.is_open() && self.may_write();
        if self.hold {
            self.outbox.push_all(parts);
        }
        self.hold
    }

    /// The reply has its end. `reuse`: the next one may follow.
    #[inline]
    pub fn conclude(&mut self, reuse: bool) {
        self.hold &= !self.outbox.is_empty() && !self.corked.is_open();
        self.close_cork();
        self.link.set_reuse(reuse);
    }

    /// The connection ends with what was given so far.
    pub fn set_last(&mut self) {
        self.link.set_reuse(false);
    }

    #[inline]
    pub fn link(&self) -> Link {
        self.link
    }

    pub fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }

    /// What is written from now on is dropped, as is what waits.
    #[cold]
    pub fn lose(&mut self, why: Loss) -> Sent {
        self.close_cork();
        self.link.lose(why);
        self.outbox.clear(&mut self.spent);
        Sent::Gone
    }

    /// Owners of bytes that are sent or on disk. To be dropped by a thread that holds the GIL.
    pub fn take_spent(&mut self) -> Vec<SharedBytes> {
        std::mem::take(&mut self.spent)
    }
}

/// The cork of a reply that comes in many pieces.
impl Output {
    #[inline]
    pub fn has_cork(&self) -> bool {
        self.corked.is_open()
    }

    pub fn open_cork(&mut self, cork: &Arc<Cork>) {
        self.corked.open(cork, &self.stream);
        self.recork();
    }

    /// Whether the monitor is to be told that bytes wait in the cork, once.
    #[inline]
    pub fn take_cork_news(&mut self) -> bool {
        self.corked.take_news()
    }

    /// When the last piece came of which more were to come.
    #[inline]
    pub fn last_piece(&self) -> u64 {
        self.corked.last_piece()
    }

    /// Leaves what waits to the monitor, until the next piece comes.
    #[inline]
    pub fn recork(&mut self) {
        self.corked.put(&mut self.outbox);
    }

    /// Takes back what was left to the monitor.
    #[inline]
    pub fn uncork(&mut self) {
        self.corked.take(&mut self.outbox, &mut self.spent);
    }

    #[inline]
    pub fn close_cork(&mut self) {
        self.corked.close(&mut self.outbox, &mut self.spent);
    }
}

/// What the client has not taken.
impl Output {
    /// What the outbox may hold.
    #[inline]
    pub fn bound(&mut self, mark: usize) {
        self.mark = mark;
    }

    /// The application goes on when no more bytes than this are left.
    #[inline]
    pub fn low(&self) -> usize {
        self.mark / 4
    }

    /// Whether the client has not taken all that was written.
    #[inline]
    pub fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// The same of a complete reply that was not held back.
    #[inline]
    pub fn has_rest(&self) -> bool {
        !self.outbox.is_empty() && !self.hold
    }

    /// Whether the rest waits for other answers, and not for the client.
    #[inline]
    pub fn is_held_back(&self) -> bool {
        self.hold
    }

    /// Bytes that wait in memory.
    #[inline]
    pub fn in_memory(&self) -> usize {
        self.outbox.in_memory()
    }

    /// Bytes that wait on disk.
    pub fn in_file(&self) -> u64 {
        self.outbox.in_file()
    }

    /// Bytes sent that had to wait.
    pub fn queued_sent(&self) -> u64 {
        self.outbox.sent()
    }

    /// All bytes sent.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.sent + self.outbox.sent()
    }

    /// Counts what waits in memory, from now on, for all responses.
    pub fn share(&mut self, held: &Arc<overflow::Held>) {
        self.outbox.share(held);
    }

    /// The client is over the mark. One that has taken too little since its file was begun has not won time by each piece
    /// that was put there.
    pub fn patience_since_file(&mut self) -> Option<Patience> {
        self.behind.take().filter(|_| self.outbox.in_file() > 0)
    }

    /// Puts on disk what waits in memory, its first bytes excepted.
    pub fn store(&mut self, store: &Store<'_>) -> Result<(), Unstored> {
        let keep = self.low();
        self.outbox.store(store, keep, &mut self.spent)
    }

    /// The application goes on, since what was too much is on disk.
    pub fn goes_on(&mut self, patience: Patience) {
        self.behind = Some(patience);
        self.recork();
    }

    /// The file of a response whose client has caught up. To be dropped without the GIL: closing a long file takes its time.
    #[inline]
    pub fn take_idle_file(&mut self) -> Option<Box<Overflow>> {
        self.idle_file.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::claim::Claim;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use tricorn_proto::message::Method;

    fn pair() -> (Output, UnixStream) {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("sockets");
        let peer = UnixStream::from(b);
        peer.set_nonblocking(false).expect("socket");
        (Output::new(Stream::new(a)), peer)
    }

    fn none() -> SharedBytes {
        Box::new(Vec::new())
    }

    #[test]
    fn what_does_not_fit_follows_in_order_however_it_was_given() {
        let (mut output, mut peer) = pair();
        let piece: Vec<u8> = (0..2_000_000u32).map(|nr| (nr % 251) as u8).collect();
        let kept = piece.clone();
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            peer.read_to_end(&mut got).expect("socket");
            got
        });
        output.queue(b"held ");
        assert_eq!(output.send(&mut b"head ".to_vec(), &piece, b" after", || Box::new(kept)), Sent::Accepted);
        output.send(&mut b"small".to_vec(), b" piece", b"", none);
        while output.is_behind() {
            assert_ne!(output.flush(), Sent::Gone);
        }
        let total = output.sent();
        drop(output);
        let got = reader.join().expect("reader");
        assert_eq!(got.len() as u64, total);
        assert_eq!(got, [b"held head ".as_slice(), &piece, b" aftersmall piece"].concat());
    }

    #[test]
    fn a_client_that_is_behind_is_over_the_mark_and_near_again_at_a_quarter() {
        let (mut output, _peer) = pair();
        output.bound(1000);
        assert_eq!(output.low(), 250);
        let sent = output.send(&mut Vec::new(), &vec![0; 4 << 20], b"", || Box::new(vec![0; 4 << 20]));
        assert_eq!(sent, Sent::OverMark);
        assert!(output.is_behind() && output.has_rest());
    }

    #[test]
    fn after_a_loss_nothing_is_sent_nor_kept() {
        let (mut output, peer) = pair();
        drop(peer);
        assert_eq!(output.send(&mut b"anybody there?".to_vec(), b"", b"", none), Sent::Gone);
        output.set_last();
        assert_eq!((output.link(), output.is_behind()), (Link::Lost(Loss::Gone), false));
        assert_eq!(output.send_apart(b"and", b" now?", b"", none), Sent::Gone);
    }

    #[test]
    fn what_the_monitor_has_answered_gets_no_second_answer() {
        for bytes in [b"".as_slice(), &[b'x'; 2 * COPY]] {
            let (mut output, mut peer) = pair();
            let claim = Arc::new(Claim::default());
            output.open_claim(&claim, Method::Get);
            output.may_hold(true);
            assert!(claim.take(b"late"), "the date");
            assert!(!output.hold_back([b"whole", b"", b""]), "an answer to be sent later is one, too");
            assert_eq!(output.send(&mut b"application".to_vec(), bytes, b"", none), Sent::Gone);
            assert!(output.end_claim() && !output.is_answered_for());
            output.answered_for(4);
            assert!(output.is_answered_for());
            assert_eq!(output.sent(), 4);
            drop(output);
            let mut got = String::new();
            peer.read_to_string(&mut got).expect("socket");
            assert_eq!(got.as_bytes(), super::super::claim::late_page(b"late", Method::Get, b""));
        }
    }

    #[test]
    fn only_a_small_answer_that_is_whole_is_held_back() {
        let (mut output, _peer) = pair();
        assert!(!output.hold_back([b"head", b"", b""]), "not allowed");
        output.may_hold(true);
        assert!(!output.hold_back([b"head", &[0; COPY + 1], b""]) && !output.is_behind());
        output.may_hold(true);
        assert!(output.hold_back([b"head", b"body", b""]));
        output.conclude(true);
        assert!(output.is_held_back() && output.is_behind() && !output.has_rest());
        assert!(output.link().may_reuse());
    }
}
