//! The reply machine: it decides framing, keeps lengths honest and encodes.
//!
//! ```text
//!   Open ──write_head──> HeadSent ──end──> Done
//!    ^                                      │
//!    └────────────────begin─────────────────┘
//! ```
use super::app_field::{Use, asks_to_close, classify};
use super::error_page::reason;
use super::framing::{self, Decision, Framing, push_hex};
use crate::http1::grammar::{decimal, is_field_value, is_token};
use crate::http1::{Method, Version};
use std::fmt;
use std::ops::Range;

/// What the application did wrong, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Status(String),
    FieldName(String),
    FieldValue(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Status(text) => write!(f, "Invalid status from the application: {text}"),
            Fault::FieldName(text) => {
                write!(f, "Invalid response header name from the application: {text}")
            }
            Fault::FieldValue(text) => {
                write!(f, "Invalid response header from the application: {text}")
            }
        }
    }
}

impl std::error::Error for Fault {}

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
    /// The application's fields, encoded.
    fields: Vec<u8>,
    /// Where its Content-Length stands in `fields`.
    length_field: Range<usize>,
    /// Value of the X-Request-ID field to be sent unless the application has its own; empty: none.
    request_id: Vec<u8>,
    content_length: Option<u64>,
    has_server: bool,
    has_date: bool,
    has_request_id: bool,
    wants_close: bool,
    upgrades: bool,
    framing: Framing,
    /// Trailer fields, encoded.
    trailers: Vec<u8>,
    /// The piece offered last was framed as a chunk that is not ended yet.
    in_chunk: bool,
    sent: u64,
    dropped: u64,
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
        let mut status_line = std::mem::take(&mut self.status_line);
        let mut fields = std::mem::take(&mut self.fields);
        let request_id = std::mem::take(&mut self.request_id);
        status_line.clear();
        fields.clear();
        *self = Reply {
            phase: Phase::Open,
            method,
            version,
            reuse: keep_alive,
            status_line,
            fields,
            request_id,
            ..Reply::default()
        };
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
        self.length_field = 0..0;
        self.content_length = None;
        (self.has_server, self.has_date, self.has_request_id) = (false, false, false);
        (self.wants_close, self.upgrades) = (false, false);
        Ok(())
    }

    /// The connection cannot be kept, whatever the application says. Before the head is written.
    pub fn close(&mut self) {
        self.reuse = false;
    }

    /// One field of the application, checked (token, no control characters) and encoded. Hop-by-hop ones are dropped.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        check(name, value)?;
        let start = self.fields.len();
        match classify(name) {
            Use::Send => {}
            Use::ContentLength => {
                if !self.note_length(value)? {
                    return Ok(());
                }
                self.length_field = start..start + name.len() + value.len() + FIELD_MARKS;
            }
            Use::Server => self.has_server = true,
            Use::Date => self.has_date = true,
            Use::RequestId => self.has_request_id = true,
            // gunicorn sends no other; but RFC 9110 section 15.5.22 wants it of every 426.
            Use::Upgrade if self.status != 426 && !value.eq_ignore_ascii_case(b"websocket") => return Ok(()),
            Use::Upgrade => self.upgrades = true,
            Use::Connection => {
                self.wants_close |= asks_to_close(value);
                return Ok(());
            }
            Use::Drop => return Ok(()),
        }
        push_field(&mut self.fields, name, value);
        Ok(())
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
        self.content_length
    }

    /// The application's fields as encoded, for the access log.
    pub fn fields(&self) -> &[u8] {
        &self.fields
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
            announced: self.content_length,
            known: inputs.body_length,
        });
        self.phase = Phase::HeadSent;
        self.framing = decision.framing;
        // After a final 1xx (an upgrade) the connection speaks something else.
        let tunnel = self.status < 200 || self.framing == Framing::UntilClose;
        self.reuse &= !(inputs.close || self.wants_close || tunnel);
        self.encode_head(out, inputs, decision);
    }

    /// A field to be sent behind the body (RFC 9112 section 7.1.2). Dropped where the framing has no place for it.
    pub fn trailer(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        check(name, value)?;
        // RFC 9110 section 6.5.1: not what is needed to frame, route or understand the message before its end.
        let may_trail = matches!(classify(name), Use::Send | Use::RequestId);
        if self.phase == Phase::HeadSent && self.framing == Framing::Chunked && may_trail {
            push_field(&mut self.trailers, name, value);
        }
        Ok(())
    }

    /// The application offers `len` body bytes. Appends what must precede them (a chunk's size) to `out` and
    /// returns how many of them to send (fewer than offered: no-body responses, excess over Content-Length).
    #[inline]
    pub fn body(&mut self, out: &mut Vec<u8>, len: u64) -> u64 {
        self.in_chunk = false;
        if self.phase != Phase::HeadSent {
            self.dropped = self.dropped.saturating_add(len);
            return 0;
        }
        let send = match &mut self.framing {
            Framing::NoBody => 0,
            Framing::UntilClose => len,
            Framing::Length(remaining) => {
                let send = len.min(*remaining);
                *remaining -= send;
                send
            }
            // RFC 9112 section 7.1: a chunk of no bytes would be the last one.
            Framing::Chunked if len == 0 => 0,
            Framing::Chunked => {
                self.in_chunk = true;
                push_hex(out, len);
                out.extend_from_slice(b"\r\n");
                len
            }
        };
        self.sent = self.sent.saturating_add(send);
        self.dropped = self.dropped.saturating_add(len - send);
        send
    }

    /// What follows the bytes of the piece just sent (`\r\n` of a chunk, or nothing).
    #[inline]
    pub fn after_body(&self) -> &'static [u8] {
        if self.in_chunk { b"\r\n" } else { b"" }
    }

    /// The application is done: appends the last chunk where one is due and says what becomes of the connection.
    #[inline]
    pub fn end(&mut self, out: &mut Vec<u8>) -> End {
        let was = std::mem::replace(&mut self.phase, Phase::Done);
        match (was, self.framing) {
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
        self.phase == Phase::HeadSent && matches!(self.framing, Framing::NoBody | Framing::Length(0))
    }

    /// Body bytes of the application that were counted (sent) so far.
    pub fn body_sent(&self) -> u64 {
        self.sent
    }

    /// Body bytes dropped because the response may not carry them or exceeded Content-Length.
    pub fn body_dropped(&self) -> u64 {
        self.dropped
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

    /// Whether this Content-Length is the first; a second one must say the same.
    fn note_length(&mut self, value: &[u8]) -> Result<bool, Fault> {
        let Some(length) = decimal(value) else {
            return Err(bad_value(b"Content-Length", value, "expected digits"));
        };
        match self.content_length.replace(length) {
            None => Ok(true),
            Some(before) if before == length => Ok(false),
            Some(before) => {
                self.content_length = Some(before);
                let text = format!("Content-Length is {before} and {length}; expected one length");
                Err(Fault::FieldValue(text))
            }
        }
    }

    #[inline]
    fn encode_head(&self, out: &mut Vec<u8>, inputs: &HeadInputs<'_>, decision: Decision) {
        let variable = self.status_line.len() + inputs.server.len() + inputs.date.len();
        out.reserve(variable + self.fields.len() + HEAD_TEXT);
        out.extend_from_slice(match self.version {
            Version::Http10 => b"HTTP/1.0 ",
            Version::Http11 => b"HTTP/1.1 ",
        });
        out.extend_from_slice(&self.status_line);
        if self.status_line.len() == STATUS_DIGITS {
            // RFC 9112 section 4: the SP after the code stays when there is no phrase.
            out.push(b' ');
        }
        if !self.has_server && !inputs.server.is_empty() {
            out.extend_from_slice(b"\r\nServer: ");
            out.extend_from_slice(inputs.server);
        }
        if !self.has_date {
            out.extend_from_slice(b"\r\nDate: ");
            out.extend_from_slice(inputs.date);
        }
        // RFC 9110 section 7.8: "A sender of Upgrade MUST also send an "Upgrade" connection option in the Connection
        // header field".
        out.extend_from_slice(match (self.status, self.reuse) {
            (101, _) if self.upgrades => b"\r\nConnection: upgrade\r\n".as_slice(),
            (_, true) if self.upgrades => b"\r\nConnection: keep-alive, upgrade\r\n",
            (_, false) if self.upgrades => b"\r\nConnection: close, upgrade\r\n",
            (_, true) => b"\r\nConnection: keep-alive\r\n",
            (_, false) => b"\r\nConnection: close\r\n",
        });
        if decision.framing == Framing::Chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        match decision.add_length {
            Some(length) if self.content_length.is_none() || !decision.keep_length => {
                out.extend_from_slice(b"Content-Length: ");
                out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        if !self.request_id.is_empty() && !self.has_request_id {
            push_field(out, b"X-Request-ID", &self.request_id);
        }
        if decision.keep_length {
            out.extend_from_slice(&self.fields);
        } else {
            out.extend_from_slice(&self.fields[..self.length_field.start]);
            out.extend_from_slice(&self.fields[self.length_field.end..]);
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

/// The application must not be able to end a line: what follows would be a header, or a response, of its client's
/// making (response splitting).
#[inline]
fn check(name: &[u8], value: &[u8]) -> Result<(), Fault> {
    if !is_token(name) {
        return Err(bad_name(name));
    }
    if !is_field_value(value) {
        return Err(bad_value(name, value, "expected no control characters"));
    }
    Ok(())
}

#[inline]
fn push_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.reserve(name.len() + value.len() + FIELD_MARKS);
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cold]
fn bad_status(line: &[u8]) -> Fault {
    Fault::Status(format!("{}; expected three digits and a phrase", shown(line)))
}

#[cold]
fn bad_name(name: &[u8]) -> Fault {
    Fault::FieldName(format!("{}; expected a token (RFC 9110 section 5.6.2)", shown(name)))
}

#[cold]
fn bad_value(name: &[u8], value: &[u8], expected: &str) -> Fault {
    Fault::FieldValue(format!("{} is {}; {expected}", shown(name), shown(value)))
}

fn shown(bytes: &[u8]) -> String {
    format!("'{}'", bytes.escape_ascii())
}

const STATUS_DIGITS: usize = 3;
/// `: ` and CRLF.
const FIELD_MARKS: usize = 4;
/// Room for all that a head says besides what is counted.
const HEAD_TEXT: usize = 160;
