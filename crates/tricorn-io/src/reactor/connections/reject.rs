//! Requests that never meet the application: they are wrong, or the reactor says why they are not begun.
use super::Connections;
use super::respond::Delivery;
use crate::clock;
use crate::config;
use crate::exchange::id::RequestId;
use crate::exchange::responder::{Field, Responder};
use crate::peer::Peer;
use crate::reactor::outgoing::Then;
use crate::scoreboard::Word;
use tricorn_proto::access_log::Outcome;
use tricorn_proto::message::{Refusal, Version};
use tricorn_proto::peer::request_id;

pub(super) const STATUS: u16 = 503;
/// Why a request was not begun. Balancers are told: what was not begun may be repeated elsewhere, whatever its method. RFC 9110
/// section 9.2.2 lets a client repeat a request that is not idempotent with "some means to detect that the original request was never
/// applied".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unbegun {
    /// It would have waited, or has, beyond a limit.
    Queue,
    /// There is no memory, no disk or no descriptor for it.
    Capacity,
    /// The worker leaves.
    Leaving,
}

impl Unbegun {
    /// What the response says besides. The queue is short, or another worker serves by then: a client that comes back at once may meet
    /// this one again.
    pub const fn fields(self) -> &'static [Field<'static>] {
        match self {
            Unbegun::Queue => &[RETRY_AFTER, (REFUSED, b"queue")],
            Unbegun::Capacity => &[RETRY_AFTER, (REFUSED, b"capacity")],
            Unbegun::Leaving => &[RETRY_AFTER, (REFUSED, b"leaving")],
        }
    }
}

const RETRY_AFTER: Field<'_> = (b"Retry-After", b"1");
/// No application's response has it, unless it passes on that of a server behind it.
const REFUSED: &[u8] = b"Tricorn-Refused";

/// What a request is answered that never meets the application.
pub struct Rejection<'a> {
    pub status: u16,
    pub message: &'a str,
    /// More fields of the response.
    pub fields: &'a [Field<'a>],
    pub after: After,
    /// For the access log.
    pub outcome: Outcome,
}

impl<'a> Rejection<'a> {
    /// The server cannot begin this request now; another time it may (503).
    pub const fn for_now(message: &'a str, why: Unbegun, after: After, outcome: Outcome) -> Rejection<'a> {
        Rejection { status: STATUS, message, fields: why.fields(), after, outcome }
    }
}

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// The head is complete and right. The connection is kept if the client wants it and the body, too, was read; else nothing
    /// tells where the next request begins.
    Keep,
    /// Closed when the client has had time to read the answer.
    Linger,
    /// Closed now: its descriptor is needed.
    Close,
}

impl Connections {
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

    /// Answers, counts, writes the access log, and keeps the connection or closes it. Who it was that asked; `None`: the request is
    /// gone.
    pub fn reject(&mut self, id: RequestId, rejection: &Rejection<'_>, counter: Word) -> Option<Peer> {
        let now = clock::now();
        self.wall.refresh(now);
        let token = id.connection();
        let conn = self.conns.get_mut(token)?;
        let mut request = conn.serial.take_request(id)?;
        let serial = &conn.serial;
        let last_from = serial.last_from();
        let is_whole = rejection.after == After::Keep;
        // With `Config::streaming` a request waits before its body has come: what follows is no request.
        let is_read = is_whole && !request.partial;
        let is_leaving = self.deadlines.timeouts().is_draining() || self.board.orders_close();
        let is_last = is_leaving || self.deadlines.lifetime().is_last(id.stream(), last_from, now);
        self.work.spend_steps(config::REJECTION_STEPS);
        let may_keep = is_read && !is_last && self.config.keepalive > 0;
        let keep = may_keep && request.head.keep_alive;
        let version = request.head.version;
        let is_unread = conn.phase.get().is_before_body() && version < Version::Http2;
        let method = if is_unread { request.probable_method() } else { request.head.kind };
        let Rejection { status, message, fields, .. } = *rejection;
        let mut page = Vec::with_capacity(512);
        let names = self.config.request_id;
        let request_id = names.then(|| request_id::given(&request.head, request.head_bytes())).flatten();
        let errors = Responder::of_errors(self.wall.date(), method, version);
        let responder = Responder { keep, request_id: request_id.unwrap_or_default(), ..errors };
        let length = responder.write_page(&mut page, status, message, fields).body;
        let peer = conn.origin.peer;
        self.board.add(counter, 1);
        self.board.status(rejection.status);
        self.log.refused(peer, &request, (rejection.status, rejection.outcome), length, now, &self.wall);
        if is_read {
            self.keep_excess(id, &mut request);
        }
        self.recycle(request);
        let then = if is_read { Then::of(keep) } else { Then::Linger };
        match self.respond(token, &page, then, now) {
            // A descriptor that is needed is not kept for a client that does not read.
            Delivery::Whole | Delivery::Begun if rejection.after == After::Close => self.close(token),
            Delivery::Whole => self.go_on(token, then, now),
            Delivery::Begun | Delivery::Failed => {}
        }
        Some(peer)
    }
}
