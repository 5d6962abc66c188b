//! gunicorn's `access_log_format`.
#![allow(clippy::unwrap_used)] // A test may panic.
use tricorn_proto::access_log::{DEFAULT, Format, Record};
use tricorn_proto::http1::{HeadPolicy, Receiver, RequestHead};

const REQUEST: &str = "GET /a%20b%22?x=1 HTTP/1.1\r\nHost: h\r\nUser-Agent: curl/8 \"x\\\r\nReferer: http://r/\r\n\
    Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nX-Two: one\r\nX-Two: two\r\n\r\n";
const FIELDS: &[u8] = b"Content-Type: text/plain\r\nX-A: b\r\nx-a: c\r\nX-AB: no\r\n";

fn line(format: &str) -> String {
    rendered(format, REQUEST)
}

fn rendered(format: &str, request: &str) -> String {
    let mut bytes = request.as_bytes().to_vec();
    let mut head = RequestHead::default();
    if !request.is_empty() {
        let policy = HeadPolicy::default();
        Receiver::default().advance(&mut bytes, &policy, false, &mut head).unwrap();
    }
    let environ = |key: &str| match key {
        "wsgi.url_scheme" => Some(b"http".to_vec()),
        "REMOTE_USER" => Some(b"me\n".to_vec()),
        _ => None,
    };
    let record = Record {
        head: &head,
        bytes: &bytes,
        remote: b"127.0.0.1",
        status: 200,
        fields: FIELDS,
        sent: 1234,
        micros: 12_345_678,
        time: b"[21/Nov/2026:01:02:32 +0000]",
        pid: 42,
        environ: &environ,
    };
    let mut out = b"before\n".to_vec();
    Format::parse(format).unwrap().render(&record, &mut out);
    let text = String::from_utf8(out).unwrap();
    text.strip_prefix("before\n").unwrap().strip_suffix('\n').unwrap().to_string()
}

#[test]
fn the_default_format_is_gunicorns() {
    assert_eq!(
        line(DEFAULT),
        r#"127.0.0.1 - Aladdin [21/Nov/2026:01:02:32 +0000] "GET /a%20b%22?x=1 HTTP/1.1" 200 1234 "http://r/" "curl/8 \"x\\""#
    );
}

#[test]
fn every_atom_is_rendered() {
    for (format, text) in [
        ("%(h)s", "127.0.0.1"),
        ("%(l)s", "-"),
        ("%(u)s", "Aladdin"),
        ("%(t)s", "[21/Nov/2026:01:02:32 +0000]"),
        ("%(m)s", "GET"),
        ("%(U)s", "/a b\\\""),
        ("%(q)s", "x=1"),
        ("%(H)s", "HTTP/1.1"),
        ("%(s)s", "200"),
        ("%(B)s", "1234"),
        ("%(b)s", "1234"),
        ("%(f)s", "http://r/"),
        ("%(T)s", "12"),
        ("%(M)s", "12345"),
        ("%(D)s", "12345678"),
        ("%(L)s", "12.345678"),
        ("%(p)s", "<42>"),
        ("%({host}i)s", "h"),
        ("%({X-Two}i)s", "two"),
        ("%({X-Missing}i)s", "-"),
        ("%({content-type}o)s", "text/plain"),
        ("%({X-A}o)s", "c"),
        ("%({X-Missing}o)s", "-"),
        ("%({wsgi.url_scheme}e)s", "http"),
        ("%({remote_user}e)s", "me\\x0a"),
        ("%({MISSING}e)s", "-"),
        ("100%%", "100%"),
        ("%(s)d|%(s)6s|%(s)-6s|", "200|   200|200   |"),
        ("", ""),
        ("plain", "plain"),
    ] {
        assert_eq!(line(format), text, "{format}");
    }
}

#[test]
fn what_is_missing_is_a_dash() {
    let bare = "GET / HTTP/1.0\r\n\r\n";
    assert_eq!(rendered("%(u)s %(f)s %(a)s [%(q)s]", bare), "- - - []");
    assert_eq!(rendered("%(r)s %(m)s %(U)s %(H)s", ""), "- - - -", "the head could not be read");
}

#[test]
fn a_client_cannot_forge_a_line() {
    let request = "GET /%0d%0a127.0.0.1%22 HTTP/1.1\r\nHost: h\r\nUser-Agent: \" 200 1 \"\u{85}\\\r\n\r\n";
    let text = rendered("%(U)s \"%(a)s\"", request);
    assert_eq!(text, r#"/\x0d\x0a127.0.0.1\" "\" 200 1 \"\xc2\x85\\""#);
}

#[test]
fn an_unknown_atom_is_named_with_those_that_exist() {
    let error = Format::parse("%(h)s %(z)s").unwrap_err();
    assert!(error.contains("%(z)s") && error.contains("D (duration in microseconds)"), "{error}");
    for bad in ["%", "%h", "%(h", "%(h)", "%(h)x", "%({x}z)s", "%(h)99999s"] {
        assert!(Format::parse(bad).is_err(), "{bad}");
    }
}
