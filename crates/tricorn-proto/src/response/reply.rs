//! The reply machine: it decides what a response says, and keeps lengths honest. Encoders say it (`http1::encode`).
//!
//! ```text
//!   Open ───head───> HeadSent ──end──> Done
//!    ^                                  │
//!    └──────────────begin───────────────┘
//! ```
use super::app_field::{Use, classify};
use super::body::{Body, Portion};
use super::compression::Treatment;
use super::event_stream::EventStream;
use super::fault::{Fault, bad_status};
use super::fields::{Fields, check};
use super::framing::{self, Framing};
use super::head::{Connection, Interim, ResponseHead};
use crate::message::grammar::{decimal, is_field_value};
use crate::message::{FieldList, Method, Version};

/// What the head of a reply depends on besides the application's fields.
#[derive(Debug, Clone, Copy)]
pub struct HeadInputs<'a> {
    /// IMF-fixdate, 29 bytes; empty: no Date is sent.
    pub date: &'a [u8],
    /// Value of the Server field; empty: none is sent.
    pub server: &'a [u8],
    /// Fields that every response has, unless the application sets one of the same name.
    pub standing: &'a FieldList,
    /// Length of the whole body where the gateway knows it (all of it is at hand); becomes Content-Length if the application gave none.
    pub body_length: Option<u64>,
    /// The server wants the connection closed after this reply.
    pub close: bool,
}

impl Default for HeadInputs<'_> {
    fn default() -> Self {
        HeadInputs { date: b"", server: b"", standing: &NO_FIELDS, body_length: None, close: false }
    }
}

static NO_FIELDS: FieldList = FieldList::new();

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All was sent as promised; the connection may be used again.
    Reuse,
    /// The connection must be closed after what was sent.
    Close,
    /// The body was shorter than its Content-Length: close so that the client can tell.
    Short { missing: u64 },
}

/// The end of a reply, for an encoder to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending<'a> {
    pub end: End,
    /// The end of the body is to be marked, with these trailers.
    pub mark: Option<&'a FieldList>,
    /// The response is complete: its head was sent, and all of its body.
    pub whole: bool,
}

/// Reused from reply to reply.
#[derive(Debug, Default)]
pub struct Reply {
    phase: Phase,
    method: Method,
    version: Version,
    /// Whether the connection may be used again, as far as is known.
    reuse: bool,
    /// The status as the application gave it; empty: not yet.
    status_line: Vec<u8>,
    status: u16,
    fields: Fields,
    /// Value of the X-Request-ID field to be sent unless the application has its own; empty: none.
    request_id: Vec<u8>,
    body: Body,
    /// What is sent is compressed: the body as the application has it.
    plain: Option<Body>,
    /// The body is an event stream of unknown length.
    events: Option<EventStream>,
    trailers: FieldList,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Status and fields may be set (and set again).
    Open,
    HeadSent,
    /// Nothing more is sent; also before the first `begin`.
    #[default]
    Done,
}

impl Reply {
    /// Begins a reply to a request with this method and version whose client allows keep-alive or not.
    pub fn begin(&mut self, method: Method, version: Version, keep_alive: bool) {
        self.phase = Phase::Open;
        (self.method, self.version, self.reuse) = (method, version, keep_alive);
        self.status_line.clear();
        self.status = 0;
        self.fields.clear();
        self.body = Body::default();
        self.plain = None;
        self.events = None;
        self.trailers.clear();
    }

    /// Replies are to carry this X-Request-ID, unless the application sets one; empty: none. Letters of a valid id only.
    pub fn set_request_id(&mut self, id: &[u8]) {
        self.request_id.clear();
        self.request_id.extend_from_slice(id);
    }

    /// What `set_request_id` said; empty without.
    pub fn request_id(&self) -> &[u8] {
        &self.request_id
    }

    /// `200 OK`: three digits and a phrase (PEP 3333). Forgets fields set before.
    pub fn status(&mut self, line: &[u8]) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            return Err(Fault::Status("the response head was sent already".into()));
        }
        let code = status_code(line).ok_or_else(|| bad_status(line))?;
        // RFC 9110 section 15.2: a 1xx response is followed by a final one; only a switch of protocols ends the exchange.
        if code < 200 && code != 101 {
            return Err(Fault::Status(format!("{code} is an interim status and cannot end a request")));
        }
        self.status = code;
        self.status_line.clear();
        self.status_line.extend_from_slice(line);
        self.fields.clear();
        Ok(())
    }

    /// The connection cannot be kept, whatever the application says. Before the head is written.
    pub fn close(&mut self) {
        self.reuse = false;
    }

    /// One field of the application, checked (token, no control characters). Hop-by-hop ones are dropped.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.fields.add(self.status, name, value)
    }

    /// The field `Trailer` (RFC 9110 section 6.6.2), of a response that has trailers. From other responses it is dropped.
    pub fn announce_trailers(&mut self, names: &[u8]) -> Result<(), Fault> {
        self.fields.announce_trailers(names)
    }

    /// The version of the request.
    #[inline]
    pub fn version(&self) -> Version {
        self.version
    }

    pub fn has_status(&self) -> bool {
        !self.status_line.is_empty()
    }

    pub fn head_sent(&self) -> bool {
        self.phase == Phase::HeadSent || (self.phase == Phase::Done && self.has_status())
    }

    pub fn status_code(&self) -> u16 {
        self.status
    }

    /// `200 OK` as the application gave it; empty without a status.
    pub fn status_line(&self) -> &[u8] {
        &self.status_line
    }

    /// The Content-Length the application set, if it did.
    pub fn content_length(&self) -> Option<u64> {
        self.fields.content_length()
    }

    /// Whether the application has named a Transfer-Encoding, which is not sent: it may frame the body itself, too.
    pub fn names_transfer_encoding(&self) -> bool {
        self.fields.frames()
    }

    /// The application's fields, but for those that are the connection's.
    pub fn fields(&self) -> &FieldList {
        self.fields.list()
    }

    /// What becomes of the response is decided, before its head is sent. With a coding the body that is sent is not the application's any
    /// more: [`Reply::offer`] says what is to be compressed, and the lengths given to [`Reply::head`] and [`Reply::body`] are those of the
    /// result. `standing`: as [`HeadInputs::standing`].
    pub fn treat(&mut self, treatment: Treatment, standing: &FieldList) {
        if self.phase != Phase::Open {
            return;
        }
        if treatment.coding.is_some() {
            let promised = self.fields.content_length().map_or(Framing::Delimited, Framing::Length);
            self.plain = Some(Body::of(promised));
            self.events = EventStream::of(self.fields.list()).filter(|_| promised == Framing::Delimited);
        }
        self.fields.treat(treatment, standing);
    }

    /// Whether what is sent is compressed.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        self.plain.is_some()
    }

    /// The application offers a piece of a body that is compressed: the part of it that belongs to the body.
    pub fn offer<'p>(&mut self, piece: &'p [u8]) -> &'p [u8] {
        let Some(plain) = self.plain.as_mut().filter(|_| self.phase != Phase::Done) else { return b"" };
        let count = plain.offer(piece.len() as u64).length as usize;
        let piece = &piece[..count.min(piece.len())];
        if let Some(events) = &mut self.events {
            events.add(piece);
        }
        piece
    }

    /// Decides the head, which is then to be sent: from here on the framing is fixed. `None`: it was sent, or there is no
    /// status.
    #[inline]
    pub fn head<'a>(&'a mut self, inputs: &HeadInputs<'a>) -> Option<ResponseHead<'a>> {
        if self.phase != Phase::Open || !self.has_status() {
            return None;
        }
        let fields = &self.fields;
        let decision = framing::decide(framing::Facts {
            method: self.method,
            version: self.version,
            status: self.status,
            announced: fields.content_length().filter(|_| self.plain.is_none()),
            known: inputs.body_length,
        });
        self.phase = Phase::HeadSent;
        self.body.begin(decision.framing);
        if let Some(plain) = self.plain.as_mut().filter(|_| decision.framing == Framing::None) {
            plain.begin(Framing::None);
        }
        if inputs.body_length.is_some() || !matches!(decision.framing, Framing::Delimited | Framing::UntilClose) {
            self.events = None;
        } else if self.plain.is_none() {
            self.events = EventStream::of(fields.list());
        }
        // After a final 1xx (an upgrade) the connection speaks something else.
        let tunnel = self.status < 200 || decision.framing == Framing::UntilClose;
        self.reuse &= !(inputs.close || fields.want_close() || tunnel);
        let has_length = decision.keep_length && fields.length_at().is_some();
        Some(ResponseHead {
            version: self.version,
            status: self.status,
            reason: self.status_line.get(STATUS_DIGITS + 1..).unwrap_or_default(),
            server: if fields.has_server() { b"" } else { inputs.server },
            date: if fields.has_date() { b"" } else { inputs.date },
            request_id: if fields.has_request_id() { b"" } else { &self.request_id },
            standing: inputs.standing,
            length: decision.add_length.filter(|_| !has_length),
            framing: decision.framing,
            connection: Connection { reuse: self.reuse, upgrade: fields.upgrade() },
            list: fields.list(),
            without: if decision.keep_length { None } else { fields.length_at() },
        })
    }

    /// A field to be sent behind the body (RFC 9112 section 7.1.2). Dropped where the framing has no place for it.
    pub fn trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        check(name, value)?;
        // RFC 9110 section 6.5.1: not what is needed to frame, route or understand the message before its end.
        let may_trail = matches!(classify(name), Use::Send | Use::RequestId);
        if self.phase == Phase::HeadSent && self.body.framing() == Framing::Delimited && may_trail {
            self.trailers.push(name, value);
        }
        Ok(())
    }

    /// The application offers `len` body bytes: how many of them to send (fewer: no-body responses, excess over
    /// Content-Length).
    #[inline]
    pub fn body(&mut self, len: u64) -> Portion {
        if self.phase != Phase::HeadSent {
            self.body.drop_all(len);
            return Portion::default();
        }
        self.body.offer(len)
    }

    /// The event stream that is under way; `None`: the body is something else, or has a length.
    #[inline]
    pub fn events(&self) -> Option<&EventStream> {
        self.events.as_ref().filter(|_| self.phase == Phase::HeadSent)
    }

    /// These bytes of the body are sent.
    #[inline]
    pub fn sends(&mut self, piece: &[u8]) {
        if let Some(events) = self.events.as_mut().filter(|_| self.plain.is_none()) {
            events.add(piece);
        }
    }

    /// The application is done: what becomes of the connection, and whether a mark is due behind the body.
    #[inline]
    pub fn end(&mut self) -> Ending<'_> {
        let was = std::mem::replace(&mut self.phase, Phase::Done);
        let close = if self.reuse { End::Reuse } else { End::Close };
        let missing = self.plain.as_ref().unwrap_or(&self.body).missing().max(self.body.missing());
        let (end, mark, whole) = match (was, self.body.framing()) {
            (Phase::Open, _) => (End::Close, None, false),
            _ if missing > 0 => (End::Short { missing }, None, false),
            (Phase::HeadSent, Framing::Delimited) => (close, Some(&self.trailers), true),
            (was, _) => (close, None, was == Phase::HeadSent),
        };
        Ending { end, mark, whole }
    }

    /// Whether the body has all the bytes that it may have: what is offered from now on is dropped.
    pub fn is_full(&self) -> bool {
        self.phase == Phase::HeadSent && self.plain.as_ref().unwrap_or(&self.body).is_full()
    }

    /// How many bytes are missing of the body that the application has promised.
    pub fn missing(&self) -> u64 {
        self.plain.as_ref().unwrap_or(&self.body).missing()
    }

    /// The server has sent a response of its own in place of this one, with so many body bytes.
    pub fn replaced(&mut self, sent: u64) {
        self.body.replaced(sent);
    }

    /// Body bytes that were counted (sent) so far.
    pub fn body_sent(&self) -> u64 {
        self.body.sent()
    }

    /// The same in bytes of the application.
    pub fn body_taken(&self) -> u64 {
        self.plain.as_ref().unwrap_or(&self.body).sent()
    }

    /// Body bytes dropped because the response may not carry them or exceeded Content-Length.
    pub fn body_dropped(&self) -> u64 {
        self.body.dropped()
    }

    /// An interim response (100, 103): HTTP/1.1 only and before the head; otherwise there is nothing to be sent.
    pub fn interim<'f>(
        &self,
        status: u16,
        fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<Option<Interim>, Fault> {
        // 101 is no interim response: it ends HTTP on this connection.
        if !(100..200).contains(&status) || status == 101 {
            let text = format!("{status} is not an interim status (100, 102 to 199)");
            return Err(Fault::Status(text));
        }
        // RFC 9110 section 15.2: "a server MUST NOT send a 1xx response to an HTTP/1.0 client."
        if self.phase != Phase::Open || self.version < Version::Http11 {
            return Ok(None);
        }
        let mut interim = Interim { status, fields: FieldList::default() };
        for (name, value) in fields {
            check(name, value)?;
            if classify(name) == Use::Send {
                interim.fields.push(name, value);
            }
        }
        Ok(Some(interim))
    }
}

/// `\d{3}( phrase)?`, and no status below 100.
fn status_code(line: &[u8]) -> Option<u16> {
    let (digits, phrase) = line.split_at_checked(STATUS_DIGITS)?;
    let phrase_fits = match phrase {
        [] => true,
        [b' ', phrase @ ..] => is_field_value(phrase),
        _ => false,
    };
    let code = decimal(digits).filter(|&code| code >= 100 && phrase_fits)?;
    u16::try_from(code).ok()
}

const STATUS_DIGITS: usize = 3;
