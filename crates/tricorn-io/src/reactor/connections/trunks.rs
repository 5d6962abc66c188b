//! Connections of HTTP/2 (`http2.rs`): what their frames bring, and how they end.
//!
//! ```text
//!   preface, or ALPN ──▶ begin_trunk ──▶ Multiplexed
//!   event ──▶ read_trunk ── step ──▶ begin_stream, or the inbox of a stream ──▶ later: `streams.rs` looks at its entry
//!                 └──▶ settle_trunk: sends what waits, looks at entries that have room, sets the deadline, or ends the trunk
//! ```
use super::Connections;
use super::begin_body::{begin_body, invite};
use super::conn::{Conn, Role};
use super::phase::Change;
use super::trunk_reader::TrunkReader;
use crate::clock::{self, MILLI};
use crate::config;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::http2::{Trunk, TrunkChannel};
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::io::Errno;
use std::sync::Arc;
use tricorn_proto::http2::{self, Context, Progress, Step, Violation};
use tricorn_proto::message::{Framing, Refusal, Version};

/// Bytes that are read at a time.
const READ: usize = 64 * 1024;

/// How a look at the bytes of a trunk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    NeedMore,
    /// The baton is to be let go of.
    Paused,
    /// The client does not read what it is sent.
    Choked,
    /// The connection is of no use any more.
    Failed,
}

impl Connections {
    /// The client speaks HTTP/2, from the preface on.
    pub(super) fn begin_trunk(&mut self, token: Token) {
        let now = clock::now();
        let Some(settings) = self.config.http2.as_ref().map(|http2| http2.settings) else { return };
        let Some(conn) = self.conns.get_mut(token) else { return };
        let mut first = Vec::new();
        if let Some(request) = conn.serial.end() {
            first.extend_from_slice(request.unread());
            self.buffers.give(request);
        }
        let Some(stream) = conn.output.take().and_then(Output::into_stream) else {
            self.close(token);
            return;
        };
        let session = http2::Connection::new(settings, now / MILLI);
        conn.role = Role::Trunk(Box::new(TrunkReader::new(Trunk::new(stream, session), first, now)));
        conn.edges.may_be_readable();
        self.deadlines.enter(token, &mut conn.phase, Change::Multiplexed, now);
        self.board.add(Word::Http2Connections, 1);
        self.register(token);
        self.read_trunk(token);
    }

    /// Something has happened: reads, and sends what waits.
    pub(super) fn read_trunk(&mut self, token: Token) {
        let Some(Role::Trunk(reader)) = self.conns.get_mut(token).map(|conn| &mut conn.role) else { return };
        let trunk = reader.trunk().clone();
        let mut input = reader.take_input(std::mem::take(&mut self.frames.input));
        let (mut taken, now) = (0, clock::now());
        let look = loop {
            let look = self.take_frames(token, &trunk, &mut input);
            if look != Look::NeedMore {
                break look;
            }
            if taken >= config::READ_BURST || taken > 0 && self.work.is_turn_over() {
                self.later(token);
                break look;
            }
            match self.fill_trunk(token, &trunk, &mut input) {
                Ok(0) => break Look::Failed,
                Ok(count) => taken += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break look,
                Err(_) => break Look::Failed,
            }
        };
        if let Some(Role::Trunk(reader)) = self.conns.get_mut(token).map(|conn| &mut conn.role) {
            self.frames.input = reader.put_input(input);
            if taken > 0 {
                reader.note_activity(now);
            }
        }
        self.settle_trunk(token, look);
    }

    /// One read. EAGAIN: nothing is there.
    fn fill_trunk(&mut self, token: Token, trunk: &Trunk, input: &mut Vec<u8>) -> Result<usize, Errno> {
        let conn = self.conns.get_mut(token).ok_or(Errno::CONNRESET)?;
        if !conn.edges.is_readable() {
            return Err(Errno::AGAIN);
        }
        input.reserve(READ);
        let result = trunk.stream().read(input, READ);
        match result {
            Ok(count) => {
                conn.edges.was_read(count == READ || trunk.stream().holds());
                self.work.moved(trunk.stream(), count);
                self.board.add(Word::BytesIn, count as u64);
            }
            Err(Errno::AGAIN) => conn.edges.is_drained(),
            Err(_) => {}
        }
        result
    }

    /// Steps through the frames at hand, and takes them out.
    fn take_frames(&mut self, token: Token, trunk: &Arc<Trunk>, input: &mut Vec<u8>) -> Look {
        let (now, config) = (self.work.time(), self.config.clone());
        let trusted = self.conns.get(token).is_some_and(|conn| conn.origin.trusted);
        let context = Context { now: now / MILLI, policy: &config.policy, trusted };
        let mut request = std::mem::take(&mut self.frames.request);
        let mut at = 0;
        let look = loop {
            let unread = input.get(at..).unwrap_or_default();
            let Progress { consumed, step } = trunk.receive(unread, &context, &mut request);
            match step {
                Step::NeedMore => break Look::NeedMore,
                Step::Choked => break Look::Choked,
                Step::Failed(violation) => {
                    self.tell_violation(token, violation);
                    break Look::Failed;
                }
                Step::Request { stream, end } => {
                    self.work.takes_step();
                    self.begin_stream(token, (trunk, stream), &mut request, now, None);
                    if end {
                        trunk.deliver(stream, b"", true);
                    }
                }
                Step::Refused { stream, refusal } => {
                    self.begin_stream(token, (trunk, stream), &mut request, now, Some(refusal));
                }
                Step::Body { stream, range, end } => {
                    self.deliver(trunk, stream, unread.get(range).unwrap_or_default(), end);
                }
                Step::Trailers { stream } => self.end_with_trailers(trunk, stream, &mut request),
                Step::Reset { stream, .. } => {
                    self.board.add(Word::Http2Resets, 1);
                    self.look_at_entry(trunk, stream);
                }
                Step::Violated { stream, violation } => {
                    self.tell_violation(token, violation);
                    self.look_at_entry(trunk, stream);
                }
                // What there is room for is looked at when all frames are read.
                Step::Control | Step::Room { .. } | Step::Goodbye { .. } => {}
            }
            at += consumed;
            if self.work.is_hold_over() {
                self.later(token);
                break Look::Paused;
            }
        };
        self.frames.request = request;
        input.drain(..at.min(input.len()));
        look
    }

    /// A request has begun: it gets an entry of its own. `refusal`: why it never meets the application.
    fn begin_stream(
        &mut self,
        token: Token,
        (trunk, id): (&Arc<Trunk>, u32),
        head: &mut http2::Request,
        now: u64,
        refusal: Option<Box<Refusal>>,
    ) {
        let Some(parent) = self.conns.get_mut(token) else { return };
        let mut request = self.buffers.take_bare();
        take_head(&mut request, head, now);
        request.note_announced(parent.announced.as_ref());
        parent.stage.is_misplaced(&mut request);
        let mut conn = Conn::new(Stream::of(TrunkChannel::new(trunk.clone(), id)), parent.origin);
        conn.stage = parent.stage;
        conn.role = Role::Stream { trunk: token, id };
        conn.edges.is_drained();
        let last_from = parent.serial.last_from();
        if let Role::Trunk(reader) = &mut parent.role
            && (self.deadlines.lifetime().is_last(reader.count_request(), last_from, now)
                || self.board.orders_reconnect())
        {
            trunk.drain(now / MILLI);
        }
        conn.serial.begin_reading(|| request);
        let entry = self.conns.insert(conn);
        trunk.open(id, entry);
        self.board.add(Word::Http2Streams, 1);
        let request_id = self.conns.get(entry).map(|conn| conn.serial.current(entry));
        if let Some(request_id) = request_id
            && let Err(refusal) = refusal.map_or_else(|| self.admit_stream(request_id), Err)
        {
            self.refuse(request_id, &refusal);
            return;
        }
        self.later(entry);
    }

    /// The head of a stream's request is complete.
    fn admit_stream(&mut self, id: RequestId) -> Result<(), Box<Refusal>> {
        let Some(conn) = self.conns.get_mut(id.connection()) else { return Ok(()) };
        let Some(request) = conn.serial.request_mut(id) else { return Ok(()) };
        self.log.believe(request, conn.origin, self.board, &mut self.chores)?;
        conn.phase.enter(Change::Head);
        if request.head.framing != Framing::None {
            begin_body(request, &self.config, &self.bodies, self.work.runner())?;
            let stream = conn.output.as_ref().map(Output::stream);
            invite(stream, request, &self.config, self.board);
            let deadline = self.deadlines.timeouts().body(request);
            self.deadlines.set(id.connection(), &mut conn.phase, deadline);
        }
        Ok(())
    }

    /// Content of a request has come.
    fn deliver(&mut self, trunk: &Trunk, stream: u32, content: &[u8], end: bool) {
        trunk.deliver(stream, content, end);
        self.look_at_entry(trunk, stream);
    }

    /// Trailers have come, which are the end.
    fn end_with_trailers(&mut self, trunk: &Trunk, stream: u32, head: &mut http2::Request) {
        let entry = trunk.token(stream).and_then(|entry| self.conns.get_mut(entry).map(|conn| (entry, conn)));
        if let Some((entry, conn)) = entry {
            let id = conn.serial.current(entry);
            if let Some(request) = conn.serial.request_mut(id) {
                std::mem::swap(&mut request.head.trailers, &mut head.head.trailers);
            }
        }
        self.deliver(trunk, stream, b"", true);
    }

    fn look_at_entry(&mut self, trunk: &Trunk, stream: u32) {
        if let Some(entry) = trunk.token(stream) {
            self.later(entry);
        }
    }

    fn tell_violation(&mut self, token: Token, violation: Violation) {
        self.board.add(Word::Http2Violations, 1);
        if let Some(peer) = self.conns.get(token).map(|conn| conn.origin.peer) {
            self.notice(true, || format!("Invalid HTTP/2 from ip={peer}: {violation}"));
        }
    }
}

/// The head of a stream's request becomes that of an entry.
pub(super) fn take_head(request: &mut Request, head: &mut http2::Request, now: u64) {
    request.input.clear();
    request.input.extend_from_slice(&head.bytes);
    std::mem::swap(&mut request.head, &mut head.head);
    request.head.version = Version::Http2;
    (request.head_at, request.start, request.head_end) = (0, request.input.len(), request.input.len());
    (request.times.first_byte, request.times.head_complete) = (now, now);
}

/// The end of trunks, and their deadlines.
impl Connections {
    /// Sends what waits. Streams for which there is room have their turn, and the trunk its deadline; or it ends.
    fn settle_trunk(&mut self, token: Token, look: Look) {
        let now = clock::now();
        let is_draining = self.is_draining();
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Role::Trunk(reader) = &mut conn.role else { return };
        if is_draining && reader.begin_drain() {
            reader.trunk().drain(now / MILLI);
        }
        let trunk = reader.trunk().clone();
        self.flush_trunk(&trunk);
        let standing = trunk.standing();
        let has_left = look == Look::Failed && !standing.has_failed;
        if has_left || trunk.is_broken() {
            self.close(token);
        } else if look == Look::Failed || standing.is_over {
            // Frames of the client may be under way, and would make the end a reset of the connection.
            self.part_from_streams(&trunk);
            self.linger(token);
        } else {
            if look == Look::Choked && !standing.waits {
                self.later(token);
            }
            let (idle, write) = self.trunk_patience();
            let Some(conn) = self.conns.get_mut(token) else { return };
            let Role::Trunk(reader) = &mut conn.role else { return };
            let limits = reader.limits(&standing, idle, write, now);
            self.deadlines.set(token, &mut conn.phase, limits.next(now));
        }
    }

    /// How long a trunk may be without a stream, and its client without taking anything.
    fn trunk_patience(&self) -> (u64, u64) {
        let idle = self.config.http2.as_ref().map_or(0, |http2| http2.idle_timeout);
        (idle, self.config.write_timeout)
    }

    /// No stream is answered any more.
    fn part_from_streams(&mut self, trunk: &Trunk) {
        let mut entries = std::mem::take(&mut self.frames.ready);
        trunk.break_off(|entry| entries.push(entry));
        entries.drain(..).for_each(|entry| self.later(entry));
        self.frames.ready = entries;
    }

    /// The deadline of a trunk has passed: of its session, of what the client does not take, or of its idleness.
    pub(super) fn trunk_expired(&mut self, token: Token, now: u64) {
        let (idle, write) = self.trunk_patience();
        let Some(Role::Trunk(reader)) = self.conns.get_mut(token).map(|conn| &mut conn.role) else { return };
        let trunk = reader.trunk().clone();
        let limits = reader.limits(&trunk.standing(), idle, write, now);
        if limits.is_stuck(now) {
            self.board.add(Word::WriteTimeouts, 1);
            self.close(token);
            return;
        }
        if limits.is_idle(now) && reader.begin_drain() {
            self.board.add(Word::IdleCloses, 1);
            trunk.drain(now / MILLI);
        }
        let look = match trunk.tick(now / MILLI) {
            Ok(()) => Look::NeedMore,
            Err(violation) => {
                self.tell_violation(token, violation);
                Look::Failed
            }
        };
        self.settle_trunk(token, look);
    }

    /// The worker leaves: the client is to begin no more streams.
    pub(super) fn drain_trunk(&mut self, token: Token) {
        self.settle_trunk(token, Look::NeedMore);
    }
}
