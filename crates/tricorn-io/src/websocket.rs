//! A WebSocket over the connection of an exchange that an event loop attends to ([`Engine::attend`]).
//!
//! ```text
//!   on_readiness ──▶ read: one recv, frames, Inbox ──▶ what that calls for (Pong, Close) ──▶ one send
//!   application's message ──▶ send at once; while more messages wait to be answered: held, and sent together (`flush`)
//!   the peer does not take it ──▶ outbox ──▶ on_readiness: room ──▶ flush
//! ```
//!
//! Buffers belong to the thread (`WebSocketBuffers`): a connection that waits has none.
use crate::clock;
use crate::config::LOW_WATER;
use crate::engine::Engine;
use crate::exchange::encoding;
use crate::exchange::incoming::Incoming;
use crate::exchange::outbox::SharedBytes;
use crate::exchange::patience::Patience;
use crate::exchange::room::Room;
use crate::exchange::timers::{Due, Timer};
use crate::exchange::{Exchange, Sent};
use crate::reactor::Readiness;
use crate::scoreboard::{Phase, Word};
use crate::turn::Turn;
use tricorn_proto::response::HeadInputs;
use tricorn_proto::websocket::session::{Goodbye, Settings};
use tricorn_proto::websocket::{ContextPool, Kind, Session, StepInput, Unsendable};

/// Bytes asked for at a time: of the smallest frames they are read in a part of a turn.
const READ: usize = 64 * 1024;
/// From this size on a message is sent from where it is.
const APART: usize = 16 * 1024;

/// What the WebSockets of a thread share.
#[derive(Debug, Default)]
pub struct WebSocketBuffers {
    buffer: Vec<u8>,
    out: Vec<u8>,
    spare: ContextPool,
}

impl WebSocketBuffers {
    /// `remembering`: how many WebSockets may keep what their messages are compressed with.
    pub fn new(remembering: usize) -> WebSocketBuffers {
        WebSocketBuffers { buffer: Vec::new(), out: Vec::new(), spare: ContextPool::new(SPARE, remembering) }
    }
}

/// Contexts of each direction that are kept for connections to come.
const SPARE: usize = 4;

/// What every step works on.
pub struct WebSocketIo<'a> {
    pub engine: &'a Engine,
    pub exchange: &'a mut Exchange,
    pub buffers: &'a mut WebSocketBuffers,
}

/// One WebSocket. `M` is a message as the application gets it.
#[derive(Debug)]
pub struct WebSocket<M> {
    session: Session<M>,
    /// There may be bytes to read.
    readable: bool,
    /// The peer has closed its sending side.
    hangup: bool,
    /// Output waits for more of it.
    is_held: bool,
    /// The peer has not taken all output.
    patience: Option<Patience>,
    /// Bytes sent before the first frame.
    before: u64,
}

impl<M> WebSocket<M> {
    /// Answers the handshake with the head of the exchange's reply (101), and begins with what was sent behind the request.
    /// There may be more to [`Self::read`].
    pub fn begin(
        io: &mut WebSocketIo<'_>,
        settings: &Settings<'_>,
        inputs: &HeadInputs<'_>,
        keep: impl FnMut(Kind, &[u8]) -> M,
    ) -> WebSocket<M> {
        let now = clock::now();
        let exchange = &mut *io.exchange;
        let sent = exchange.switch(inputs);
        io.engine.note_phase(exchange, Phase::WebSocket);
        let mut socket = WebSocket {
            session: Session::new(settings, now),
            readable: true,
            hangup: false,
            is_held: false,
            patience: None,
            before: exchange.lane.sent(),
        };
        if sent == Sent::Gone {
            socket.session.lost();
        }
        let mut unread = io.engine.take_unread(exchange);
        if !unread.is_empty() {
            let mut count = 0;
            socket.session.receive(&mut unread, &mut step_input(io, now, false), counted(&mut count, keep));
            count_messages(io, Word::MessagesIn, count);
        }
        socket.settle(io);
        socket
    }

    /// Something happened to the connection. Whether there may be bytes to [`Self::read`].
    pub fn on_readiness(&mut self, io: &mut WebSocketIo<'_>, readiness: Readiness) -> bool {
        self.readable |= readiness.readable || readiness.hangup;
        self.hangup |= readiness.hangup;
        if readiness.broken {
            io.exchange.client_left();
            self.session.lost();
            return false;
        }
        let due = if readiness.expired { io.engine.take_due(io.exchange) } else { Due::default() };
        if due.has(Timer::Ping) {
            let now = clock::now();
            self.session.tick(&mut step_input(io, now, self.patience.is_some()));
            self.settle(io);
        }
        if readiness.writable || due.has(Timer::Room) {
            self.flush(io);
        }
        self.readable && self.session.wants_read()
    }

    /// Reads what has come, as far as there is room for it and for a turn at most. How much that was (`Stream::effort`).
    pub fn read(&mut self, io: &mut WebSocketIo<'_>, mut keep: impl FnMut(Kind, &[u8]) -> M) -> usize {
        let received = io.exchange.request.received;
        let mut now = clock::now();
        let turn = Turn::begin(now);
        let mut count = 0;
        while self.readable && self.session.wants_read() {
            if turn.is_over(now) {
                io.engine.read_later(io.exchange);
                break;
            }
            let mut buffer = std::mem::take(&mut io.buffers.buffer);
            buffer.clear();
            self.session.prefix(&mut buffer);
            let before = buffer.len();
            match io.exchange.read_raw(&mut buffer, READ) {
                // A read that could have brought more is the last one: the next bytes make an event.
                Incoming::Bytes { .. } => {
                    let is_full = buffer.len() - before == READ;
                    self.readable = is_full || self.hangup || io.exchange.lane.stream().holds();
                }
                Incoming::Wait => self.readable = false,
                Incoming::Gone | Incoming::Refused(_) => {
                    self.readable = false;
                    self.session.lost();
                }
            }
            if !buffer.is_empty() && !self.session.is_over() {
                let is_behind = self.patience.is_some();
                self.session.receive(&mut buffer, &mut step_input(io, now, is_behind), counted(&mut count, &mut keep));
            }
            io.buffers.buffer = buffer;
            if self.readable {
                now = clock::now();
            }
        }
        count_messages(io, Word::MessagesIn, count);
        self.settle(io);
        let count = (io.exchange.request.received - received) as usize;
        io.exchange.effort(count)
    }

    /// The next message, if it has come.
    #[inline]
    pub fn take(&mut self) -> Option<M> {
        self.session.take()
    }

    /// To be called when a message was taken or the application has closed, if [`Self::wants_more`]. As [`Self::read`].
    pub fn go_on(&mut self, io: &mut WebSocketIo<'_>, mut keep: impl FnMut(Kind, &[u8]) -> M) -> usize {
        let is_behind = self.patience.is_some();
        let mut count = 0;
        self.session.resume(&mut step_input(io, clock::now(), is_behind), counted(&mut count, &mut keep));
        count_messages(io, Word::MessagesIn, count);
        self.read(io, keep)
    }

    /// There is room again for what could not be read.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.session.wants_resume()
    }

    /// Sends a message; `keep` as for [`Engine::write`]. Held back while messages wait that may be answered, too: `flush`.
    pub fn send(
        &mut self,
        io: &mut WebSocketIo<'_>,
        kind: Kind,
        data: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Result<Sent, Unsendable> {
        let apart = data.len() >= APART && self.session.head(kind, data.len(), &mut io.buffers.out)?.is_some();
        if apart {
            self.is_held = false;
            let sent = io.exchange.lane.send(&mut io.buffers.out, data, b"", keep);
            io.buffers.out.clear();
            count_messages(io, Word::MessagesOut, 1);
            return Ok(self.sent(io, sent));
        }
        self.session.send(kind, data, &mut step_input(io, 0, false))?;
        count_messages(io, Word::MessagesOut, 1);
        Ok(self.put(io))
    }

    /// Begins the closing handshake for the application.
    pub fn close(&mut self, io: &mut WebSocketIo<'_>, code: Option<u16>, reason: &str) -> Result<(), Unsendable> {
        let now = clock::now();
        self.session.close(code, reason, &mut step_input(io, now, false))?;
        self.settle(io);
        Ok(())
    }

    /// Begins the closing handshake for the server.
    pub fn leave(&mut self, io: &mut WebSocketIo<'_>, code: u16) {
        let now = clock::now();
        if self.session.leave(code, &mut step_input(io, now, false)).is_ok() {
            self.settle(io);
        }
    }

    /// Sends what was held back, and what the peer did not take before.
    pub fn flush(&mut self, io: &mut WebSocketIo<'_>) -> Sent {
        self.is_held = false;
        if self.patience.is_some() {
            io.engine.await_room(io.exchange);
        }
        let sent = io.exchange.lane.flush();
        self.sent(io, sent)
    }

    /// Whether output is held back.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Whether so much waits for the peer that the application should, too.
    pub fn is_full(&self, exchange: &Exchange) -> bool {
        self.patience.is_some() && exchange.lane.in_memory() > LOW_WATER
    }

    /// Bytes of frames sent so far.
    pub fn bytes_sent(&self, exchange: &Exchange) -> u64 {
        exchange.lane.sent() - self.before
    }

    pub fn session(&self) -> &Session<M> {
        &self.session
    }

    pub fn goodbye(&self) -> Option<&Goodbye> {
        self.session.goodbye()
    }

    /// Sends what a step appended, and sets the timer for what is to be done next.
    fn settle(&mut self, io: &mut WebSocketIo<'_>) {
        if !io.buffers.out.is_empty() {
            self.is_held &= !self.session.is_over();
            self.put(io);
        }
        if let Some(due) = self.session.due_at() {
            io.engine.set_timer(io.exchange, Timer::Ping, due);
        }
    }

    /// Sends what was appended to the thread's output, or holds it back.
    fn put(&mut self, io: &mut WebSocketIo<'_>) -> Sent {
        let WebSocketIo { exchange, buffers, .. } = io;
        if self.session.has_messages() && self.session.is_open() {
            self.is_held = true;
            exchange.lane.queue(&buffers.out);
            buffers.out.clear();
            if exchange.lane.in_memory() < APART {
                return Sent::Accepted;
            }
            return self.flush(io);
        }
        self.is_held = false;
        let sent = exchange.lane.send(&mut buffers.out, b"", b"", || Box::new(Vec::new()));
        buffers.out.clear();
        self.sent(io, sent)
    }

    /// After a write.
    fn sent(&mut self, io: &mut WebSocketIo<'_>, sent: Sent) -> Sent {
        if sent == Sent::Gone {
            self.session.lost();
            self.patience = None;
            return sent;
        }
        if !io.exchange.lane.is_behind() {
            if self.patience.take().is_some() {
                io.exchange.stop_timer(Timer::Room);
                self.session.caught_up(&mut io.buffers.out);
                if !io.buffers.out.is_empty() {
                    return self.put(io);
                }
            }
            return Sent::Accepted;
        }
        self.wait(io)
    }

    /// The peer has not taken it all: it has to take all of it in time, whether the application waits or not.
    #[cold]
    fn wait(&mut self, io: &mut WebSocketIo<'_>) -> Sent {
        let config = io.engine.config();
        let mut patience = self.patience.take().unwrap_or_else(|| io.exchange.patience(config).without_end());
        io.engine.await_room(io.exchange);
        match io.exchange.room_for_all(config, &mut patience) {
            Room::Wanted(nanos) | Room::Away(nanos) => {
                self.patience = Some(patience);
                io.engine.set_timer(io.exchange, Timer::Room, clock::now().saturating_add(nanos));
                if self.is_full(io.exchange) { Sent::OverMark } else { Sent::Accepted }
            }
            Room::Over(Sent::Gone) => {
                self.session.lost();
                Sent::Gone
            }
            Room::Over(_) => {
                self.patience = Some(patience); // which ends there
                self.sent(io, Sent::Accepted)
            }
        }
    }
}

/// Counts the messages that come.
fn counted<M>(count: &mut u64, mut keep: impl FnMut(Kind, &[u8]) -> M) -> impl FnMut(Kind, &[u8]) -> M {
    move |kind, data| {
        *count += 1;
        keep(kind, data)
    }
}

fn count_messages(io: &WebSocketIo<'_>, word: Word, count: u64) {
    if count > 0 {
        io.engine.shared.board.raise(word, count);
    }
}

fn step_input<'a>(io: &'a mut WebSocketIo<'_>, now: u64, is_behind: bool) -> StepInput<'a> {
    let WebSocketBuffers { out, spare, .. } = &mut *io.buffers;
    StepInput { out, spare, now, is_behind }
}

impl Exchange {
    /// Sends the head of the reply, a 101 or what HTTP/2 has for it: from now on the connection speaks something else, for as long as it likes.
    fn switch(&mut self, inputs: &HeadInputs<'_>) -> Sent {
        let request = &mut *self.request;
        request.out.clear();
        encoding::head(&mut request.reply, &mut request.out, inputs);
        let sent = self.send_out();
        self.lane.switch();
        self.request.out = Vec::new();
        self.request.trim();
        sent
    }
}
