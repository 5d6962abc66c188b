//! The entries of streams (`trunks.rs`): a look at one finds what has come, that there is room, or that its client has given it up.
use super::Connections;
use super::attended::{Attended, Readiness};
use super::begin_body::keep;
use super::conn::Role;
use super::look::is_of_another;
use super::outcome::Outcome;
use super::phase::{Change, Phase};
use super::timeouts::note_progress;
use crate::clock;
use crate::exchange::body::{Body, Spool};
use crate::exchange::id::RequestId;
use crate::http2::TrunkChannel;
use crate::reactor::bodies::Ahead;
use crate::scoreboard::Word;
use crate::stream::{Channel, Found};
use crate::sys::poll::Token;
use rustix::io::Errno;
use tricorn_proto::message::{Method, Refusal};

/// Bytes of content that are taken at a time.
const PIECE: usize = 64 * 1024;

/// How reading the content of a request ended.
enum Content {
    /// There is no more of it now.
    Dry,
    /// The disk is waited for.
    Storing,
    Ended,
    Refused(Box<Refusal>),
    Gone,
}

impl Connections {
    /// Something has happened to a stream.
    pub(super) fn look_at_stream(&mut self, token: Token) -> Option<Outcome> {
        let now = clock::now();
        let channel = self.channel(token);
        let found = channel.as_ref().map_or(Found::GONE, Channel::look);
        let conn = self.conns.get(token)?;
        match conn.phase.get() {
            Phase::Body if found.gone => self.stream_left(token),
            Phase::Body => return self.read_stream(token, now),
            Phase::Storing | Phase::Opening | Phase::OnLoan(_) | Phase::Flushing(_) if found.gone => {
                self.stream_left(token)
            }
            Phase::OnLoan(_) => self.carry_loan(token),
            Phase::Flushing(_) => self.flush(token, false, now),
            Phase::Queued if found.gone => return Some(Outcome::LeftQueue(conn.serial.current(token))),
            Phase::Queued => return self.take_rest_of_stream(token, now),
            Phase::Busy(_) => {
                if let Some(work) = channel.filter(|_| found.room).and_then(|channel| channel.take_work()) {
                    work();
                }
                return self.note_stream(token, found).map(Outcome::Ready);
            }
            _ => {}
        }
        None
    }

    /// The stream of this entry, while its connection is there.
    fn channel(&self, token: Token) -> Option<TrunkChannel> {
        let Role::Stream { id, .. } = self.conns.get(token)?.role else { return None };
        self.trunk_of(token).map(|trunk| TrunkChannel::new(trunk, id))
    }

    /// The client has given it up.
    fn stream_left(&mut self, token: Token) {
        self.board.add(Word::ClientGone, 1);
        self.close(token);
    }

    /// What the exchange of a stream is to be told.
    fn note_stream(&mut self, token: Token, found: Found) -> Option<RequestId> {
        let id = self.conns.get(token)?.serial.begun(token);
        let attended = self.attended(id)?;
        let Attended { slot, room, .. } = *attended;
        let writable = room && found.room;
        if slot == 0 || !(found.readable || found.gone || writable) {
            return None;
        }
        attended.room &= !writable;
        let readiness =
            Readiness { readable: found.readable, writable, hangup: found.gone, broken: found.gone, expired: false };
        self.note(id, readiness)
    }

    /// Content has come, or the end: to where the request's body is.
    fn read_stream(&mut self, token: Token, now: u64) -> Option<Outcome> {
        let id = self.conns.get(token)?.serial.current(token);
        if self.conns.request(id)?.head.kind == Method::Tunnel {
            // What follows is no body.
            return self.complete_stream(id, now, false);
        }
        match self.take_content(id)? {
            Content::Ended => return self.complete_stream(id, now, false),
            Content::Dry if self.config.streaming && !self.is_of_another(id) => {
                return self.complete_stream(id, now, true);
            }
            Content::Dry => self.await_content(id, now),
            Content::Storing => self.await_disk(id),
            Content::Refused(refusal) => self.refuse(id, &refusal),
            Content::Gone => self.stream_left(token),
        }
        // The client may have been given room for more.
        if let Some(trunk) = self.trunk_of(token) {
            self.flush_trunk(&trunk);
        }
        None
    }

    /// The same for a request that waits, so far as memory has room for it. One that is whole by this may go to a sibling.
    fn take_rest_of_stream(&mut self, token: Token, now: u64) -> Option<Outcome> {
        let id = self.conns.get(token)?.serial.current(token);
        if !self.conns.request(id)?.partial {
            return None;
        }
        let taken = self.take_content(id)?;
        if let Some(trunk) = self.trunk_of(token) {
            self.flush_trunk(&trunk);
        }
        match taken {
            Content::Ended => {
                let request = self.conns.request_mut(id)?;
                (request.partial, request.times.complete) = (false, now);
                None
            }
            Content::Dry | Content::Storing => None,
            Content::Refused(refusal) => {
                self.refuse(id, &refusal);
                Some(Outcome::Unqueued(id))
            }
            Content::Gone => Some(Outcome::LeftQueue(id)),
        }
    }

    /// Whether the request is of a session that another worker has.
    fn is_of_another(&self, id: RequestId) -> bool {
        let Some(conn) = self.conns.get(id.connection()) else { return false };
        let request = conn.serial.request(id);
        request.is_some_and(|request| is_of_another(self.affinity.as_deref(), request, conn.origin.peer))
    }

    fn take_content(&mut self, id: RequestId) -> Option<Content> {
        loop {
            let conn = self.conns.get_mut(id.connection())?;
            let waits = matches!(conn.phase.get(), Phase::Queued);
            let request = conn.serial.request_mut(id)?;
            let stream = conn.output.as_ref()?.stream();
            let room = match self.bodies.ahead(id, request) {
                Ok(Ahead::Room(room)) => room.min(PIECE),
                Ok(Ahead::Wait) => return Some(Content::Storing),
                Err(refusal) => return Some(Content::Refused(refusal)),
            };
            let room = if waits { room.min(self.bodies.room_ahead(request.counted.memory)) } else { room };
            if room == 0 {
                return Some(Content::Dry);
            }
            let from = request.head_end;
            request.input.reserve(room.min(stream.unread() as usize));
            let count = match stream.read(&mut request.input, room) {
                Ok(0) => return Some(Content::Ended),
                Ok(count) => count,
                Err(Errno::AGAIN) => {
                    // A client that sends a byte now and then is not to hold what a large piece took.
                    request.trim();
                    return Some(Content::Dry);
                }
                Err(_) => return Some(Content::Gone),
            };
            let kept = keep(request, from..from + count, &self.config, &mut self.bodies);
            request.input.truncate(from);
            let checked = self.config.policy.limits.check_body(request.body.len());
            if let Err(refusal) = kept.and(checked) {
                return Some(Content::Refused(refusal));
            }
            self.work.spend(count);
        }
    }

    /// More of the body is to come.
    fn await_content(&mut self, id: RequestId, now: u64) {
        let Some(request) = self.conns.request_mut(id) else { return };
        if matches!(request.body, Body::Spooled(_)) {
            let paused = self.bodies.pause(id, request);
            self.wake_line();
            if let Err(refusal) = paused {
                self.refuse(id, &refusal);
                return;
            }
        }
        let Some(request) = self.conns.request_mut(id) else { return };
        note_progress(request, now);
        let deadline = self.deadlines.timeouts().body(request);
        self.set_deadline(id.connection(), deadline);
        self.count_file(id);
    }

    /// What the application will see of the request is there. `partial`: its body is still to come.
    fn complete_stream(&mut self, id: RequestId, now: u64, partial: bool) -> Option<Outcome> {
        let conn = self.conns.get_mut(id.connection())?;
        let request = conn.serial.request_mut(id)?;
        request.partial = partial;
        if request.body.spool().is_some_and(Spool::is_unwritten) {
            conn.phase.enter(Change::Unwritten);
            self.store(id);
            return None;
        }
        request.times.complete = now;
        conn.phase.enter(Change::Complete);
        Some(Outcome::Complete(id))
    }
}
