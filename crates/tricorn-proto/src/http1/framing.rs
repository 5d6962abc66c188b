//! What a request's fields decide about its body and its connection, once, for everything downstream.
//!
//! RFC 9112 section 6 and the attacks that live there: anything on which two parsers could disagree about where a
//! message ends (CL.TE, TE.CL, TE.TE) is refused, never repaired.
use crate::message::grammar::{decimal, list};
use crate::message::host;
use crate::message::{Framing, Known, Method, Refusal, RefusalKind, RequestHead, Version};

/// Collected while the fields are walked; judged by `decide` when they have all been seen.
#[derive(Debug, Default)]
pub(crate) struct FramingFields {
    host: bool,
    content_type: bool,
    content_length: Option<u64>,
    transfer_encoding: bool,
    /// `chunked` was the last coding seen.
    chunked: bool,
    /// A coding that exists but that we do not decode.
    undecodable: bool,
    close: bool,
    keep_alive: bool,
    expect_continue: bool,
}

impl FramingFields {
    /// Notes a field that is not `Known::Other`.
    pub(crate) fn note(&mut self, known: Known, value: &[u8], version: Version) -> Result<(), Box<Refusal>> {
        match known {
            Known::Host => self.host(value),
            Known::ContentType => once(&mut self.content_type, b"CONTENT-TYPE"),
            Known::ContentLength => self.content_length(value),
            Known::TransferEncoding => self.transfer_encoding(value),
            Known::Connection => {
                self.connection(value);
                Ok(())
            }
            Known::Expect => self.expect(value, version),
            Known::Upgrade | Known::RequestId | Known::RequestStart | Known::Other => Ok(()),
        }
    }

    /// RFC 9112 section 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request
    /// message that lacks a Host header field and to any request message that contains more than one Host header
    /// field line or a Host header field with an invalid field value."
    fn host(&mut self, value: &[u8]) -> Result<(), Box<Refusal>> {
        once(&mut self.host, b"HOST")?;
        if host::is_host_port(value) { Ok(()) } else { Err(bad_header(b"HOST")) }
    }

    /// RFC 9110 section 8.6: Content-Length = 1*DIGIT. A list of equal values may be repaired says the RFC; a proxy
    /// in front may have chosen otherwise, so we refuse it.
    fn content_length(&mut self, value: &[u8]) -> Result<(), Box<Refusal>> {
        if self.content_length.is_some() {
            return Err(bad_header(b"CONTENT-LENGTH"));
        }
        self.content_length = Some(decimal(value).ok_or_else(|| bad_header(b"CONTENT-LENGTH"))?);
        Ok(())
    }

    /// RFC 9112 section 6.1: "A sender MUST NOT apply the chunked transfer coding more than once"; 6.3: chunked that
    /// is not final leaves the length undeterminable. Unknown codings "SHOULD respond with 501".
    #[cold]
    fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Box<Refusal>> {
        self.transfer_encoding = true;
        for coding in list(value) {
            if coding.eq_ignore_ascii_case(b"chunked") {
                if self.chunked {
                    return Err(bad_header(b"TRANSFER-ENCODING"));
                }
                self.chunked = true;
                continue;
            }
            if !UNDECODED.iter().any(|known| coding.eq_ignore_ascii_case(known)) {
                return Err(Refusal::from_bytes(RefusalKind::TransferCoding, value));
            }
            if self.chunked {
                return Err(bad_header(b"TRANSFER-ENCODING"));
            }
            self.undecodable = true;
        }
        Ok(())
    }

    /// RFC 9112 section 9.3: the "close" connection option wins, over all Connection fields.
    fn connection(&mut self, value: &[u8]) {
        if value.eq_ignore_ascii_case(b"keep-alive") {
            self.keep_alive = true;
            return;
        }
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// RFC 9110 section 10.1.1: "The Expect field value is case-insensitive." "A server that receives a
    /// 100-continue expectation in an HTTP/1.0 request MUST ignore that expectation."
    #[cold]
    fn expect(&mut self, value: &[u8], version: Version) -> Result<(), Box<Refusal>> {
        if version < Version::Http11 {
            return Ok(());
        }
        if !value.eq_ignore_ascii_case(b"100-continue") {
            return Err(Refusal::from_bytes(RefusalKind::Expectation, value));
        }
        self.expect_continue = true;
        Ok(())
    }

    /// All fields have been noted: fills in what they decide. `bytes` is what the head's spans point into.
    #[inline]
    pub(crate) fn decide(self, head: &mut RequestHead, bytes: &[u8]) -> Result<(), Box<Refusal>> {
        if !self.host && head.version >= Version::Http11 {
            return Err(missing_host());
        }
        // In the other forms the path is the whole target, or empty and at the beginning of the line.
        if self.host && head.path.start > head.target.start {
            check_authority(head, bytes)?;
        }
        head.framing = match self.content_length {
            _ if self.transfer_encoding => self.coded_framing(head, bytes)?,
            Some(length) => Framing::Length(length),
            // RFC 9112 section 6.3 rule 7: a request with neither has no body.
            None => Framing::None,
        };
        head.expect_continue = self.expect_continue && head.framing.has_body();
        head.keep_alive = match head.version {
            Version::Http11 | Version::Http2 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
            // The front end says so itself (`cgi`).
            Version::Uwsgi | Version::Scgi | Version::FastCgi(_) => false,
        };
        // After CONNECT the bytes are tunnel data whatever was answered, never another request.
        head.keep_alive &= !matches!(head.kind, Method::Connect | Method::Tunnel);
        Ok(())
    }

    #[cold]
    fn coded_framing(&self, head: &RequestHead, bytes: &[u8]) -> Result<Framing, Box<Refusal>> {
        // RFC 9112 section 6.3: "If a Transfer-Encoding header field is present in a request and the chunked transfer
        // coding is not the final encoding, the message body length cannot be determined reliably; the server MUST
        // respond with the 400 (Bad Request) status code". 6.1: on HTTP/1.0 "MUST treat the message as if the framing
        // is faulty".
        if !self.chunked || head.version < Version::Http11 {
            return Err(bad_header(b"TRANSFER-ENCODING"));
        }
        // 6.1: "A server MAY reject a request that contains both Content-Length and Transfer-Encoding".
        if self.content_length.is_some() {
            return Err(bad_header(b"CONTENT-LENGTH"));
        }
        if self.undecodable {
            let value = head.find(bytes, b"transfer-encoding").unwrap_or_default();
            return Err(Refusal::from_bytes(RefusalKind::TransferCoding, value));
        }
        Ok(Framing::Chunked)
    }
}

/// RFC 9112 section 3.2.2: the authority of an absolute form counts, and Host is to be ignored. A proxy that does not
/// know this rule routes by Host, so two that differ are refused.
#[cold]
fn check_authority(head: &RequestHead, bytes: &[u8]) -> Result<(), Box<Refusal>> {
    let named = host::Absolute::of(head.target.of(bytes));
    let host = head.find(bytes, b"host").unwrap_or_default();
    match named {
        Some(absolute) if !absolute.is_at(host) => Err(Refusal::from_bytes(RefusalKind::HostMismatch, host)),
        _ => Ok(()),
    }
}

/// RFC 9110 section 5.3: a field that admits a single member cannot be merged when it is repeated.
fn once(seen: &mut bool, name: &'static [u8]) -> Result<(), Box<Refusal>> {
    if std::mem::replace(seen, true) { Err(bad_header(name)) } else { Ok(()) }
}

#[cold]
fn bad_header(name: &[u8]) -> Box<Refusal> {
    Refusal::from_bytes(RefusalKind::Header, name)
}

#[cold]
fn missing_host() -> Box<Refusal> {
    Refusal::from_bytes(RefusalKind::MissingHost, b"")
}

/// Codings of RFC 9112 section 7 other than chunked (and the `identity` of RFC 2616).
const UNDECODED: [&[u8]; 6] = [b"gzip", b"deflate", b"compress", b"identity", b"x-gzip", b"x-compress"];
