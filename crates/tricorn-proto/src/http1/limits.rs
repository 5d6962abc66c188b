//! Every number that bounds a request head or a chunked body, and the operator's loosening settings.
use crate::peer::Trust;

/// Bounds in bytes or counts. `0` means "the hard maximum", never "unbounded".
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest request line without its CRLF (gunicorn's `limit_request_line`). Exceeded: 414.
    pub request_line: usize,
    /// Most header fields (gunicorn's `limit_request_fields`). Exceeded: 431.
    pub fields: usize,
    /// Longest field: name, colon, value, CRLF (gunicorn's `limit_request_field_size`). Exceeded: 431.
    pub field_size: usize,
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
}
