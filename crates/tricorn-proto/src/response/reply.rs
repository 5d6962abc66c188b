//! The reply machine: it decides framing, keeps lengths honest and encodes.
//!
//! ```text
//!   Open ──write_head──> HeadSent ──end──> Done
//!    ^                                      │
//!    └────────────────begin─────────────────┘
//! ```
use super::app_field::{Use, classify};
use super::body::Body;
use super::fault::{Fault, bad_status};
use super::fields::{Fields, check, push_field};
use super::framing::{self, Decision, Framing};
use crate::message::grammar::{decimal, is_field_value};
use crate::message::status::reason;
use crate::message::{Method, Version};

/// What the head of a reply depends on besides the application's fields.
#[derive(Debug, Clone, Copy)]
pub struct HeadInputs<'a> {
    /// IMF-fixdate, 29 bytes.
    pub date: &'a [u8],
    /// Value of the Server field; empty: none is sent.
    pub server: &'a [u8],
    /// Length of the whole body where the gateway knows it (all of it is at hand); becomes Content-Length if the application gave none.
    pub body_length: Option<u64>,
    /// The server wants the connection closed after this reply.
    pub close: bool,
}

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
    /// Trailer fields, encoded.
    trailers: Vec<u8>,
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
        self.trailers = Vec::new();
    }

    /// Replies are to carry this X-Request-ID, unless the application sets one; empty: none. Letters of a valid id only.
    pub fn set_request_id(&mut self, id: &[u8]) {
        self.request_id.clear();
        self.request_id.extend_from_slice(id);
    }

    /// The field it is sent in, for a response that is not this one's; empty without an id.
    pub fn request_id_field(&self) -> Vec<u8> {
        let mut field = Vec::new();
        if !self.request_id.is_empty() {
            push_field(&mut field, b"X-Request-ID", &self.request_id);
        }
        field
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

    /// One field of the application, checked (token, no control characters) and encoded. Hop-by-hop ones are dropped.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        self.fields.add(self.status, name, value)
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

    /// The application's fields as encoded, for the access log.
    pub fn fields(&self) -> &[u8] {
        self.fields.bytes()
    }

    /// Appends the head; from here on the framing is fixed. Without a status nothing is appended.
    pub fn write_head(&mut self, out: &mut Vec<u8>, inputs: &HeadInputs<'_>) {
        if self.phase != Phase::Open || !self.has_status() {
            return;
        }
        let decision = framing::decide(framing::Facts {
            method: self.method,
            version: self.version,
            status: self.status,
            announced: self.fields.content_length(),
            known: inputs.body_length,
        });
        self.phase = Phase::HeadSent;
        self.body.begin(decision.framing);
        // After a final 1xx (an upgrade) the connection speaks something else.
        let tunnel = self.status < 200 || decision.framing == Framing::UntilClose;
        self.reuse &= !(inputs.close || self.fields.want_close() || tunnel);
        self.encode_head(out, inputs, decision);
    }

    /// A field to be sent behind the body (RFC 9112 section 7.1.2). Dropped where the framing has no place for it.
    pub fn trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        check(name, value)?;
        // RFC 9110 section 6.5.1: not what is needed to frame, route or understand the message before its end.
        let may_trail = matches!(classify(name), Use::Send | Use::RequestId);
        if self.phase == Phase::HeadSent && self.body.framing() == Framing::Chunked && may_trail {
            push_field(&mut self.trailers, name, value);
        }
        Ok(())
    }

    /// The application offers `len` body bytes. Appends what must precede them (a chunk's size) to `out` and
    /// returns how many of them to send (fewer than offered: no-body responses, excess over Content-Length).
    #[inline]
    pub fn body(&mut self, out: &mut Vec<u8>, len: u64) -> u64 {
        if self.phase != Phase::HeadSent {
            self.body.drop_all(len);
            return 0;
        }
        self.body.offer(out, len)
    }

    /// What follows the bytes of the piece just sent (`\r\n` of a chunk, or nothing).
    #[inline]
    pub fn after_body(&self) -> &'static [u8] {
        self.body.after()
    }

    /// The application is done: appends the last chunk where one is due and says what becomes of the connection.
    #[inline]
    pub fn end(&mut self, out: &mut Vec<u8>) -> End {
        let was = std::mem::replace(&mut self.phase, Phase::Done);
        match (was, self.body.framing()) {
            (Phase::Open, _) => return End::Close,
            (_, Framing::Length(missing @ 1..)) => return End::Short { missing },
            (Phase::HeadSent, Framing::Chunked) => {
                out.extend_from_slice(b"0\r\n");
                out.extend_from_slice(&self.trailers);
                out.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        if self.reuse { End::Reuse } else { End::Close }
    }

    /// Whether the body has all the bytes that it may have: what is offered from now on is dropped.
    pub fn is_full(&self) -> bool {
        self.phase == Phase::HeadSent && self.body.is_full()
    }

    /// Body bytes of the application that were counted (sent) so far.
    pub fn body_sent(&self) -> u64 {
        self.body.sent()
    }

    /// Body bytes dropped because the response may not carry them or exceeded Content-Length.
    pub fn body_dropped(&self) -> u64 {
        self.body.dropped()
    }

    /// Appends an interim response (100, 103), HTTP/1.1 only and before the head; otherwise appends nothing.
    pub fn interim<'f>(
        &mut self,
        out: &mut Vec<u8>,
        status: u16,
        fields: &mut dyn Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Fault> {
        // 101 is no interim response: it ends HTTP on this connection.
        if !(100..200).contains(&status) || status == 101 {
            let text = format!("{status} is not an interim status (100, 102 to 199)");
            return Err(Fault::Status(text));
        }
        // RFC 9110 section 15.2: "a server MUST NOT send a 1xx response to an HTTP/1.0 client."
        if self.phase != Phase::Open || self.version < Version::Http11 {
            return Ok(());
        }
        let start = out.len();
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(itoa::Buffer::new().format(status).as_bytes());
        out.push(b' ');
        out.extend_from_slice(reason(status).as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in fields {
            if let Err(fault) = check(name, value) {
                out.truncate(start);
                return Err(fault);
            }
            if classify(name) == Use::Send {
                push_field(out, name, value);
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    #[inline]
    fn encode_head(&self, out: &mut Vec<u8>, inputs: &HeadInputs<'_>, decision: Decision) {
        let variable = self.status_line.len() + inputs.server.len() + inputs.date.len();
        out.reserve(variable + self.fields.bytes().len() + HEAD_TEXT);
        out.extend_from_slice(match self.version {
            Version::Http10 => b"HTTP/1.0 ",
            Version::Http11 => b"HTTP/1.1 ",
        });
        out.extend_from_slice(&self.status_line);
        if self.status_line.len() == STATUS_DIGITS {
            // RFC 9112 section 4: the SP after the code stays when there is no phrase.
            out.push(b' ');
        }
        if !self.fields.has_server() && !inputs.server.is_empty() {
            out.extend_from_slice(b"\r\nServer: ");
            out.extend_from_slice(inputs.server);
        }
        if !self.fields.has_date() {
            out.extend_from_slice(b"\r\nDate: ");
            out.extend_from_slice(inputs.date);
        }
        // RFC 9110 section 7.8: "A sender of Upgrade MUST also send an "Upgrade" connection option in the Connection
        // header field".
        let upgrades = self.fields.upgrade();
        out.extend_from_slice(match (self.status, self.reuse) {
            (101, _) if upgrades => b"\r\nConnection: upgrade\r\n".as_slice(),
            (_, true) if upgrades => b"\r\nConnection: keep-alive, upgrade\r\n",
            (_, false) if upgrades => b"\r\nConnection: close, upgrade\r\n",
            (_, true) => b"\r\nConnection: keep-alive\r\n",
            (_, false) => b"\r\nConnection: close\r\n",
        });
        if decision.framing == Framing::Chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        match decision.add_length {
            Some(length) if self.fields.content_length().is_none() || !decision.keep_length => {
                out.extend_from_slice(b"Content-Length: ");
                out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        if !self.request_id.is_empty() && !self.fields.has_request_id() {
            push_field(out, b"X-Request-ID", &self.request_id);
        }
        if decision.keep_length {
            out.extend_from_slice(self.fields.bytes());
        } else {
            for part in self.fields.around_length() {
                out.extend_from_slice(part);
            }
        }
        out.extend_from_slice(b"\r\n");
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
/// Room for all that a head says besides what is counted.
const HEAD_TEXT: usize = 160;
