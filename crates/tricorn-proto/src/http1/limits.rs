//! Every number that bounds a request head or a body, and the operator's loosening settings.
use crate::message::{Refusal, RefusalKind};
use crate::peer::ProxyPolicy;
use crate::trust::Trust;

/// Bounds in bytes or counts. `0` means "the hard maximum", never "unbounded" (but for `body`).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest request line without its CRLF (gunicorn's `limit_request_line`). Exceeded: 414.
    pub request_line: usize,
    /// Most header fields (gunicorn's `limit_request_fields`). Exceeded: 431.
    pub fields: usize,
    /// Longest field: name, colon, value, CRLF (gunicorn's `limit_request_field_size`). Exceeded: 431.
    pub field_size: usize,
    /// Longest body, without the marks of a transfer coding (`limit_request_body`); 0: any. Exceeded: 413.
    pub body: u64,
}

/// What to do with header names that contain an underscore (gunicorn's `header_map`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderMap {
    Drop,
    Refuse,
    Dangerous,
}

/// gunicorn's loosening settings; all off by default.
#[derive(Debug, Clone)]
pub struct Leniency {
    pub obsolete_folding: bool,
    pub strip_header_spaces: bool,
    pub unconventional_method: bool,
    pub unconventional_version: bool,
    pub casefold_method: bool,
    pub header_map: HeaderMap,
}

/// All that reading a head depends on. One per process, immutable.
#[derive(Debug, Clone)]
pub struct HeadPolicy {
    pub limits: Limits,
    pub leniency: Leniency,
    /// Front ends whose forwarded headers are believed (gunicorn's `forwarded_allow_ips`).
    pub trust: Trust,
    /// (lower-case field name, exact value that means https): gunicorn's `secure_scheme_headers`.
    pub secure_scheme_headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Names with an underscore that a trusted peer may send (gunicorn's `forwarder_headers`), upper case; `*` means all.
    pub forwarder_headers: Vec<Vec<u8>>,
    /// Which forwarded headers are applied to a head that was read; `None`: those above, and each gateway's.
    pub proxy: Option<ProxyPolicy>,
}

/// gunicorn's defaults.
impl Default for Limits {
    fn default() -> Limits {
        Limits { request_line: 4094, fields: 100, field_size: 8190, body: 0 }
    }
}

impl Default for Leniency {
    fn default() -> Leniency {
        Leniency {
            obsolete_folding: false,
            strip_header_spaces: false,
            unconventional_method: false,
            unconventional_version: false,
            casefold_method: false,
            header_map: HeaderMap::Drop,
        }
    }
}

/// gunicorn's defaults, except that no peer is trusted: whom to trust is said by `Trust::parse`.
impl Default for HeadPolicy {
    fn default() -> HeadPolicy {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        HeadPolicy {
            limits: Limits::default(),
            leniency: Leniency::default(),
            trust: Trust::default(),
            secure_scheme_headers: vec![
                pair("x-forwarded-protocol", "ssl"),
                pair("x-forwarded-proto", "https"),
                pair("x-forwarded-ssl", "on"),
            ],
            forwarder_headers: vec![b"SCRIPT_NAME".to_vec(), b"PATH_INFO".to_vec()],
            proxy: None,
        }
    }
}

impl Leniency {
    /// Whether heads must be rewritten before the strict grammar reads them.
    pub(crate) fn rewrites(&self) -> bool {
        self.obsolete_folding || self.strip_header_spaces
    }
}

/// The limits that hold in the end: the operator's, or the hard maximum where there is none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub request_line: usize,
    pub fields: usize,
    pub field_size: usize,
    /// The whole head, or the whole trailer section.
    pub head: usize,
}

impl Limits {
    /// Refuses a body of which it is known that it has `length` bytes or more.
    #[inline]
    pub fn check_body(&self, length: u64) -> Result<(), Box<Refusal>> {
        if self.body != 0 && length > self.body { Err(body_too_large(length, self.body)) } else { Ok(()) }
    }

    #[inline]
    pub(crate) fn bounds(&self) -> Bounds {
        let request_line = or_hard(self.request_line, MAX_REQUEST_LINE);
        let fields = or_hard(self.fields, MAX_FIELDS);
        let field_size = or_hard(self.field_size, MAX_FIELD_SIZE);
        let head = fields * field_size + request_line + EMPTY_LINES;
        Bounds { request_line, fields, field_size, head: head.min(MAX_HEAD) }
    }
}

#[cold]
fn body_too_large(length: u64, limit: u64) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::BodyTooLarge, format!("{length} > {limit}")))
}

#[inline]
fn or_hard(limit: usize, hard: usize) -> usize {
    if limit == 0 { hard } else { limit.min(hard) }
}

/// What "unlimited" means for `limit_request_line`; gunicorn's C parser has the same number.
pub const MAX_REQUEST_LINE: usize = 1024 * 1024;
/// gunicorn's own ceiling for `limit_request_fields`.
pub const MAX_FIELDS: usize = 32_768;
pub const MAX_FIELD_SIZE: usize = 1024 * 1024;
/// Whatever the other limits multiply to, a head is never longer than this.
pub const MAX_HEAD: usize = 16 * 1024 * 1024;
/// All chunk extensions of one body together. They mean nothing to us; a peer that sends more of them than this
/// wants us to be busy (CVE-2023-39326 in Go; hyper has the same number).
pub const MAX_CHUNK_EXTENSIONS: u32 = 16 * 1024;
/// The line ends around a head: a leading CRLF, the request line's, and the empty line.
const EMPTY_LINES: usize = 6;
