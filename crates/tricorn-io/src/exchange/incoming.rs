//! The body of a request that has begun before it came, and the bytes of a connection that speaks something else by now.
//!
//! Nothing is read that nobody asks for: what the application does not take, the client's kernel keeps.
use super::body::Body;
use super::outbox::SharedBytes;
use super::timers::Timer;
use super::{Exchange, Sent};
use crate::clock::SECOND;
use crate::config::Config;
use crate::sys::fds::recv_into;
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use tricorn_proto::http1::{Refusal, RefusalKind, Step};

/// What asking for more came to.
#[derive(Debug)]
pub enum Incoming {
    /// Bytes were added to the end of the buffer given; none only if this is the `last` of them.
    Bytes { last: bool },
    /// There are none now: an event will tell ([`crate::Engine::attend`]).
    Wait,
    /// The client has left.
    Gone,
    /// The body is not as it should be (chunks, length): nothing more is read from this connection.
    Refused(Box<Refusal>),
}

/// Most bytes of a body read at a time.
pub const PIECE: usize = 128 * 1024;
/// Most of a body that nobody wanted is read to keep its connection.
const UNWANTED: usize = 256 * 1024;

/// RFC 9110 section 15.2.1.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Exchange {
    /// The rest of the body is still to come: [`Exchange::receive`]. What came with the head is in `request.body`.
    pub fn is_partial(&self) -> bool {
        self.request.partial
    }

    /// Reads what has come of the body, without waiting. A client that waits to be told so may send (100).
    pub fn receive(&mut self, config: &Config, out: &mut Vec<u8>) -> Incoming {
        if !self.request.partial {
            return Incoming::Bytes { last: true };
        }
        let before = out.len();
        loop {
            match self.decode(config, out) {
                Ok(true) => {
                    self.request.partial = false;
                    return Incoming::Bytes { last: true };
                }
                Ok(false) => {}
                Err(refusal) => return self.refused(refusal),
            }
            if out.len() > before {
                return Incoming::Bytes { last: false };
            }
            self.allow();
            match self.fill(out) {
                Ok(0) => return self.left(),
                Ok(_) if self.receiver.is_at_end() => {
                    self.request.partial = false;
                    return Incoming::Bytes { last: true };
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Incoming::Wait,
                Err(_) => return self.left(),
            }
            if out.len() > before {
                return Incoming::Bytes { last: false };
            }
        }
    }

    /// After a switch of protocols: adds what has come to `out`, up to `most` bytes of it.
    pub fn read_raw(&mut self, out: &mut Vec<u8>, most: usize) -> Incoming {
        out.reserve(most);
        loop {
            match recv_into(self.socket.as_fd(), out, most) {
                Ok(0) => return self.left(),
                Ok(_) => return Incoming::Bytes { last: false },
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Incoming::Wait,
                Err(_) => return self.left(),
            }
        }
    }

    /// After a switch of protocols: sends bytes as they are. `keep` as for [`crate::Engine::write`].
    pub fn write_raw(&mut self, bytes: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        self.request.out.clear();
        self.send(bytes, b"", keep)
    }

    /// The connection is known to be broken: what is written from now on is dropped.
    pub fn client_left(&mut self) {
        self.lost();
    }

    /// One read: of a body of known length straight to where it is wanted.
    fn fill(&mut self, out: &mut Vec<u8>) -> rustix::io::Result<usize> {
        let Some(left) = self.receiver.fixed_remaining() else {
            let input = &mut self.request.input;
            input.reserve(PIECE / 8);
            let room = input.capacity() - input.len();
            return recv_into(self.socket.as_fd(), input, room);
        };
        let room = PIECE.min(left as usize);
        out.reserve(room);
        let count = recv_into(self.socket.as_fd(), out, room)?;
        self.receiver.took_fixed(count as u64);
        Ok(count)
    }

    /// Takes the bytes at hand; whether the body is complete.
    fn decode(&mut self, config: &Config, out: &mut Vec<u8>) -> Result<bool, Box<Refusal>> {
        let request = &mut *self.request;
        loop {
            let unread = request.input.get_mut(request.start..).unwrap_or_default();
            let progress = self.receiver.advance(unread, &config.policy, false, &mut request.head)?;
            let from = request.start;
            request.start += progress.consumed;
            match progress.step {
                Step::Body(range) => out.extend_from_slice(&request.input[from + range.start..from + range.end]),
                Step::End => return Ok(true),
                Step::Head | Step::NeedMore => {
                    if request.start == request.input.len() {
                        request.input.truncate(request.head_end);
                        request.start = request.head_end;
                    }
                    return Ok(false);
                }
            }
        }
    }

    /// Tells a client that waits for it that it may send its body.
    fn allow(&mut self) {
        let head = &mut self.request.head;
        if std::mem::take(&mut head.expect_continue) && !self.request.reply.head_sent() && self.outbox.is_empty() {
            let sent = send(&self.socket, CONTINUE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            self.timing.sent += sent.unwrap_or(0) as u64;
        }
    }

    fn left(&mut self) -> Incoming {
        self.reuse = false;
        Incoming::Gone
    }

    fn refused(&mut self, refusal: Box<Refusal>) -> Incoming {
        self.reuse = false;
        Incoming::Refused(refusal)
    }

    /// The head of the reply is about to be written while some of the body is still to come: it says `Connection: close` if that
    /// is known. `is_whole`: the reply is complete, and the application reads nothing more.
    pub fn foresee_close(&mut self, config: &Config, is_whole: bool) {
        if !self.request.partial || self.request.reply.head_sent() {
            return;
        }
        // A client that waits for 100 is not told to send any more once it has its reply.
        let mut is_lost = self.request.head.expect_continue;
        if is_whole && !is_lost {
            self.reuse = true;
            self.end_of_body(config);
            is_lost = !self.reuse;
        }
        if is_lost {
            self.request.reply.close();
        }
    }

    /// The exchange is over: a connection whose request was not read to its end can be used again only if the rest is there.
    pub(crate) fn end_of_body(&mut self, config: &Config) {
        if !self.request.partial || !self.reuse {
            return;
        }
        // A client that was not told to send will not, or has begun without: nobody knows which.
        let mut unwanted = Vec::new();
        while self.reuse && !self.request.head.expect_continue && unwanted.len() < UNWANTED {
            match self.receive(config, &mut unwanted) {
                Incoming::Bytes { last: true } => break,
                Incoming::Bytes { last: false } => {}
                Incoming::Wait | Incoming::Gone | Incoming::Refused(_) => self.reuse = false,
            }
        }
        self.reuse &= !self.request.partial;
    }

    /// The same under an event loop, where nothing of the body is read for it: the library may still be at it. "A server MUST
    /// read the entire request message body or close the connection after sending its response" (RFC 9112 section 9.3).
    #[inline]
    pub fn foresee_close_unread(&mut self, is_whole: bool) {
        if self.request.partial && !self.request.reply.head_sent() && self.leaves_body(is_whole) {
            self.request.reply.close();
        }
    }

    /// Whether the rest of the body will not be read: the application answers without it, and it is not there to be thrown away.
    /// An application that reads while it answers is expected to read on; but no 100 is sent once the reply has begun.
    #[cold]
    fn leaves_body(&self, is_whole: bool) -> bool {
        let reads_on = !is_whole && matches!(self.request.body, Body::Empty);
        self.request.head.expect_continue || !reads_on && !self.is_rest_there()
    }

    /// Whether all the rest of the body is there to be read when the exchange is over.
    fn is_rest_there(&self) -> bool {
        let Some(left) = self.receiver.fixed_remaining() else { return false };
        let there = rustix::io::ioctl_fionread(&self.socket).unwrap_or(0);
        left <= UNWANTED as u64 && left <= there
    }

    /// The application waits for the client's bytes from now on: until when it may have to.
    pub fn await_body(&mut self, config: &Config, now: u64) -> u64 {
        self.pace.wait(&config.body_rate(), now)
    }

    /// Whether the application waits for the client's bytes.
    pub fn awaits_body(&self) -> bool {
        self.pace.is_waiting()
    }

    /// The wait is over, with so many bytes.
    pub fn body_came(&mut self, count: usize, now: u64) {
        self.stop_timer(Timer::Body);
        self.pace.came(count, now);
    }

    /// The timer's wait is over, or of no interest any more.
    pub fn stop_timer(&mut self, timer: Timer) {
        self.timers.stop(timer);
    }

    /// The time for the body is over: what the client is told, unless the reply has begun. `None`: bytes are there, and it was
    /// not the client who took so long.
    pub fn body_is_late(&mut self, config: &Config) -> Option<Refusal> {
        if !ready(self.socket.as_fd(), PollFlags::IN, 0).is_empty() {
            return None;
        }
        self.reuse = false;
        Some(late_body(self.pace.bytes(), self.pace.is_slow(&config.body_rate()), config))
    }
}

/// What the client of a late body is told.
pub(crate) fn late_body(length: u64, is_slow: bool, config: &Config) -> Refusal {
    let detail = if is_slow {
        format!(" ({length} bytes so far, slower than {} bytes/s)", config.body_min_rate)
    } else {
        format!(" ({length} bytes so far, and no more for {} s)", config.body_timeout / SECOND)
    };
    Refusal::new(RefusalKind::BodyTimeout, detail)
}
