//! The request head: what a complete one is made of. Spans point into the bytes it was read from.
use super::grammar::is_named;

/// A range of the head's bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The bytes of this span in the buffer the head was read from; empty if it does not fit.
    #[inline]
    pub fn of(self, head: &[u8]) -> &[u8] {
        head.get(self.start as usize..self.end as usize).unwrap_or(&[])
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    Get,
    Head,
    Connect,
    /// A CONNECT that asks for a WebSocket (RFC 8441).
    Tunnel,
    Options,
    /// Any other token; its text is `RequestHead::method`.
    Other,
}

/// By what a request has come, and how its response is said. What stands before HTTP/1.1 has less than that has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Uwsgi,
    Scgi,
    /// With the number of the request on its connection.
    FastCgi(u16),
    Http10,
    #[default]
    Http11,
    Http2,
}

/// How the request's body is delimited: decided once, here (RFC 9112 section 6).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Framing {
    #[default]
    None,
    Length(u64),
    Chunked,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scheme {
    #[default]
    Http,
    Https,
}

/// Field names the core itself acts upon or that WSGI treats apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Known {
    #[default]
    Other,
    Host,
    Connection,
    ContentLength,
    ContentType,
    TransferEncoding,
    Expect,
    Upgrade,
    RequestId,
    RequestStart,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Field {
    pub name: Span,
    pub value: Span,
    pub known: Known,
}

/// A request head that passed every check. Reused from request to request (`clear`), so that it allocates once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHead {
    pub method: Span,
    pub kind: Method,
    /// The request target as it came (RAW_URI).
    pub target: Span,
    /// The path part of the target, still percent-encoded; of an absolute-form target too.
    pub path: Span,
    /// The query part without its question mark; empty if there is none.
    pub query: Span,
    /// The version as the client wrote it, e.g. `HTTP/1.1`.
    pub protocol: Span,
    pub version: Version,
    /// The fields the application may see, in order (after `header_map` and `forwarder_headers`).
    pub fields: Vec<Field>,
    /// The name of the first field that `header_map` has dropped; empty if none was.
    pub dropped: Span,
    pub framing: Framing,
    pub scheme: Scheme,
    /// A trusted front end has said so; else it is the connection's.
    pub scheme_is_told: bool,
    /// What the client asks for: HTTP/1.1 without `close`, or HTTP/1.0 with `keep-alive`.
    pub keep_alive: bool,
    /// `Expect: 100-continue` on HTTP/1.1 with a body to come.
    pub expect_continue: bool,
    /// Trailer fields of a chunked body (name, value), never merged into `fields`.
    pub trailers: Vec<(Vec<u8>, Vec<u8>)>,
}

impl RequestHead {
    /// Forgets the request, keeps the memory of its fields.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = RequestHead { fields, ..RequestHead::default() };
    }

    /// The value of the first field with this name (any case), in the bytes the head was read from.
    pub fn find<'b>(&self, bytes: &'b [u8], name: &[u8]) -> Option<&'b [u8]> {
        let field = self.fields.iter().find(|field| field.name.of(bytes).eq_ignore_ascii_case(name));
        field.map(|field| field.value.of(bytes))
    }
}

impl Known {
    /// By length first: nearly every name of a request is told apart by it without being read.
    #[inline]
    pub fn classify(name: &[u8]) -> Known {
        match name.len() {
            4 if is_named(name, b"host") => Known::Host,
            6 if is_named(name, b"expect") => Known::Expect,
            7 if is_named(name, b"upgrade") => Known::Upgrade,
            10 if is_named(name, b"connection") => Known::Connection,
            12 if is_named(name, b"content-type") => Known::ContentType,
            12 if is_named(name, b"x-request-id") => Known::RequestId,
            14 if is_named(name, b"content-length") => Known::ContentLength,
            15 if is_named(name, b"x-request-start") => Known::RequestStart,
            17 if is_named(name, b"transfer-encoding") => Known::TransferEncoding,
            _ => Known::Other,
        }
    }
}

impl Framing {
    /// Whether body bytes are to come.
    pub fn has_body(self) -> bool {
        !matches!(self, Framing::None | Framing::Length(0))
    }
}
