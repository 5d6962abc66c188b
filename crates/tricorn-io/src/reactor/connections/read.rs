//! From bytes to complete requests.
use super::Connections;
use super::fill::Fill;
use super::look::Look;
use super::outcome::Outcome;
use super::phase::{Change, Phase};
use super::timeouts::note_progress;
use crate::config;
use crate::exchange::body::Body;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use tricorn_proto::message::Refusal;

impl Connections {
    /// Reads and parses until a request is complete, others are concerned, or there is nothing more to read.
    pub fn read(&mut self, token: Token) -> Option<Outcome> {
        let mut taken = 0;
        let mut now = 0;
        loop {
            match self.look(token, now)? {
                Look::Complete(id) => return Some(Outcome::Complete(id)),
                Look::Unwritten(id) => {
                    self.store(id);
                    return None;
                }
                Look::Refused(id, refusal) => {
                    self.refuse(id, &refusal);
                    return None;
                }
                Look::Tls(event) => return self.on_tls(token, event),
                Look::Http2 => {
                    self.begin_trunk(token);
                    return None;
                }
                Look::NeedMore => {}
            }
            if taken >= config::READ_BURST || taken > 0 && self.work.is_turn_over() {
                self.count_reading(token);
                self.later(token);
                return None;
            }
            match self.fill(token)? {
                Fill::Bytes(count) => {
                    taken += count;
                    now = self.work.time();
                }
                Fill::Dry => {
                    self.await_more(token, now);
                    return None;
                }
                Fill::Storing(id) => {
                    self.await_disk(id);
                    return None;
                }
                Fill::Ended | Fill::Broken => {
                    self.peer_left(token);
                    return None;
                }
                Fill::Refused(id, refusal) => {
                    self.refuse(id, &refusal);
                    return None;
                }
            }
        }
    }

    /// The request waits from now on, and its client is watched; with [`Config::streaming`](config::Config) so is the rest of its body.
    pub fn await_turn(&mut self, id: RequestId) {
        let token = id.connection();
        self.register(token);
        let Some(conn) = self.conns.get(token) else { return };
        if conn.edges.is_readable() && conn.serial.request(id).is_some_and(|request| request.partial) {
            self.later(token); // what has come already makes no edge
        }
    }

    /// A job looks for the file that a complete request wants, and its client is watched.
    pub fn await_file(&mut self, id: RequestId, now: u64) {
        let token = id.connection();
        if let Some(conn) = self.conns.get_mut(token) {
            self.deadlines.enter(token, &mut conn.phase, Change::Opening, now);
            self.register(token);
        }
    }

    /// Takes what has come of the body of a request that waits, so far as memory has room for it. A request that is whole by this may
    /// go to a sibling.
    pub(super) fn take_rest(&mut self, token: Token) -> Option<Outcome> {
        let id = self.conns.get(token)?.serial.current(token);
        let mut now = 0;
        while self.may_read_ahead(id) {
            if let Look::Refused(_, refusal) = self.look(token, now)? {
                return Some(self.refuse_waiting(id, &refusal));
            }
            if self.work.is_turn_over() {
                self.later(token);
                return None;
            }
            if !self.may_read_ahead(id) {
                return None;
            }
            match self.fill(token)? {
                Fill::Bytes(_) => now = self.work.time(),
                Fill::Dry | Fill::Storing(_) => return None,
                Fill::Ended | Fill::Broken => return Some(Outcome::LeftQueue(id)),
                Fill::Refused(_, refusal) => return Some(self.refuse_waiting(id, &refusal)),
            }
        }
        None
    }

    /// Whether more of the body of a request that waits may be read: its end, as far as is known.
    pub(super) fn may_read_ahead(&mut self, id: RequestId) -> bool {
        let Some(conn) = self.conns.get_mut(id.connection()) else { return false };
        let Some(reading) = conn.serial.reading() else { return false };
        let left = reading.body_left();
        let Request { partial: true, body: Body::Memory(bytes), counted, .. } = reading.request else { return false };
        let room = self.bodies.room_ahead(counted.memory);
        match left.map(usize::try_from) {
            None => room > 0,
            Some(Ok(left)) => left <= room && bytes.try_reserve_exact(left).is_ok(),
            Some(Err(_)) => false,
        }
    }

    fn refuse_waiting(&mut self, id: RequestId, refusal: &Refusal) -> Outcome {
        self.refuse(id, refusal);
        Outcome::Unqueued(id)
    }

    /// Nothing more to read for now: the deadline of the phase, and an edge to wait for. `now` as for `look`.
    fn await_more(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let serial = &mut conn.serial;
        let id = serial.current(token);
        if let Some(request) = serial.request_mut(id).filter(|request| matches!(request.body, Body::Spooled(_))) {
            let paused = self.bodies.pause(id, request);
            self.wake_line();
            if let Err(refusal) = paused {
                self.refuse(id, &refusal);
                return;
            }
        }
        let Some(conn) = self.conns.get_mut(token) else { return };
        let serial = &mut conn.serial;
        match (serial.request_mut(id), conn.phase.get()) {
            (Some(request), Phase::Idle) if request.input.is_empty() => {
                if let Some(request) = serial.end() {
                    self.recycle(request);
                }
            }
            (Some(request), Phase::Idle) => {
                let change = Change::Bytes { first: request.times.first_byte };
                self.deadlines.enter(token, &mut conn.phase, change, now);
                self.count_head(id);
            }
            // Whatever was read together with the head: the deadline so far was that of a head or an idle connection.
            (Some(request), Phase::Body) => {
                note_progress(request, now);
                let deadline = self.deadlines.timeouts().body(request);
                self.set_deadline(token, deadline);
                self.count_file(id);
            }
            (Some(_), Phase::Head) => self.count_head(id),
            _ => {}
        }
        self.await_event(token);
    }

    /// The peer closed its side or broke the connection before its request was complete.
    fn peer_left(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let serial = &mut conn.serial;
        let has_begun = serial.reading().is_some_and(|reading| !reading.request.input.is_empty());
        if conn.phase.get().is_body() || has_begun {
            self.board.add(Word::ClientGone, 1);
            let peer = conn.origin.peer;
            self.notice(false, || format!("{peer} disconnected before its request was complete"));
        }
        self.close_gracefully(token);
    }
}
