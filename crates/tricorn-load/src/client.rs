//! A client: one connection at a time, and the request that is under way on it.
//!
//! ```text
//!   Closed ──ask──> Sending ──all sent──> Waiting ──the whole answer──> Resting ──ask──> Sending
//!     ^  ^            │  │                   │                             │
//!     │  └─postponed──┘  └──────failed───────┴──closed by the server───────┘
//!     └──────────────────────────┘
//! ```
//!
//! A request begins to be sent while its connection is being made; the kernel says EAGAIN until it is there.
use rustix::io::Errno;
use tricorn_proto::http1::{Left, Part, ResponseParser};

use crate::clock::Clock;
use crate::failure::{Broken, Failure};
use crate::notes::Notes;
use crate::poller::Poller;
use crate::prepared::Prepared;
use crate::tls::Handshake;
use crate::wire::{Origin, Wire};

pub struct Client {
    /// Which of all threads' clients it is.
    number: usize,
    state: State,
    /// A request came to its end on this connection before.
    is_reused: bool,
    /// Some of the answer came.
    is_begun: bool,
    parser: ResponseParser,
    answer: Answer,
    pub task: Task,
    /// Only if there are samples.
    notes: Option<Box<Notes>>,
}

/// What the head of the answer says. The parser keeps it only until the body comes.
#[derive(Default)]
struct Answer {
    status: u16,
    persists: bool,
    /// Of a redirect.
    location: Option<String>,
}

enum State {
    Closed,
    /// So much was sent.
    Sending(Wire, usize),
    Waiting(Wire),
    Resting(Wire),
    /// The server's queue of new connections is full (unix sockets say so), so the connection is to be tried again.
    Postponed,
}

/// The request that is under way; nanoseconds from the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Task {
    pub request: u32,
    /// When it was to be sent.
    pub due: u64,
    /// When it was sent, and from when its time runs.
    pub begun: u64,
    pub redirects: u8,
    /// It was sent a second time.
    pub is_retried: bool,
    /// It was due while all connections were busy.
    pub is_held: bool,
}

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing that matters outside.
    Pending,
    Answered(u16),
    Failed(Failure),
    /// The server closed a connection that it had kept, before it answered anything: nothing speaks against another one
    /// if the request may be repeated (RFC 9110 section 9.2.2).
    Stale,
    /// The server refused the request without processing it, so that it may be repeated (RFC 9113 section 8.7).
    Unprocessed,
    /// To be asked again for the same task, in a moment.
    Postponed,
}

/// What a client's steps need, and what they count.
pub struct Line<'a> {
    pub poller: &'a Poller,
    pub clock: &'a Clock,
    pub token: usize,
    pub origin: &'a Origin,
    pub prepared: &'a [Prepared],
    pub buffer: &'a mut [u8],
    pub keeps_alive: bool,
    pub moved: &'a mut Moved,
}

/// Bytes of HTTP, connections, and what TLS tells.
#[derive(Debug, Default)]
pub struct Moved {
    pub opened: u64,
    pub sent: u64,
    pub received: u64,
    pub body: u64,
    pub handshakes: Vec<Handshake>,
    /// Of failures of TLS.
    pub reasons: Vec<String>,
    /// Of failures of HTTP/2.
    pub http2_errors: Vec<String>,
}

impl Client {
    pub fn new(number: usize, takes_notes: bool) -> Client {
        Client {
            number,
            state: State::Closed,
            is_reused: false,
            is_begun: false,
            parser: ResponseParser::default(),
            answer: Answer::default(),
            task: Task::default(),
            notes: takes_notes.then(Box::default),
        }
    }

    /// What it noted of its request.
    pub fn notes(&self) -> Option<&Notes> {
        self.notes.as_deref()
    }

    pub fn is_busy(&self) -> bool {
        matches!(self.state, State::Sending(..) | State::Waiting(_) | State::Postponed)
    }

    pub fn is_postponed(&self) -> bool {
        matches!(self.state, State::Postponed)
    }

    pub fn is_connected(&self) -> bool {
        !matches!(self.state, State::Closed | State::Postponed)
    }

    /// Where the last answer redirects to.
    pub fn location(&mut self) -> Option<String> {
        self.answer.location.take()
    }

    /// Sends the request, over a new connection where there is none.
    pub fn ask(&mut self, task: Task, line: &mut Line<'_>) -> Step {
        self.task = task;
        self.is_begun = false;
        if let Some(notes) = &mut self.notes {
            notes.begin();
        }
        self.parser.begin(line.prepared[task.request as usize].method);
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Resting(wire) => {
                self.state = State::Sending(wire, 0);
                self.send(line)
            }
            _ => self.connect(line),
        }
    }

    fn connect(&mut self, line: &mut Line<'_>) -> Step {
        self.is_reused = false;
        match line.origin.open(self.number) {
            Ok(wire) => {
                line.moved.opened += 1;
                self.state = State::Sending(wire, 0);
                self.send(line)
            }
            Err(Broken::System(Errno::AGAIN)) => {
                self.state = State::Postponed;
                Step::Postponed
            }
            Err(Broken::System(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)) => self.fail(Failure::Ports),
            Err(Broken::System(_)) => self.fail(Failure::Connect),
            Err(Broken::Tls(failure)) => self.fail(failure),
        }
    }

    /// Something happened to its descriptor.
    pub fn look(&mut self, line: &mut Line<'_>) -> Step {
        match &mut self.state {
            State::Sending(..) => match self.send(line) {
                // An answer may come before all of the request is sent.
                Step::Pending => match self.receive(line) {
                    // With what was received a handshake may be complete.
                    Step::Pending if self.is_secured() => self.send(line),
                    step => step,
                },
                step => step,
            },
            State::Waiting(_) => self.receive(line),
            // Nothing was asked: the server closes, or says why it does.
            State::Resting(wire) => {
                if !wire.stays(line.buffer) {
                    self.state = State::Closed;
                }
                Step::Pending
            }
            State::Closed | State::Postponed => Step::Pending,
        }
    }

    /// The request can go out over TLS, and has not in full.
    fn is_secured(&self) -> bool {
        matches!(&self.state, State::Sending(wire, _) if wire.is_secured())
    }

    /// Its time is over.
    pub fn give_up(&mut self) -> Step {
        let is_shaking = matches!(&self.state, State::Sending(wire, _) if wire.is_shaking());
        self.fail(if is_shaking { Failure::Handshake } else { Failure::Timeout })
    }

    /// Sends what the socket takes.
    fn send(&mut self, line: &mut Line<'_>) -> Step {
        let State::Sending(wire, done) = &mut self.state else { return Step::Pending };
        let request = &line.prepared[self.task.request as usize];
        let (head, body) = (&request.head, &request.body);
        let total = head.len() + body.len();
        let mut sent = wire.flush();
        while sent.is_ok() && *done < total {
            let rest = if *done < head.len() { &head[*done..] } else { &body[*done - head.len()..] };
            match wire.send(rest) {
                Ok(count) => {
                    if *done == 0 && !self.is_reused {
                        line.moved.handshakes.extend(wire.take_handshake());
                        if let Some(notes) = &mut self.notes {
                            notes.connected = line.clock.now();
                        }
                    }
                    *done += count;
                    line.moved.sent += count as u64;
                }
                Err(Broken::System(Errno::AGAIN)) => break,
                Err(Broken::System(Errno::INTR)) => {}
                Err(error) => sent = Err(error),
            }
        }
        match sent {
            // The server may have answered, and closed, before it had all of the request.
            Err(Broken::System(_)) if *done > 0 => {}
            Err(error) => return self.lost(error, line),
            Ok(()) => {}
        }
        let is_sent = *done == total && !wire.owes();
        if wire.watch(line.poller, line.token, is_sent).is_err() {
            return self.fail(Failure::Connect);
        }
        if is_sent && let State::Sending(wire, _) = std::mem::replace(&mut self.state, State::Closed) {
            self.state = State::Waiting(wire);
            if let Some(notes) = &mut self.notes {
                notes.written = line.clock.now();
            }
        }
        Step::Pending
    }

    /// Reads once: what is left brings another event.
    fn receive(&mut self, line: &mut Line<'_>) -> Step {
        let (State::Waiting(wire) | State::Sending(wire, _)) = &mut self.state else { return Step::Pending };
        let length = match wire.recv(line.buffer) {
            Ok(length) => length,
            Err(Broken::System(Errno::AGAIN | Errno::INTR)) => return Step::Pending,
            Err(error) => return self.lost(error, line),
        };
        if length == 0 {
            return self.ended(line);
        }
        if let Some(notes) = self.notes.as_mut().filter(|_| !self.is_begun) {
            notes.first = line.clock.now();
        }
        self.is_begun = true;
        line.moved.received += length as u64;
        match self.take(length, line) {
            // TLS tells the end with the last bytes.
            Step::Pending if matches!(&self.state, State::Waiting(wire) if wire.is_over()) => self.ended(line),
            step => step,
        }
    }

    /// The server sends nothing more.
    fn ended(&mut self, line: &mut Line<'_>) -> Step {
        match self.parser.close() {
            Left::Complete => self.finish(false),
            Left::Unsaid | Left::Cut => self.lost(Broken::System(Errno::CONNRESET), line),
        }
    }

    fn take(&mut self, length: usize, line: &mut Line<'_>) -> Step {
        let mut at = 0;
        loop {
            let Ok((taken, part)) = self.parser.advance(&line.buffer[at..length]) else {
                return self.fail(Failure::Malformed);
            };
            at += taken;
            match part {
                Part::More => return Step::Pending,
                Part::Interim(_) => {}
                Part::Head => {
                    self.read_head();
                    if self.answer.status == 101 {
                        return self.finish(false);
                    }
                }
                Part::Body(range) => {
                    line.moved.body += range.len() as u64;
                    if let Some(notes) = &mut self.notes {
                        notes.take(&line.buffer[at - taken..at][range]);
                    }
                }
                Part::End => {
                    let keeps = line.keeps_alive && at == length && self.answer.persists;
                    return self.finish(keeps);
                }
                Part::Tunnel(_) => return self.finish(false),
            }
        }
    }

    fn finish(&mut self, keeps: bool) -> Step {
        self.state = match std::mem::replace(&mut self.state, State::Closed) {
            State::Waiting(wire) if keeps && !wire.is_over() => State::Resting(wire),
            // A connection that still expects the rest of a request is of no use.
            State::Waiting(mut wire) | State::Sending(mut wire, _) => {
                wire.leave();
                State::Closed
            }
            _ => State::Closed,
        };
        self.is_reused = true;
        Step::Answered(self.answer.status)
    }

    fn read_head(&mut self) {
        let status = self.parser.status().unwrap_or_default();
        let is_location = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"location");
        let text = |(_, value): (&[u8], &[u8])| String::from_utf8_lossy(value).into_owned();
        let location = if status / 100 == 3 { self.parser.fields().find(is_location).map(text) } else { None };
        self.answer = Answer { status, persists: self.parser.persists(), location };
    }

    /// The connection broke.
    fn lost(&mut self, broken: Broken, line: &mut Line<'_>) -> Step {
        let error = match broken {
            Broken::System(error) => error,
            Broken::Tls(failure) => {
                if let State::Sending(wire, _) | State::Waiting(wire) = &mut self.state {
                    line.moved.reasons.extend(wire.take_reason());
                }
                return self.fail(failure);
            }
        };
        match (self.is_reused, self.is_begun) {
            (true, false) => {
                self.state = State::Closed;
                Step::Stale
            }
            (false, false) if !matches!(error, Errno::CONNRESET | Errno::PIPE) => self.fail(Failure::Connect),
            _ => self.fail(Failure::Closed),
        }
    }

    fn fail(&mut self, failure: Failure) -> Step {
        self.state = State::Closed;
        Step::Failed(failure)
    }
}
