//! Why a request is refused: whose fault, what came, which status.
use std::fmt::Write;

/// One variant per rule; `row` says what each means. Texts and statuses are gunicorn's where it has the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    // The peer's fault: its bytes.
    RequestLine,
    Method,
    Version,
    HeaderName,
    Header,
    ObsoleteFolding,
    MissingHost,
    HostMismatch,
    SchemeHeaders,
    Forwarded,
    RequestLineTooLong,
    HeadTooLarge,
    TransferCoding,
    Expectation,
    ChunkSize,
    ChunkTerminator,
    ChunkExtension,
    ProxyLine,
    ProxyHeader,
    Forbidden,
    PlainHttp,
    Vars,
    Modifier,
    BodyTooLarge,
    // The peer's fault: its pace.
    HeadTimeout,
    BodyTimeout,
    // Ours or the operator's.
    Configuration,
    Overloaded,
    SpoolFailed,
    InternalError,
}

impl RefusalKind {
    /// All there are, in the order of their numbers.
    pub const ALL: [RefusalKind; 30] = {
        use RefusalKind::*;
        [
            RequestLine,
            Method,
            Version,
            HeaderName,
            Header,
            ObsoleteFolding,
            MissingHost,
            HostMismatch,
            SchemeHeaders,
            Forwarded,
            RequestLineTooLong,
            HeadTooLarge,
            TransferCoding,
            Expectation,
            ChunkSize,
            ChunkTerminator,
            ChunkExtension,
            ProxyLine,
            ProxyHeader,
            Forbidden,
            PlainHttp,
            Vars,
            Modifier,
            BodyTooLarge,
            HeadTimeout,
            BodyTimeout,
            Configuration,
            Overloaded,
            SpoolFailed,
            InternalError,
        ]
    };

    /// Its name in metrics and in the access log.
    #[rustfmt::skip]
    pub const fn name(self) -> &'static str {
        use RefusalKind::*;
        match self {
            RequestLine        => "request_line",
            Method             => "method",
            Version            => "version",
            HeaderName         => "header_name",
            Header             => "header",
            ObsoleteFolding    => "obsolete_folding",
            MissingHost        => "missing_host",
            HostMismatch       => "host_mismatch",
            SchemeHeaders      => "scheme_headers",
            Forwarded          => "forwarded",
            RequestLineTooLong => "request_line_too_long",
            HeadTooLarge       => "head_too_large",
            TransferCoding     => "transfer_coding",
            Expectation        => "expectation",
            ChunkSize          => "chunk_size",
            ChunkTerminator    => "chunk_terminator",
            ChunkExtension     => "chunk_extension",
            ProxyLine          => "proxy_line",
            ProxyHeader        => "proxy_header",
            Forbidden          => "forbidden",
            PlainHttp          => "plain_http",
            Vars               => "vars",
            Modifier           => "modifier",
            BodyTooLarge       => "body_too_large",
            HeadTimeout        => "head_timeout",
            BodyTimeout        => "body_timeout",
            Configuration      => "configuration",
            Overloaded         => "overloaded",
            SpoolFailed        => "spool_failed",
            InternalError      => "internal_error",
        }
    }
}

/// Who has to change something so that this does not happen again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    Peer,
    Operator,
    Us,
}

/// A request that will not be served. Boxed where it travels, so that the good path stays small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub kind: RefusalKind,
    /// What came, as text for the log and the error page (not escaped).
    pub detail: String,
}

impl Refusal {
    pub fn new(kind: RefusalKind, detail: impl Into<String>) -> Refusal {
        Refusal { kind, detail: detail.into() }
    }

    /// With bytes of the peer as the detail; each is one character, as Python's latin-1 has it.
    #[cold]
    pub(crate) fn from_bytes(kind: RefusalKind, detail: &[u8]) -> Box<Refusal> {
        // A detail longer than this does not help the reader of a log.
        let shown = detail.get(..MAX_DETAIL).unwrap_or(detail);
        Box::new(Refusal { kind, detail: shown.iter().map(|&byte| byte as char).collect() })
    }

    pub fn status(&self) -> u16 {
        row(self.kind).status
    }

    pub fn blame(&self) -> Blame {
        row(self.kind).blame
    }

    /// The sentence for the error page (not escaped).
    pub fn message(&self) -> String {
        let row = row(self.kind);
        let text = self.fill(row.text);
        match row.page {
            "" => text,
            page => page.replacen("{}", &text, 1),
        }
    }

    /// The sentence for the log line, after `Invalid request from ip=…: `.
    pub fn log_text(&self) -> String {
        self.fill(row(self.kind).text)
    }

    fn fill(&self, template: &str) -> String {
        if let Some((before, after)) = template.split_once("{str}") {
            return format!("{before}{}{after}", python_repr(&self.detail));
        }
        if let Some((before, after)) = template.split_once("{bytes}") {
            return format!("{before}b{}{after}", python_repr_ascii(&self.detail));
        }
        template.replacen("{}", &self.detail, 1)
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.log_text(), self.status())
    }
}

impl std::error::Error for Refusal {}

struct Row {
    status: u16,
    blame: Blame,
    /// `{str}`, `{bytes}`: the detail as Python's `repr` shows a str or bytes; `{}`: the detail itself.
    text: &'static str,
    /// What the error page puts around the text; empty: nothing.
    page: &'static str,
}

#[rustfmt::skip]
fn row(kind: RefusalKind) -> Row {
    use {Blame::*, RefusalKind::*};
    let (status, blame, text, page) = match kind {
        RequestLine        => (400, Peer, "Invalid HTTP request line: {str}", "Invalid Request Line '{}'"),
        Method             => (400, Peer, "Invalid HTTP method: {str}", "Invalid Method '{}'"),
        Version            => (400, Peer, "Invalid HTTP Version: {}", "Invalid HTTP Version '{}'"),
        HeaderName         => (400, Peer, "Invalid HTTP header name: {str}", ""),
        Header             => (400, Peer, "Invalid HTTP Header: {str}", ""),
        ObsoleteFolding    => (400, Peer, "Obsolete line folding is unacceptable: {str}", ""),
        MissingHost        => (400, Peer, "Missing Host header (RFC 9112 section 3.2)", ""),
        HostMismatch       => (400, Peer, "Host does not match the request target (RFC 9112 section 3.2.2): {str}", ""),
        SchemeHeaders      => (400, Peer, "Contradictory scheme headers", ""),
        Forwarded          => (400, Peer, "Invalid forwarded header: {str}", ""),
        RequestLineTooLong => (414, Peer, "Request Line is too large ({})", ""),
        HeadTooLarge       => (431, Peer, "{}", "Error parsing headers: '{}'"),
        TransferCoding     => (501, Peer, "Unsupported transfer coding: {str}", ""),
        Expectation        => (417, Peer, "Unable to comply with expectation: {str}", ""),
        ChunkSize          => (400, Peer, "Invalid chunk size: {bytes}", ""),
        ChunkTerminator    => (400, Peer, "Invalid chunk terminator is not '\\r\\n': {bytes}", ""),
        ChunkExtension     => (400, Peer, "Invalid chunk extension: {}", ""),
        ProxyLine          => (400, Peer, "Invalid PROXY line: {str}", "'{}'"),
        ProxyHeader        => (400, Peer, "Invalid PROXY header: {}", ""),
        Forbidden          => (403, Peer, "Proxy request from {str} not allowed", "Request forbidden"),
        PlainHttp          => (400, Peer, "The plain HTTP request was sent to HTTPS port{}", ""),
        Vars               => (400, Peer, "Invalid request of a front end: {}", ""),
        Modifier           => (501, Peer, "Unsupported modifier of uwsgi: {}", ""),
        BodyTooLarge       => (413, Peer, "Request body is too large ({})", ""),
        HeadTimeout        => (408, Peer, "The request head did not come in time{}", ""),
        BodyTimeout        => (408, Peer, "The request body did not come in time{}", ""),
        Configuration      => (500, Operator, "Configuration problem: {}", ""),
        Overloaded         => (503, Operator, "The server is over its limits{}", ""),
        SpoolFailed        => (507, Operator, "The request body could not be stored{}", "The request body could not be stored"),
        InternalError      => (500, Us, "{}", ""),
    };
    Row { status, blame, text, page }
}

/// As Python shows a str: single quotes unless that needs escaping and double quotes do not.
pub(crate) fn python_repr(text: &str) -> String {
    quote(text, |letter| {
        let code = letter as u32;
        // Python's str.isprintable within latin-1: no C1 controls, no-break space or soft hyphen.
        (0x20..0x7f).contains(&code) || (code > 0xa0 && code != 0xad)
    })
}

/// As Python shows bytes (without the `b`).
fn python_repr_ascii(text: &str) -> String {
    quote(text, |letter| (' '..='~').contains(&letter))
}

fn quote(text: &str, printable: impl Fn(char) -> bool) -> String {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            letter if letter == mark => out.extend(['\\', letter]),
            letter if printable(letter) => out.push(letter),
            letter => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\x{:02x}", letter as u32);
            }
        }
    }
    out.push(mark);
    out
}

const MAX_DETAIL: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_in_order_and_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = RefusalKind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), RefusalKind::ALL.len());
        assert!(RefusalKind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
        assert_eq!(RefusalKind::ALL.last(), Some(&RefusalKind::InternalError), "the last variant");
    }

    #[test]
    fn texts_are_gunicorns() {
        let text = |kind, detail: &str| {
            let refusal = Refusal::new(kind, detail);
            (refusal.status(), refusal.message())
        };
        use RefusalKind::*;
        let cases = [
            (RequestLine, "GET", 400, "Invalid Request Line 'Invalid HTTP request line: 'GET''"),
            (Method, "GeT", 400, "Invalid Method 'Invalid HTTP method: 'GeT''"),
            (Version, "(2, 0)", 400, "Invalid HTTP Version 'Invalid HTTP Version: (2, 0)'"),
            (HeaderName, "Foo ", 400, "Invalid HTTP header name: 'Foo '"),
            (Header, "FOO", 400, "Invalid HTTP Header: 'FOO'"),
            (ObsoleteFolding, "FOO", 400, "Obsolete line folding is unacceptable: 'FOO'"),
            (RequestLineTooLong, "5014 > 4094", 414, "Request Line is too large (5014 > 4094)"),
            (
                HeadTooLarge,
                "limit request headers fields size",
                431,
                "Error parsing headers: 'limit request headers fields size'",
            ),
            (TransferCoding, "foo, chunked", 501, "Unsupported transfer coding: 'foo, chunked'"),
            (Expectation, "foo", 417, "Unable to comply with expectation: 'foo'"),
            (ChunkSize, "zz", 400, "Invalid chunk size: b'zz'"),
            (ProxyLine, "PROXY x", 400, "'Invalid PROXY line: 'PROXY x''"),
            (Forbidden, "10.0.0.1", 403, "Request forbidden"),
            (SpoolFailed, " in the directory for uploads: ENOSPC", 507, "The request body could not be stored"),
        ];
        for (kind, detail, status, message) in cases {
            assert_eq!(text(kind, detail), (status, message.to_string()));
        }
    }

    #[test]
    fn bytes_are_shown_as_python_shows_them() {
        let shown = |bytes: &[u8]| Refusal::from_bytes(RefusalKind::Header, bytes).log_text();
        assert_eq!(shown(b"a'b"), "Invalid HTTP Header: \"a'b\"");
        assert_eq!(shown(b"a'\"b"), "Invalid HTTP Header: 'a\\'\"b'");
        assert_eq!(shown(b"\x00\t\\\xe9\xad"), "Invalid HTTP Header: '\\x00\\t\\\\\u{e9}\\xad'");
        let shown = Refusal::from_bytes(RefusalKind::ChunkSize, b"\xe9").log_text();
        assert_eq!(shown, "Invalid chunk size: b'\\xe9'");
    }
}
