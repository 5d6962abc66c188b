//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Reactor;
use super::attended::{Attended, Stir, What};
use super::conn::Phase;
use crate::exchange::Exchange;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::sys::poll::{Event, Token};
use rustix::fd::AsFd;
use tricorn_proto::http1::{Refusal, RefusalKind};

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

    /// From now on the exchange is told what happens to its connection. Bytes and room are edges.
    pub(crate) fn attend(&mut self, exchange: &Exchange) {
        let Some(conn) = self.conns.get_mut(exchange.token) else { return };
        conn.attended.place = exchange.slot as u32 + 1;
        let (hangup, unseen) = (conn.hangup, conn.readable && conn.registered);
        if !conn.registered {
            conn.registered = true;
            if self.poller.add_connection(exchange.socket.as_fd(), exchange.token).is_err() {
                // No memory in the kernel: as good as broken.
                let what = What { hangup: true, broken: true, ..What::default() };
                self.tell(exchange.token, what);
            }
        } else if hangup || unseen {
            let what = What { readable: true, hangup, ..What::default() };
            self.tell(exchange.token, what);
        }
    }

    /// The next thing that happens to the connection is told, whatever it is.
    pub(crate) fn await_room(&mut self, token: Token) {
        if let Some(conn) = self.conns.get_mut(token) {
            conn.attended.room = true;
        }
    }

    /// The exchange's earliest timer comes then.
    pub(crate) fn remind_at(&mut self, token: Token, at: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.attended.reminded = true;
        self.set_deadline(token, at);
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub(crate) fn count_refused(&mut self, peer: Peer, refusal: &Refusal) {
        let counter = if refusal.kind == RefusalKind::BodyTimeout { Word::BodyTimeouts } else { Word::Refused };
        self.board.add(counter, 1);
        self.notice(true, || format!("Invalid request from ip={peer}: {}", refusal.log_text()));
    }

    /// What was read of the next request, which a protocol that follows gets instead.
    pub(crate) fn take_unread(&mut self, token: Token) -> Vec<u8> {
        let Some(mut next) = self.conns.get_mut(token).and_then(|conn| conn.request.take()) else {
            return Vec::new();
        };
        let unread = std::mem::take(&mut next.input);
        self.recycle(next);
        unread
    }
}
