//! One WebSocket: what it still has to send, and what its echo has to be.
//!
//! ```text
//!   Resting ──ask──> Waiting ──the whole echo──> Resting ──leave──> Leaving ──closed by the server──> gone
//! ```
use rustix::io::Errno;
use std::rc::Rc;
use std::time::Instant;
use tricorn_proto::websocket::{ContextPool, Delivery, Event, Kind, Receiver, Role, Sender, receiver, sender};

use crate::failure::Broken;
use crate::websocket::handshake::Opened;
use crate::websocket::messages::Message;
use crate::wire::Wire;

/// What a connection came to when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    /// The echo is complete, and right.
    Echo,
    /// The closing handshake is complete.
    Closed,
}

pub struct Connection {
    pub wire: Wire,
    receiver: Receiver,
    sender: Sender,
    messages: Rc<[Message]>,
    kind: Kind,
    /// Which of the messages is on its way, or comes next.
    turn: usize,
    state: State,
    pub asked_at: Instant,
    /// How much of the frame was sent.
    sent: usize,
    /// How much of the echo came.
    echoed: usize,
    /// Pongs and the close frame, as far as they were not sent.
    control: Vec<u8>,
    /// The beginning of a frame whose head did not come in full.
    rest: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Resting,
    Waiting,
    Leaving,
}

/// What all connections of the thread use.
pub struct Shared {
    pub input: Vec<u8>,
    pub spare: ContextPool,
}

impl Shared {
    pub fn new() -> Shared {
        Shared { input: vec![0; READ], spare: ContextPool::default() }
    }
}

impl Connection {
    pub fn new(opened: Opened, messages: Rc<[Message]>, kind: Kind, number: usize) -> Connection {
        let deflate = opened.deflate.as_ref();
        let reading =
            receiver::Settings { role: Role::Client, delivery: Delivery::Pieces, max_message_size: u64::MAX, deflate };
        let writing = sender::Settings { role: Role::Client, fragment: 0, deflate: None, seed: number as u64 };
        Connection {
            receiver: Receiver::new(&reading),
            sender: Sender::new(&writing),
            turn: number % messages.len(),
            messages,
            kind,
            state: State::Resting,
            asked_at: Instant::now(),
            sent: 0,
            echoed: 0,
            control: Vec::new(),
            rest: opened.rest,
            wire: opened.wire,
        }
    }

    /// Sends the next message.
    pub fn ask(&mut self, now: Instant) -> Result<(), String> {
        (self.state, self.asked_at, self.sent, self.echoed) = (State::Waiting, now, 0, 0);
        self.flush()
    }

    /// Begins the closing handshake.
    pub fn leave(&mut self) -> Result<(), String> {
        self.state = State::Leaving;
        self.sender.close(&mut self.control, Some(1000), "").map_err(|error| error.to_string())?;
        self.flush()
    }

    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    pub fn is_flushed(&self) -> bool {
        self.control.is_empty()
            && !self.wire.owes()
            && (self.state != State::Waiting || self.sent == self.frame().len())
    }

    /// Sends what the socket takes. Control frames go between messages, not into one.
    pub fn flush(&mut self) -> Result<(), String> {
        self.wire.flush().map_err(|broken| words("writing", broken, &mut self.wire))?;
        if self.state == State::Waiting {
            let frame = &self.messages[self.turn].frame;
            self.sent += written(&mut self.wire, &frame[self.sent..])?;
            if self.sent < frame.len() {
                return Ok(());
            }
        }
        if !self.control.is_empty() {
            let gone = written(&mut self.wire, &self.control)?;
            self.control.drain(..gone);
        }
        Ok(())
    }

    /// Reads what came, once: a long echo comes in several.
    pub fn look(&mut self, shared: &mut Shared) -> Result<Seen, String> {
        let begun = self.rest.len();
        shared.input[..begun].copy_from_slice(&self.rest);
        self.rest.clear();
        let length = match self.wire.recv(&mut shared.input[begun..]) {
            Ok(0) if self.state == State::Leaving => return Ok(Seen::Closed),
            Ok(0) => return Err("closed without a close frame".into()),
            Ok(length) => length,
            Err(Broken::System(Errno::AGAIN | Errno::INTR)) => 0,
            Err(broken) => return Err(words("reading", broken, &mut self.wire)),
        };
        let Shared { input, spare } = shared;
        self.take(&mut input[..begun + length], spare)
    }

    fn take(&mut self, input: &mut [u8], spare: &mut ContextPool) -> Result<Seen, String> {
        let (mut at, mut seen) = (0, Seen::Nothing);
        loop {
            let progress = self.receiver.advance(&mut input[at..], spare);
            let progress = progress.map_err(|violation| format!("the server broke a rule: {}", violation.reason()))?;
            at += progress.consumed;
            match progress.event {
                Event::Piece { kind, data, last } => {
                    let expected = &self.messages[self.turn].plain[self.echoed..];
                    let is_right = if last { expected == data } else { expected.starts_with(data) };
                    if self.state != State::Waiting || kind != self.kind || !is_right {
                        return Err("an echo that is not what was sent".into());
                    }
                    self.echoed += data.len();
                    if last {
                        self.state = State::Resting;
                        self.turn = (self.turn + 1) % self.messages.len();
                        seen = Seen::Echo;
                    }
                }
                Event::Ping(payload) => {
                    self.sender.pong(&mut self.control, payload).map_err(|error| error.to_string())?;
                }
                Event::Close(_) if self.state == State::Leaving => return Ok(Seen::Closed),
                Event::Close(close) => return Err(format!("closed with {:?} {:?}", close.code, close.reason)),
                Event::NeedMore => break,
                Event::Message { .. } | Event::Pong(_) | Event::Dropped => {}
            }
        }
        self.rest.extend_from_slice(&input[at..]);
        Ok(seen)
    }

    fn frame(&self) -> &[u8] {
        &self.messages[self.turn].frame
    }
}

/// How many of the bytes the socket took.
fn written(wire: &mut Wire, bytes: &[u8]) -> Result<usize, String> {
    match wire.send(bytes) {
        Ok(length) => Ok(length),
        Err(Broken::System(Errno::AGAIN | Errno::INTR)) => Ok(0),
        Err(broken) => Err(words("writing", broken, wire)),
    }
}

fn words(what: &str, broken: Broken, wire: &mut Wire) -> String {
    match broken {
        Broken::System(error) => format!("{what}: {error}"),
        Broken::Tls(failure) => format!("{what}: {}", wire.take_reason().unwrap_or_else(|| failure.name().into())),
    }
}

/// Room for a frame of 64 KiB at once.
const READ: usize = 128 * 1024;
