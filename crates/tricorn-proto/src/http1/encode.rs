//! What a server says, as HTTP/1 text (RFC 9112): one function for each thing that it can say.
//!
//! ```text
//!   Reply ──> Interim ─────> interim          1xx
//!         ──> ResponseHead ─> head            status line, fields, empty line
//!         ──> Portion ──────> before, after   a piece of the body, which stands between them
//!         ──> Ending ───────> end             the last chunk, and trailers
//! ```
//!
//! The reply machine has decided and checked everything. Nothing here drops, adds or looks at a field.
use crate::message::status::reason;
use crate::message::{FieldList, Version};
use crate::response::{Framing, Interim, Portion, ResponseHead};

/// The interim response to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends the head of a final response.
#[inline]
pub fn head(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let (count, size) = head.size();
    let variable = head.reason.len() + head.server.len() + head.date.len() + head.request_id.len();
    out.reserve(variable + size + count * FIELD_MARKS + HEAD_TEXT);
    status_line(out, head.version, head.status, head.reason);
    if !head.server.is_empty() {
        out.extend_from_slice(b"\r\nServer: ");
        out.extend_from_slice(head.server);
    }
    if !head.date.is_empty() {
        out.extend_from_slice(b"\r\nDate: ");
        out.extend_from_slice(head.date);
    }
    // RFC 9110 section 7.8: "A sender of Upgrade MUST also send an "Upgrade" connection option in the Connection header
    // field".
    out.extend_from_slice(match (head.status, head.connection.reuse, head.connection.upgrade) {
        (101, _, true) => b"\r\nConnection: upgrade".as_slice(),
        (_, true, true) => b"\r\nConnection: keep-alive, upgrade",
        (_, false, true) => b"\r\nConnection: close, upgrade",
        (_, true, false) => b"\r\nConnection: keep-alive",
        (_, false, false) => b"\r\nConnection: close",
    });
    if head.framing == Framing::Delimited {
        out.extend_from_slice(b"\r\nTransfer-Encoding: chunked");
    }
    if let Some(length) = head.length {
        out.extend_from_slice(b"\r\nContent-Length: ");
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    }
    if !head.request_id.is_empty() {
        out.extend_from_slice(b"\r\nX-Request-ID: ");
        out.extend_from_slice(head.request_id);
    }
    if !head.standing.is_empty() {
        standing(out, head);
    }
    section(out, head.fields());
}

/// Appends an interim response. Clients of HTTP/1.0 know none.
pub fn interim(out: &mut Vec<u8>, interim: &Interim) {
    status_line(out, Version::Http11, interim.status, reason(interim.status).as_bytes());
    section(out, interim.fields.iter());
}

/// Appends what precedes a piece of the body: `chunk-size CRLF`, if it is a chunk.
#[inline]
pub fn before(out: &mut Vec<u8>, portion: Portion) {
    if is_chunk(portion) {
        push_hex(out, portion.length);
        out.extend_from_slice(CRLF);
    }
}

/// What follows a piece of the body.
#[inline]
pub fn after(portion: Portion) -> &'static [u8] {
    if is_chunk(portion) { CRLF } else { b"" }
}

/// Appends what follows the body: `last-chunk trailer-section CRLF`, if its end is to be marked.
#[inline]
pub fn end(out: &mut Vec<u8>, mark: Option<&FieldList>) {
    match mark {
        Some(trailers) if trailers.is_empty() => out.extend_from_slice(b"0\r\n\r\n"),
        Some(trailers) => {
            out.extend_from_slice(b"0");
            section(out, trailers.iter());
        }
        None => {}
    }
}

/// RFC 9112 section 7.1: a chunk of no bytes would be the last one.
#[inline]
fn is_chunk(portion: Portion) -> bool {
    portion.delimited && portion.length > 0
}

/// `HTTP-version SP status-code SP [ reason-phrase ]`, without its end.
///
/// The second SP stays when there is no phrase (RFC 9112 section 4).
#[inline]
fn status_line(out: &mut Vec<u8>, version: Version, status: u16, reason: &[u8]) {
    let minor = match version {
        Version::Http10 => b'0',
        // uwsgi has the head of HTTP/1. For the others no encoder of HTTP/1 is asked.
        Version::Http11 | Version::Uwsgi | Version::Scgi | Version::FastCgi(_) | Version::Http2 => b'1',
    };
    let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
    let start = [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', digit(100), digit(10), digit(1), b' '];
    out.extend_from_slice(&start);
    out.extend_from_slice(reason);
}

/// Ends a line; then `*( field-line CRLF ) CRLF`, where `field-line = field-name ":" SP field-value`.
#[inline]
fn section<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    lines(out, fields);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Apart, since most responses have none of these.
#[cold]
fn standing(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    lines(out, head.standing());
}

/// `*( CRLF field-line )`.
#[inline]
fn lines<'a>(out: &mut Vec<u8>, fields: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    for (name, value) in fields {
        out.extend_from_slice(CRLF);
        out.extend_from_slice(name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
    }
}

/// The size of a chunk; upper case, as gunicorn's.
fn push_hex(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 16];
    let mut at = digits.len();
    let mut rest = number;
    while rest > 0 || at == digits.len() {
        at -= 1;
        digits[at] = b"0123456789ABCDEF"[(rest & 15) as usize];
        rest >>= 4;
    }
    out.extend_from_slice(&digits[at..]);
}

const CRLF: &[u8] = b"\r\n";
/// `: ` and CRLF.
const FIELD_MARKS: usize = 4;
/// Room for all that a head says besides what is counted.
const HEAD_TEXT: usize = 192;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Connection;

    static NOTHING: FieldList = FieldList::new();

    /// A head that says as little as one can.
    fn bare<'a>(list: &'a FieldList) -> ResponseHead<'a> {
        ResponseHead {
            version: Version::Http11,
            status: 200,
            reason: b"OK",
            server: b"",
            date: b"",
            request_id: b"",
            standing: &NOTHING,
            length: None,
            framing: Framing::None,
            connection: Connection { reuse: true, upgrade: false },
            list,
            without: None,
        }
    }

    fn said(say: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = b"before ".to_vec();
        say(&mut out);
        String::from_utf8_lossy(out.strip_prefix(b"before ").unwrap()).into_owned()
    }

    fn text(response: ResponseHead<'_>) -> String {
        said(|out| head(out, &response))
    }

    #[test]
    fn the_order_of_the_head_is_gunicorns() {
        let list = FieldList::from_iter([(&b"A"[..], &b"1"[..]), (b"Content-Length", b"5"), (b"a", b"")]);
        let full = ResponseHead {
            server: b"tricorn",
            date: b"now",
            request_id: b"abc",
            length: Some(0),
            framing: Framing::Delimited,
            ..bare(&list)
        };
        let start = "HTTP/1.1 200 OK\r\nServer: tricorn\r\nDate: now\r\nConnection: keep-alive\r\n\
            Transfer-Encoding: chunked\r\nContent-Length: 0\r\nX-Request-ID: abc\r\nA: 1\r\n";
        assert_eq!(text(full), format!("{start}Content-Length: 5\r\na: \r\n\r\n"));
        assert_eq!(text(ResponseHead { without: Some(1), ..full }), format!("{start}a: \r\n\r\n"));
    }

    #[test]
    fn standing_fields_come_before_the_applications_unless_it_has_its_own() {
        let standing = FieldList::from_iter([(&b"X-Frame-Options"[..], &b"DENY"[..]), (b"A", b"1"), (b"A", b"2")]);
        let list = FieldList::from_iter([(&b"x-frame-options"[..], &b"SAMEORIGIN"[..])]);
        let all = ResponseHead { standing: &standing, ..bare(&list) };
        let start = "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n";
        assert_eq!(text(all), format!("{start}A: 1\r\nA: 2\r\nx-frame-options: SAMEORIGIN\r\n\r\n"));
        let none = ResponseHead { standing: &standing, ..bare(&NOTHING) };
        assert_eq!(text(none), format!("{start}X-Frame-Options: DENY\r\nA: 1\r\nA: 2\r\n\r\n"));
    }

    #[test]
    fn a_status_line_has_a_space_even_without_a_phrase() {
        let line = |version, status, reason: &'static str| {
            let head = ResponseHead { version, status, reason: reason.as_bytes(), ..bare(&NOTHING) };
            text(head).split("\r\n").next().unwrap_or_default().to_string()
        };
        assert_eq!(line(Version::Http11, 404, "Not Found"), "HTTP/1.1 404 Not Found");
        assert_eq!(line(Version::Http10, 999, ""), "HTTP/1.0 999 ");
        assert_eq!(line(Version::Http10, 100, " x"), "HTTP/1.0 100  x");
    }

    #[test]
    fn connection_options_are_one_field() {
        for (status, reuse, upgrade, options) in [
            (200, true, false, "keep-alive"),
            (200, false, false, "close"),
            (426, true, true, "keep-alive, upgrade"),
            (426, false, true, "close, upgrade"),
            (101, false, true, "upgrade"),
            (101, false, false, "close"),
        ] {
            let head = ResponseHead { status, connection: Connection { reuse, upgrade }, ..bare(&NOTHING) };
            assert_eq!(text(head), format!("HTTP/1.1 {status} OK\r\nConnection: {options}\r\n\r\n"));
        }
    }

    #[test]
    fn only_a_delimited_body_is_chunked() {
        for framing in [Framing::None, Framing::Length(5), Framing::UntilClose] {
            assert!(!text(ResponseHead { framing, ..bare(&NOTHING) }).contains("Transfer-Encoding"), "{framing:?}");
        }
    }

    #[test]
    fn chunks_have_their_size_in_upper_case_and_an_empty_one_would_be_the_last() {
        let around = |length, delimited| {
            let portion = Portion { length, delimited };
            (said(|out| before(out, portion)), after(portion))
        };
        for (length, size) in [(1, "1"), (15, "F"), (16, "10"), (0xabcdef, "ABCDEF"), (u64::MAX, "FFFFFFFFFFFFFFFF")] {
            assert_eq!(around(length, true), (format!("{size}\r\n"), CRLF));
            assert_eq!(around(length, false), (String::new(), &b""[..]));
        }
        assert_eq!(around(0, true), (String::new(), &b""[..]));
    }

    #[test]
    fn the_last_chunk_carries_the_trailers() {
        assert_eq!(said(|out| end(out, None)), "");
        assert_eq!(said(|out| end(out, Some(&NOTHING))), "0\r\n\r\n");
        let trailers = FieldList::from_iter([(&b"A"[..], &b"1"[..]), (b"B", b"2")]);
        assert_eq!(said(|out| end(out, Some(&trailers))), "0\r\nA: 1\r\nB: 2\r\n\r\n");
    }

    #[test]
    fn an_interim_response_is_a_status_and_fields() {
        let fields = FieldList::from_iter([(&b"Link"[..], &b"</a>"[..])]);
        let hints = Interim { status: 103, fields };
        assert_eq!(said(|out| interim(out, &hints)), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        let allowed = Interim { status: 100, fields: FieldList::new() };
        assert_eq!(said(|out| interim(out, &allowed)).as_bytes(), CONTINUE);
    }
}
