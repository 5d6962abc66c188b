//! An admin connection: one question after another, each answered before the next one is looked at.
//!
//! ```text
//!            bytes         a head                    the socket takes all
//!   Idle ───────────▶ Head ──────▶ answer ───────────────────────────────▶ Idle, or Lingering
//!    ▲                 │             └── the rest ──▶ Flushing ── sent ───────▶ the same
//!    │                 └─ a scrape ──▶ Waiting ── the files are read ──▶ answer
//!    └── at its deadline, or when its place is needed: closed
//! ```
//!
//! A body is not read: what follows the head on the connection is not looked at, and the connection ends with the answer.
use super::super::edges::Edges;
use super::super::outgoing::Then;
use super::super::serial::Serial;
use crate::config::{self, Received};
use crate::exchange::buffers::{INPUT, Request};
use crate::exchange::outbox::Flush;
use crate::exchange::output::{Output, Progress};
use crate::peer::Peer;
use crate::stream::Stream;
use rustix::io::Errno;
use tricorn_proto::http1::{HeadPolicy, Step};
use tricorn_proto::message::Refusal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing of a question has come.
    Idle,
    /// A part of one has.
    Head,
    /// It is answered when the application's metrics have been read.
    Waiting,
    /// The rest of an answer is sent as the client takes it.
    Flushing(Then),
    /// Our side is closed; input is thrown away until the client closes.
    Lingering,
}

/// What the bytes at hand are.
pub(super) enum Look {
    NeedMore,
    /// A head is complete.
    Question,
    Wrong(Box<Refusal>),
}

/// What a step with the socket came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// There may be more.
    Some,
    /// An event will tell when there is more to do.
    Waits,
    /// All of an answer is with the kernel.
    All(Then),
    /// The client has left.
    Gone,
}

#[derive(Debug)]
pub(super) struct AdminConn {
    output: Output,
    pub peer: Peer,
    serial: Serial,
    pub edges: Edges,
    pub state: State,
    /// When it is over (monotonic nanoseconds).
    pub deadline: u64,
    /// It has a reserved descriptor, and is closed behind its answer.
    pub borrowed: bool,
    answered: bool,
}

impl AdminConn {
    pub fn new(stream: Stream, peer: Peer, borrowed: bool) -> AdminConn {
        AdminConn {
            output: Output::new(stream),
            peer,
            serial: Serial::default(),
            edges: Edges::unknown(),
            state: State::Idle,
            deadline: 0,
            borrowed,
            answered: false,
        }
    }

    pub fn stream(&self) -> &Stream {
        self.output.stream()
    }

    /// Whether it may give its place to another. One that has a reserved descriptor is given the time to ask.
    pub fn may_be_dropped(&self) -> bool {
        self.state == State::Idle && !self.borrowed
    }

    /// The question that is being read.
    pub fn request(&mut self) -> Option<&mut Request> {
        self.serial.reading().map(|reading| reading.request)
    }

    /// No request was answered here, and these bytes have come: a balancer may ask in a line of its own.
    pub fn first_bytes(&mut self) -> Option<&[u8]> {
        let is_first = !self.answered;
        self.request().filter(|_| is_first).map(|request| request.unread())
    }

    /// Takes the buffers of a question of which nothing has come, or that is over.
    pub fn take_buffers(&mut self) -> Option<Box<Request>> {
        self.serial.end()
    }

    /// Steps through the bytes at hand.
    pub fn look(&mut self, policy: &HeadPolicy) -> Look {
        let Some(mut reading) = self.serial.reading() else { return Look::NeedMore };
        if reading.request.unread().is_empty() {
            return Look::NeedMore;
        }
        match reading.advance(policy, false) {
            Ok((from, Step::Head)) => {
                let request = reading.request;
                (request.head_at, request.head_end) = (from, request.start);
                Look::Question
            }
            Ok(_) => Look::NeedMore,
            Err(refusal) => Look::Wrong(refusal),
        }
    }

    /// One read.
    pub fn fill(&mut self, fresh: impl FnOnce() -> Box<Request>) -> Moved {
        if !self.edges.is_readable() {
            return Moved::Waits;
        }
        let input = &mut self.serial.begin_reading(fresh).request.input;
        if input.capacity() - input.len() < INPUT / 4 && input.try_reserve(INPUT.max(input.len())).is_err() {
            return Moved::Gone;
        }
        let room = input.capacity() - input.len();
        let received: Received = self.output.stream().read(input, room);
        match received {
            Ok(0) => Moved::Gone,
            Ok(count) => {
                self.edges.was_read(count == room);
                Moved::Some
            }
            Err(Errno::INTR) => Moved::Some,
            Err(Errno::AGAIN) => {
                self.edges.is_drained();
                Moved::Waits
            }
            Err(_) => Moved::Gone,
        }
    }

    /// Sends an answer; the rest goes on as the client takes it.
    pub fn send(&mut self, answer: &[u8], then: Then) -> Moved {
        self.answered = true;
        match self.output.reply(answer).1 {
            Progress::Sent => Moved::All(then),
            Progress::Gone => Moved::Gone,
            Progress::Waits { .. } | Progress::Left { .. } | Progress::Held => {
                self.state = State::Flushing(then);
                Moved::Waits
            }
        }
    }

    /// Sends more of it. `broken`: nothing that is sent arrives.
    pub fn flush(&mut self, then: Then, broken: bool) -> Moved {
        let mut spent = Vec::new();
        match self.output.flush_some(config::READ_BURST, &mut spent).0 {
            None => Moved::Some,
            Some(Flush::Empty) => {
                self.output.conclude(&mut spent);
                Moved::All(then)
            }
            Some(Flush::Blocked | Flush::Disk) if !broken => Moved::Waits,
            Some(Flush::Blocked | Flush::Disk | Flush::Gone | Flush::Truncated) => Moved::Gone,
        }
    }

    /// The question was answered from where it is, and its buffers are the next one's. `now`: when the bytes came that are left.
    pub fn answered_in_place(&mut self, out: Vec<u8>, now: u64) {
        self.serial.answered_in_place(now);
        if let Some(request) = self.request() {
            request.out = out;
        }
    }

    /// The answer is sent, and another question may come.
    pub fn next_question(&mut self) {
        self.serial.next_request();
        self.state = State::Idle;
    }

    /// Closes our side.
    pub fn shut(&mut self) -> Moved {
        self.state = State::Lingering;
        self.edges.may_be_readable();
        if self.stream().end_sending().is_err() { Moved::Gone } else { Moved::Waits }
    }

    /// Throws away what has come since.
    pub fn discard(&self, scratch: &mut [u8]) -> Moved {
        match self.stream().discard(scratch) {
            Ok(0) => Moved::Gone,
            Ok(_) => Moved::Some,
            Err(Errno::AGAIN) => Moved::Waits,
            Err(_) => Moved::Gone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn pair() -> (AdminConn, UnixStream) {
        let (ours, client) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("a socket");
        (AdminConn::new(Stream::new(ours.into()), Peer::Unix, false), client)
    }

    fn path(conn: &mut AdminConn) -> Option<Vec<u8>> {
        let is_question = matches!(conn.look(&HeadPolicy::default()), Look::Question);
        let request = conn.request().filter(|_| is_question)?;
        Some(request.head.path.of(request.head_bytes()).to_vec())
    }

    #[test]
    fn questions_that_came_together_are_read_one_after_another() {
        let (mut conn, mut client) = pair();
        client
            .write_all(b"GET /one HTTP/1.1\r\nHost: a\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n")
            .expect("a socket");
        assert_eq!(conn.fill(Box::default), Moved::Some);
        assert_eq!(path(&mut conn).as_deref(), Some(b"/one".as_slice()));
        assert_eq!(conn.send(b"an answer", Then::Next), Moved::All(Then::Next));
        conn.answered_in_place(Vec::new(), 5);
        conn.next_question();
        assert_eq!(path(&mut conn).as_deref(), Some(b"/two".as_slice()));
        assert_eq!(conn.fill(Box::default), Moved::Waits);
    }

    #[test]
    fn a_balancers_own_line_is_the_first_on_its_connection() {
        let (mut conn, mut client) = pair();
        client.write_all(b"agent\n").expect("a socket");
        assert_eq!(conn.fill(Box::default), Moved::Some);
        assert!(matches!(conn.look(&HeadPolicy::default()), Look::Wrong(_)));
        assert_eq!(conn.first_bytes(), Some(b"agent\n".as_slice()));
        conn.send(b"an answer", Then::Next);
        assert_eq!(conn.first_bytes(), None);
    }

    #[test]
    fn one_with_a_reserved_descriptor_keeps_its_place() {
        let (mut conn, _client) = pair();
        assert!(conn.may_be_dropped());
        conn.borrowed = true;
        assert!(!conn.may_be_dropped());
        (conn.borrowed, conn.state) = (false, State::Waiting);
        assert!(!conn.may_be_dropped());
    }
}
