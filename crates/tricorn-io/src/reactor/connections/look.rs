//! Steps through the bytes that have come: to a complete request, or to what stands before it.
use super::Connections;
use super::begin_body::{begin_body, invite, keep};
use super::deadlines::TimedPhase;
use super::handshake::{TlsEvent, is_handshake};
use super::opening::{Opened, open};
use super::phase::Change;
use super::stage::Stage;
use super::vars::{Found, answer_aside};
use crate::clock;
use crate::exchange::body::Body;
use crate::exchange::buffers::{INPUT, Request};
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::one_queue::affinity::{Affinity, Whose};
use crate::peer::Peer;
use crate::reactor::serial::Reading;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use std::sync::Arc;
use tricorn_proto::http1::Step;
use tricorn_proto::http2::PREFACE;
use tricorn_proto::message::{Framing, Refusal};
use tricorn_proto::peer::proxy_protocol::Announced;

/// What looking at the bytes at hand came to.
pub(super) enum Look {
    NeedMore,
    Complete(RequestId),
    /// The request is complete but for bytes that are not on disk yet.
    Unwritten(RequestId),
    Refused(RequestId, Box<Refusal>),
    /// Something about TLS.
    Tls(TlsEvent),
    /// The client speaks HTTP/2.
    Http2,
}

impl Connections {
    /// Steps through the bytes at hand. `now` is the time they came, 0 for bytes that came earlier.
    pub(super) fn look(&mut self, token: Token, now: u64) -> Option<Look> {
        let conn = self.conns.get_mut(token)?;
        if conn.stage.has_opening()
            && let Some(found) = self.look_for_opening(token, now)
        {
            return Some(found);
        }
        let conn = self.conns.get_mut(token)?;
        let serial = &mut conn.serial;
        let id = serial.current(token);
        let Some(mut reading) = serial.reading() else { return Some(Look::NeedMore) };
        reading.came(now);
        loop {
            if reading.request.unread().is_empty() && !conn.phase.get().is_behind_head() {
                return Some(Look::NeedMore);
            }
            let (from, step) = match reading.advance(&self.config.policy, conn.origin.trusted) {
                Ok(advanced) => advanced,
                Err(refusal) => {
                    let is_head = !conn.phase.get().is_behind_head();
                    return Some(wrong(conn.stage, is_head.then_some(reading.request), id, refusal));
                }
            };
            if conn.stage != Stage::Plain {
                self.board.add(Word::BytesOut, answer_aside(conn.output.as_ref(), reading.take_answer()));
            }
            let request = &mut *reading.request;
            match step {
                Step::NeedMore => {
                    compact(request);
                    let begins = self.config.streaming && conn.phase.get().is_body();
                    if begins && !is_of_another(self.affinity.as_deref(), request, conn.origin.peer) {
                        request.partial = true;
                        return Some(complete(request, &mut conn.phase, now, id));
                    }
                    return Some(Look::NeedMore);
                }
                Step::Head => {
                    self.buffers.head_is_complete(request);
                    if take_head(&mut reading, from, conn.stage, conn.announced.as_ref()) {
                        return Some(Look::Tls(TlsEvent::Misplaced(id)));
                    }
                    let request = &mut *reading.request;
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
                    request.partial = false; // it may have waited without its end
                    return Some(complete(request, &mut conn.phase, now, id));
                }
            }
        }
    }

    /// Looks for the vars of a front end; `None`: they are there.
    fn pass_vars(&mut self, token: Token, now: u64) -> Option<Look> {
        match self.look_for_vars(token, now) {
            Some(Found::Vars) => None,
            Some(Found::Refused(id, refusal)) => Some(Look::Refused(id, refusal)),
            Some(Found::NeedMore) | None => Some(Look::NeedMore),
        }
    }

    /// Looks for what stands before the first request, and before each of a front end; `None`: that is over.
    #[cold]
    fn look_for_opening(&mut self, token: Token, now: u64) -> Option<Look> {
        let (conn, config) = (self.conns.get_mut(token)?, &self.config);
        match conn.stage {
            Stage::Handshake => return Some(Look::Tls(TlsEvent::Handshake)),
            Stage::Stranger(_) | Stage::FrontEnd(_) => return self.pass_vars(token, now),
            _ => {}
        }
        let serial = &mut conn.serial;
        let id = serial.current(token);
        let Some(mut reading) = serial.reading() else { return Some(Look::NeedMore) };
        reading.came(now);
        if conn.stage == Stage::Preface {
            return look_for_preface(&mut conn.stage, reading.request.unread());
        }
        match open(&mut conn.origin, reading.request, config) {
            Ok(Opened::NeedMore) => Some(Look::NeedMore),
            Ok(Opened::Over(announced)) => {
                (conn.stage, conn.announced) = (Stage::behind_header(conn.origin.listener, config), announced);
                match conn.stage {
                    Stage::Handshake => {
                        conn.edges.may_be_readable(); // what was read behind the header
                        Some(Look::Tls(TlsEvent::Handshake))
                    }
                    Stage::Preface => look_for_preface(&mut conn.stage, reading.request.unread()),
                    Stage::Stranger(_) => self.pass_vars(token, now),
                    _ => None,
                }
            }
            Err(refusal) if config.is_tls_at(conn.origin.listener) => Some(Look::Tls(TlsEvent::Unannounced(refusal))),
            Err(refusal) => Some(Look::Refused(id, refusal)),
        }
    }
}

/// A head was read, which began there. Whether it should have come by TLS.
#[inline]
fn take_head(reading: &mut Reading<'_>, from: usize, stage: Stage, announced: Option<&Arc<Announced>>) -> bool {
    let request = &mut *reading.request;
    request.head_at = from;
    request.head_end = request.start;
    request.note_announced(announced);
    if stage == Stage::Plain {
        return false;
    }
    if stage.is_misplaced(request) {
        return true;
    }
    reading.note_vars();
    false
}

/// Whether a request whose body still comes is of a session that another worker has: it goes there as a whole.
#[inline]
pub(super) fn is_of_another(affinity: Option<&Affinity>, request: &Request, peer: Peer) -> bool {
    affinity.is_some_and(|affinity| {
        affinity.is_in_use()
            && matches!(
                affinity.whose_at_last(&request.head, request.head_bytes(), || request.client_address(peer)),
                Whose::Anothers(_)
            )
    })
}

/// What the application will see of the request is there.
fn complete(request: &mut Request, phase: &mut TimedPhase, now: u64, id: RequestId) -> Look {
    request.times.complete = if now == 0 { clock::now() } else { now };
    phase.enter(Change::Complete);
    Look::Complete(id)
}

/// Looks for the preface of HTTP/2; `None`: a request comes. A line of words that is none of HTTP/1 is taken for a wrong preface, which
/// ends the connection in HTTP/2's way (RFC 9113 section 3.4).
fn look_for_preface(stage: &mut Stage, unread: &[u8]) -> Option<Look> {
    if unread.len() < PREFACE.len() && PREFACE.starts_with(unread) {
        return Some(Look::NeedMore);
    }
    *stage = Stage::Plain;
    let line = unread.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_of_words = line.ends_with(b"\n") && line.first().is_some_and(u8::is_ascii_uppercase);
    let is_http1 = line.windows(HTTP_1.len()).any(|window| window == HTTP_1);
    (unread.starts_with(PREFACE) || is_of_words && !is_http1).then_some(Look::Http2)
}

/// What a request line of HTTP/1 has before its minor version.
const HTTP_1: &[u8] = b" HTTP/1.";

/// The bytes at hand are not what they should be. `head`: they should be a head.
#[cold]
fn wrong(stage: Stage, head: Option<&mut Request>, id: RequestId, refusal: Box<Refusal>) -> Look {
    let Some(request) = head else { return Look::Refused(id, refusal) };
    request.note_vars(); // how it is said
    if stage == Stage::Plain && is_handshake(request.unread()) {
        return Look::Tls(TlsEvent::OnPlain(id));
    }
    request.head_at = request.start; // for the log: as far as it was read
    Look::Refused(id, refusal)
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
