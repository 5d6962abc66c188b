//! One request on its way through the application. It owns the socket: nobody else writes.

pub mod body;
pub mod buffers;
pub mod claim;
pub mod cork;
mod corked;
pub mod incoming;
pub mod lost;
pub mod outbox;
pub mod overflow;
mod pace;
pub mod patience;
pub mod responses;
pub mod room;
mod settle;
pub mod timers;

use crate::clock::{self, WallText};
use crate::peer::Peer;
use crate::sys::poll::Token;
use body::Body;
use buffers::Request;
use cork::Cork;
use lost::Lease;
use outbox::{Flush, Outbox, SharedBytes};
use overflow::Overflow;
use pace::Pace;
use patience::Patience;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{SendFlags, send};
use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;
use timers::Timers;
use tricorn_proto::exchange::error_page::{self, Page};
use tricorn_proto::exchange::{End, Fault, HeadInputs};
use tricorn_proto::http1::Receiver;

/// Values a gateway keeps with a connection (addresses as Python strings). Made and dropped by the gateway's threads only.
pub type Attachment = Box<dyn Any + Send + Sync>;

/// What became of bytes given to an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// With the kernel, or queued below the mark: go on.
    Accepted,
    /// The client is too far behind: call [`Engine::make_room`](crate::Engine::make_room) before the next piece.
    OverMark,
    /// Nobody is there to read any more.
    Gone,
}

/// When things happened (monotonic nanoseconds) and how much was sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timing {
    /// The application was called.
    pub started: u64,
    /// It was done, but for the last write.
    pub answered: u64,
    /// Bytes sent at once; those that had to wait are counted by their outbox.
    pub sent: u64,
    /// How long the request waited before it was called.
    pub queue: u64,
    /// The application let an exception out.
    pub app_failed: bool,
    /// The client did not take the reply in time.
    pub(crate) timed_out: bool,
}

pub struct Exchange {
    /// With `request_timeout`: whether the reply is still ours. Dropped before the socket.
    pub(crate) claim: Option<claim::Held>,
    pub(crate) token: Token,
    pub(crate) socket: OwnedFd,
    pub request: Box<Request>,
    pub peer: Peer,
    pub listener: u16,
    pub attachment: Option<Attachment>,
    /// The peer may claim things by forwarded headers.
    pub trusted: bool,
    /// Of a body that is still to come: where its reading stands.
    pub(crate) receiver: Receiver,
    pace: Pace,
    /// On an event loop: until when it waits for what.
    pub(crate) timers: Timers,
    pub(crate) outbox: Outbox,
    /// Bytes in the outbox beyond which the application waits; it goes on when no more than `low` are left.
    pub(crate) mark: usize,
    pub(crate) low: usize,
    /// How the client takes what was put on disk.
    pub(crate) behind: Option<Patience>,
    /// A file of which the client has taken all, to be closed.
    pub(crate) idle_file: Option<Box<Overflow>>,
    pub(crate) spent: Vec<SharedBytes>,
    pub timing: Timing,
    /// The clock's texts at the time the request was taken.
    pub wall: WallText,
    pub(crate) gone: bool,
    /// The application has taken the socket for itself.
    pub(crate) taken: bool,
    /// The connection speaks another protocol since the reply.
    pub(crate) switched: bool,
    /// The monitor has answered in our place.
    pub(crate) answered_for: bool,
    pub(crate) reuse: bool,
    /// The app thread this exchange is with.
    pub(crate) slot: usize,
    /// A whole answer may be held back and sent with others (`Reactor::send_held`); afterwards, whether it was.
    pub(crate) hold: bool,
    /// What is the reactor's comes back to it, whatever becomes of the exchange.
    pub(crate) lease: Lease,
    /// Open once the reply turned out to come in many pieces.
    cork: Option<Arc<Cork>>,
    /// The outbox is in the cork.
    corked: bool,
    /// When the last piece came.
    last_piece: u64,
}

/// Pieces up to this size are copied behind the head and sent with one plain `send`; larger ones stay where they are.
const COPY: usize = 16 * 1024;

impl Exchange {
    pub(crate) fn new(
        token: Token,
        socket: OwnedFd,
        mut request: Box<Request>,
        peer: Peer,
        listener: u16,
        attachment: Option<Attachment>,
        wall: WallText,
    ) -> Box<Exchange> {
        let head = &request.head;
        let (kind, version, keep_alive) = (head.kind, head.version, head.keep_alive);
        request.reply.begin(kind, version, keep_alive);
        let timing = Timing { started: request.complete, ..Timing::default() };
        Box::new(Exchange {
            claim: None,
            token,
            socket,
            request,
            peer,
            listener,
            attachment,
            trusted: false,
            receiver: Receiver::default(),
            pace: Pace::default(),
            timers: Timers::default(),
            outbox: Outbox::default(),
            mark: usize::MAX,
            low: usize::MAX,
            behind: None,
            idle_file: None,
            spent: Vec::new(),
            timing,
            wall,
            gone: false,
            taken: false,
            switched: false,
            answered_for: false,
            reuse: false,
            slot: 0,
            hold: false,
            lease: Lease::default(),
            cork: None,
            corked: false,
            last_piece: 0,
        })
    }

    pub fn slot(&self) -> usize {
        self.slot
    }

    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Our end's address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.socket).ok()?).ok()
    }

    /// The path of our end, if it is a unix socket that has one.
    pub fn local_path(&self) -> Option<Vec<u8>> {
        let address = rustix::net::SocketAddrUnix::try_from(rustix::net::getsockname(&self.socket).ok()?).ok()?;
        address.path_bytes().map(<[u8]>::to_vec)
    }

    pub fn take_body(&mut self) -> Body {
        std::mem::take(&mut self.request.body)
    }

    /// The client is known to be gone; what is written from now on is dropped.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// The application is done; what remains is the last write.
    pub fn answered(&mut self) {
        self.timing.answered = clock::now();
    }

    /// Microseconds since the request's first byte, for the access log.
    pub fn micros(&self, now: u64) -> u64 {
        now.saturating_sub(self.request.first_byte) / 1000
    }

    /// Sends a piece of the body, and the head before the first one.
    ///
    /// `keep` is called if the bytes must outlive this call; it gives an owner of the same bytes.
    pub(crate) fn write(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        self.hold = false;
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            request.reply.write_head(&mut request.out, inputs);
        }
        let count = request.reply.body(&mut request.out, piece.len() as u64) as usize;
        let after = if count > 0 { request.reply.after_body() } else { b"" };
        let piece = &piece[..count.min(piece.len())];
        self.uncork();
        if self.outbox.has_idle_file() {
            self.idle_file = self.outbox.take_overflow();
        }
        let sent = if self.is_rapid(piece) { self.gather(piece, after) } else { self.send(piece, after, keep) };
        if sent == Sent::Accepted {
            self.recork();
        }
        sent
    }

    /// Sends a piece that is all the rest of the body, and ends the reply with it.
    pub fn write_last(&mut self, inputs: &HeadInputs<'_>, piece: &[u8], keep: impl FnOnce() -> SharedBytes) -> End {
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            request.reply.write_head(&mut request.out, inputs);
        }
        let count = request.reply.body(&mut request.out, piece.len() as u64) as usize;
        let mut tail = [0u8; 16];
        let mut tail_len = 0;
        if count > 0 {
            let after = request.reply.after_body();
            tail[..after.len()].copy_from_slice(after);
            tail_len = after.len();
        }
        let mut last = Vec::new();
        let end = request.reply.end(&mut last);
        // Only trailers make it longer, and those come after the last piece (`end`).
        if let Some(room) = tail.get_mut(tail_len..tail_len + last.len()) {
            room.copy_from_slice(&last);
            tail_len += last.len();
        }
        let piece = &piece[..count.min(piece.len())];
        if self.hold && piece.len() <= COPY && self.outbox.is_empty() && self.cork.is_none() && self.may_write() {
            for part in [&self.request.out, piece, &tail[..tail_len]] {
                self.outbox.push(part);
            }
        } else {
            self.hold = false;
            self.send(piece, &tail[..tail_len], keep);
        }
        self.conclude(end);
        end
    }

    /// Ends the reply after its last piece.
    pub fn end(&mut self) -> End {
        let request = &mut *self.request;
        request.out.clear();
        let end = request.reply.end(&mut request.out);
        self.send(b"", b"", || Box::new(Vec::new()));
        self.conclude(end);
        end
    }

    /// The answer must not be held back, to be sent with others.
    pub fn send_at_once(&mut self) {
        self.hold = false;
    }

    /// The application failed, for the scoreboard.
    pub fn app_failed(&mut self) {
        self.timing.app_failed = true;
    }

    /// Answers with the server's own error page, in place of a reply that has not begun, and closes.
    pub fn answer_error(&mut self, status: u16, message: &str) {
        self.answer_error_with(status, message, b"");
    }

    /// The same with more fields, each with its line end.
    pub fn answer_error_with(&mut self, status: u16, message: &str, fields: &[u8]) {
        self.answered();
        let request = &mut *self.request;
        let line = format!("{status} {}", error_page::reason(status));
        // The reply counts for the log and the scoreboard; the page is a response of its own.
        let _ = request.reply.status(line.as_bytes());
        request.out.clear();
        let mut fields = fields.to_vec();
        fields.extend_from_slice(&request.reply.request_id_field());
        self.wall.refresh(self.timing.answered);
        let (date, method) = (self.wall.date(), request.head.kind);
        Page { status, message, fields: &fields, date, method, keep: false }.write(&mut request.out);
        self.send(b"", b"", || Box::new(Vec::new()));
        self.reuse = false;
    }

    /// Gives the reply up: what the client has is incomplete, and the connection says so by closing.
    pub fn abort(&mut self) {
        self.request.out.clear();
        self.send(b"", b"", || Box::new(Vec::new()));
        self.close_cork();
        self.reuse = false;
    }

    fn conclude(&mut self, end: End) {
        self.hold &= !self.outbox.is_empty() && self.cork.is_none();
        self.close_cork();
        self.reuse = end == End::Reuse && !self.gone && !self.taken;
    }

    /// Sends `length` bytes of a file from `offset` as one piece of the body.
    pub fn write_file(&mut self, inputs: &HeadInputs<'_>, file: OwnedFd, offset: u64, length: u64) -> Sent {
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            request.reply.write_head(&mut request.out, inputs);
        }
        let count = request.reply.body(&mut request.out, length);
        let after = if count > 0 { request.reply.after_body() } else { b"" };
        if self.gone {
            return Sent::Gone;
        }
        if !self.may_write() {
            return self.lost();
        }
        self.uncork();
        self.outbox.push(&self.request.out);
        self.outbox.push_file(file, offset, count);
        self.outbox.push(after);
        self.hold = false;
        self.flush()
    }

    /// An interim response (103); nothing is sent where the protocol or the state of the reply does not allow it.
    pub fn interim<'f>(
        &mut self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<Sent, Fault> {
        let request = &mut *self.request;
        request.out.clear();
        request.reply.interim(&mut request.out, status, fields)?;
        let sent = self.send(b"", b"", || Box::new(Vec::new()));
        if let Some(claim) = self.claim.as_ref().filter(|_| self.outbox.is_empty() && !self.request.reply.head_sent()) {
            claim.reopen();
        }
        Ok(sent)
    }

    /// Sends `request.out`, `piece` and `after`, in one system call where possible.
    pub(crate) fn send(&mut self, piece: &[u8], after: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        if self.gone {
            return Sent::Gone;
        }
        if !self.may_write() {
            return self.lost();
        }
        self.uncork();
        let small = piece.len() <= COPY;
        let out = &mut self.request.out;
        if small {
            out.extend_from_slice(piece);
            out.extend_from_slice(after);
        }
        let mut done = 0;
        if self.outbox.is_empty() {
            let result = if small {
                if out.is_empty() {
                    return Sent::Accepted;
                }
                retry(|| send(&self.socket, out, SendFlags::NOSIGNAL | SendFlags::DONTWAIT))
            } else {
                let slices = [IoSlice::new(out), IoSlice::new(piece), IoSlice::new(after)];
                retry(|| io::writev(&self.socket, &slices))
            };
            match result {
                Ok(count) => done = count,
                Err(Errno::AGAIN) => {}
                Err(_) => return self.lost(),
            }
            self.timing.sent += done as u64;
            let total = if small { out.len() } else { out.len() + piece.len() + after.len() };
            if done == total {
                return Sent::Accepted;
            }
        }
        self.queue_rest(done, if small { None } else { Some((piece, after)) }, keep)
    }

    /// Queues what a send did not take: the head's copy, the piece by reference, what follows it.
    #[cold]
    fn queue_rest(&mut self, done: usize, apart: Option<(&[u8], &[u8])>, keep: impl FnOnce() -> SharedBytes) -> Sent {
        let head = self.request.out.len();
        self.outbox.push(&self.request.out[done.min(head)..]);
        if let Some((piece, after)) = apart {
            let at = done.saturating_sub(head);
            if at < piece.len() {
                self.outbox.push_shared(keep(), at, piece.len());
            }
            self.outbox.push(&after[at.saturating_sub(piece.len())..]);
        }
        self.flush()
    }

    pub(crate) fn flush(&mut self) -> Sent {
        match self.outbox.flush(self.socket.as_fd(), &mut self.spent) {
            Flush::Empty => Sent::Accepted,
            Flush::Blocked if self.outbox.in_memory() > self.mark => Sent::OverMark,
            Flush::Blocked => Sent::Accepted,
            Flush::Gone | Flush::Truncated => self.lost(),
        }
    }

    #[cold]
    pub(crate) fn lost(&mut self) -> Sent {
        self.close_cork();
        self.gone = true;
        self.reuse = false;
        self.outbox.clear(&mut self.spent);
        Sent::Gone
    }
}

pub(crate) fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}
