//! A WebSocket over the connection of an exchange that an event loop attends to ([`Engine::attend`]).
//!
//! ```text
//!   stirred ──▶ read: one recv, frames, Inbox ──▶ what that calls for (Pong, Close) ──▶ one send
//!   application's message ──▶ send at once; while more messages wait to be answered: held, and sent together (`flush`)
//!   the peer does not take it ──▶ outbox ──▶ stirred: room ──▶ flush
//! ```
//!
//! Buffers belong to the thread (`Shelf`): a connection that waits has none.
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
use crate::reactor::What;
use tricorn_proto::response::HeadInputs;
use tricorn_proto::websocket::session::{Goodbye, Settings};
use tricorn_proto::websocket::{Kind, Session, Spare, Turn, Unsendable};

/// Bytes asked for at a time.
const READ: usize = 256 * 1024;
/// Reads in a row, after which others get their turn.
const READS: usize = 16;
/// From this size on a message is sent from where it is.
const APART: usize = 16 * 1024;

/// What the WebSockets of a thread share.
#[derive(Debug, Default)]
pub struct Shelf {
    buffer: Vec<u8>,
    out: Vec<u8>,
    spare: Spare,
}

impl Shelf {
    /// `remembering`: how many WebSockets may keep what their messages are compressed with.
    pub fn new(remembering: usize) -> Shelf {
        Shelf { buffer: Vec::new(), out: Vec::new(), spare: Spare::new(SPARE, remembering) }
    }
}

/// Contexts of each direction that are kept for whoever comes next.
const SPARE: usize = 4;

/// What every step works on.
pub struct Desk<'a> {
    pub engine: &'a Engine,
    pub exchange: &'a mut Exchange,
    pub shelf: &'a mut Shelf,
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
        desk: &mut Desk<'_>,
        settings: &Settings<'_>,
        inputs: &HeadInputs<'_>,
        keep: impl FnMut(Kind, &[u8]) -> M,
    ) -> WebSocket<M> {
        let now = clock::now();
        let exchange = &mut *desk.exchange;
        let sent = exchange.switch(inputs);
        let mut socket = WebSocket {
            session: Session::new(settings, now),
            readable: true,
            hangup: false,
            is_held: false,
            patience: None,
            before: exchange.lane.output().sent(),
        };
        if sent == Sent::Gone {
            socket.session.lost();
        }
        let mut unread = desk.engine.take_unread(exchange);
        if !unread.is_empty() {
            socket.session.receive(&mut unread, &mut turn(desk, now, false), keep);
        }
        socket.settle(desk);
        socket
    }

    /// Something happened to the connection. Whether there may be bytes to [`Self::read`].
    pub fn stirred(&mut self, desk: &mut Desk<'_>, what: What) -> bool {
        self.readable |= what.readable || what.hangup;
        self.hangup |= what.hangup;
        if what.broken {
            desk.exchange.client_left();
            self.session.lost();
            return false;
        }
        let due = if what.expired { desk.engine.take_due(desk.exchange) } else { Due::default() };
        if due.has(Timer::Ping) {
            let now = clock::now();
            self.session.tick(&mut turn(desk, now, self.patience.is_some()));
            self.settle(desk);
        }
        if what.writable || due.has(Timer::Room) {
            self.flush(desk);
        }
        self.readable && self.session.wants_read()
    }

    /// Reads what has come, as far as there is room for it.
    pub fn read(&mut self, desk: &mut Desk<'_>, mut keep: impl FnMut(Kind, &[u8]) -> M) {
        let now = clock::now();
        for _ in 0..READS {
            if !self.readable || !self.session.wants_read() {
                break;
            }
            let mut buffer = std::mem::take(&mut desk.shelf.buffer);
            buffer.clear();
            self.session.prefix(&mut buffer);
            let before = buffer.len();
            match desk.exchange.read_raw(&mut buffer, READ) {
                // A read that could have brought more is the last one: the next bytes make an event.
                Incoming::Bytes { .. } => self.readable = buffer.len() - before == READ || self.hangup,
                Incoming::Wait => self.readable = false,
                Incoming::Gone | Incoming::Refused(_) => {
                    self.readable = false;
                    self.session.lost();
                }
            }
            if !buffer.is_empty() && !self.session.is_over() {
                let is_behind = self.patience.is_some();
                self.session.receive(&mut buffer, &mut turn(desk, now, is_behind), &mut keep);
            }
            desk.shelf.buffer = buffer;
        }
        self.settle(desk);
        if self.readable && self.session.wants_read() {
            desk.engine.set_timer(desk.exchange, Timer::Turn, now);
        }
    }

    /// The next message, if it has come.
    #[inline]
    pub fn take(&mut self) -> Option<M> {
        self.session.take()
    }

    /// To be called when a message was taken or the application has closed, if [`Self::wants_more`].
    pub fn go_on(&mut self, desk: &mut Desk<'_>, mut keep: impl FnMut(Kind, &[u8]) -> M) {
        let is_behind = self.patience.is_some();
        self.session.resume(&mut turn(desk, clock::now(), is_behind), &mut keep);
        self.read(desk, keep);
    }

    /// There is room again for what could not be read.
    #[inline]
    pub fn wants_more(&self) -> bool {
        self.session.wants_resume()
    }

    /// Sends a message; `keep` as for [`Engine::write`]. Held back while messages wait that may be answered, too: `flush`.
    pub fn send(
        &mut self,
        desk: &mut Desk<'_>,
        kind: Kind,
        data: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Result<Sent, Unsendable> {
        let apart = data.len() >= APART && self.session.head(kind, data.len(), &mut desk.shelf.out)?.is_some();
        if apart {
            self.is_held = false;
            let sent = desk.exchange.lane.output_mut().send_apart(&desk.shelf.out, data, b"", keep);
            desk.shelf.out.clear();
            return Ok(self.sent(desk, sent));
        }
        self.session.send(kind, data, &mut turn(desk, 0, false))?;
        Ok(self.put(desk))
    }

    /// Begins the closing handshake for the application.
    pub fn close(&mut self, desk: &mut Desk<'_>, code: Option<u16>, reason: &str) -> Result<(), Unsendable> {
        let now = clock::now();
        self.session.close(code, reason, &mut turn(desk, now, false))?;
        self.settle(desk);
        Ok(())
    }

    /// Begins the closing handshake for the server.
    pub fn leave(&mut self, desk: &mut Desk<'_>, code: u16) {
        let now = clock::now();
        if self.session.leave(code, &mut turn(desk, now, false)).is_ok() {
            self.settle(desk);
        }
    }

    /// Sends what was held back, and what the peer did not take before.
    pub fn flush(&mut self, desk: &mut Desk<'_>) -> Sent {
        self.is_held = false;
        if self.patience.is_some() {
            desk.engine.await_room(desk.exchange);
        }
        let sent = desk.exchange.lane.output_mut().flush();
        self.sent(desk, sent)
    }

    /// Whether output is held back.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Whether so much waits for the peer that the application should, too.
    pub fn is_full(&self, exchange: &Exchange) -> bool {
        self.patience.is_some() && exchange.lane.output().in_memory() > LOW_WATER
    }

    /// Bytes of frames sent so far.
    pub fn bytes_sent(&self, exchange: &Exchange) -> u64 {
        exchange.lane.output().sent() - self.before
    }

    pub fn session(&self) -> &Session<M> {
        &self.session
    }

    pub fn goodbye(&self) -> Option<&Goodbye> {
        self.session.goodbye()
    }

    /// Sends what a step appended, and sets the timer for what is to be done next.
    fn settle(&mut self, desk: &mut Desk<'_>) {
        if !desk.shelf.out.is_empty() {
            self.is_held &= !self.session.is_over();
            self.put(desk);
        }
        if let Some(due) = self.session.due_at() {
            desk.engine.set_timer(desk.exchange, Timer::Ping, due);
        }
    }

    /// Sends what was appended to the shelf's output, or holds it back.
    fn put(&mut self, desk: &mut Desk<'_>) -> Sent {
        let Desk { exchange, shelf, .. } = desk;
        if self.session.has_messages() && self.session.is_open() {
            self.is_held = true;
            exchange.lane.output_mut().queue(&shelf.out);
            shelf.out.clear();
            if exchange.lane.output().in_memory() < APART {
                return Sent::Accepted;
            }
            return self.flush(desk);
        }
        self.is_held = false;
        let sent = exchange.lane.output_mut().send(&mut shelf.out, b"", b"", || Box::new(Vec::new()));
        shelf.out.clear();
        self.sent(desk, sent)
    }

    /// After a write.
    fn sent(&mut self, desk: &mut Desk<'_>, sent: Sent) -> Sent {
        if sent == Sent::Gone {
            self.session.lost();
            self.patience = None;
            return sent;
        }
        if !desk.exchange.lane.output().is_behind() {
            if self.patience.take().is_some() {
                desk.exchange.stop_timer(Timer::Room);
                self.session.caught_up(&mut desk.shelf.out);
                if !desk.shelf.out.is_empty() {
                    return self.put(desk);
                }
            }
            return Sent::Accepted;
        }
        self.wait(desk)
    }

    /// The peer has not taken it all: it has to take all of it in time, whether the application waits or not.
    #[cold]
    fn wait(&mut self, desk: &mut Desk<'_>) -> Sent {
        let config = desk.engine.config();
        let mut patience = self.patience.take().unwrap_or_else(|| desk.exchange.patience(config).without_end());
        desk.engine.await_room(desk.exchange);
        match desk.exchange.room_for_all(config, &mut patience) {
            Room::Wanted(nanos) => {
                self.patience = Some(patience);
                desk.engine.set_timer(desk.exchange, Timer::Room, clock::now().saturating_add(nanos));
                if self.is_full(desk.exchange) { Sent::OverMark } else { Sent::Accepted }
            }
            Room::Over(Sent::Gone) => {
                self.session.lost();
                Sent::Gone
            }
            Room::Over(_) => {
                self.patience = Some(patience); // which ends there
                self.sent(desk, Sent::Accepted)
            }
        }
    }
}

fn turn<'a>(desk: &'a mut Desk<'_>, now: u64, is_behind: bool) -> Turn<'a> {
    let Shelf { out, spare, .. } = &mut *desk.shelf;
    Turn { out, spare, now, is_behind }
}

impl Exchange {
    /// Sends the head of the reply, a 101: from now on the connection speaks something else, for as long as it likes.
    fn switch(&mut self, inputs: &HeadInputs<'_>) -> Sent {
        self.lane.output_mut().may_hold(false);
        self.lane.switch();
        let request = &mut *self.request;
        request.out.clear();
        encoding::head(&mut request.reply, &mut request.out, inputs);
        let sent = self.send_out();
        self.request.out = Vec::new();
        self.request.trim();
        sent
    }
}
