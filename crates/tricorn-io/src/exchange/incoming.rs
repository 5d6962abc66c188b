//! The body of a request that has begun before it came, and the bytes of a connection that speaks something else by now.
//!
//! The body is read on demand. What the application does not take stays in the client's kernel: TCP flow control stops the client.
use super::body::Body;
use super::body_reader::{Filled, PIECE};
use super::encoding::allowance;
use super::link::Loss;
use super::outbox::SharedBytes;
use super::timers::Timer;
use super::{Exchange, Sent};
use crate::clock::SECOND;
use crate::config::Config;
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::io::Errno;
use tricorn_proto::message::{Refusal, RefusalKind};

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

/// A wait for more of the body.
#[derive(Debug)]
pub enum Awaited {
    /// Until that time (monotonic nanoseconds).
    Until { due: u64, is_new: bool },
    /// The client has had its time: what it is told, unless the reply has begun.
    Late(Box<Refusal>),
}

/// So much of a body that the application has not taken is read to keep its connection,
const UNWANTED: usize = 256 * 1024;
/// as far as it has come by then: in so many looks.
const LOOKS: usize = 4;

impl Exchange {
    /// The rest of the body is still to come: [`Exchange::receive`]. What came with the head is in `request.body`.
    pub fn is_partial(&self) -> bool {
        self.request.partial
    }

    /// Reads all that has come of the body, up to [`PIECE`] bytes, without waiting: what came with the head, and then over the borders
    /// of chunks and reads. Framing counts as well, of which there may be much more. A client that waits to be told so may send (100).
    pub fn receive(&mut self, config: &Config, out: &mut Vec<u8>) -> Incoming {
        let (before, end) = (out.len(), self.request.received + PIECE as u64);
        match std::mem::take(&mut self.request.body) {
            Body::Memory(first) if self.request.partial => out.extend_from_slice(&first),
            other => self.request.body = other,
        }
        while self.request.partial {
            let count = out.len() - before;
            if count >= PIECE || count > 0 && self.request.received >= end {
                break;
            }
            self.allow();
            let room = (&mut *out, PIECE - count);
            let Exchange { lane, body, request, .. } = self;
            let Filled { result, wanted } = match body.read(lane.stream(), request, &config.policy, room) {
                Ok(filled) => filled,
                Err(refusal) => return self.refused(refusal),
            };
            if let Some(answer) = body.take_answer() {
                lane.send_optional(&answer);
            }
            request.received += result.unwrap_or(0) as u64;
            request.partial = !body.is_at_end();
            // A read that brings less than was asked for has drained the socket, but may stand before the end of the connection:
            // only a look that brings nothing may lead to a wait.
            let came = out.len() > before;
            match result {
                Err(Errno::INTR) => {}
                Ok(read) if read == wanted => {}
                Ok(1..) if !came => {}
                _ if came || !self.request.partial => break,
                Err(Errno::AGAIN) => return Incoming::Wait,
                Ok(_) | Err(_) => return self.left(),
            }
        }
        Incoming::Bytes { last: !self.request.partial }
    }

    /// To read so many bytes of the body took as long as to copy this many.
    pub fn effort(&mut self, bytes: usize) -> usize {
        self.lane.stream().effort(bytes)
    }

    /// After a switch of protocols: adds what has come to `out`, up to `most` bytes of it.
    pub fn read_raw(&mut self, out: &mut Vec<u8>, most: usize) -> Incoming {
        out.reserve(most);
        loop {
            match self.lane.stream().read(out, most) {
                Ok(0) => return self.left(),
                Ok(count) => {
                    self.request.received += count as u64;
                    return Incoming::Bytes { last: false };
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Incoming::Wait,
                Err(_) => return self.left(),
            }
        }
    }

    /// After a switch of protocols: sends bytes as they are. `keep` as for [`crate::Engine::write`].
    pub(crate) fn write_raw(&mut self, bytes: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        self.request.out.clear();
        self.lane.send(&mut self.request.out, bytes, b"", keep)
    }

    /// Whether the client has closed its sending side, by a look at the connection: the event that tells it may come later.
    pub fn has_hung_up(&self) -> bool {
        let stream = self.lane.stream();
        match stream.channel() {
            Some(channel) => channel.look().gone,
            None => !ready(stream.socket(), PollFlags::RDHUP, 0).is_empty(),
        }
    }

    /// The connection is known to be broken: what is written from now on is dropped.
    pub fn client_left(&mut self) {
        self.lane.lose(Loss::Gone);
    }

    /// Tells a client that waits for it that it may send its body.
    fn allow(&mut self) {
        let head = &mut self.request.head;
        if std::mem::take(&mut head.expect_continue) && !self.request.reply.head_sent() {
            self.lane.send_optional(allowance(head.version));
        }
    }

    fn left(&mut self) -> Incoming {
        self.lane.set_last();
        Incoming::Gone
    }

    fn refused(&mut self, refusal: Box<Refusal>) -> Incoming {
        self.timing.refused = Some(refusal.kind);
        self.lane.set_last();
        Incoming::Refused(refusal)
    }

    /// The head of the reply is about to be written while some of the body is still to come: it says `Connection: close` if that
    /// is known. `is_whole`: the reply is complete, and the application reads nothing more.
    #[inline]
    pub fn foresee_close(&mut self, config: &Config, is_whole: bool) {
        if self.request.partial && !self.request.reply.head_sent() && self.loses_body(config, is_whole) {
            self.request.reply.close();
        }
    }

    /// Whether the rest of the body is lost with the connection.
    #[cold]
    fn loses_body(&mut self, config: &Config, is_whole: bool) -> bool {
        // A client that waits for 100 is not told to send any more once it has its reply.
        let mut is_lost = self.request.head.expect_continue;
        if is_whole && !is_lost {
            self.lane.set_reuse(true);
            self.end_of_body(config);
            is_lost = !self.lane.link().may_reuse();
        }
        is_lost
    }

    /// The exchange is over: a connection whose request was not read to its end can be used again only if the rest is there.
    pub(crate) fn end_of_body(&mut self, config: &Config) {
        if !self.request.partial || !self.lane.link().may_reuse() {
            return;
        }
        if self.body.lacks_only_its_end() {
            self.body.took_end();
            self.request.partial = false;
            return;
        }
        // A client that was not told to send will not, or has begun without: which of both cannot be told.
        let mut unwanted = Vec::new();
        for _ in 0..LOOKS {
            if !self.lane.link().may_reuse() || self.request.head.expect_continue || unwanted.len() >= UNWANTED {
                break;
            }
            match self.receive(config, &mut unwanted) {
                Incoming::Bytes { last: true } => break,
                Incoming::Bytes { last: false } => {}
                Incoming::Wait | Incoming::Gone | Incoming::Refused(_) => self.lane.set_last(),
            }
        }
        if self.request.partial {
            self.lane.set_last();
        }
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
        let Some(left) = self.body.fixed_remaining() else { return self.body.lacks_only_its_end() };
        let there = self.lane.stream().unread();
        left <= UNWANTED as u64 && left <= there
    }

    /// There was nothing of the body to be read ([`Incoming::Wait`]): the application waits for it from now on, or goes on
    /// waiting. What frames a body (trailers, lengths of chunks) may have come, and does not prolong the wait.
    pub fn await_body(&mut self, config: &Config, now: u64) -> Awaited {
        let is_new = !self.body.is_waiting();
        let due = self.body.wait(&config.body_rate(), now);
        if is_new || now < due { Awaited::Until { due, is_new } } else { Awaited::Late(Box::new(self.late(config))) }
    }

    /// Whether the application waits for the client's bytes.
    pub fn awaits_body(&self) -> bool {
        self.body.is_waiting()
    }

    /// The wait is over, with so many bytes.
    pub fn body_came(&mut self, count: usize, now: u64) {
        self.stop_timer(Timer::Body);
        self.body.came(count, now);
    }

    /// The timer's wait is over, or of no interest any more.
    pub fn stop_timer(&mut self, timer: Timer) {
        self.timers.stop(timer);
    }

    /// The time for the body is over: what the client is told, unless the reply has begun. `None`: bytes are there. If they are
    /// none of the body, the next [`Exchange::await_body`] says that it is late.
    pub fn body_is_late(&mut self, config: &Config) -> Option<Refusal> {
        if self.lane.stream().is_readable() {
            return None;
        }
        Some(self.late(config))
    }

    fn late(&mut self, config: &Config) -> Refusal {
        self.lane.set_last();
        let (bytes, is_slow) = self.body.progress(&config.body_rate());
        late_body(bytes, is_slow, config)
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
