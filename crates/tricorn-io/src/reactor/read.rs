//! From bytes to complete requests.
use super::conn::{Conn, Phase, Token};
use super::deadlines::body_deadline;
use super::reject::Rejection;
use super::{Reactor, Runner, admin};
use crate::body::{Allocate, Body, Received, Spool};
use crate::buffers::{INPUT, Request};
use crate::clock;
use crate::config;
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::fds::recv_into;
use rustix::buffer::spare_capacity;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use tricorn_proto::http1::{Framing, Refusal, RefusalKind, Step};

/// What looking at the bytes at hand came to.
enum Look {
    NeedMore,
    Complete,
    /// A head came on an admin connection.
    Admin,
    Refused(Box<Refusal>),
}

/// What a read brought.
enum Fill {
    Bytes(usize),
    Dry,
    Ended,
    Broken,
    Refused(Box<Refusal>),
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Bodies from this length on that came with their heads go straight to the gateway's own buffers.
const BYTES: u64 = 1024;

/// Room made for the bytes of a body that goes to disk.
const SPOOL_PIECE: usize = 64 * 1024;

impl Reactor {
    /// Reads and parses until a request is complete (its token is returned), or there is nothing more to read.
    pub(super) fn read(&mut self, token: Token) -> Option<Token> {
        let mut taken = 0;
        let mut now = 0;
        loop {
            match self.look(token, now)? {
                Look::Complete => return Some(token),
                Look::Admin => {
                    self.answer_admin(token)?;
                    continue;
                }
                Look::Refused(refusal) => {
                    self.refuse(token, &refusal);
                    return None;
                }
                Look::NeedMore => {}
            }
            if taken >= config::READ_BURST {
                self.later(token);
                return None;
            }
            match self.fill(token)? {
                Fill::Bytes(count) => {
                    taken += count;
                    now = clock::now();
                }
                Fill::Dry => {
                    self.await_more(token);
                    return None;
                }
                Fill::Ended | Fill::Broken => {
                    self.peer_left(token);
                    return None;
                }
                Fill::Refused(refusal) => {
                    self.refuse(token, &refusal);
                    return None;
                }
            }
        }
    }

    /// Steps through the bytes at hand. `now` is the time they came, 0 for bytes that came earlier.
    fn look(&mut self, token: Token, now: u64) -> Option<Look> {
        let conn = self.conns.get_mut(token)?;
        let Some(request) = conn.request.as_deref_mut() else { return Some(Look::NeedMore) };
        if request.first_byte == 0 {
            request.first_byte = now;
        }
        loop {
            let unread = request.input.get_mut(request.start..).unwrap_or_default();
            if unread.is_empty() && conn.phase != Phase::Body {
                return Some(Look::NeedMore);
            }
            let step = match conn.receiver.advance(unread, &self.config.policy, conn.trusted, &mut request.head) {
                Ok(step) => step,
                Err(refusal) => {
                    if conn.phase != Phase::Body {
                        request.head_at = request.start; // for the log: as far as it was read
                    }
                    return Some(Look::Refused(refusal));
                }
            };
            let from = request.start;
            request.start += step.consumed;
            match step.step {
                Step::NeedMore => {
                    compact(request);
                    if self.config.streaming && conn.phase == Phase::Body {
                        request.partial = true;
                        request.complete = if now == 0 { clock::now() } else { now };
                        conn.phase = Phase::Queued;
                        return Some(Look::Complete);
                    }
                    return Some(Look::NeedMore);
                }
                Step::Head => {
                    request.head_at = from;
                    request.head_end = request.start;
                    if admin::is_admin(conn.listener) {
                        return Some(Look::Admin);
                    }
                    request.head_complete = if now == 0 { clock::now() } else { now };
                    conn.phase = Phase::Body;
                    if request.head.framing != Framing::None {
                        let allocate = self.config.allocate.filter(|_| self.runner == Runner::AppThread);
                        begin_body(request, &self.config, self.body_bytes, allocate);
                        let continues = !self.config.streaming && request.awaits_continue();
                        if let Some(socket) = conn.socket.as_ref().filter(|_| continues) {
                            let sent = send(socket, CONTINUE, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
                            self.board.add(Word::BytesOut, sent.unwrap_or(0) as u64);
                        }
                    }
                }
                Step::Body(range) => {
                    let piece = from + range.start..from + range.end;
                    if let Err(refusal) = keep(request, piece, &self.config, &mut self.body_bytes, &self.board) {
                        return Some(Look::Refused(refusal));
                    }
                }
                Step::End => {
                    request.complete = if now == 0 { clock::now() } else { now };
                    conn.phase = Phase::Queued;
                    return Some(Look::Complete);
                }
            }
        }
    }

    /// One read, to where the bytes are wanted.
    fn fill(&mut self, token: Token) -> Option<Fill> {
        let conn = self.conns.get_mut(token)?;
        if !conn.readable {
            return Some(Fill::Dry);
        }
        let request = conn.request.get_or_insert_with(|| self.pool.take());
        let socket = conn.socket.as_ref()?;
        if self.body_bytes > self.config.body_buffer_total
            && let Err(refusal) = spill(request, &self.config, &mut self.body_bytes, &self.board)
        {
            return Some(Fill::Refused(refusal));
        }
        let (result, wanted) = match (conn.receiver.fixed_remaining(), &mut request.body) {
            (Some(left), Body::Memory(bytes)) => {
                // Room was reserved when the head was read; untouched memory costs nothing.
                let left = left as usize;
                bytes.reserve_exact(left);
                let room = left.min(config::READ_BURST);
                let count = recv_into(socket.as_fd(), bytes, room);
                if let Ok(count) = count {
                    conn.receiver.took_fixed(count as u64);
                    hold_in_memory(count, &mut request.counted, &mut self.body_bytes, &self.board);
                }
                (count, room)
            }
            (Some(left), Body::Foreign(buffer)) => {
                let room = (left as usize).min(config::READ_BURST);
                let count = buffer.receive(socket.as_fd(), room);
                if let Ok(count) = count {
                    conn.receiver.took_fixed(count as u64);
                    hold_in_memory(count, &mut request.counted, &mut self.body_bytes, &self.board);
                }
                (count, room)
            }
            (Some(left), Body::Spooled(spool)) => {
                let room = SPOOL_PIECE.min(left as usize);
                let count = match recv_to_disk(socket, spool, &mut self.scratch, room) {
                    Ok(count) => count,
                    Err(refusal) => return Some(Fill::Refused(refusal)),
                };
                conn.receiver.took_fixed(count.unwrap_or(0) as u64);
                (count, room)
            }
            _ => {
                let spare = request.input.capacity() - request.input.len();
                if spare < INPUT / 4 {
                    request.input.reserve(INPUT.max(request.input.len()));
                }
                let room = request.input.capacity() - request.input.len();
                let count = recv(socket, spare_capacity(&mut request.input), RecvFlags::empty());
                (count.map(|(count, _)| count), room)
            }
        };
        match result {
            Ok(0) => Some(Fill::Ended),
            Ok(count) => {
                // A short read drained the socket: more bytes will make an edge. Not so the end of the stream, whose
                // edge may have come together with these bytes.
                conn.readable = count == wanted || conn.hangup;
                self.board.add(Word::BytesIn, count as u64);
                Some(Fill::Bytes(count))
            }
            Err(Errno::INTR) => Some(Fill::Bytes(0)),
            Err(Errno::AGAIN) => {
                conn.readable = false;
                Some(Fill::Dry)
            }
            Err(_) => Some(Fill::Broken),
        }
    }

    /// Nothing more to read for now: the deadline of the phase, and an edge to wait for.
    fn await_more(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        match (&conn.request, conn.phase) {
            (Some(request), Phase::Idle) if request.input.is_empty() => {
                if let Some(request) = conn.request.take() {
                    self.pool.give(request);
                }
            }
            (Some(request), Phase::Idle) => {
                conn.phase = Phase::Head;
                let deadline = request.first_byte + self.config.header_timeout;
                self.set_deadline(token, deadline);
            }
            // Whatever was read together with the head: the deadline so far was that of a head or an idle connection.
            (Some(request), Phase::Body) => {
                let deadline = body_deadline(request, &self.config);
                self.set_deadline(token, deadline);
            }
            _ => {}
        }
        self.register(token);
    }

    /// Puts a connection into the poller, once; an edge that came before is reported by the first wait.
    pub(super) fn register(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.registered {
            return;
        }
        let Some(socket) = &conn.socket else { return };
        conn.registered = true;
        if self.poller.add_connection(socket.as_fd(), token).is_err() {
            self.close(token);
        }
    }

    /// The peer closed its side or broke the connection before its request was complete.
    fn peer_left(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.is_admin() {
            // A probe that hung up has its answer.
        } else if conn.phase == Phase::Body || conn.request.as_ref().is_some_and(|request| !request.input.is_empty()) {
            self.board.add(Word::ClientGone, 1);
            let peer = conn.peer;
            self.notice(false, || format!("{peer} left before its request was complete"));
        }
        self.close(token);
    }

    /// Answers with the status of the refusal and closes, leaving the client time to read the answer.
    pub(super) fn refuse(&mut self, token: Token, refusal: &Refusal) {
        let (status, message) = (refusal.status(), refusal.message());
        let rejection = Rejection { status, message: &message, fields: b"", is_whole: false };
        if let Some(peer) = self.reject(token, &rejection, Word::Refused) {
            self.notice(true, || format!("Invalid request from ip={peer}: {}", refusal.log_text()));
        }
    }
}

/// Decides where the body goes.
fn begin_body(request: &mut Request, config: &config::Config, held: usize, allocate: Option<Allocate>) {
    let length = match request.head.framing {
        Framing::Length(length) => length,
        Framing::Chunked | Framing::None => 0,
    };
    if config.streaming {
        let at_hand = request.unread().len() as u64;
        let all = allocate.filter(|_| (BYTES..=at_hand).contains(&length)).and_then(|make| make(length as usize));
        request.body = all.map_or(Body::Memory(Vec::new()), Body::Foreign);
        return;
    }
    let fits = length <= config.body_buffer_size as u64 && held + length as usize <= config.body_buffer_total;
    let foreign = || allocate.filter(|_| length as usize >= config::FOREIGN).and_then(|make| make(length as usize));
    request.body = if !fits {
        Body::Empty // becomes a spool with the first piece, in `keep`
    } else if let Some(buffer) = foreign() {
        Body::Foreign(buffer)
    } else {
        Body::Memory(Vec::with_capacity(length as usize))
    };
}

/// Adds a piece of the input to the body: in memory while that may grow, else on disk.
fn keep(
    request: &mut Request,
    piece: std::ops::Range<usize>,
    config: &config::Config,
    held: &mut usize,
    board: &Scoreboard,
) -> Result<(), Box<Refusal>> {
    let fits = config.streaming // there is no more of it than was read at once
        || request.counted + piece.len() <= config.body_buffer_size && *held + piece.len() <= config.body_buffer_total;
    if !(fits && matches!(request.body, Body::Memory(_) | Body::Foreign(_))) {
        spill(request, config, held, board)?;
    }
    let Request { input, body, counted, .. } = request;
    let bytes = input.get(piece).unwrap_or_default();
    match body {
        Body::Spooled(spool) => return spool.append(bytes).map_err(|error| spool_failed(&error)),
        Body::Memory(memory) => memory.extend_from_slice(bytes),
        Body::Foreign(buffer) => buffer.append(bytes),
        Body::Empty => *body = Body::Memory(bytes.to_vec()),
    }
    hold_in_memory(bytes.len(), counted, held, board);
    Ok(())
}

/// Reads up to `room` bytes of a body into its file. The inner result is the socket's, the outer one the disk's.
fn recv_to_disk(
    socket: &OwnedFd,
    spool: &mut Spool,
    scratch: &mut Vec<u8>,
    room: usize,
) -> Result<Received, Box<Refusal>> {
    scratch.resize(SPOOL_PIECE, 0);
    let count = match recv(socket, &mut scratch[..room], RecvFlags::empty()) {
        Ok((count, _)) => count,
        Err(error) => return Ok(Err(error)),
    };
    spool.append(&scratch[..count]).map_err(|error| spool_failed(&error))?;
    Ok(Ok(count))
}

/// Counts body bytes that memory holds, for their limits and the scoreboard.
fn hold_in_memory(count: usize, counted: &mut usize, held: &mut usize, board: &Scoreboard) {
    *counted += count;
    *held += count;
    board.set(Word::BodyBytes, *held as u64);
}

/// Moves what memory holds of a body to disk.
fn spill(
    request: &mut Request,
    config: &config::Config,
    held: &mut usize,
    board: &Scoreboard,
) -> Result<(), Box<Refusal>> {
    let first = match &request.body {
        Body::Spooled(_) => return Ok(()),
        Body::Memory(memory) => memory.as_slice(),
        Body::Foreign(buffer) => buffer.filled(),
        Body::Empty if request.head.framing == Framing::None => return Ok(()),
        Body::Empty => &[],
    };
    let spool = Spool::begin(first, config.upload_dir.as_deref()).map_err(|error| spool_failed(&error))?;
    *held = held.saturating_sub(request.counted);
    board.set(Word::BodyBytes, *held as u64);
    request.counted = 0;
    request.body = Body::Spooled(spool);
    board.add(Word::Spooled, 1);
    Ok(())
}

#[cold]
fn spool_failed(error: &std::io::Error) -> Box<Refusal> {
    let detail = format!(" in the directory for uploads: {error}");
    Box::new(Refusal::new(RefusalKind::SpoolFailed, detail))
}

/// Forgets bytes that were used up, but not the head.
fn compact(request: &mut Request) {
    if request.start > request.head_end && request.start == request.input.len() {
        request.input.truncate(request.head_end);
        request.start = request.head_end;
    } else if request.start > request.head_end + INPUT {
        request.input.drain(request.head_end..request.start);
        request.start = request.head_end;
    }
}

impl Conn {
    /// Whether the peer may still be sending, so that closing at once would reset what we sent last.
    pub(super) fn has_unread_input(&self) -> bool {
        (self.readable && !self.hangup) || self.request.is_some()
    }
}
