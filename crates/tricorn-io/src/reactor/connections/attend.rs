//! Connections whose exchange is told what happens to them: an event loop has many requests under way on one thread, and
//! none of them waits for its own socket.
use super::Connections;
use super::attended::{Attended, Readiness, SlotReadiness};
use crate::clock;
use crate::exchange::Exchange;
use crate::exchange::descriptor::Descriptor;
use crate::exchange::id::RequestId;
use crate::sys::poll::{Event, Token};

impl Connections {
    /// Something happened to a connection that is with an exchange.
    pub(super) fn busy_event(&mut self, event: Event) -> Option<RequestId> {
        let conn = self.conns.get(event.token)?;
        let serial = &conn.serial;
        let id = serial.begun(event.token);
        let attended = self.attended(id)?;
        let Attended { slot, room, .. } = *attended;
        let hangup = event.hangup || event.error;
        if slot == 0 || !(event.readable || hangup || room) {
            return None;
        }
        attended.room = false;
        let readiness =
            Readiness { readable: event.readable, writable: room, hangup, broken: event.error, expired: false };
        self.note(id, readiness)
    }

    /// The exchange of this request is with the reactor, and is told nothing any more.
    pub fn detach(&mut self, id: RequestId) {
        if let Some(attended) = self.attended(id) {
            *attended = Attended::default();
        }
    }

    pub(super) fn attended(&mut self, id: RequestId) -> Option<&mut Attended> {
        let conn = self.conns.get_mut(id.connection())?;
        let serial = &conn.serial;
        if serial.is_begun(id) { conn.phase.get_mut().attended() } else { None }
    }

    /// Notes what happened. Whether the exchange is to be told: once, while a hub is away, for a client may make any number of edges.
    pub(super) fn note(&mut self, id: RequestId, readiness: Readiness) -> Option<RequestId> {
        match &mut self.attended(id)?.news {
            Some(news) => {
                *news = news.and(readiness);
                None
            }
            news => {
                *news = Some(readiness);
                Some(id)
            }
        }
    }

    /// The exchange has not read all that had come, and others had their turn since.
    pub(super) fn may_be_readable(&mut self, token: Token) -> Option<RequestId> {
        let conn = self.conns.get(token)?;
        let serial = &conn.serial;
        self.note(serial.begun(token), Readiness { readable: true, ..Readiness::default() })
    }

    /// A job for the exchange is over: it has sent what was in front of its output, or opened a file.
    pub(super) fn may_have_room(&mut self, token: Token) -> Option<RequestId> {
        let conn = self.conns.get(token)?;
        let serial = &conn.serial;
        let id = serial.begun(token);
        let attended = self.attended(id).filter(|attended| attended.slot > 0)?;
        attended.room = false;
        self.note(id, Readiness { writable: true, ..Readiness::default() })
    }

    /// The exchange's earliest timer has come.
    pub(super) fn remind(&mut self, id: RequestId) -> Option<RequestId> {
        self.attended(id)?.reminded = false;
        self.note(id, Readiness { expired: true, ..Readiness::default() })
    }

    /// What the exchange of this request was not told yet, if it is still there.
    pub fn take_readiness(&mut self, id: RequestId) -> Option<SlotReadiness> {
        let attended = self.attended(id)?;
        let readiness = attended.news.take()?;
        Some(SlotReadiness { slot: (attended.slot as usize).checked_sub(1)?, readiness })
    }

    /// From now on the exchange is told what happens to its connection. Bytes and room are edges.
    pub fn attend(&mut self, exchange: &Exchange) -> Option<RequestId> {
        let id = exchange.lane.id();
        self.attended(id)?.slot = exchange.slot as u32 + 1;
        let (Descriptor::Own(socket) | Descriptor::Borrowed(socket)) = exchange.lane.descriptor() else {
            self.later(id.connection());
            return None;
        };
        let conn = self.conns.get(id.connection())?;
        let (hangup, readable) = (conn.edges.is_hangup(), conn.edges.is_readable());
        let readiness = match self.conns.watch_lent(id.connection(), socket) {
            // No memory in the kernel: as good as broken.
            Err(_) => Readiness { hangup: true, broken: true, ..Readiness::default() },
            Ok(true) => {
                self.updates.connection_may_stay(clock::now());
                return None;
            }
            Ok(false) if hangup || readable => Readiness { readable: true, hangup, ..Readiness::default() },
            Ok(false) => return None,
        };
        self.note(id, readiness)
    }

    /// The next thing that happens to the connection is told, whatever it is.
    pub fn await_room(&mut self, id: RequestId) {
        if let Some(attended) = self.attended(id) {
            attended.room = true;
        }
    }

    /// The exchange is told that there are bytes once others had their turn, since it leaves some unread that make no event.
    pub fn read_later(&mut self, id: RequestId) {
        if self.attended(id).is_some() {
            self.later(id.connection());
        }
    }

    /// The exchange's earliest timer comes then.
    pub fn remind_at(&mut self, id: RequestId, at: u64) {
        let Some(attended) = self.attended(id) else { return };
        attended.reminded = true;
        self.set_deadline(id.connection(), at);
    }
}
