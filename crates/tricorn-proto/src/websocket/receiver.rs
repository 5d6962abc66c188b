//! One connection's receiving side: messages and control frames out of bytes, however they were split.
//!
//! ```text
//!            head of a data frame              all of it, not the last one
//!   Head ─────────────────────────> Payload ──────────────────────────────> Head
//!    │ ^                              └──the last one, compressed──> Tail ──> Head (message)
//!    │ │                              └──the last one──> Head (message)
//!    │ └── Ping, Pong (also between the fragments of a message)
//!    └──── Close ──> Closed (whatever comes is dropped)
//!   any ── violation ──> Failed
//! ```
//!
//! Payload is unmasked where it lies. A message that came in one frame and in one piece is handed out from there; of any
//! other the pieces are gathered in a buffer, which is given up when the message was handed out. Text is looked at as
//! it comes, so that it is refused at the first impossible byte, and a message when it is known to become too big.
use super::close::Close;
use super::deflate::{Agreed, BLOCK, ContextPool, Inflater, Inflation};
use super::frame::{Head, Kind, Opcode, Role, Rsv1};
use super::utf8::{self, Utf8};
use super::{Violation, mask};
use std::ops::Range;

/// How messages are handed out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// When they are complete.
    #[default]
    Whole,
    /// As they come, in pieces that may end within a character. Compressed ones in pieces of about `deflate::BLOCK`.
    Pieces,
}

/// What came. Borrows the input, or the receiver until its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// Nothing can be said until more bytes come.
    NeedMore,
    /// A complete message; UTF-8 if `Text`.
    Message {
        kind: Kind,
        data: &'a [u8],
    },
    /// A part of one, with `Delivery::Pieces`; may be empty if it is the `last`.
    Piece {
        kind: Kind,
        data: &'a [u8],
        last: bool,
    },
    /// To be answered by a Pong with the same payload.
    Ping(&'a [u8]),
    Pong(&'a [u8]),
    /// To be answered, unless ours was sent before. Nothing more comes.
    Close(Close<'a>),
    /// What came after the Close frame is dropped.
    Dropped,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// How many bytes of the input are done with; the caller presents the rest again, with what came since.
    pub consumed: usize,
    pub event: Event<'a>,
}

/// What a receiver depends on.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub role: Role,
    pub delivery: Delivery,
    /// Longest message in bytes, after inflation; `u64::MAX`: any. Exceeded: 1009. Streamed ones too are counted whole.
    pub max_message_size: u64,
    pub deflate: Option<&'a Agreed>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Payload,
    /// All frames of a compressed message came; its end is being inflated.
    Tail,
    Closed,
    Failed(Violation),
}

/// The message that has begun.
#[derive(Debug, Clone, Copy)]
struct Message {
    kind: Kind,
    compressed: bool,
    utf8: Utf8,
    /// Bytes of it that were handed out in pieces.
    handed_out: u64,
}

/// The data frame that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    fin: bool,
    key: Option<[u8; 4]>,
    /// How much of it was read, and how much is to come.
    position: u64,
    remaining: u64,
}

/// What a step came to, by place, so that the borrow begins when it is over.
enum Found {
    NeedMore,
    /// A whole message or a piece, in the input.
    Input(Kind, Range<usize>, bool),
    /// The same, in the buffer.
    Buffer(Kind, bool),
    Control(Opcode, Range<usize>),
    Dropped,
}

#[derive(Debug)]
pub struct Receiver {
    role: Role,
    delivery: Delivery,
    max_message_size: u64,
    state: State,
    message: Option<Message>,
    frame: Frame,
    inflater: Option<Inflater>,
    /// What was gathered.
    buffer: Vec<u8>,
    /// It was handed out, and is to be given up.
    is_stale: bool,
}

impl Receiver {
    pub fn new(settings: &Settings<'_>) -> Receiver {
        Receiver {
            role: settings.role,
            delivery: settings.delivery,
            max_message_size: settings.max_message_size.min(MAX_MESSAGE),
            state: State::Head,
            message: None,
            frame: Frame { fin: true, key: None, position: 0, remaining: 0 },
            inflater: settings.deflate.map(|agreed| Inflater::new(agreed, settings.role)),
            buffer: Vec::new(),
            is_stale: false,
        }
    }

    /// Looks at `input` (all unconsumed bytes) and takes one step. After a violation nothing more is read.
    #[inline]
    pub fn advance<'a>(&'a mut self, input: &'a mut [u8], spare: &mut ContextPool) -> Result<Progress<'a>, Violation> {
        let (consumed, found) =
            self.step(input, spare).inspect_err(|&violation| self.state = State::Failed(violation))?;
        let event = match found {
            Found::NeedMore => Event::NeedMore,
            Found::Dropped => Event::Dropped,
            Found::Input(kind, range, last) => self.data(kind, &input[range], last),
            Found::Buffer(kind, last) => {
                self.is_stale = true;
                self.data(kind, &self.buffer, last)
            }
            Found::Control(Opcode::Ping, range) => Event::Ping(&input[range]),
            Found::Control(Opcode::Pong, range) => Event::Pong(&input[range]),
            Found::Control(_, range) => match Close::read(&input[range]) {
                Ok(close) => Event::Close(close),
                Err(violation) => {
                    self.state = State::Failed(violation);
                    return Err(violation);
                }
            },
        };
        Ok(Progress { consumed, event })
    }

    /// Whether a message has begun that is not complete.
    pub fn in_message(&self) -> bool {
        self.message.is_some()
    }

    /// Bytes of memory that the receiver holds, without its inflating context.
    pub fn held(&self) -> usize {
        self.buffer.capacity()
    }

    /// Gives up the memory of the message that was handed out last. `advance` does so too.
    #[inline]
    pub fn rest(&mut self, spare: &mut ContextPool) {
        if std::mem::take(&mut self.is_stale) {
            self.buffer.clear();
            if self.message.is_none() {
                spare.give_buffer(std::mem::take(&mut self.buffer));
            }
        }
    }

    /// Nothing more is read: gives up all that was held for it.
    pub fn end(&mut self) {
        if !matches!(self.state, State::Failed(_)) {
            self.state = State::Closed;
        }
        (self.message, self.inflater, self.buffer, self.is_stale) = (None, None, Vec::new(), false);
    }

    #[inline]
    fn data<'a>(&self, kind: Kind, data: &'a [u8], last: bool) -> Event<'a> {
        match self.delivery {
            Delivery::Whole => Event::Message { kind, data },
            Delivery::Pieces => Event::Piece { kind, data, last },
        }
    }

    #[inline]
    fn step(&mut self, input: &mut [u8], spare: &mut ContextPool) -> Result<(usize, Found), Violation> {
        self.rest(spare);
        let mut at = 0;
        loop {
            let found = match self.state {
                State::Head => match self.head(&mut input[at..], spare)? {
                    Some((length, found)) => {
                        let start = at;
                        at += length;
                        found.map(|found| found.moved(start))
                    }
                    None => Some(Found::NeedMore),
                },
                State::Payload => {
                    let (length, found) = self.payload(&mut input[at..], spare)?;
                    let start = at;
                    at += length;
                    found.map(|found| found.moved(start))
                }
                State::Tail => self.tail(spare)?,
                State::Closed => return Ok((input.len(), Found::Dropped)),
                State::Failed(violation) => return Err(violation),
            };
            if let Some(found) = found {
                return Ok((at, found));
            }
        }
    }

    /// `None`: more must come. Otherwise how much was read, and what it was if it can be handed out.
    #[inline]
    fn head(&mut self, input: &mut [u8], spare: &mut ContextPool) -> Result<Option<(usize, Option<Found>)>, Violation> {
        let rsv1 = if self.inflater.is_some() { Rsv1::Compressed } else { Rsv1::Reserved };
        let Some((head, start)) = Head::read(input, self.role, rsv1)? else { return Ok(None) };
        if head.opcode.is_control() {
            let end = start + head.length as usize;
            let Some(payload) = input.get_mut(start..end) else { return Ok(None) };
            unmask(payload, head.key, 0);
            if head.opcode == Opcode::Close {
                self.state = State::Closed;
            }
            return Ok(Some((end, Some(Found::Control(head.opcode, start..end)))));
        }
        self.begin(&head)?;
        let is_whole = head.fin && head.opcode != Opcode::Continuation && !head.compressed;
        if is_whole && head.length <= (input.len() - start) as u64 {
            let end = start + head.length as usize;
            let found = self.whole(&mut input[start..end], head.key)?;
            return Ok(Some((end, Some(found.moved(start)))));
        }
        // Pieces that need not be inflated are handed out from the input.
        let is_gathered = self.delivery == Delivery::Whole || self.message.is_some_and(|message| message.compressed);
        if is_gathered && self.buffer.capacity() == 0 {
            self.buffer = spare.take_buffer();
        }
        self.state = State::Payload;
        Ok(Some((start, None)))
    }

    /// A message in one frame, which has come in full: nothing is copied.
    #[inline]
    fn whole(&mut self, payload: &mut [u8], key: Option<[u8; 4]>) -> Result<Found, Violation> {
        unmask(payload, key, 0);
        let kind = self.message.take().map_or(Kind::Binary, |message| message.kind);
        if kind == Kind::Text && !utf8::is_utf8(payload) {
            return Err(Violation::NotUtf8);
        }
        Ok(Found::Input(kind, 0..payload.len(), true))
    }

    /// A data frame begins: the rules of fragmentation (RFC 6455 section 5.4), and the size as far as it is known.
    #[inline]
    fn begin(&mut self, head: &Head) -> Result<(), Violation> {
        let new = |kind| Message { kind, compressed: head.compressed, utf8: Utf8::default(), handed_out: 0 };
        let message = match (head.opcode, self.message) {
            (Opcode::Continuation, None) => return Err(Violation::NothingToContinue),
            (Opcode::Continuation, Some(message)) => message,
            (_, Some(_)) => return Err(Violation::MessageInMessage),
            (Opcode::Text, None) => new(Kind::Text),
            (_, None) => new(Kind::Binary),
        };
        let so_far = message.handed_out + self.buffer.len() as u64;
        if !message.compressed && head.length > self.max_message_size.saturating_sub(so_far) {
            return Err(Violation::MessageTooBig);
        }
        self.message = Some(message);
        self.frame = Frame { fin: head.fin, key: head.key, position: 0, remaining: head.length };
        Ok(())
    }

    /// How much was read, and what can be handed out.
    fn payload(&mut self, input: &mut [u8], spare: &mut ContextPool) -> Result<(usize, Option<Found>), Violation> {
        let Some(mut message) = self.message else { return Ok((0, Some(Found::NeedMore))) };
        let came = self.frame.remaining.min(input.len() as u64) as usize;
        let piece = &mut input[..came];
        unmask(piece, self.frame.key, self.frame.position);
        if message.compressed {
            return self.compressed(message, piece, spare);
        }
        self.read(came);
        if message.kind == Kind::Text {
            message.utf8.push(piece).map_err(|_| Violation::NotUtf8)?;
        }
        message.handed_out += if self.delivery == Delivery::Pieces { came as u64 } else { 0 };
        self.message = Some(message);
        if self.delivery == Delivery::Whole {
            reserve(&mut self.buffer, came, &self.frame, self.max_message_size);
            self.buffer.extend_from_slice(piece);
        }
        let last = self.frame_ends() && self.frame.fin;
        if last {
            self.end_message()?;
        } else if self.frame_ends() {
            self.state = State::Head;
        }
        let found = match self.delivery {
            Delivery::Whole if last => Some(Found::Buffer(message.kind, true)),
            Delivery::Pieces if last || came > 0 => Some(Found::Input(message.kind, 0..came, last)),
            _ if self.frame_ends() => None,
            _ => Some(Found::NeedMore),
        };
        Ok((came, found))
    }

    fn compressed(
        &mut self,
        message: Message,
        piece: &mut [u8],
        spare: &mut ContextPool,
    ) -> Result<(usize, Option<Found>), Violation> {
        let room = self.room(&message);
        let Some(inflater) = &mut self.inflater else { return Err(Violation::ReservedBits) };
        let before = self.buffer.len();
        let inflation = inflater.push(piece, &mut self.buffer, room, spare)?;
        let used = match inflation {
            Inflation::Done => piece.len(),
            Inflation::Full { used } => used,
        };
        // What was not read is presented again, as it came.
        unmask(&mut piece[used..], self.frame.key, self.frame.position + used as u64);
        self.read(used);
        self.inflated(message, before)?;
        if matches!(inflation, Inflation::Full { .. }) {
            return Ok((used, Some(self.hand_out_piece(message.kind))));
        }
        if !self.frame_ends() {
            let found = match self.delivery {
                Delivery::Pieces if !self.buffer.is_empty() => self.hand_out_piece(message.kind),
                _ => Found::NeedMore,
            };
            return Ok((used, Some(found)));
        }
        self.state = if self.frame.fin { State::Tail } else { State::Head };
        Ok((used, None))
    }

    /// The end of a compressed message.
    fn tail(&mut self, spare: &mut ContextPool) -> Result<Option<Found>, Violation> {
        let Some(message) = self.message else { return Ok(Some(Found::NeedMore)) };
        let room = self.room(&message);
        let Some(inflater) = &mut self.inflater else { return Err(Violation::ReservedBits) };
        let before = self.buffer.len();
        let inflation = inflater.end(&mut self.buffer, room, spare)?;
        self.inflated(message, before)?;
        if matches!(inflation, Inflation::Full { .. }) {
            return Ok(Some(self.hand_out_piece(message.kind)));
        }
        self.end_message()?;
        Ok(Some(Found::Buffer(message.kind, true)))
    }

    /// How long the buffer may become: a byte more than the message may have, or a piece.
    fn room(&self, message: &Message) -> usize {
        let left = (self.max_message_size - message.handed_out).saturating_add(1);
        match self.delivery {
            Delivery::Whole => left as usize,
            Delivery::Pieces => left.min(BLOCK as u64) as usize,
        }
    }

    /// Looks at what was inflated just now, from `before` on.
    fn inflated(&mut self, mut message: Message, before: usize) -> Result<(), Violation> {
        if message.handed_out + self.buffer.len() as u64 > self.max_message_size {
            return Err(Violation::MessageTooBig);
        }
        if message.kind == Kind::Text {
            message.utf8.push(&self.buffer[before..]).map_err(|_| Violation::NotUtf8)?;
        }
        self.message = Some(message);
        Ok(())
    }

    fn hand_out_piece(&mut self, kind: Kind) -> Found {
        if let Some(message) = &mut self.message {
            message.handed_out += self.buffer.len() as u64;
        }
        Found::Buffer(kind, false)
    }

    fn end_message(&mut self) -> Result<(), Violation> {
        self.state = State::Head;
        match self.message.take() {
            Some(Message { kind: Kind::Text, mut utf8, .. }) => utf8.end().map_err(|_| Violation::NotUtf8),
            _ => Ok(()),
        }
    }

    fn read(&mut self, bytes: usize) {
        self.frame.position += bytes as u64;
        self.frame.remaining -= bytes as u64;
    }

    fn frame_ends(&self) -> bool {
        self.frame.remaining == 0
    }
}

impl Found {
    /// Counted from the first byte of the input.
    #[inline]
    fn moved(self, by: usize) -> Found {
        match self {
            Found::Input(kind, range, last) => Found::Input(kind, range.start + by..range.end + by, last),
            Found::Control(opcode, range) => Found::Control(opcode, range.start + by..range.end + by),
            other => other,
        }
    }
}

#[inline]
fn unmask(payload: &mut [u8], key: Option<[u8; 4]>, position: u64) {
    if let Some(key) = key {
        mask::apply(payload, key, position);
    }
}

/// Room for what came (`came`), and for what its frame says is still to come, as far as that may be believed. Doubles as
/// it grows, but not beyond what the message may have (`most`).
fn reserve(buffer: &mut Vec<u8>, came: usize, frame: &Frame, most: u64) {
    let length = buffer.len();
    if buffer.capacity() - length >= came {
        return;
    }
    let announced = came as u64 + frame.remaining;
    let most = if frame.fin { announced } else { most - length as u64 };
    let double = (length as u64).min(most);
    buffer.reserve_exact(announced.min(MAX_AHEAD).max(double).max(came as u64) as usize);
}

/// Reserved for bytes that were only announced, at most.
const MAX_AHEAD: u64 = 64 * 1024;
/// What "any size" comes to: a buffer is never longer.
const MAX_MESSAGE: u64 = 1 << 40;
