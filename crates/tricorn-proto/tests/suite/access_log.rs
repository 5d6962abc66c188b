//! gunicorn's `access_log_format`.
#![allow(clippy::unwrap_used)] // A test may panic.
use proptest::prelude::*;
use tricorn_proto::access_log::{CallTime, DEFAULT, Format, Outcome, Record};
use tricorn_proto::http1::{HeadPolicy, Receiver};
use tricorn_proto::message::{FieldList, RefusalKind, RequestHead};

const REQUEST: &str = "GET /a%20b%22?x=1 HTTP/1.1\r\nHost: h\r\nUser-Agent: curl/8 \"x\\\r\nReferer: http://r/\r\n\
    Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\nX-Two: one\r\nX-Two: two\r\n\r\n";
const FIELDS: [(&[u8], &[u8]); 4] =
    [(b"Content-Type", b"text/plain"), (b"X-A", b"b"), (b"x-a", b" c\t"), (b"X-AB", b"no")];

fn line(format: &str) -> String {
    rendered(format, REQUEST)
}

fn rendered(format: &str, request: &str) -> String {
    String::from_utf8(in_format(&Format::parse(format).unwrap(), request.as_bytes())).unwrap()
}

fn in_format(format: &Format, request: &[u8]) -> Vec<u8> {
    ended(format, request, Some(Outcome::Ok))
}

fn ended(format: &Format, request: &[u8], outcome: Option<Outcome>) -> Vec<u8> {
    let mut out = b"before\n".to_vec();
    record_of(request, outcome, |record| format.render(&record, &mut out));
    out.strip_prefix(b"before\n").unwrap().strip_suffix(b"\n").unwrap().to_vec()
}

fn record_of(request: &[u8], outcome: Option<Outcome>, then: impl FnOnce(Record<'_>)) {
    let mut bytes = request.to_vec();
    let mut head = RequestHead::default();
    if !request.is_empty() {
        let policy = HeadPolicy::default();
        let _ = Receiver::default().advance(&mut bytes, &policy, false, &mut head);
    }
    let environ = |key: &str| match key {
        "wsgi.url_scheme" => Some(b"http".to_vec()),
        "REMOTE_USER" => Some(b"me\n".to_vec()),
        _ => None,
    };
    let fields = FieldList::from_iter(FIELDS);
    then(Record {
        head: &head,
        bytes: &bytes,
        remote: b"127.0.0.1",
        status: 200,
        fields: &fields,
        sent: 1234,
        micros: 12_345_678,
        time: b"[21/Nov/2026:01:02:32 +0000]",
        millis: 7,
        pid: 42,
        request_id: b"0af7651916cd43dd",
        queue_micros: Some(77),
        call_time: Some(CallTime { computed: 1, blocked: 22, delayed: 333, yielded: 4444 }),
        outcome,
        environ: &environ,
    });
}

#[test]
fn a_painted_line_has_the_colour_of_its_status_class() {
    let painted = |status| {
        let mut out = Vec::new();
        let format = Format::parse("%(clock)s %(s)s").unwrap().painted();
        record_of(b"", Some(Outcome::Ok), |record| format.render(&Record { status, ..record }, &mut out));
        String::from_utf8(out).unwrap()
    };
    assert_eq!(painted(200), "\x1b[32m01:02:32 200\x1b[0m\n");
    assert_eq!(painted(304), "\x1b[36m01:02:32 304\x1b[0m\n");
    assert_eq!(painted(404), "\x1b[33m01:02:32 404\x1b[0m\n");
    assert_eq!(painted(503), "\x1b[31m01:02:32 503\x1b[0m\n");
    assert_eq!(painted(101), "01:02:32 101\n");
    let json = Format::json(false);
    assert_eq!(in_format(&json, b""), in_format(&json.clone().painted(), b""));
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
        ("%(request_id)s", "0af7651916cd43dd"),
        ("%(queue_time)s", "77"),
        ("%(cpu_time)s %(blocked_time)s %(delayed_time)s %(yielded_time)s", "1 22 333 4444"),
        ("%(outcome)s", "ok"),
        ("%(trace_id)s %(span_id)s", "- -"),
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
fn a_client_cannot_turn_the_direction_of_a_line_of_json() {
    for letter in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}', '\u{9b}'] {
        let request = format!("GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a{letter}b\r\n\r\n");
        let line = String::from_utf8(in_format(&Format::json(false), request.as_bytes())).unwrap();
        assert!(line.contains(&format!(r#""user_agent":"a\u{:04x}b""#, letter as u32)), "{line}");
    }
}

#[test]
fn an_unknown_atom_is_a_dash_and_named_with_those_that_exist() {
    assert_eq!(rendered("%(z)s %(m)s %({x}z)-3s|", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), "- GET -  |");
    assert_eq!(Format::parse("%(h)s").unwrap().complaint(), None);
    let error = Format::parse("%(h)s %(z)s %({x}z)s").unwrap().complaint().unwrap();
    assert!(error.starts_with("unknown atoms are logged as -: %(z)s, %({x}z)s; known are h ("), "{error}");
    assert!(error.contains("D (duration in microseconds)"), "{error}");
    for bad in ["%", "%h", "%(h", "%(h)", "%(h)x", "%(h)99999s"] {
        assert!(Format::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_line_of_json_says_the_same() {
    let line = String::from_utf8(in_format(&Format::json(true), REQUEST.as_bytes())).unwrap();
    assert_eq!(
        line,
        r#"{"time":"2026-11-21T01:02:32.007+00:00","level":"INFO","logger":"gunicorn.access","remote":"127.0.0.1","method":"GET","path":"/a%20b%22","query":"x=1","protocol":"HTTP/1.1","status":200,"bytes":1234,"duration_us":12345678,"queue_us":77,"cpu_us":1,"blocked_us":22,"delayed_us":333,"yielded_us":4444,"referer":"http://r/","user_agent":"curl/8 \"x\\","host":"h","outcome":"ok","request_id":"0af7651916cd43dd","pid":42}"#
    );
    assert!(!in_format(&Format::json(false), REQUEST.as_bytes()).windows(10).any(|part| part == b"request_id"));
    let unreadable = String::from_utf8(in_format(&Format::json(false), b"")).unwrap();
    for member in [r#""method":null"#, r#""path":null"#, r#""query":"""#, r#""referer":null"#] {
        assert!(unreadable.contains(member), "{unreadable}");
    }
}

/// As a strict reader of JSON (RFC 8259) sees a line: the members of an object of strings, numbers and nulls.
fn members(line: &str) -> Option<Vec<(String, String)>> {
    let mut rest = line.strip_prefix('{')?;
    let mut members = Vec::new();
    loop {
        let (name, after) = string(rest)?;
        let after = after.strip_prefix(':')?;
        let (value, after) = match after.strip_prefix("null") {
            Some(after) => ("null".into(), after),
            None if after.starts_with('"') => string(after)?,
            None => {
                let digits = after.len() - after.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
                let number = &after[..digits];
                (number.len() == 1 || (digits > 1 && !number.starts_with('0'))).then_some(())?;
                (number.into(), &after[digits..])
            }
        };
        members.push((name, value));
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return (after == "}").then_some(members),
        }
    }
}

fn string(text: &str) -> Option<(String, &str)> {
    let text = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = text.char_indices();
    loop {
        match letters.next()? {
            (at, '"') => return Some((value, &text[at + 1..])),
            (_, letter) if letter < ' ' => return None,
            (_, '\\') => match letters.next()?.1 {
                letter @ ('"' | '\\') => value.push(letter),
                'u' => {
                    let code = (0..4).try_fold(0, |code, _| Some(code << 4 | letters.next()?.1.to_digit(16)?))?;
                    value.push(char::from_u32(code)?);
                }
                _ => return None,
            },
            (_, letter) => value.push(letter),
        }
    }
}

/// Bytes that a value may hold, the awkward ones more often.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let awkward = prop::sample::select(&b"\"\\\t /\x80\x85\xa8\xad\xc2\xc3\xe2\xed\xef\xf0\xf4\xff"[..]);
    let letter = prop_oneof![awkward, 0x20..0x7fu8, 0x80..=0xffu8];
    let text = any::<String>().prop_map(String::into_bytes);
    prop_oneof![prop::collection::vec(letter, 0..40), text]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "strings of a regular expression: Miri takes minutes to make them")]
    fn whatever_a_client_sends_a_line_is_json(target in value(), agent in value()) {
        let parts = [b"GET /".as_slice(), &target, b" HTTP/1.1\r\nHost: h\r\nUser-Agent: ", &agent, b"\r\n\r\n"];
        let line = in_format(&Format::json(true), &parts.concat());
        let line = String::from_utf8(line).expect("UTF-8");
        let members = members(&line).ok_or_else(|| TestCaseError::fail(line.clone()))?;
        let names: Vec<_> = members.iter().map(|(name, _)| name.as_str()).collect();
        prop_assert_eq!(names, [
            "time", "level", "logger", "remote", "method", "path", "query", "protocol", "status", "bytes", "duration_us", "queue_us",
            "cpu_us", "blocked_us", "delayed_us", "yielded_us", "referer", "user_agent", "host", "outcome", "request_id", "pid",
        ]);
        if let Ok(agent) = std::str::from_utf8(&agent)
            && members[16].1 == "h"
        {
            prop_assert_eq!(members[15].1.as_str(), agent.trim_matches([' ', '\t']));
        }
    }
}

#[test]
fn what_became_of_a_request_is_a_word_of_a_closed_set() {
    let text = Format::parse("%(outcome)s").unwrap();
    for (outcome, word) in [
        (Outcome::Ok, "ok"),
        (Outcome::AppError, "app_error"),
        (Outcome::ClientGone, "client_gone"),
        (Outcome::QueueFull, "queue_full"),
        (Outcome::QueueLate, "queue_late"),
        (Outcome::Leaving, "leaving"),
        (Outcome::HeadMemory, "head_memory"),
        (Outcome::Evicted, "evicted"),
        (Outcome::Late, "late"),
        (Outcome::WriteTimeout, "write_timeout"),
        (Outcome::Refused(RefusalKind::BodyTooLarge), "refused:body_too_large"),
    ] {
        assert_eq!(ended(&text, b"", Some(outcome)), word.as_bytes());
        let object = String::from_utf8(ended(&Format::json(false), b"", Some(outcome))).unwrap();
        assert!(object.contains(&format!(",\"outcome\":\"{word}\",")), "{object}");
    }
    assert_eq!(ended(&text, b"", None), b"-");
    assert!(String::from_utf8(ended(&Format::json(false), b"", None)).unwrap().contains(",\"outcome\":null,"));
}

#[test]
fn the_trace_is_that_of_the_one_traceparent() {
    let field = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n";
    let request = |fields: &str| format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let ids = "0af7651916cd43dd8448eb211c80319c b7ad6b7169203331";
    assert_eq!(rendered("%(trace_id)s %(span_id)s", &request(field)), ids);
    let object = in_format(&Format::json(false), request(&field.replace("tracep", "TraceP")).as_bytes());
    let members =
        r#","outcome":"ok","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","pid":42}"#;
    assert!(String::from_utf8(object).unwrap().ends_with(members));
    for wrong in [field.repeat(2), field.replace("00-", "ff-"), String::new()] {
        assert_eq!(rendered("%(trace_id)s %(span_id)s", &request(&wrong)), "- -");
        let object = String::from_utf8(in_format(&Format::json(false), request(&wrong).as_bytes())).unwrap();
        assert!(!object.contains("trace_id"), "{object}");
    }
}
