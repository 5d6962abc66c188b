//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Reactor;
use super::attended::{Attended, Stir, What};
use crate::exchange::Exchange;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::sys::poll::{Event, Token};
use tricorn_proto::message::{Refusal, RefusalKind};

impl Reactor {
    /// Something happened to a connection that is with an exchange.
    pub(super) fn stir_busy(&mut self, event: Event) {
        let Some(conn) = self.conns.get_mut(event.token) else { return };
        let Some(attended) = conn.phase.get_mut().attended() else { return };
        let Attended { place, room, .. } = *attended;
        let hangup = event.hangup || event.error;
        if place == 0 || !(event.readable || hangup || room) {
            return;
        }
        attended.room = false;
        let what = What { readable: event.readable, writable: room, hangup, broken: event.error, expired: false };
        self.tell(event.token, what);
    }

    fn attended(&mut self, token: Token) -> Option<&mut Attended> {
        self.conns.get_mut(token)?.phase.get_mut().attended()
    }

    /// Lists the connection, once: while the hub is away a client may make any number of edges.
    fn tell(&mut self, token: Token, what: What) {
        let Some(attended) = self.attended(token) else { return };
        match &mut attended.news {
            Some(news) => *news = news.and(what),
            news => {
                *news = Some(what);
                self.work.add_stirred(token);
            }
        }
    }

    /// The exchange's earliest timer has come.
    pub(super) fn remind(&mut self, token: Token) {
        let Some(attended) = self.attended(token) else { return };
        attended.reminded = false;
        self.tell(token, What { expired: true, ..What::default() });
    }

    /// The next of them, if its exchange is still there.
    pub fn next_stir(&mut self) -> Option<Stir> {
        loop {
            let token = self.work.next_stirred()?;
            if let Some(attended) = self.attended(token)
                && let Some(what) = attended.news.take()
                && let Some(place) = (attended.place as usize).checked_sub(1)
            {
                return Some(Stir { place, what });
            }
        }
    }

    /// From now on the exchange is told what happens to its connection. Bytes and room are edges.
    pub(crate) fn attend(&mut self, exchange: &Exchange) {
        let Some(conn) = self.conns.get_mut(exchange.token) else { return };
        if let Some(attended) = conn.phase.get_mut().attended() {
            attended.place = exchange.slot as u32 + 1;
        }
        let (hangup, readable) = (conn.edges.is_hangup(), conn.edges.is_readable());
        let what = match self.conns.watch_lent(exchange.token, exchange.socket()) {
            // No memory in the kernel: as good as broken.
            Err(_) => What { hangup: true, broken: true, ..What::default() },
            Ok(true) => return self.connection_stays(),
            Ok(false) if hangup || readable => What { readable: true, hangup, ..What::default() },
            Ok(false) => return,
        };
        self.tell(exchange.token, what);
    }

    /// The next thing that happens to the connection is told, whatever it is.
    pub(crate) fn await_room(&mut self, token: Token) {
        if let Some(attended) = self.attended(token) {
            attended.room = true;
        }
    }

    /// The exchange's earliest timer comes then.
    pub(crate) fn remind_at(&mut self, token: Token, at: u64) {
        let Some(attended) = self.attended(token) else { return };
        attended.reminded = true;
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
