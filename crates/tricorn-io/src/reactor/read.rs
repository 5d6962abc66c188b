//! From bytes to complete requests.
use super::bodies::{Ahead, Bodies, no_memory};
use super::conn::Conn;
use super::deadlines::TimedPhase;
use super::opening::{Opened, open};
use super::phase::{Change, Phase};
use super::reject::{After, Rejection, STATUS, Unbegun};
use super::shake::{Meeting, is_handshake};
use super::stage::Stage;
use super::timeouts::note_progress;
use super::wire::Wire;
use super::{Reactor, Runner, work::Work};
use crate::clock;
use crate::config::{self, Config, Received};
use crate::exchange::body::{Body, NoMemory};
use crate::exchange::buffers::{INPUT, Request};
use crate::exchange::encoding::CONTINUE;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::scoreboard::{Scoreboard, Word};
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::io::Errno;
use std::ops::Range;
use tricorn_proto::access_log::Outcome;
use tricorn_proto::http1::Step;
use tricorn_proto::message::{Framing, Refusal};

/// What looking at the bytes at hand came to.
enum Look {
    NeedMore,
    Complete(RequestId),
    /// The request is complete but for bytes that are not on disk yet.
    Unwritten(RequestId),
    Refused(RequestId, Box<Refusal>),
    /// Something about TLS.
    Meeting(Meeting),
}

/// What a read brought.
enum Fill {
    Bytes(usize),
    Dry,
    /// The disk is waited for; it will be told when to read on.
    Storing(RequestId),
    Ended,
    Broken,
    Refused(RequestId, Box<Refusal>),
}

/// Bodies from this length on that came with their heads go straight to the gateway's own buffers.
const BYTES: u64 = 1024;

impl Reactor {
    /// Reads and parses until a request is complete (its id is returned), or there is nothing more to read.
    pub(super) fn read(&mut self, token: Token) -> Option<RequestId> {
        let mut taken = 0;
        let mut now = 0;
        loop {
            match self.look(token, now)? {
                Look::Complete(id) => return Some(id),
                Look::Unwritten(id) => {
                    self.store(id);
                    return None;
                }
                Look::Refused(id, refusal) => {
                    self.refuse(id, &refusal);
                    return None;
                }
                Look::Meeting(meeting) => {
                    self.meet(token, meeting);
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

    /// Steps through the bytes at hand. `now` is the time they came, 0 for bytes that came earlier.
    fn look(&mut self, token: Token, now: u64) -> Option<Look> {
        let conn = self.conns.get_mut(token)?;
        if let Some(found) = pass_opening(conn, token, &self.config, now) {
            return Some(found);
        }
        let Wire::Http1(http1) = &mut conn.wire;
        let id = http1.current(token);
        let Some(mut reading) = http1.reading() else { return Some(Look::NeedMore) };
        reading.came(now);
        loop {
            if reading.request.unread().is_empty() && !conn.phase.get().is_body() {
                return Some(Look::NeedMore);
            }
            let (from, step) = match reading.advance(&self.config.policy, conn.origin.trusted) {
                Ok(advanced) => advanced,
                Err(refusal) => {
                    let is_head = !conn.phase.get().is_body();
                    return Some(wrong(conn.stage, is_head.then_some(reading.request), id, refusal));
                }
            };
            let request = &mut *reading.request;
            match step {
                Step::NeedMore => {
                    compact(request);
                    if self.config.streaming && conn.phase.get().is_body() {
                        request.partial = true;
                        return Some(complete(request, &mut conn.phase, now, id));
                    }
                    return Some(Look::NeedMore);
                }
                Step::Head => {
                    request.head_at = from;
                    request.head_end = request.start;
                    self.buffers.head_is_complete(request);
                    request.note_announced(conn.announced.as_ref());
                    if conn.stage != Stage::Plain && conn.stage.is_misplaced(request) {
                        return Some(Look::Meeting(Meeting::Misplaced(id)));
                    }
                    if let Err(refusal) = self.log.believe(request, conn.origin, self.board, &mut self.chores) {
                        return Some(Look::Refused(id, refusal));
                    }
                    request.times.head_complete = if now == 0 { clock::now() } else { now };
                    conn.phase.enter(Change::Head);
                    if request.head.framing != Framing::None {
                        if let Err(refusal) = begin_body(request, &self.config, &self.bodies, self.work.runner()) {
                            return Some(Look::Refused(id, refusal));
                        }
                        invite(conn.output.as_ref().map(Output::stream), request, &self.config, self.board);
                    }
                }
                Step::Body(range) => {
                    let piece = from + range.start..from + range.end;
                    if let Err(refusal) = keep(request, piece, &self.config, &mut self.bodies) {
                        return Some(Look::Refused(id, refusal));
                    }
                }
                Step::End => {
                    if matches!(&request.body, Body::Spooled(spool) if spool.is_unwritten()) {
                        conn.phase.enter(Change::Unwritten);
                        return Some(Look::Unwritten(id));
                    }
                    return Some(complete(request, &mut conn.phase, now, id));
                }
            }
        }
    }

    /// One read, to where the bytes are wanted.
    fn fill(&mut self, token: Token) -> Option<Fill> {
        let conn = self.conns.get_mut(token)?;
        if !conn.edges.is_readable() {
            return Some(Fill::Dry);
        }
        let Wire::Http1(http1) = &mut conn.wire;
        let id = http1.current(token);
        let mut reading = http1.begin_reading(|| self.buffers.take());
        let request = &mut *reading.request;
        let stream = conn.output.as_ref()?.stream();
        if self.bodies.is_over_memory()
            && conn.phase.get().is_body()
            && request.head.framing != Framing::None
            && let Err(refusal) = self.bodies.spill(request)
        {
            return Some(Fill::Refused(id, refusal));
        }
        let room = match self.bodies.ahead(id, request) {
            Ok(Ahead::Room(room)) => room.min(Work::burst(stream)),
            Ok(Ahead::Wait) => return Some(Fill::Storing(id)),
            Err(refusal) => return Some(Fill::Refused(id, refusal)),
        };
        let left = reading.body_left();
        let (result, wanted) = match receive(reading.request, left, room, stream, &mut self.bodies) {
            Ok(Filled { result, wanted, of_body }) => {
                if of_body && let Ok(count) = result {
                    reading.took(count);
                }
                (result, wanted)
            }
            Err(refusal) => return Some(Fill::Refused(id, refusal)),
        };
        match result {
            Ok(0) => Some(Fill::Ended),
            Ok(count) => {
                conn.edges.was_read(count == wanted || stream.holds());
                self.work.moved(stream, count);
                self.board.add(Word::BytesIn, count as u64);
                Some(Fill::Bytes(count))
            }
            Err(Errno::INTR) => Some(Fill::Bytes(0)),
            Err(Errno::AGAIN) => {
                conn.edges.is_drained();
                Some(Fill::Dry)
            }
            Err(_) => Some(Fill::Broken),
        }
    }

    /// Nothing more to read for now: the deadline of the phase, and an edge to wait for. `now` as for `look`.
    fn await_more(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Wire::Http1(http1) = &mut conn.wire;
        let id = http1.current(token);
        if let Some(request) = http1.request_mut(id).filter(|request| matches!(request.body, Body::Spooled(_))) {
            let paused = self.bodies.pause(id, request);
            self.wake_line();
            if let Err(refusal) = paused {
                self.refuse(id, &refusal);
                return;
            }
        }
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Wire::Http1(http1) = &mut conn.wire;
        match (http1.request_mut(id), conn.phase.get()) {
            (Some(request), Phase::Idle) if request.input.is_empty() => {
                if let Some(request) = http1.end() {
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

    /// Puts a connection into the poller, once; an edge that came before is reported by the first wait.
    pub(super) fn register(&mut self, token: Token) {
        match self.conns.watch(token) {
            Ok(true) => self.connection_stays(),
            Ok(false) => {}
            Err(_) => self.close(token),
        }
    }

    /// The peer closed its side or broke the connection before its request was complete.
    fn peer_left(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Wire::Http1(http1) = &mut conn.wire;
        let has_begun = http1.reading().is_some_and(|reading| !reading.request.input.is_empty());
        if conn.phase.get().is_body() || has_begun {
            self.board.add(Word::ClientGone, 1);
            let peer = conn.origin.peer;
            self.notice(false, || format!("{peer} disconnected before its request was complete"));
        }
        self.part(token);
    }

    /// Answers with the status of the refusal and closes, leaving the client time to read the answer.
    pub(super) fn refuse(&mut self, id: RequestId, refusal: &Refusal) {
        let (status, message) = (refusal.status(), refusal.message());
        let fields = if status == STATUS { Unbegun::Capacity.fields() } else { &[] };
        let outcome = Outcome::Refused(refusal.kind);
        let rejection = Rejection { status, message: &message, fields, after: After::Linger, outcome };
        if let Some(peer) = self.reject(id, &rejection, Word::Refused) {
            self.board.refused(refusal.kind);
            let what = if status < 500 { "Invalid request" } else { "Request refused" };
            self.notice(true, || format!("{what} from ip={peer}: {}", refusal.log_text()));
        }
    }
}

/// What stands before the first request, if it is not passed yet.
fn pass_opening(conn: &mut Conn, token: Token, config: &Config, now: u64) -> Option<Look> {
    if conn.stage.is_before_requests() { look_for_opening(conn, token, config, now) } else { None }
}

/// What the application will see of the request is there.
fn complete(request: &mut Request, phase: &mut TimedPhase, now: u64, id: RequestId) -> Look {
    request.times.complete = if now == 0 { clock::now() } else { now };
    phase.enter(Change::Complete);
    Look::Complete(id)
}

/// Looks for what a balancer announces before the first request; `None`: that is over.
#[cold]
fn look_for_opening(conn: &mut Conn, token: Token, config: &Config, now: u64) -> Option<Look> {
    if conn.stage == Stage::Shaking {
        return Some(Look::Meeting(Meeting::Shakes));
    }
    let Wire::Http1(http1) = &mut conn.wire;
    let id = http1.current(token);
    let Some(mut reading) = http1.reading() else { return Some(Look::NeedMore) };
    reading.came(now);
    match open(&mut conn.origin, reading.request, config) {
        Ok(Opened::NeedMore) => Some(Look::NeedMore),
        Ok(Opened::Over(announced)) => {
            (conn.stage, conn.announced) = (Stage::behind_header(conn.origin.listener, config), announced);
            if conn.stage == Stage::Shaking {
                conn.edges.may_be_readable(); // what was read behind the header
                return Some(Look::Meeting(Meeting::Shakes));
            }
            None
        }
        Err(refusal) if config.is_tls_at(conn.origin.listener) => Some(Look::Meeting(Meeting::Unannounced(refusal))),
        Err(refusal) => Some(Look::Refused(id, refusal)),
    }
}

/// The bytes at hand are not what they should be. `head`: they should be a head.
#[cold]
fn wrong(stage: Stage, head: Option<&mut Request>, id: RequestId, refusal: Box<Refusal>) -> Look {
    let Some(request) = head else { return Look::Refused(id, refusal) };
    if stage == Stage::Plain && is_handshake(request.unread()) {
        return Look::Meeting(Meeting::OnPlain(id));
    }
    request.head_at = request.start; // for the log: as far as it was read
    Look::Refused(id, refusal)
}

/// Decides where the body goes.
fn begin_body(request: &mut Request, config: &Config, bodies: &Bodies, runner: Runner) -> Result<(), Box<Refusal>> {
    let allocate = config.allocate.filter(|_| runner == Runner::AppThread);
    let length = match request.head.framing {
        Framing::Length(length) => length,
        Framing::Chunked | Framing::None => 0,
    };
    if config.streaming {
        let at_hand = request.unread().len() as u64;
        let all = allocate.filter(|_| (BYTES..=at_hand).contains(&length)).and_then(|make| make(length as usize));
        request.body = all.map_or(Body::Memory(Vec::new()), Body::Foreign);
        return Ok(());
    }
    let fits = usize::try_from(length).is_ok_and(|length| bodies.fits(0, length));
    let foreign = || allocate.filter(|_| length as usize >= config::FOREIGN).and_then(|make| make(length as usize));
    // A body that memory has no room for becomes a spool with its first piece, in `keep`.
    request.body = if !fits {
        bodies.admit(length, length)?;
        Body::Empty
    } else if let Some(buffer) = foreign() {
        Body::Foreign(buffer)
    } else {
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(length as usize).is_ok() { Body::Memory(bytes) } else { Body::Empty }
    };
    Ok(())
}

/// What one read came to.
struct Filled {
    result: Received,
    /// How many bytes there was room for.
    wanted: usize,
    /// They are the body's; else they are to be looked at.
    of_body: bool,
}

/// One read of up to `room` bytes, to where they are wanted. `left`: of a body of known length.
fn receive(
    request: &mut Request,
    left: Option<u64>,
    room: usize,
    stream: &Stream,
    bodies: &mut Bodies,
) -> Result<Filled, Box<Refusal>> {
    let room = left.map_or(room, |left| room.min(usize::try_from(left).unwrap_or(usize::MAX)));
    let filled = |result, wanted, of_body| Ok(Filled { result, wanted, of_body });
    // Room was made when the head was read; untouched memory costs nothing.
    if let (Some(left), Body::Memory(bytes)) = (left, &mut request.body)
        && bytes.try_reserve_exact(left as usize).is_err()
    {
        bodies.spill(request)?;
    }
    match (left, &mut request.body) {
        (Some(_), Body::Memory(bytes)) => {
            let result = stream.read(bytes, room);
            bodies.hold(result.unwrap_or(0), &mut request.counted.memory);
            filled(result, room, true)
        }
        (Some(_), Body::Foreign(buffer)) => {
            let result = buffer.receive(stream, room);
            bodies.hold(result.unwrap_or(0), &mut request.counted.memory);
            filled(result, room, true)
        }
        (Some(_), Body::Spooled(_)) => filled(bodies.receive(request, stream, room)?, room, true),
        _ => {
            let input = &mut request.input;
            if input.capacity() - input.len() < INPUT / 4 {
                input.try_reserve(INPUT.max(input.len())).map_err(|_| no_memory(NoMemory))?;
            }
            let room = input.capacity() - input.len();
            filled(stream.read(input, room), room, false)
        }
    }
}

/// Adds a piece of the input to the body: in memory while that may grow, else on disk.
fn keep(request: &mut Request, piece: Range<usize>, config: &Config, bodies: &mut Bodies) -> Result<(), Box<Refusal>> {
    let count = piece.len();
    let fits = config.streaming // there is no more of it than was read at once
        || bodies.fits(request.counted.memory, count);
    let has_memory = match &mut request.body {
        Body::Memory(memory) => fits && memory.try_reserve(count).is_ok(),
        Body::Foreign(_) => fits,
        Body::Empty | Body::Spooled(_) => false,
    };
    if !has_memory {
        if config.streaming {
            return Err(no_memory(NoMemory));
        }
        bodies.spill(request)?;
        return bodies.append(request, piece);
    }
    let Request { input, body, counted, .. } = request;
    let bytes = input.get(piece).unwrap_or_default();
    match body {
        Body::Memory(memory) => memory.extend_from_slice(bytes),
        Body::Foreign(buffer) => buffer.append(bytes),
        Body::Empty | Body::Spooled(_) => {}
    }
    bodies.hold(count, &mut counted.memory);
    Ok(())
}

/// Forgets bytes that were used up, but not the head.
fn compact(request: &mut Request) {
    if request.start > request.head_end && request.start == request.input.len() {
        request.forget_read();
    } else if request.start > request.head_end + INPUT {
        request.input.drain(request.head_end..request.start);
        request.start = request.head_end;
    }
}

/// Tells a client that waits for it that it may send the body, unless the application does so when it reads.
fn invite(stream: Option<&Stream>, request: &Request, config: &Config, board: Scoreboard) {
    if let Some(stream) = stream
        && !config.streaming
        && request.awaits_continue()
    {
        let sent = stream.send_once(CONTINUE);
        board.add(Word::BytesOut, sent as u64);
    }
}
