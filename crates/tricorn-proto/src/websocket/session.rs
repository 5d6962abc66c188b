//! One connection as the application has it: bytes in, messages out; messages in, bytes out; and an end.
//!
//! ```text
//!   read buffer ──receive──> Receiver ──> Inbox (bounded) ──take──> application
//!       ^                       ├──ping──> Pong (the last one only, while the peer is behind) ──> out
//!       │                       └──close, violation──> Close ──> out, Goodbye
//!       └── prefix: what the last read left of a head or control frame
//!
//!   Inbox over its mark:  Reading ──> Stalled (`wants_read` is false) ──take, resume──> Reading
//! ```
//!
//! Nothing is copied but into what `keep` makes of a message. What cannot be read to its end yet is kept here: less than
//! `MAX_REST` bytes, and while stalled what is left of one read. A session that waits keeps nothing.
use super::close::{ABNORMAL, Close, NO_STATUS, Phase};
use super::deflate::{Agreed, ContextPool};
use super::frame::{Kind, MAX_CONTROL, MAX_HEAD, Role};
use super::inbox::Inbox;
use super::keepalive::{Due, Keepalive};
use super::receiver::{self, Delivery, Event, Receiver};
use super::sender::{self, Sender, Unsendable};

/// What a session depends on. Times in nanoseconds of the clock that `StepInput::now` shows.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub role: Role,
    /// As for `receiver::Settings`.
    pub max_message_size: u64,
    pub deflate: Option<&'a Agreed>,
    /// Bytes of messages that wait for the application; over it nothing more is read.
    pub inbox: usize,
    /// As for `Keepalive::new`.
    pub ping_interval: u64,
    pub ping_timeout: u64,
    /// How long the peer may take to answer our Close frame.
    pub close_timeout: u64,
    /// As for `sender::Settings`.
    pub seed: u64,
}

/// What every step needs of its surroundings.
#[derive(Debug)]
pub struct StepInput<'a> {
    /// What is to be sent is appended here.
    pub out: &'a mut Vec<u8>,
    pub spare: &'a mut ContextPool,
    pub now: u64,
    /// The peer has not taken what was sent before.
    pub is_behind: bool,
}

/// How it ended, for the application and the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Goodbye {
    /// What the peer's Close frame said (1005: nothing), or what ours did if the peer broke the protocol; 1006 if there was
    /// none and the connection ended, or the peer did not answer.
    pub code: u16,
    pub reason: Box<str>,
}

/// One connection. `M` is a message as the application gets it.
#[derive(Debug)]
pub struct Session<M> {
    receiver: Receiver,
    sender: Sender,
    keepalive: Keepalive,
    inbox: Inbox<M>,
    /// What was read and not looked at.
    rest: Vec<u8>,
    /// The answer to the last Ping, which waits until the peer takes what was sent.
    pong: Option<Box<[u8]>>,
    goodbye: Option<Goodbye>,
    close_timeout: u64,
    /// When the peer must have answered our Close frame; 0: none was sent.
    deadline: u64,
    is_stalled: bool,
    /// Messages that come are dropped.
    is_deaf: bool,
}

impl<M> Session<M> {
    pub fn new(settings: &Settings<'_>, now: u64) -> Session<M> {
        let &Settings { role, max_message_size, deflate, seed, .. } = settings;
        let reading = receiver::Settings { role, delivery: Delivery::Whole, max_message_size, deflate };
        let writing = sender::Settings { role, fragment: 0, deflate, seed };
        Session {
            receiver: Receiver::new(&reading),
            sender: Sender::new(&writing),
            keepalive: Keepalive::new(settings.ping_interval, settings.ping_timeout, now),
            inbox: Inbox::new(settings.inbox.max(1)),
            rest: Vec::new(),
            pong: None,
            goodbye: None,
            close_timeout: settings.close_timeout,
            deadline: 0,
            is_stalled: false,
            is_deaf: false,
        }
    }

    /// Moves what the last read left to the end of `buffer` (an empty one). The next read goes behind it, and `receive` gets
    /// both. Not while `wants_read` is false.
    #[inline]
    pub fn prefix(&mut self, buffer: &mut Vec<u8>) {
        if !self.rest.is_empty() && !self.is_stalled {
            buffer.append(&mut self.rest);
            self.rest = Vec::new();
        }
    }

    /// Bytes came: `input` is the prefix and what was read behind it. `keep` makes a message of its bytes (UTF-8 if text).
    #[inline]
    pub fn receive(&mut self, input: &mut [u8], turn: &mut StepInput<'_>, keep: impl FnMut(Kind, &[u8]) -> M) {
        self.keepalive.heard(turn.now);
        let done = self.read(input, turn, keep);
        if done < input.len() {
            self.rest.extend_from_slice(&input[done..]);
        }
    }

    /// Goes on with what was left when the inbox was full; to be called when `wants_resume`.
    pub fn resume(&mut self, turn: &mut StepInput<'_>, keep: impl FnMut(Kind, &[u8]) -> M) {
        if std::mem::take(&mut self.is_stalled) {
            self.keepalive.resume(turn.now);
        }
        let mut rest = std::mem::take(&mut self.rest);
        let done = self.read(&mut rest, turn, keep);
        if done < rest.len() {
            rest.drain(..done);
            rest.shrink_to_fit();
            self.rest = rest;
        }
    }

    /// The application wants the next message.
    #[inline]
    pub fn take(&mut self) -> Option<M> {
        self.inbox.pop()
    }

    /// Whether messages wait.
    #[inline]
    pub fn has_messages(&self) -> bool {
        !self.inbox.is_empty()
    }

    /// Whether bytes of the peer are welcome: there is room, and it has not said goodbye.
    #[inline]
    pub fn wants_read(&self) -> bool {
        !self.is_stalled && !self.is_over()
    }

    /// Nothing was read because the inbox was full, and there is room now (or messages are not wanted any more).
    #[inline]
    pub fn wants_resume(&self) -> bool {
        self.is_stalled && (self.is_deaf || self.inbox.has_room())
    }

    /// A message of the application. That text is UTF-8 is up to the caller.
    #[inline]
    pub fn send(&mut self, kind: Kind, data: &[u8], turn: &mut StepInput<'_>) -> Result<(), Unsendable> {
        self.sender.message(turn.out, kind, data, turn.spare)
    }

    /// Only the head of a message, whose `length` bytes the caller sends right after; `None`: use `send`.
    #[inline]
    pub fn head(&mut self, kind: Kind, length: usize, out: &mut Vec<u8>) -> Result<Option<()>, Unsendable> {
        self.sender.head(out, kind, length)
    }

    /// Begins the closing handshake, for the application: what has come and what comes is dropped. See `wants_resume`.
    pub fn close(&mut self, code: Option<u16>, reason: &str, turn: &mut StepInput<'_>) -> Result<(), Unsendable> {
        self.sender.close(turn.out, code, reason)?;
        self.inbox.clear();
        self.wait_for_close(turn.now);
        Ok(())
    }

    /// Begins the closing handshake, for the server: the application gets what has come, and then this goodbye.
    pub fn leave(&mut self, code: u16, turn: &mut StepInput<'_>) -> Result<(), Unsendable> {
        self.sender.close(turn.out, Some(code), "")?;
        self.say_goodbye(code, "");
        self.wait_for_close(turn.now);
        Ok(())
    }

    /// The peer has taken all that was sent: the answer to its last Ping goes out.
    #[inline]
    pub fn caught_up(&mut self, out: &mut Vec<u8>) {
        if let Some(payload) = self.pong.take() {
            let _ = self.sender.pong(out, &payload);
        }
    }

    /// The connection ended, without a Close frame unless there was one.
    pub fn lost(&mut self) {
        self.sender.lost();
        self.say_goodbye(ABNORMAL, "");
        self.end();
    }

    /// When `tick` has something to do, if nothing happens until then; `None`: never.
    #[inline]
    pub fn due_at(&self) -> Option<u64> {
        match (self.sender.closing().phase(), self.deadline) {
            (Phase::Done | Phase::Lost, _) => None,
            (_, 0) => self.keepalive.due_at(),
            (_, deadline) => Some(deadline),
        }
    }

    /// May be called at any time, also too early: pings a silent peer, and gives up one that does not answer.
    pub fn tick(&mut self, turn: &mut StepInput<'_>) {
        if self.is_over() || self.due_at().is_none_or(|due| turn.now < due) {
            return;
        }
        if self.deadline > 0 {
            return self.lost();
        }
        match self.keepalive.tick(turn.now) {
            Due::Nothing => {}
            Due::Ping(payload) => {
                // Who is silent for so long needs no memory of what was compressed last.
                self.sender.rest(turn.spare);
                let _ = self.sender.ping(turn.out, &payload);
            }
            Due::Dead => {
                self.sender.give_up(turn.out, DEAD, DEAD_REASON);
                self.say_goodbye(ABNORMAL, DEAD_REASON);
                self.end();
            }
        }
    }

    /// Whether messages may be sent: neither side has said goodbye.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.sender.closing().may_send()
    }

    /// Nothing more comes and nothing more is said: when all is sent the connection is to be closed.
    #[inline]
    pub fn is_over(&self) -> bool {
        matches!(self.sender.closing().phase(), Phase::Done | Phase::Lost)
    }

    /// Whether both sides said goodbye.
    pub fn is_clean(&self) -> bool {
        self.sender.closing().phase() == Phase::Done
    }

    /// To be told to the application when it has taken all messages.
    pub fn goodbye(&self) -> Option<&Goodbye> {
        self.goodbye.as_ref()
    }

    /// The code of our own Close frame, if there was one with a code.
    pub fn sent_code(&self) -> Option<u16> {
        self.sender.closing().sent()
    }

    /// Bytes of memory held besides the messages that wait and what inflates.
    pub fn held(&self) -> usize {
        self.receiver.held() + self.rest.capacity()
    }

    /// Reads frame by frame, until the inbox is full. How much was looked at.
    #[inline]
    fn read(&mut self, input: &mut [u8], turn: &mut StepInput<'_>, mut keep: impl FnMut(Kind, &[u8]) -> M) -> usize {
        let mut at = 0;
        while self.is_deaf || !self.inbox.is_full() {
            let progress = match self.receiver.advance(&mut input[at..], turn.spare) {
                Ok(progress) => progress,
                Err(violation) => {
                    self.sender.fail(turn.out, violation);
                    self.say_goodbye(violation.code(), violation.reason());
                    self.end();
                    return input.len();
                }
            };
            at += progress.consumed;
            match progress.event {
                Event::Message { kind, data } if !self.is_deaf => self.inbox.push(keep(kind, data), data.len()),
                Event::Message { .. } | Event::Piece { .. } => {}
                Event::Ping(payload) if turn.is_behind => self.pong = Some(payload.into()),
                Event::Ping(payload) => {
                    let _ = self.sender.pong(turn.out, payload);
                }
                Event::Pong(payload) => {
                    self.keepalive.pong(payload, turn.now);
                }
                Event::Close(close) => {
                    self.sender.answer(turn.out, &close);
                    let Close { code, reason } = close;
                    self.goodbye
                        .get_or_insert_with(|| Goodbye { code: code.unwrap_or(NO_STATUS), reason: reason.into() });
                    self.is_deaf = true;
                }
                Event::NeedMore | Event::Dropped => {
                    self.receiver.rest(turn.spare);
                    if self.is_over() {
                        self.end();
                    }
                    return at;
                }
            }
        }
        self.receiver.rest(turn.spare);
        self.is_stalled = true;
        self.keepalive.pause();
        at
    }

    /// Our Close frame is out.
    fn wait_for_close(&mut self, now: u64) {
        self.is_deaf = true;
        self.pong = None;
        self.deadline = now.saturating_add(self.close_timeout).max(1);
    }

    /// The first one counts.
    fn say_goodbye(&mut self, code: u16, reason: &str) {
        if self.goodbye.is_none() {
            self.goodbye = Some(Goodbye { code, reason: reason.into() });
        }
    }

    /// Nothing of what came later is looked at, and nothing is held for it.
    fn end(&mut self) {
        self.receiver.end();
        self.sender.end();
        self.is_deaf = true;
        self.is_stalled = false;
        self.rest = Vec::new();
        self.pong = None;
    }
}

/// Most that `prefix` moves, and one: a head, or a control frame but for its last byte.
pub const MAX_REST: usize = MAX_HEAD + MAX_CONTROL;
/// RFC 6455 section 7.4.1 has no code for silence; 1011 is what everybody sends.
const DEAD: u16 = 1011;
const DEAD_REASON: &str = "keepalive ping timeout";
