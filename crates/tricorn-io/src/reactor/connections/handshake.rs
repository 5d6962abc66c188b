//! Connections on which TLS is spoken, or should be: what their handshakes come to.
//!
//! ```text
//!   accept ──▶ Handshaking ── bytes ──▶ queue ──▶ job ── not yet ──▶ Handshaking
//!                                                  ├── over ──▶ Idle: requests come by TLS
//!                                                  ├── plain HTTP ──▶ Idle: the head is read, and refused (or sent to https)
//!                                                  └── failed, or too late ──▶ an alert, and closed
//! ```
//!
//! The queue and the jobs are not here (`accepting.rs`, `jobs.rs`).
use super::Connections;
use super::outcome::Outcome;
use super::phase::{Change, Phase};
use super::reject::{After, Rejection};
use super::respond::Delivery;
use super::stage::Stage;
use crate::clock;
use crate::exchange::id::RequestId;
use crate::exchange::output::Output;
use crate::reactor::outgoing::Then;
use crate::scoreboard::Word;
use crate::secured::HandshakeOutcome;
use crate::stream::Stream;
use crate::sys::poll::Token;
use crate::tls::{Failure, Reason};
use tricorn_proto::access_log;
use tricorn_proto::message::{Refusal, RefusalKind};

/// What a read has met of TLS.
pub(super) enum TlsEvent {
    /// A handshake goes on.
    Handshake,
    /// What came before the handshake is wrong.
    Unannounced(Box<Refusal>),
    /// A head did not come by TLS, where that is spoken.
    Misplaced(RequestId),
    /// A handshake came where plain HTTP is spoken.
    OnPlain(RequestId),
}

/// A fatal alert, `protocol_version`, in a record of TLS 1.0, which every client reads.
const ALERT: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];

/// Whether a handshake begins so: with a record of that kind, of some version 3.
pub(super) fn is_handshake(bytes: &[u8]) -> bool {
    bytes.starts_with(&[22, 3])
}

/// RFC 9113 section 3.2.
const ALPN_HTTP2: &[u8] = b"h2";

const REDIRECT: u16 = 308;
const BAD_REQUEST: u16 = 400;

impl Connections {
    pub(super) fn on_tls(&mut self, token: Token, event: TlsEvent) -> Option<Outcome> {
        match event {
            TlsEvent::Handshake => return self.go_on_with_handshake(token),
            TlsEvent::Unannounced(refusal) => {
                self.handshake_failed(token, &Failure::new(Reason::Garbage, refusal.message()));
            }
            TlsEvent::Misplaced(id) => self.misplaced(id),
            TlsEvent::OnPlain(id) => self.tls_on_plain(id),
        }
        None
    }

    /// There may be bytes of a handshake.
    fn go_on_with_handshake(&mut self, token: Token) -> Option<Outcome> {
        let conn = self.conns.get_mut(token)?;
        // While its stream is out the edge stays noted.
        let is_due = conn.edges.is_readable() && conn.output.is_some() && conn.edges.list();
        is_due.then_some(Outcome::Handshake(token))
    }

    /// Takes out what a job needs: the output, and what was read before.
    pub fn check_out_handshake(&mut self, token: Token) -> Option<(Output, Vec<u8>)> {
        let conn = self.conns.get_mut(token)?;
        conn.edges.unlist();
        let output = conn.output.take()?;
        conn.edges.is_drained();
        let mut first = Vec::new();
        if let Some(request) = conn.serial.end() {
            first.extend_from_slice(request.unread());
            self.buffers.give(request);
        }
        Some((output, first))
    }

    /// A job is done: the output is back. More of the handshake may have come meanwhile.
    pub fn check_in_handshake(&mut self, token: Token, output: Output, outcome: HandshakeOutcome) -> Option<Outcome> {
        let conn = self.conns.get_mut(token)?;
        let stream = conn.output.insert(output).stream();
        match outcome {
            HandshakeOutcome::NotYet if conn.edges.is_readable() => return self.go_on_with_handshake(token),
            HandshakeOutcome::NotYet => self.await_event(token),
            HandshakeOutcome::Over => {
                let is_resumed = stream.facts().is_some_and(|facts| facts.is_resumed);
                self.board.add(if is_resumed { Word::TlsResumed } else { Word::TlsFull }, 1);
                let is_http2 = stream.facts().is_some_and(|facts| facts.alpn.as_deref() == Some(ALPN_HTTP2));
                self.goes_on_to_requests(token, Stage::Secured, b"");
                if is_http2 {
                    self.begin_trunk(token);
                }
            }
            HandshakeOutcome::Plain(bytes) => {
                self.board.handshake_failed(Reason::Plain);
                self.goes_on_to_requests(token, Stage::Misplaced, &bytes);
            }
            HandshakeOutcome::Failed(failure) => self.handshake_failed(token, &failure),
        }
        None
    }

    /// The handshake of a connection is over. `bytes`: what was read behind it.
    fn goes_on_to_requests(&mut self, token: Token, stage: Stage, bytes: &[u8]) {
        let now = clock::now();
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.stage = stage;
        conn.edges.may_be_readable();
        if !bytes.is_empty() {
            let serial = &mut conn.serial;
            let mut reading = serial.begin_reading(|| self.buffers.take());
            reading.request.input.extend_from_slice(bytes);
            reading.came(now);
        }
        self.deadlines.enter(token, &mut conn.phase, Change::HandshakeOver, now);
        self.updates.handshake_is_over(token);
        self.later(token);
    }

    /// There is no session. What the client is told of it has been sent; it gets the time to read that.
    pub(super) fn handshake_failed(&mut self, token: Token, failure: &Failure) {
        let Some(conn) = self.conns.get(token) else { return };
        let peer = conn.origin.peer;
        let is_told = conn.stream().is_some_and(Stream::is_secured) && failure.reason != Reason::Left;
        self.board.handshake_failed(failure.reason);
        self.notice(failure.is_of_certificate(), || format!("TLS handshake with ip={peer} failed: {}", failure.detail));
        let Some(conn) = self.conns.get_mut(token) else { return };
        if is_told {
            self.deadlines.enter(token, &mut conn.phase, Change::HandshakeOver, clock::now());
            self.updates.handshake_is_over(token);
            self.linger(token);
        } else {
            self.close(token);
        }
    }

    /// Closes a connection whose client has said nothing. Whether it was such a one.
    pub fn close_if_silent(&mut self, token: Token) -> bool {
        let Some(conn) = self.conns.get(token).filter(|conn| matches!(conn.phase.get(), Phase::Handshaking)) else {
            return false;
        };
        let is_silent = |stream: &Stream| !stream.is_secured() && !stream.is_readable();
        let is_silent = conn.stream().is_some_and(is_silent) && !conn.serial.holds_input();
        if is_silent {
            self.handshake_failed(token, &Failure::new(Reason::Crowded, "others wait, and it has said nothing"));
        }
        is_silent
    }

    /// A client speaks TLS where that is not spoken: it is told in its own way.
    fn tls_on_plain(&mut self, id: RequestId) {
        let (now, token) = (clock::now(), id.connection());
        self.wall.refresh(now);
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(request) = conn.serial.take_request(id) else { return };
        let (peer, kind) = (conn.origin.peer, RefusalKind::RequestLine);
        self.board.add(Word::Refused, 1);
        self.board.refused(kind);
        self.log.refused(peer, &request, (BAD_REQUEST, access_log::Outcome::Refused(kind)), 0, now, &self.wall);
        self.recycle(request);
        if self.log.is_due_of_tls(now) {
            self.notice(true, || format!("TLS handshake on a plain HTTP port, ip={peer}: is certfile missing?"));
        }
        if self.respond(token, &ALERT, Then::Linger, now) == Delivery::Whole {
            self.go_on(token, Then::Linger, now);
        }
    }

    /// A request came in plain HTTP where TLS is spoken.
    fn misplaced(&mut self, id: RequestId) {
        let redirect = self.config.tls.as_ref().is_some_and(|tls| tls.redirect);
        let location = self.conns.request(id).filter(|_| redirect).and_then(|request| {
            let (head, bytes) = (&request.head, request.head_bytes());
            let host = head.find(bytes, b"host").filter(|host| !host.is_empty())?;
            // The port is that of this very listener, which speaks https.
            let (path, query) = (head.path.of(bytes), head.query.of(bytes));
            let mark: &[u8] = if query.is_empty() { b"" } else { b"?" };
            Some([b"https://", host, path, mark, query].concat())
        });
        let Some(location) = location else {
            self.refuse(id, &Refusal::new(RefusalKind::PlainHttp, ""));
            return;
        };
        let rejection = Rejection {
            status: REDIRECT,
            message: "This server speaks https.",
            fields: &[(b"Location", &location)],
            after: After::Linger,
            outcome: access_log::Outcome::Refused(RefusalKind::PlainHttp),
        };
        self.reject(id, &rejection, Word::Refused);
    }
}
