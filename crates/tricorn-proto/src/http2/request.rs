//! A decoded field section becomes the head that HTTP/1 yields, or is refused (RFC 9113 section 8).
//!
//! ```text
//!   Pseudo ──first regular field──> line and host are laid out ──> Fields ──end──> framing is decided
//! ```
//!
//! Methods, targets, hosts and lengths are judged by the rules of HTTP/1 (`request_line`, `framing`), names and values by
//! its grammar; what stands here is what HTTP/2 adds. A section over a limit is still decoded to its end, but not stored.
use super::field_rules::{check_field, is_scheme};
use super::priority::Priority;
use super::violation::Violation;
use crate::http1::HeadPolicy;
use crate::http1::fields::{Source, may_pass};
use crate::http1::framing::FramingFields;
use crate::http1::request_line::{self, Flaw};
use crate::http1::scheme::SchemeClaim;
use crate::message::{Field, Framing, Known, Method, Refusal, RefusalKind, RequestHead, Scheme, Span, Version, host};
use std::ops::Range;

/// A request as it was decoded. Reused from request to request, so that it allocates once.
#[derive(Debug, Default)]
pub struct Request {
    /// Its `protocol` reads `HTTP/2.0`. A body of unknown length is `Framing::Chunked`.
    pub head: RequestHead,
    /// The bytes that the head's spans point into.
    pub bytes: Vec<u8>,
    /// Value of the Priority field.
    pub(super) priority: Option<Priority>,
    /// The cookies, joined.
    cookies: Vec<u8>,
}

impl Request {
    /// Forgets the request, keeps the memory.
    pub fn clear(&mut self) {
        self.head.clear();
        self.bytes.clear();
        self.cookies.clear();
        self.priority = None;
    }
}

/// How heads are read: the policy of HTTP/1, whether the peer is a trusted front end, and the limits of HTTP/2.
#[derive(Clone, Copy)]
pub(super) struct Rules<'a> {
    pub policy: &'a HeadPolicy,
    pub trusted: bool,
    pub max_list: usize,
    pub connect_protocol: bool,
}

/// Why a section is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Flawed {
    /// Section 8.1.1: it is malformed; the stream is reset.
    Malformed(Violation),
    /// It is answered with a status.
    Refused(Box<Refusal>),
}

impl From<Violation> for Flawed {
    fn from(violation: Violation) -> Flawed {
        Flawed::Malformed(violation)
    }
}

impl From<Box<Refusal>> for Flawed {
    fn from(refusal: Box<Refusal>) -> Flawed {
        Flawed::Refused(refusal)
    }
}

/// Takes the fields of one section, in order.
pub(super) struct HeadReader<'a> {
    request: &'a mut Request,
    rules: Rules<'a>,
    pseudo: Pseudo,
    facts: FramingFields,
    claim: SchemeClaim,
    size: usize,
    /// Regular fields so far, crumbs of cookies counted singly.
    count: usize,
    in_fields: bool,
    /// Which field the cookies are.
    cookie_at: Option<usize>,
    flawed: Option<Flawed>,
}

/// Values of the pseudo-header fields, in the request's bytes.
#[derive(Default)]
struct Pseudo {
    method: Option<Span>,
    scheme: Option<Span>,
    authority: Option<Span>,
    path: Option<Span>,
    protocol: Option<Span>,
}

impl<'a> HeadReader<'a> {
    pub fn new(request: &'a mut Request, rules: Rules<'a>) -> HeadReader<'a> {
        request.clear();
        HeadReader {
            request,
            rules,
            pseudo: Pseudo::default(),
            facts: FramingFields::default(),
            claim: SchemeClaim::default(),
            size: 0,
            count: 0,
            in_fields: false,
            cookie_at: None,
            flawed: None,
        }
    }

    /// Takes the next field. After the first flaw nothing is stored.
    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if self.flawed.is_none() {
            self.flawed = self.add(name, value).err();
        }
    }

    /// The section is complete. `end`: so is the request.
    pub fn finish(mut self, end: bool) -> Result<(), Flawed> {
        if self.flawed.is_none() && !self.in_fields {
            self.flawed = self.lay_out().err();
        }
        match self.flawed.take() {
            Some(flawed) => Err(flawed),
            None => self.decide(end),
        }
    }

    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Flawed> {
        // RFC 9113 section 6.5.2: "based on the uncompressed size of field lines, including the length of the name and
        // value in units of octets plus an overhead of 32 octets for each field line."
        self.size += name.len() + value.len() + 32;
        if self.size > self.rules.max_list {
            return Err(too_large("limit request headers list size").into());
        }
        match name {
            [b':', ..] => Ok(self.pseudo(name, value)?),
            _ => self.regular(name, value),
        }
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        if self.in_fields {
            return Err(Violation::PseudoOrder);
        }
        let slot = match name {
            b":method" => &mut self.pseudo.method,
            b":scheme" => &mut self.pseudo.scheme,
            b":authority" => &mut self.pseudo.authority,
            b":path" => &mut self.pseudo.path,
            b":protocol" => &mut self.pseudo.protocol,
            _ => return Err(Violation::PseudoUnknown),
        };
        if slot.is_some() {
            return Err(Violation::PseudoTwice);
        }
        *slot = Some(append(&mut self.request.bytes, value));
        Ok(())
    }

    fn regular(&mut self, name: &[u8], value: &[u8]) -> Result<(), Flawed> {
        check_field(name, value)?;
        if !std::mem::replace(&mut self.in_fields, true) {
            self.lay_out()?;
        }
        let bounds = self.rules.policy.limits.bounds();
        self.count += 1;
        if self.count > bounds.fields {
            return Err(too_large("limit request headers fields").into());
        }
        if name.len() + value.len() + LINE_MARKS > bounds.field_size {
            return Err(too_large("limit request headers fields size").into());
        }
        let known = Known::classify(name);
        match (known, name) {
            (Known::Host, _) if self.pseudo.authority.is_some() => return Ok(self.check_host(value)?),
            (_, b"cookie") => {
                return {
                    self.cookie(value);
                    Ok(())
                };
            }
            (_, b"priority") => self.request.priority = Some(Priority::parse(value)),
            _ => {}
        }
        if known != Known::Other {
            self.facts.note(known, value, Version::Http2)?;
        }
        self.store(name, value, known)
    }

    fn store(&mut self, name: &[u8], value: &[u8], known: Known) -> Result<(), Flawed> {
        let Rules { policy, trusted, .. } = self.rules;
        if trusted {
            self.claim.note(policy, name, value)?;
        }
        let Request { head, bytes, .. } = &mut *self.request;
        let name = append(bytes, name);
        if memchr::memchr(b'_', name.of(bytes)).is_some() {
            let source = Source { input: bytes, start: 0, policy, bounds: policy.limits.bounds(), trusted };
            if !may_pass(&source, name)? {
                if head.dropped.is_empty() {
                    head.dropped = name;
                }
                return Ok(());
            }
        }
        let value = append(bytes, value);
        head.fields.push(Field { name, value, known });
        Ok(())
    }

    /// Section 8.2.3: crumbs "MUST be concatenated into a single octet string using the two-octet delimiter of 0x3b, 0x20".
    fn cookie(&mut self, crumb: &[u8]) {
        let Request { head, bytes, cookies, .. } = &mut *self.request;
        if self.cookie_at.is_none() {
            self.cookie_at = Some(head.fields.len());
            let name = append(bytes, b"cookie");
            head.fields.push(Field { name, ..Field::default() });
        } else {
            cookies.extend_from_slice(b"; ");
        }
        cookies.extend_from_slice(crumb);
    }

    /// Section 8.3.1: "A server SHOULD treat a request as malformed if it contains a Host header field that identifies
    /// an entity that differs from the entity in the ":authority" pseudo-header field."
    fn check_host(&self, value: &[u8]) -> Result<(), Violation> {
        let authority = self.text(self.pseudo.authority);
        if value.eq_ignore_ascii_case(authority) { Ok(()) } else { Err(Violation::HostMismatch) }
    }

    fn text(&self, span: Option<Span>) -> &[u8] {
        span.map_or(b"", |span| span.of(&self.request.bytes))
    }

    /// The pseudo-header fields are complete: they become the request line and the field `host`.
    fn lay_out(&mut self) -> Result<(), Flawed> {
        let target = self.target()?;
        let Pseudo { method, authority, protocol, .. } = self.pseudo;
        let method = method.ok_or(Violation::PseudoMissing)?;
        let Request { head, bytes, .. } = &mut *self.request;
        let start = bytes.len();
        // An extended CONNECT has a path, as a GET has.
        match protocol {
            Some(_) => bytes.extend_from_slice(b"GET"),
            None => bytes.extend_from_within(range(method)),
        }
        bytes.push(b' ');
        bytes.extend_from_within(range(target));
        bytes.push(b' ');
        let length = bytes.len() - start - 1;
        bytes.extend_from_slice(PROTOCOL);
        let limit = self.rules.policy.limits.bounds().request_line;
        if length > limit {
            let text = format!("{length} > {limit}");
            return Err(Box::new(Refusal::new(RefusalKind::RequestLineTooLong, text)).into());
        }
        let line = &bytes[start..];
        let parsed = match request_line::parse_any_version(line, &self.rules.policy.leniency) {
            // A space in :method or :path would move the parts of the line.
            Ok(parsed) if line[parsed.protocol.clone()] == *PROTOCOL => parsed,
            Ok(_) | Err(Flaw::Line | Flaw::Version) => return Err(Violation::Path.into()),
            Err(flaw @ Flaw::Method) => return Err(request_line::refuse(line, flaw).into()),
        };
        let span = |range: Range<usize>| span(start + range.start, start + range.end);
        (head.kind, head.method) = (parsed.kind, span(0..parsed.method));
        (head.target, head.path, head.query) = (span(parsed.target), span(parsed.path), span(parsed.query));
        head.protocol = span(parsed.protocol);
        if protocol.is_some() {
            (head.kind, head.method) = (Method::Tunnel, method);
        }
        match authority {
            Some(authority) => self.host(authority),
            None => Ok(()),
        }
    }

    /// Section 8.3.1, and 8.5 for CONNECT: which fields there must be. Returns what the request line has for a target.
    fn target(&self) -> Result<Span, Violation> {
        let Pseudo { method, scheme, authority, path, protocol } = self.pseudo;
        let is_connect = self.text(Some(method.ok_or(Violation::PseudoMissing)?)) == b"CONNECT";
        if let Some(protocol) = protocol {
            // No other protocol is spoken here.
            let is_websocket = self.text(Some(protocol)).eq_ignore_ascii_case(b"websocket");
            if !is_connect || !is_websocket || !self.rules.connect_protocol || authority.is_none() {
                return Err(Violation::ConnectForm);
            }
        } else if is_connect {
            // ":scheme" and ":path" "MUST be omitted".
            return match (scheme, authority, path) {
                (None, Some(authority), None) => Ok(authority),
                _ => Err(Violation::ConnectForm),
            };
        }
        let (Some(scheme), Some(path)) = (scheme, path) else { return Err(Violation::PseudoMissing) };
        if !is_scheme(self.text(Some(scheme))) {
            return Err(Violation::SchemeName);
        }
        // "This pseudo-header field MUST NOT be empty for "http" or "https" URIs"; OPTIONS may have "*".
        match (self.text(Some(path)), self.text(method)) {
            ([b'/', ..], _) | (b"*", b"OPTIONS") => Ok(path),
            _ => Err(Violation::Path),
        }
    }

    /// The authority is what Host says over HTTP/1.
    fn host(&mut self, authority: Span) -> Result<(), Flawed> {
        let text = self.text(Some(authority)).to_vec();
        // Section 8.3.1: it "MUST NOT include the deprecated userinfo subcomponent", which is no host[:port].
        if text.is_empty() || !host::is_host_port(&text) {
            return Err(Violation::Authority.into());
        }
        self.facts.note(Known::Host, &text, Version::Http2)?;
        let Request { head, bytes, .. } = &mut *self.request;
        let name = append(bytes, b"host");
        head.fields.push(Field { name, value: authority, known: Known::Host });
        Ok(())
    }

    fn decide(self, end: bool) -> Result<(), Flawed> {
        let HeadReader { request, rules, pseudo, facts, claim, cookie_at, .. } = self;
        let Request { head, bytes, cookies, .. } = request;
        if let Some(field) = cookie_at.and_then(|at| head.fields.get_mut(at)) {
            field.value = append(bytes, cookies);
        }
        head.version = Version::Http2;
        let scheme = pseudo.scheme.filter(|_| rules.trusted).map(|scheme| match scheme.of(bytes) {
            b"https" => Scheme::Https,
            _ => Scheme::Http,
        });
        let told = claim.0.or(scheme);
        (head.scheme, head.scheme_is_told) = (told.unwrap_or_default(), told.is_some());
        facts.decide(head, bytes)?;
        let expects = head.find(bytes, b"expect").is_some();
        head.framing = match head.framing {
            // Section 8.1.1: a request is malformed "if the value of the Content-Length header field does not equal the
            // sum of the DATA frame payload lengths".
            Framing::Length(1..) if end => return Err(Violation::ContentLength.into()),
            Framing::Length(length) => {
                rules.policy.limits.check_body(length)?;
                Framing::Length(length)
            }
            _ if end || matches!(head.kind, Method::Connect | Method::Tunnel) => Framing::None,
            _ => Framing::Chunked,
        };
        head.expect_continue = expects && !end && head.framing.has_body();
        if rules.policy.leniency.casefold_method {
            bytes[range(head.method)].make_ascii_uppercase();
        }
        Ok(())
    }
}

fn append(bytes: &mut Vec<u8>, text: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(text);
    span(start, bytes.len())
}

/// Sections are shorter than `max_header_list_size`, a `u32`.
fn span(start: usize, end: usize) -> Span {
    Span { start: start as u32, end: end as u32 }
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

#[cold]
fn too_large(text: &str) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::HeadTooLarge, text))
}

const PROTOCOL: &[u8] = b"HTTP/2.0";
/// Colon, space and CRLF, which a field of HTTP/1 has and its limit counts.
const LINE_MARKS: usize = 4;
