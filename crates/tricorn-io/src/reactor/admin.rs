//! Admin connections: questions about this worker, answered by the thread that runs the reactor, while every app thread may be busy.
//!
//! They never meet the application, are never queued, and count for no limit and no statistics of the others.
use super::Reactor;
use super::conn::{Conn, Origin};
use super::listener::{Accepted, Listener};
use super::outgoing::Then;
use super::phase::{Change, Phase};
use super::questions::{Question, Sight};
use super::respond::Delivery;
use super::tokens::is_admin;
use super::warnings::Incident;
use super::wire::Wire;
use crate::clock;
use crate::config;
use crate::exchange::id::RequestId;
use crate::exchange::responder::Responder;
use crate::metrics::load::{Asked, Balance, agent};
use crate::stream::Stream;
use crate::sys::poll::Token;
use tricorn_proto::response::End;

/// What a balancer asks that does not speak HTTP: HAProxy's `agent-send`. All that has come on its connection.
pub(super) fn asked_of_the_agent(listener: u16, id: RequestId, bytes: &[u8]) -> Option<Asked> {
    if is_admin(listener) && id.stream() == 0 { Asked::of(bytes) } else { None }
}

impl Reactor {
    /// Takes these listeners too. They are watched from now on, whatever becomes of the gate.
    pub fn open_admin(&mut self, listeners: Vec<Listener>) -> rustix::io::Result<()> {
        self.admin.open(listeners)
    }

    /// Others serve on, and answer from now on. Those that have connected are answered here: perhaps no other worker
    /// was woken for them.
    pub(super) fn leave_admin(&mut self) {
        for index in self.admin.leave() {
            self.accept_admins(index, config::ACCEPT_BURST);
        }
        self.admin.close();
    }

    /// A listener by its index.
    pub(super) fn listener_at(&self, listener: u16) -> Option<&Listener> {
        if is_admin(listener) { self.admin.listener(listener) } else { self.gate.listener(listener) }
    }

    /// No thread has looked at the events for so long that a question may be waiting.
    pub fn neglects_admin(&self, now: u64) -> bool {
        self.admin.has_any() && now.saturating_sub(self.work.looked_at()) > config::ADMIN_PATIENCE
    }

    /// Takes connections that wait, up to `most`: the listener is level-triggered, so that more make another event. When the
    /// application has used up the descriptors, one at a time is taken with those in reserve.
    pub(super) fn accept_admins(&mut self, listener: u16, most: u32) {
        let mut borrowed = false;
        for _ in 0..most {
            let Some(door) = self.listener_at(listener) else { return };
            let wire = Wire::new(door.protocol());
            let (socket, peer) = match door.accept() {
                Accepted::Connection(socket, peer) => (socket, peer),
                Accepted::Nothing => break,
                Accepted::NoDescriptor if !borrowed && self.admin.lend_descriptor() => {
                    borrowed = true;
                    continue;
                }
                Accepted::NoDescriptor if self.evict_admin() => continue,
                Accepted::NoDescriptor => {
                    self.pause_admin();
                    return;
                }
            };
            if self.conns.admins() >= config::ADMIN_CONNECTIONS && !self.evict_admin() {
                continue; // dropped, and thereby closed
            }
            let origin = Origin { peer, listener, trusted: false };
            let token = self.welcome_admin(Conn::new(Stream::new(socket), origin, wire), borrowed);
            borrowed = false;
            self.read(token);
        }
        if self.admin.lacks_descriptors() {
            self.keep_spare();
        }
    }

    fn welcome_admin(&mut self, mut conn: Conn, borrowed: bool) -> Token {
        conn.borrowed = borrowed;
        let token = self.conns.insert(conn);
        let patience = if borrowed { config::ADMIN_HASTE } else { config::ADMIN_IDLE };
        self.set_deadline(token, clock::now() + patience);
        token
    }

    /// There is no descriptor for those that wait, and none in reserve.
    #[cold]
    fn pause_admin(&mut self) {
        let now = clock::now();
        let end = self.admin.pause(now);
        self.deadlines.wake_by(end);
        self.log.warn(Incident::NoDescriptor);
        self.tell_shortage(now);
    }

    /// The pause is over.
    pub(super) fn watch_admin(&mut self, now: u64) {
        if let Err((error, again)) = self.admin.end_pause(now) {
            self.log.warn(Incident::Unwatched(error));
            self.deadlines.wake_by(again);
        }
    }

    /// Keeps a descriptor in reserve again, of those that became free. Then admin connections can be taken again.
    #[cold]
    pub(super) fn keep_spare(&mut self) {
        if self.admin.keep_descriptors() {
            self.watch_admin(clock::now());
        }
    }

    /// Closes an admin connection that asks nothing, going round the table; whether there was one.
    fn evict_admin(&mut self) -> bool {
        let positions = self.conns.positions();
        for _ in 0..positions {
            let position = self.admin.next_position(positions);
            let idle = self.conns.at(position).filter(|(_, conn)| conn.may_be_dropped());
            if let Some((token, _)) = idle {
                self.close(token);
                return true;
            }
        }
        false
    }

    /// The application's metrics have been read: who waits for them is answered.
    pub(super) fn answer_scrapes(&mut self) {
        for id in self.admin.scrapes.came(clock::now()) {
            self.answer_scrape(id);
        }
    }

    /// The same for one, with what is known.
    pub(super) fn answer_scrape(&mut self, id: RequestId) {
        self.admin.scrapes.leave(id);
        let waits = |conn: &Conn| matches!(conn.phase.get(), Phase::Storing);
        if self.conns.get_mut(id.connection()).is_some_and(|conn| waits(conn)) && self.answer(id).is_some() {
            self.later(id.connection());
        }
    }

    /// Answers the head that was just read; nothing if the connection ended with it, or the answer is still to come.
    pub(super) fn answer_admin(&mut self, id: RequestId) -> Option<()> {
        if self.awaits_application(id)? { None } else { self.answer(id) }
    }

    /// Whether this is a scrape that waits for the application's metrics.
    fn awaits_application(&mut self, id: RequestId) -> Option<bool> {
        let admin = &self.config.admin;
        let Some(directory) = &admin.application else { return Some(false) };
        let conn = self.conns.get_mut(id.connection())?;
        let Wire::Http1(http1) = &mut conn.wire;
        let request = http1.request_mut(id)?;
        let allowed = admin.allow.allows(conn.origin.peer.ip());
        let question = Question::of(&request.head, request.head_bytes(), admin, None, allowed);
        let now = clock::now();
        if question != Question::Metrics || !self.admin.scrapes.must_wait(id, directory, self.config.fault, now) {
            return Some(false);
        }
        conn.phase.enter(Change::Head);
        conn.phase.enter(Change::Unwritten);
        self.set_deadline(id.connection(), now + config::ADMIN_READING);
        Some(true)
    }

    /// This worker leaves, and others serve on.
    fn is_replaced(&self) -> bool {
        self.is_draining() && self.board.orders_replaced()
    }

    /// Why requests should be sent elsewhere. Who asks wants to know of the server: it is ready as long as others serve on.
    fn not_ready(&self) -> Option<&'static str> {
        match () {
            () if self.is_draining() && !self.is_replaced() => Some("draining\n"),
            () if self.board.orders_not_ready() => Some("not ready\n"),
            () => None,
        }
    }

    /// Answers a balancer that asks in a line of its own, and closes.
    pub(super) fn answer_agent(&mut self, id: RequestId, asked: Asked) {
        let (token, now) = (id.connection(), clock::now());
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (allowed, borrowed) = (self.config.admin.allow.allows(conn.origin.peer.ip()), conn.borrowed);
        if let Some(request) = conn.wire.take_request(id) {
            self.recycle(request);
        }
        let report = self.admin.report(self.board, now);
        let line = match allowed {
            true => agent(asked, &report, Balance::of(&report, self.not_ready().is_some())),
            false => "# forbidden: this address is not in admin_allow\n".to_string(),
        };
        match self.respond(token, line.as_bytes(), Then::Linger, now) {
            Delivery::Failed => {}
            Delivery::Whole | Delivery::Begun if borrowed => self.close(token),
            Delivery::Whole => self.linger(token),
            Delivery::Begun => {}
        }
    }

    /// `None`: the connection has ended, or goes on when its client has taken the answer.
    fn answer(&mut self, id: RequestId) -> Option<()> {
        let token = id.connection();
        let now = clock::now();
        self.wall.refresh(now);
        let (is_replaced, not_ready) = (self.is_replaced(), self.not_ready());
        let conn = self.conns.get_mut(token)?;
        let Wire::Http1(http1) = &mut conn.wire;
        let request = http1.request_mut(id)?;
        let head = &request.head;
        // A body is not read: what follows the head on this connection is not looked at.
        let (borrowed, has_body) = (conn.borrowed, head.framing.has_body());
        let responder = Responder {
            date: self.wall.date(),
            server: &self.config.server,
            method: head.kind,
            version: head.version,
            keep: head.keep_alive && !(has_body || is_replaced || borrowed),
            request_id: b"",
        };
        let (paths, bytes) = (&self.config.admin, request.head_bytes());
        let allowed = paths.allow.allows(conn.origin.peer.ip());
        let listeners = self.gate.listeners();
        let is_leaving = not_ready.is_some();
        let sight = Sight { admin: &self.admin, listeners, own: self.board, info: &paths.info, is_leaving, now };
        let answer = Question::of(head, bytes, paths, not_ready, allowed).answer(head, bytes, &sight);
        let mut out = std::mem::take(&mut request.out);
        out.clear();
        let end = responder.write(&mut out, answer.status, &answer.fields(), answer.text.as_bytes()).end;
        http1.answered_in_place(now);
        let then = if end == End::Reuse { Then::Next } else { Then::Linger };
        let delivery = self.respond(token, &out, then, now);
        if delivery == Delivery::Failed || borrowed {
            self.close(token);
            return None;
        }
        let Wire::Http1(http1) = &mut self.conns.get_mut(token)?.wire;
        http1.reading()?.request.out = out;
        if delivery == Delivery::Begun {
            return None;
        }
        if then == Then::Linger {
            self.linger(token);
            return None;
        }
        let conn = self.conns.get_mut(token)?;
        conn.phase.enter(Change::Kept);
        let Wire::Http1(http1) = &mut conn.wire;
        http1.next_request();
        self.set_deadline(token, now + config::ADMIN_IDLE);
        Some(())
    }
}
