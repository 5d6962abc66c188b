//! Handshakes of TLS: connections whose clients have said something wait for a job (`jobs.rs`), and go on as it says.
//!
//! ```text
//!   accept ──▶ Shaking ── bytes ──▶ queue ──▶ job ── not yet ──▶ Shaking
//!                                              ├── over ──▶ Idle: requests come by TLS
//!                                              ├── plain HTTP ──▶ Idle: the head is read, and refused (or sent to https)
//!                                              └── failed, or too late ──▶ an alert, and closed
//! ```
use super::Reactor;
use super::jobs::Job;
use super::outgoing::Then;
use super::phase::{Change, Phase};
use super::reject::{After, Rejection};
use super::respond::Delivery;
use super::stage::Stage;
use super::wire::Wire;
use crate::clock;
use crate::exchange::id::RequestId;
use crate::scoreboard::Word;
use crate::secured::Shaken;
use crate::stream::Stream;
use crate::sys::poll::{Event, Token};
use crate::tls::{Failure, Reason};
use tricorn_proto::access_log::Outcome;
use tricorn_proto::message::{Refusal, RefusalKind};

/// What a read has met of TLS.
pub(super) enum Meeting {
    /// A handshake goes on.
    Shakes,
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

/// Newcomers that are looked at for one that has said nothing.
const SEARCH: usize = 64;
const REDIRECT: u16 = 308;
const BAD_REQUEST: u16 = 400;

impl Reactor {
    pub(super) fn meet(&mut self, token: Token, meeting: Meeting) {
        match meeting {
            Meeting::Shakes => self.shake(token),
            Meeting::Unannounced(refusal) => {
                self.handshake_failed(token, &Failure::new(Reason::Garbage, refusal.message()));
            }
            Meeting::Misplaced(id) => self.misplaced(id),
            Meeting::OnPlain(id) => self.tls_on_plain(id),
        }
    }

    /// Something happened to a connection whose handshake is under way.
    pub(super) fn shaking_event(&mut self, event: Event) {
        let Some(conn) = self.conns.get_mut(event.token) else { return };
        // Room for output matters only if there is some.
        if !(event.readable || event.hangup || event.error) {
            let owes = conn.stream().is_none_or(Stream::owes);
            if !owes {
                return;
            }
            conn.edges.may_be_readable();
        }
        self.read(event.token);
    }

    /// There may be bytes of a handshake.
    fn shake(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        // While its stream is out the edge stays noted.
        if !conn.edges.is_readable() || conn.output.is_none() || !conn.edges.list() {
            return;
        }
        self.gate.handshakes.queue(token);
    }

    /// Whether there is work for a thread that has let the baton go.
    #[inline]
    pub fn has_job(&self) -> bool {
        self.gate.handshakes.has_job()
    }

    /// Whether there is some that is likely to be done within so many nanoseconds.
    pub fn has_short_job(&self, most: u64) -> bool {
        self.has_job() && self.gate.handshakes.are_short(most)
    }

    /// For how many nanoseconds it has waited; 0: there is none.
    pub fn job_waited(&self, now: u64) -> u64 {
        self.gate.handshakes.waited(now)
    }

    pub fn next_job(&mut self) -> Option<Job> {
        loop {
            let (token, sessions) = self.gate.handshakes.next()?;
            let Some(conn) = self.conns.get_mut(token) else { continue };
            conn.edges.unlist();
            let Some(output) = conn.output.take() else { continue };
            conn.edges.is_drained();
            let mut first = Vec::new();
            for request in conn.wire.end() {
                first.extend_from_slice(request.unread());
                self.buffers.give(request);
            }
            self.gate.handshakes.goes_out(output.stream());
            return Some(Job::new(token, output, first, sessions));
        }
    }

    /// A job is done. Whether there is something to be read by that, which makes no event.
    pub fn job_is_done(&mut self, job: Job) -> bool {
        self.gate.handshakes.is_back(job.took);
        if let Some(complaint) = job.take_complaint() {
            let text = format!("Could not use the new certificates; still using the previous ones: {complaint}");
            self.notice(true, || text);
        }
        let Job { token, output, shaken, .. } = job;
        let Some(conn) = self.conns.get_mut(token) else { return false };
        let stream = conn.output.insert(output).stream();
        match shaken {
            Shaken::NotYet if conn.edges.is_readable() => {
                self.shake(token);
                false
            }
            Shaken::NotYet => {
                self.await_event(token);
                false
            }
            Shaken::Over => {
                let is_resumed = stream.facts().is_some_and(|facts| facts.is_resumed);
                self.board.add(if is_resumed { Word::TlsResumed } else { Word::TlsFull }, 1);
                self.goes_on_to_requests(token, Stage::Secured, b"");
                true
            }
            Shaken::Plain(bytes) => {
                self.board.handshake_failed(Reason::Plain);
                self.goes_on_to_requests(token, Stage::Misplaced, &bytes);
                true
            }
            Shaken::Failed(failure) => {
                self.handshake_failed(token, &failure);
                false
            }
        }
    }

    /// The handshake of a connection is over. `bytes`: what was read behind it.
    fn goes_on_to_requests(&mut self, token: Token, stage: Stage, bytes: &[u8]) {
        let now = clock::now();
        let Some(conn) = self.conns.get_mut(token) else { return };
        conn.stage = stage;
        conn.edges.may_be_readable();
        if !bytes.is_empty() {
            let Wire::Http1(http1) = &mut conn.wire;
            let mut reading = http1.begin_reading(|| self.buffers.take());
            reading.request.input.extend_from_slice(bytes);
            reading.came(now);
        }
        self.deadlines.enter(token, &mut conn.phase, Change::Shaken, now);
        self.handshake_ends(token);
        self.later(token);
    }

    /// A handshake is not under way any more.
    pub(super) fn handshake_ends(&mut self, token: Token) {
        if self.gate.handshakes.ends(token) && self.gate.shut_tls(false) {
            self.watch_listeners();
        }
        self.board.set(Word::TlsHandshakes, self.gate.handshakes.under_way() as u64);
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
            self.deadlines.enter(token, &mut conn.phase, Change::Shaken, clock::now());
            self.handshake_ends(token);
            self.linger(token);
        } else {
            self.close(token);
        }
    }

    /// There are as many handshakes as may be under way: closes the oldest of them whose client has said nothing. False: there is none, and
    /// doors with TLS are shut until a handshake is over.
    #[cold]
    pub(super) fn hangs_up_on_silent(&mut self) -> bool {
        for _ in 0..SEARCH {
            let Some(token) = self.gate.handshakes.next_newcomer() else { break };
            let Some(conn) = self.conns.get(token).filter(|conn| matches!(conn.phase.get(), Phase::Shaking)) else {
                continue;
            };
            let is_silent = |stream: &Stream| !stream.is_secured() && !stream.is_readable();
            if conn.stream().is_some_and(is_silent) && !conn.wire.holds_input() {
                self.handshake_failed(token, &Failure::new(Reason::Crowded, "others wait, and it has said nothing"));
                return true;
            }
        }
        if self.gate.shut_tls(true) {
            self.watch_listeners();
        }
        false
    }

    /// A client speaks TLS where that is not spoken: it is told in its own way.
    fn tls_on_plain(&mut self, id: RequestId) {
        let (now, token) = (clock::now(), id.connection());
        self.wall.refresh(now);
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(request) = conn.wire.take_request(id) else { return };
        let (peer, kind) = (conn.origin.peer, RefusalKind::RequestLine);
        self.board.add(Word::Refused, 1);
        self.board.refused(kind);
        self.log.refused(peer, &request, (BAD_REQUEST, Outcome::Refused(kind)), 0, now, &self.wall);
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
            outcome: Outcome::Refused(RefusalKind::PlainHttp),
        };
        self.reject(id, &rejection, Word::Refused);
    }
}
