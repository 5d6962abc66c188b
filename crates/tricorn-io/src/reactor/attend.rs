//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Reactor;
use super::conn::{Phase, Token};
use crate::clock;
use crate::engine::Engine;
use crate::exchange::{Exchange, Sent};
use crate::room::{Patience, Room};
use crate::scoreboard::Word;
use crate::sys::poll::Event;
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
    /// The time of [`Engine::remind`] has come.
    pub expired: bool,
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
        self.stirred.push_back((event.token, what));
    }

    /// The time has come that the exchange wanted to be told of.
    pub(super) fn remind(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.attended.reminded = false;
        self.stirred.push_back((token, What { expired: true, ..What::default() }));
    }

    /// The next of them, if its exchange is still there.
    pub fn next_stir(&mut self) -> Option<Stir> {
        loop {
            let (token, what) = self.stirred.pop_front()?;
            if let Some(conn) = self.conns.get(token)
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
                reactor.stirred.push_back((exchange.token, what));
            }
        } else if hangup || unseen {
            let what = What { readable: true, hangup, ..What::default() };
            reactor.stirred.push_back((exchange.token, what));
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
                self.remind(exchange, Some(clock::now() + nanos));
                None
            }
            Room::Over(sent) => {
                *patience = None;
                Some(sent)
            }
        }
    }

    /// Tells the exchange of an attended connection when it is `at` (monotonic nanoseconds), to about 70 ms. There is one such
    /// time; `None` takes it back.
    pub fn remind(&self, exchange: &Exchange, at: Option<u64>) {
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        let Some(conn) = core.reactor.conns.get_mut(exchange.token) else { return };
        conn.attended.reminded = at.is_some();
        let Some(at) = at else { return };
        core.reactor.set_deadline(exchange.token, at);
        drop(core);
        if shared.hub.as_ref().is_some_and(|hub| at < hub.until.load(std::sync::atomic::Ordering::SeqCst)) {
            shared.wake_monitor(); // which sleeps for longer than that
        }
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
