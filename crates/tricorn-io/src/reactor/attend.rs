//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Reactor;
use super::conn::Phase;
use crate::clock;
use crate::engine::Engine;
use crate::exchange::patience::Patience;
use crate::exchange::room::Room;
use crate::exchange::timers::{Due, Timer};
use crate::exchange::{Exchange, Sent};
use crate::scoreboard::Word;
use crate::sys::poll::{Event, Token};
use rustix::fd::AsFd;
use tricorn_proto::http1::{Refusal, RefusalKind};

/// What a connection's exchange wants to be told of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attended {
    /// The place of its call, and one; 0: nothing is told.
    place: u32,
    /// Whatever happens may mean that there is room for output.
    room: bool,
    /// At the connection's deadline.
    pub reminded: bool,
    /// What has happened and was not told yet. Its connection is listed in `Reactor::stirred`.
    news: Option<What>,
}

/// What has happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct What {
    /// There may be bytes to read.
    pub readable: bool,
    /// There may be room for output, after [`Engine::wait_for_room`].
    pub writable: bool,
    /// The client has closed its sending side, or the connection is broken.
    pub hangup: bool,
    /// It is broken: nothing that is sent arrives.
    pub broken: bool,
    /// A timer may have come: [`Engine::take_due`].
    pub expired: bool,
}

impl What {
    /// Both: what was not told yet, and what has happened since.
    fn and(self, later: What) -> What {
        What {
            readable: self.readable | later.readable,
            writable: self.writable | later.writable,
            hangup: self.hangup | later.hangup,
            broken: self.broken | later.broken,
            expired: self.expired | later.expired,
        }
    }
}

/// Something happened to the connection of the call at this place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stir {
    pub place: usize,
    pub what: What,
}

impl Reactor {
    /// Something happened to a connection that is with an exchange.
    pub(super) fn stir_busy(&mut self, event: Event) {
        let Some(conn) = self.conns.get_mut(event.token) else { return };
        let Attended { place, room, .. } = conn.attended;
        let hangup = event.hangup || event.error;
        if place == 0 || !(event.readable || hangup || room) {
            return;
        }
        conn.attended.room = false;
        let what = What { readable: event.readable, writable: room, hangup, broken: event.error, expired: false };
        self.tell(event.token, what);
    }

    /// Lists the connection, once: while the hub is away a client may make any number of edges.
    fn tell(&mut self, token: Token, what: What) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        match &mut conn.attended.news {
            Some(news) => *news = news.and(what),
            news => {
                *news = Some(what);
                self.stirred.push_back(token);
            }
        }
    }

    /// The exchange's earliest timer has come.
    pub(super) fn remind(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.attended.reminded = false;
        self.tell(token, What { expired: true, ..What::default() });
    }

    /// The next of them, if its exchange is still there.
    pub fn next_stir(&mut self) -> Option<Stir> {
        loop {
            let token = self.stirred.pop_front()?;
            if let Some(conn) = self.conns.get_mut(token)
                && let Some(what) = conn.attended.news.take()
                && conn.phase == Phase::Busy
                && let Some(place) = (conn.attended.place as usize).checked_sub(1)
            {
                return Some(Stir { place, what });
            }
        }
    }
}

impl Engine {
    /// From now on [`crate::Wake::Stirred`] tells what happens to the exchange's connection, until it is given back. Bytes and
    /// room are edges: told when there are some again after the socket said that there were none.
    pub fn attend(&self, exchange: &Exchange) {
        let reactor = &mut self.shared.baton.take().reactor;
        let Some(conn) = reactor.conns.get_mut(exchange.token) else { return };
        conn.attended.place = exchange.slot as u32 + 1;
        let (hangup, unseen) = (conn.hangup, conn.readable && conn.registered);
        if !conn.registered {
            conn.registered = true;
            if reactor.poller.add_connection(exchange.socket.as_fd(), exchange.token).is_err() {
                // No memory in the kernel: as good as broken.
                let what = What { hangup: true, broken: true, ..What::default() };
                reactor.tell(exchange.token, what);
            }
        } else if hangup || unseen {
            let what = What { readable: true, hangup, ..What::default() };
            reactor.tell(exchange.token, what);
        }
    }

    /// The next thing that happens to an attended connection is told, since it may be that there is room for output. To be
    /// called before the socket is tried once more.
    pub(crate) fn await_room(&self, exchange: &Exchange) {
        if let Some(conn) = self.shared.baton.take().reactor.conns.get_mut(exchange.token) {
            conn.attended.room = true;
        }
    }

    /// How a wait for room has ended; `None`: it goes on, or begins (with a patience of its own), and something is told when the
    /// socket takes bytes or the client has had its time. For exchanges that are attended.
    pub fn wait_for_room(&self, exchange: &mut Exchange, patience: &mut Option<Patience>) -> Option<Sent> {
        let config = self.config();
        let left = patience.get_or_insert_with(|| exchange.patience(config));
        self.await_room(exchange);
        match exchange.room(config, left) {
            Room::Wanted(nanos) => {
                self.set_timer(exchange, Timer::Room, clock::now().saturating_add(nanos));
                None
            }
            Room::Over(sent) => {
                *patience = None;
                exchange.stop_timer(Timer::Room);
                Some(sent)
            }
        }
    }

    /// Sets a timer of an exchange that is attended, or moves it (monotonic nanoseconds). [`What::expired`] tells, to about
    /// 70 ms, that one may have come.
    pub fn set_timer(&self, exchange: &mut Exchange, timer: Timer, at: u64) {
        if let Some(at) = exchange.timers.set(timer, at) {
            self.arm(exchange, at);
        }
    }

    /// Takes the timers that have come; to be called for each [`What::expired`].
    pub fn take_due(&self, exchange: &mut Exchange) -> Due {
        let (due, next) = exchange.timers.expire(clock::now());
        if let Some(at) = next {
            self.arm(exchange, at);
        }
        due
    }

    fn arm(&self, exchange: &Exchange, at: u64) {
        let reactor = &mut self.shared.baton.take().reactor;
        let Some(conn) = reactor.conns.get_mut(exchange.token) else { return };
        conn.attended.reminded = true;
        reactor.set_deadline(exchange.token, at);
    }

    /// The application waits for the client's bytes from now on, at most until the body is late. False if it waited before.
    pub fn await_body(&self, exchange: &mut Exchange, now: u64) -> bool {
        if exchange.awaits_body() {
            return false;
        }
        let due = exchange.await_body(self.config(), now);
        self.set_timer(exchange, Timer::Body, due);
        true
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub fn count_refused(&self, exchange: &Exchange, refusal: &Refusal) {
        let reactor = &mut self.shared.baton.take().reactor;
        let counter = if refusal.kind == RefusalKind::BodyTimeout { Word::BodyTimeouts } else { Word::Refused };
        reactor.board.add(counter, 1);
        let peer = exchange.peer;
        reactor.notice(true, || format!("Invalid request from ip={peer}: {}", refusal.log_text()));
    }

    /// What the client sent behind the request that is with this exchange, for a protocol that follows it.
    pub fn take_unread(&self, exchange: &Exchange) -> Vec<u8> {
        let reactor = &mut self.shared.baton.take().reactor;
        let Some(mut next) = reactor.conns.get_mut(exchange.token).and_then(|conn| conn.request.take()) else {
            return Vec::new();
        };
        let unread = std::mem::take(&mut next.input);
        reactor.recycle(next);
        unread
    }
}
