//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Reactor;
use super::attended::{Attended, Readiness, SlotReadiness};
use super::wire::Wire;
use crate::exchange::Exchange;
use crate::exchange::id::RequestId;
use crate::exchange::lane::Descriptor;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::sys::poll::{Event, Token};
use tricorn_proto::message::{Refusal, RefusalKind};

impl Reactor {
    /// Something happened to a connection that is with an exchange.
    pub(super) fn busy_event(&mut self, event: Event) {
        let Some(conn) = self.conns.get(event.token) else { return };
        let Wire::Http1(http1) = &conn.wire;
        let id = http1.begun(event.token);
        let Some(attended) = self.attended(id) else { return };
        let Attended { slot, room, .. } = *attended;
        let hangup = event.hangup || event.error;
        if slot == 0 || !(event.readable || hangup || room) {
            return;
        }
        attended.room = false;
        let readiness =
            Readiness { readable: event.readable, writable: room, hangup, broken: event.error, expired: false };
        self.tell(id, readiness);
    }

    fn attended(&mut self, id: RequestId) -> Option<&mut Attended> {
        let conn = self.conns.get_mut(id.connection())?;
        let Wire::Http1(http1) = &conn.wire;
        if http1.is_begun(id) { conn.phase.get_mut().attended() } else { None }
    }

    /// Lists the request, once: while the hub is away a client may make any number of edges.
    fn tell(&mut self, id: RequestId, readiness: Readiness) {
        let Some(attended) = self.attended(id) else { return };
        match &mut attended.news {
            Some(news) => *news = news.and(readiness),
            news => {
                *news = Some(readiness);
                self.work.add_changed(id);
            }
        }
    }

    /// The exchange has not read all that had come, and others had their turn since.
    pub(super) fn may_be_readable(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token) else { return };
        let Wire::Http1(http1) = &conn.wire;
        self.tell(http1.begun(token), Readiness { readable: true, ..Readiness::default() });
    }

    /// The exchange's earliest timer has come.
    pub(super) fn remind(&mut self, id: RequestId) {
        let Some(attended) = self.attended(id) else { return };
        attended.reminded = false;
        self.tell(id, Readiness { expired: true, ..Readiness::default() });
    }

    /// The next of them, if its exchange is still there.
    pub fn next_readiness(&mut self) -> Option<SlotReadiness> {
        loop {
            let id = self.work.next_changed()?;
            if let Some(attended) = self.attended(id)
                && let Some(readiness) = attended.news.take()
                && let Some(slot) = (attended.slot as usize).checked_sub(1)
            {
                return Some(SlotReadiness { slot, readiness });
            }
        }
    }

    /// From now on the exchange is told what happens to its connection. Bytes and room are edges.
    pub(crate) fn attend(&mut self, exchange: &Exchange) {
        let id = exchange.lane.id();
        let Descriptor::Own(socket) = exchange.lane.descriptor();
        let Some(attended) = self.attended(id) else { return };
        attended.slot = exchange.slot as u32 + 1;
        let Some(conn) = self.conns.get(id.connection()) else { return };
        let (hangup, readable) = (conn.edges.is_hangup(), conn.edges.is_readable());
        let readiness = match self.conns.watch_lent(id.connection(), socket) {
            // No memory in the kernel: as good as broken.
            Err(_) => Readiness { hangup: true, broken: true, ..Readiness::default() },
            Ok(true) => return self.connection_may_stay(),
            Ok(false) if hangup || readable => Readiness { readable: true, hangup, ..Readiness::default() },
            Ok(false) => return,
        };
        self.tell(id, readiness);
    }

    /// The next thing that happens to the connection is told, whatever it is.
    pub(crate) fn await_room(&mut self, id: RequestId) {
        if let Some(attended) = self.attended(id) {
            attended.room = true;
        }
    }

    /// The exchange is told that there are bytes once others had their turn, since it leaves some unread that make no event.
    pub(crate) fn read_later(&mut self, id: RequestId) {
        if self.attended(id).is_some() {
            self.later(id.connection());
        }
    }

    /// The exchange's earliest timer comes then.
    pub(crate) fn remind_at(&mut self, id: RequestId, at: u64) {
        let Some(attended) = self.attended(id) else { return };
        attended.reminded = true;
        self.set_deadline(id.connection(), at);
    }

    /// A body that came while its request was under way was refused: counted, and told to the log.
    pub(crate) fn count_refused(&mut self, peer: Peer, refusal: &Refusal) {
        let counter = if refusal.kind == RefusalKind::BodyTimeout { Word::BodyTimeouts } else { Word::Refused };
        self.board.add(counter, 1);
        self.board.refused(refusal.kind);
        self.notice(true, || format!("Invalid request from ip={peer}: {}", refusal.log_text()));
    }

    /// What was read of the next request, which a protocol that follows gets instead.
    pub(crate) fn take_unread(&mut self, id: RequestId) -> Vec<u8> {
        let conn = self.conns.get_mut(id.connection());
        let Some(mut next) = conn.and_then(|conn| conn.wire.take_unread(id)) else { return Vec::new() };
        let unread = std::mem::take(&mut next.input);
        self.recycle(next);
        unread
    }
}
