//! RFC 9110 section 6.4 and RFC 9112 section 6, sending side; PEP 3333 on what an application may say.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::response;
use tricorn_proto::message::{Method, Version};
use tricorn_proto::response::{Connection, End, Fault, Framing, HeadInputs, Reply};

const DATE: &[u8] = b"Sat, 21 Nov 2026 01:02:32 GMT";

/// One exchange: what was asked, what the application says, what the client gets.
struct Exchange<'a> {
    method: Method,
    version: Version,
    keep_alive: bool,
    status: &'a str,
    fields: &'a [(&'a str, &'a str)],
    body: &'a [&'a str],
    known: Option<u64>,
    close: bool,
}

const GET: Exchange<'static> = Exchange {
    method: Method::Get,
    version: Version::Http11,
    keep_alive: true,
    status: "200 OK",
    fields: &[],
    body: &[],
    known: None,
    close: false,
};

struct Result {
    wire: String,
    end: End,
    sent: u64,
    dropped: u64,
}

impl Exchange<'_> {
    fn run(&self) -> Result {
        let mut reply = Reply::default();
        let mut out = Vec::new();
        reply.begin(self.method, self.version, self.keep_alive);
        reply.status(self.status.as_bytes()).unwrap();
        for (name, value) in self.fields {
            reply.field(name.as_bytes(), value.as_bytes()).unwrap();
        }
        assert!(reply.has_status() && !reply.head_sent());
        let inputs = HeadInputs {
            date: DATE,
            server: b"tricorn",
            body_length: self.known,
            close: self.close,
            ..HeadInputs::default()
        };
        response::head(&mut reply, &mut out, &inputs);
        assert!(reply.head_sent());
        for piece in self.body {
            let (send, after) = response::piece(&mut reply, &mut out, piece.len() as u64);
            out.extend_from_slice(&piece.as_bytes()[..send as usize]);
            out.extend_from_slice(after);
        }
        let end = response::end(&mut reply, &mut out);
        let wire =
            String::from_utf8(out).unwrap().replace("Server: tricorn\r\nDate: Sat, 21 Nov 2026 01:02:32 GMT\r\n", "");
        Result { wire, end, sent: reply.body_sent(), dropped: reply.body_dropped() }
    }

    fn wire(&self) -> String {
        self.run().wire
    }
}

#[test]
fn the_order_of_the_head_is_gunicorns() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    reply.field(b"Content-type", b"text/plain").unwrap();
    let inputs = HeadInputs { date: DATE, server: b"tricorn", body_length: None, ..HeadInputs::default() };
    response::head(&mut reply, &mut out, &inputs);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 200 OK\r\nServer: tricorn\r\nDate: Sat, 21 Nov 2026 01:02:32 GMT\r\nConnection: keep-alive\r\n\
         Transfer-Encoding: chunked\r\nContent-type: text/plain\r\n\r\n"
    );
}

#[test]
fn a_body_of_unknown_length_is_chunked_on_1_1() {
    let result = Exchange { body: &["hello", "", "a much longer piece"], ..GET }.run();
    assert_eq!(
        result.wire,
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n\
         5\r\nhello\r\n13\r\na much longer piece\r\n0\r\n\r\n"
    );
    assert_eq!((result.end, result.sent, result.dropped), (End::Reuse, 24, 0));
}

#[test]
fn a_head_is_decided_once_and_whole() {
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    reply.set_request_id(b"abc");
    let inputs = HeadInputs { date: DATE, server: b"tricorn", body_length: None, ..HeadInputs::default() };
    assert!(reply.head(&inputs).is_none(), "there is no status");
    reply.status(b"205 Reset Content").unwrap();
    for (name, value) in [("Content-Length", "5"), ("Date", "now"), ("Connection", "x"), ("Upgrade", "websocket")] {
        reply.field(name.as_bytes(), value.as_bytes()).unwrap();
    }
    let head = reply.head(&inputs).unwrap();
    assert_eq!((head.version, head.status, head.reason), (Version::Http11, 205, &b"Reset Content"[..]));
    assert_eq!((head.server, head.date, head.request_id), (&b"tricorn"[..], &b""[..], &b"abc"[..]));
    assert_eq!((head.framing, head.length), (Framing::None, Some(0)));
    assert_eq!(head.connection, Connection { reuse: true, upgrade: true });
    assert!(head.fields().eq([(&b"Date"[..], &b"now"[..]), (b"Upgrade", b"websocket")]));
    assert!(reply.head(&inputs).is_none(), "it was decided");
    assert!(reply.fields().iter().any(|field| field == (b"Content-Length", b"5")), "as the application has said");
}

#[test]
fn trailers_stand_behind_chunks_and_nowhere_else() {
    let ends = |version, known| {
        let mut reply = Reply::default();
        let mut out = Vec::new();
        reply.begin(Method::Get, version, true);
        reply.status(b"200 OK").unwrap();
        reply.trailer(b"Too-Early", b"1").unwrap();
        let inputs = HeadInputs { date: DATE, body_length: known, ..HeadInputs::default() };
        response::head(&mut reply, &mut out, &inputs);
        out.clear();
        for name in ["X-Sum", "Content-Length", "Date", "Transfer-Encoding", "Connection", "x-sum"] {
            reply.trailer(name.as_bytes(), b"5").unwrap();
        }
        assert!(reply.trailer(b"A", b"1\r\nB: 2").is_err());
        response::end(&mut reply, &mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(ends(Version::Http11, None), "0\r\nX-Sum: 5\r\nx-sum: 5\r\n\r\n");
    assert_eq!(ends(Version::Http11, Some(0)), "");
    assert_eq!(ends(Version::Http10, None), "");
}

#[test]
fn a_body_of_unknown_length_ends_with_the_connection_on_1_0() {
    let result = Exchange { version: Version::Http10, body: &["hello"], ..GET }.run();
    assert_eq!(result.wire, "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nhello");
    assert_eq!(result.end, End::Close);
    let known = Exchange { version: Version::Http10, body: &["hello"], known: Some(5), ..GET }.run();
    assert_eq!(known.wire, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello");
    assert_eq!(known.end, End::Reuse);
}

#[test]
fn a_known_length_is_announced_unless_the_application_did() {
    let result = Exchange { body: &["hello"], known: Some(5), ..GET }.run();
    assert_eq!(result.wire, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello");
    let fields = &[("content-length", "5")];
    let result = Exchange { fields, body: &["hello"], known: Some(5), ..GET }.run();
    assert_eq!(result.wire, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello");
    let empty = Exchange { known: Some(0), ..GET }.wire();
    assert_eq!(empty, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn lengths_are_kept_honest() {
    let fields = &[("Content-Length", "5")];
    let long = Exchange { fields, body: &["hel", "lo world", "!"], ..GET }.run();
    assert!(long.wire.ends_with("\r\n\r\nhello"));
    assert_eq!((long.end, long.sent, long.dropped), (End::Reuse, 5, 7));
    let short = Exchange { fields, body: &["hel"], ..GET }.run();
    assert_eq!((short.end, short.sent), (End::Short { missing: 2 }, 3));
}

#[test]
fn responses_to_head_carry_no_body_and_no_invented_length() {
    let head = Exchange { method: Method::Head, body: &["hello"], ..GET };
    let result = head.run();
    assert_eq!(result.wire, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!((result.end, result.sent, result.dropped), (End::Reuse, 0, 5));
    let told = Exchange { fields: &[("Content-Length", "5")], ..head }.run();
    assert!(told.wire.contains("Content-Length: 5\r\n"));
    assert_eq!(told.end, End::Reuse);
    let known = Exchange { method: Method::Head, known: Some(5), body: &["hello"], ..GET }.wire();
    assert!(known.contains("Content-Length: 5\r\n"));
    let nothing = Exchange { method: Method::Head, known: Some(0), ..GET }.wire();
    assert!(!nothing.contains("Content-Length"));
}

#[test]
fn statuses_without_a_body_carry_none() {
    let fields = &[("A", "1"), ("Content-Length", "5"), ("B", "2")];
    let reset = Exchange { status: "205 Reset Content", fields, body: &["hello"], known: Some(5), ..GET }.run();
    let expected = "HTTP/1.1 205 Reset Content\r\nConnection: keep-alive\r\nContent-Length: 0\r\nA: 1\r\nB: 2\r\n\r\n";
    assert_eq!(reset.wire, expected);
    let no_content = Exchange { status: "204 No Content", fields, body: &["hello"], known: Some(5), ..GET }.run();
    assert_eq!(no_content.wire, "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\nA: 1\r\nB: 2\r\n\r\n");
    assert_eq!((no_content.end, no_content.dropped), (End::Reuse, 5));
    let not_modified = Exchange { status: "304 Not Modified", fields, known: Some(0), ..GET }.run();
    assert_eq!(
        not_modified.wire,
        "HTTP/1.1 304 Not Modified\r\nConnection: keep-alive\r\nA: 1\r\nContent-Length: 5\r\nB: 2\r\n\r\n"
    );
    assert_eq!(not_modified.end, End::Reuse);
    let bare = Exchange { status: "304 Not Modified", known: Some(0), ..GET }.wire();
    assert!(!bare.contains("Content-Length"));
}

#[test]
fn a_tunnel_has_no_length_and_closes() {
    let fields = &[("Content-Length", "5")];
    let tunnel = Exchange { method: Method::Connect, fields, body: &["hi"], ..GET }.run();
    assert_eq!(tunnel.wire, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhi");
    assert_eq!(tunnel.end, End::Close);
    let refused = Exchange { method: Method::Connect, status: "403 No", fields, body: &["hello"], ..GET };
    assert_eq!(refused.run().end, End::Reuse);
}

#[test]
fn an_upgrade_to_websocket_is_told_and_ends_http() {
    let fields = &[("Upgrade", "WebSocket"), ("Sec-WebSocket-Accept", "x")];
    let result = Exchange { status: "101 Switching Protocols", fields, ..GET }.run();
    assert_eq!(
        result.wire,
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: x\r\n\r\n"
    );
    assert_eq!(result.end, End::Close);
    assert!(!Exchange { fields: &[("Upgrade", "h2c")], ..GET }.wire().contains("h2c"));
    let required = Exchange { status: "426 Upgrade Required", fields: &[("Upgrade", "h2c")], known: Some(0), ..GET };
    let expected =
        "HTTP/1.1 426 Upgrade Required\r\nConnection: keep-alive, upgrade\r\nContent-Length: 0\r\nUpgrade: h2c\r\n\r\n";
    assert_eq!(required.wire(), expected);
    let offered = Exchange { fields: &[("Upgrade", "websocket"), ("Connection", "close")], known: Some(0), ..GET };
    assert!(offered.wire().contains("\r\nConnection: close, upgrade\r\n"));
}

#[test]
fn whoever_wants_to_close_closes() {
    let closes = |exchange: Exchange<'_>| {
        let result = exchange.run();
        let told = result.wire.contains("Connection: close\r\n");
        assert_eq!(told, result.end == End::Close);
        told
    };
    assert!(!closes(GET));
    assert!(closes(Exchange { close: true, ..GET }));
    assert!(closes(Exchange { keep_alive: false, ..GET }));
    assert!(closes(Exchange { fields: &[("Connection", "x, Close")], ..GET }));
    assert!(!closes(Exchange { fields: &[("Connection", "keep-alive")], ..GET }));
}

#[test]
fn hop_by_hop_fields_of_the_application_are_dropped() {
    let fields = &[
        ("Connection", "x"),
        ("keep-alive", "timeout=5"),
        ("TE", "x"),
        ("Trailer", "x"),
        ("Trailers", "x"),
        ("Transfer-Encoding", "chunked"),
        ("Proxy-Authenticate", "x"),
        ("Proxy-Authorization", "x"),
        ("Proxy-Connection", "x"),
        ("Upgrade", "x"),
        ("X-Kept", "y"),
    ];
    let wire = Exchange { fields, known: Some(0), ..GET }.wire();
    assert_eq!(wire, "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\nX-Kept: y\r\n\r\n");
}

#[test]
fn server_and_date_of_the_application_replace_ours() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    reply.field(b"server", b"mine").unwrap();
    reply.field(b"DATE", b"now").unwrap();
    let inputs = HeadInputs { date: DATE, server: b"tricorn", body_length: Some(0), ..HeadInputs::default() };
    response::head(&mut reply, &mut out, &inputs);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\nserver: mine\r\nDATE: now\r\n\r\n"
    );
    assert!(reply.fields().iter().eq([(&b"server"[..], &b"mine"[..]), (b"DATE", b"now")]));
}

#[test]
fn a_status_is_three_digits_and_a_phrase() {
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    for good in ["200 OK", "200", "200 ", "404 Not \u{e9}", "599 a  b"] {
        assert_eq!(reply.status(good.as_bytes()), Ok(()), "{good:?}");
    }
    for bad in
        ["", "20", "2000", "2000 OK", "abc", "200OK", "200\tOK", " 200", "+20 x", "099 x", "200 O\r\nK", "200 \0"]
    {
        assert!(matches!(reply.status(bad.as_bytes()), Err(Fault::Status(_))), "{bad:?}");
    }
    assert_eq!(reply.status_code(), 599);
    assert!(Exchange { status: "200", ..GET }.wire().starts_with("HTTP/1.1 200 \r\n"));
}

#[test]
fn header_injection_is_refused() {
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    for value in ["a\r\nB: c", "a\nb", "a\rb", "a\0b", "\x7f", "\x1b[2J"] {
        assert!(matches!(reply.field(b"A", value.as_bytes()), Err(Fault::FieldValue(_))), "{value:?}");
    }
    for name in ["", "a b", "a:", "a\r\n", "a\0", "\u{e9}"] {
        assert!(matches!(reply.field(name.as_bytes(), b"v"), Err(Fault::FieldName(_))), "{name:?}");
    }
    let text = reply.field(b"A", b"a\r\nB: c").unwrap_err().to_string();
    assert!(text.contains("'A'") && text.contains("\\r\\n") && text.contains("expected"), "{text}");
    assert!(reply.fields().is_empty());
    assert_eq!(reply.field(b"A", b" \t\xff"), Ok(()));
}

#[test]
fn a_length_of_the_application_is_one_number() {
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    for bad in ["", "+1", "-1", "0x1", "1,1", "99999999999999999999"] {
        assert!(matches!(reply.field(b"Content-Length", bad.as_bytes()), Err(Fault::FieldValue(_))), "{bad:?}");
    }
    assert_eq!(reply.field(b"Content-Length", b"5"), Ok(()));
    assert_eq!(reply.field(b"content-length", b" 5 "), Ok(()), "as gunicorn: blanks around it are none of it");
    assert!(matches!(reply.field(b"Content-Length", b"6"), Err(Fault::FieldValue(_))));
    assert_eq!(reply.content_length(), Some(5));
    assert!(reply.fields().iter().eq([(&b"Content-Length"[..], &b"5"[..])]));
}

#[test]
fn a_new_status_forgets_the_fields_until_the_head_is_sent() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    for (name, value) in [("Content-Length", "5"), ("Server", "x"), ("Date", "y"), ("Connection", "close")] {
        reply.field(name.as_bytes(), value.as_bytes()).unwrap();
    }
    reply.status(b"500 Oops").unwrap();
    assert_eq!(reply.content_length(), None);
    response::head(
        &mut reply,
        &mut out,
        &HeadInputs { date: DATE, server: b"s", body_length: Some(0), ..HeadInputs::default() },
    );
    let wire = String::from_utf8(out.clone()).unwrap();
    assert!(wire.starts_with("HTTP/1.1 500 Oops\r\nServer: s\r\nDate: Sat"), "{wire}");
    assert!(wire.ends_with("Connection: keep-alive\r\nContent-Length: 0\r\n\r\n"), "{wire}");
    assert!(matches!(reply.status(b"200 OK"), Err(Fault::Status(_))));
    assert_eq!(response::end(&mut reply, &mut out), End::Reuse);
}

#[test]
fn a_reply_is_full_when_no_more_bytes_may_be_sent() {
    let full = |method, status: &str, length: Option<&str>, sends: u64| {
        let mut reply = Reply::default();
        let mut out = Vec::new();
        reply.begin(method, Version::Http11, true);
        reply.status(status.as_bytes()).unwrap();
        if let Some(length) = length {
            reply.field(b"Content-Length", length.as_bytes()).unwrap();
        }
        assert!(!reply.is_full(), "the head is not written");
        response::head(
            &mut reply,
            &mut out,
            &HeadInputs { date: DATE, server: b"s", body_length: None, ..HeadInputs::default() },
        );
        response::piece(&mut reply, &mut out, sends);
        reply.is_full()
    };
    assert!(full(Method::Head, "200 OK", None, 0) && full(Method::Head, "200 OK", Some("9"), 3));
    assert!(full(Method::Get, "204 No Content", None, 5) && full(Method::Get, "304 Not Modified", None, 0));
    assert!(full(Method::Get, "200 OK", Some("5"), 5) && full(Method::Get, "200 OK", Some("5"), 6));
    assert!(!full(Method::Get, "200 OK", Some("5"), 4) && !full(Method::Get, "200 OK", None, 5));
}

#[test]
fn a_reply_that_closes_says_so() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    reply.close();
    response::head(
        &mut reply,
        &mut out,
        &HeadInputs { date: DATE, server: b"s", body_length: Some(0), ..HeadInputs::default() },
    );
    assert!(String::from_utf8(out).unwrap().contains("\r\nConnection: close\r\n"));
    assert_eq!(reply.end().end, End::Close);
}

#[test]
fn a_reply_that_never_began_closes_and_says_nothing() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    assert!(!reply.has_status());
    response::head(
        &mut reply,
        &mut out,
        &HeadInputs { date: DATE, server: b"s", body_length: None, ..HeadInputs::default() },
    );
    assert_eq!(response::piece(&mut reply, &mut out, 5), (0, &b""[..]));
    assert_eq!(response::end(&mut reply, &mut out), End::Close);
    assert!(out.is_empty() && reply.body_dropped() == 5);
}

#[test]
fn interim_responses_come_before_the_head_and_only_on_1_1() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    let hints = [(&b"Link"[..], &b"</a>; rel=preload"[..]), (b"Connection", b"close"), (b"Content-Length", b"1")];
    reply.begin(Method::Get, Version::Http11, true);
    response::interim(&reply, &mut out, 100, &[]).unwrap();
    response::interim(&reply, &mut out, 103, &hints).unwrap();
    assert_eq!(
        String::from_utf8(out.clone()).unwrap(),
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
    );
    out.clear();
    for status in [101, 99, 200] {
        assert!(matches!(response::interim(&reply, &mut out, status, &[]), Err(Fault::Status(_))));
    }
    let injected = [(&b"Link"[..], &b"a\r\nB: c"[..])];
    assert!(response::interim(&reply, &mut out, 103, &injected).is_err());
    assert!(out.is_empty());
    reply.begin(Method::Get, Version::Http10, true);
    response::interim(&reply, &mut out, 103, &hints).unwrap();
    assert!(out.is_empty());
    reply.begin(Method::Get, Version::Http11, true);
    reply.status(b"200 OK").unwrap();
    response::head(
        &mut reply,
        &mut out,
        &HeadInputs { date: DATE, server: b"s", body_length: None, ..HeadInputs::default() },
    );
    let length = out.len();
    response::interim(&reply, &mut out, 103, &hints).unwrap();
    assert_eq!(out.len(), length);
}

#[test]
fn nothing_of_one_reply_is_left_in_the_next() {
    let mut reply = Reply::default();
    let mut out = Vec::new();
    let inputs = HeadInputs { date: DATE, ..HeadInputs::default() };
    reply.begin(Method::Head, Version::Http10, false);
    reply.status(b"204 No Content").unwrap();
    reply.field(b"Connection", b"close").unwrap();
    response::head(&mut reply, &mut out, &inputs);
    response::piece(&mut reply, &mut out, 3);
    response::end(&mut reply, &mut out);
    out.clear();
    reply.begin(Method::Get, Version::Http11, true);
    assert!(!reply.has_status() && !reply.head_sent());
    assert_eq!((reply.body_sent(), reply.body_dropped(), reply.status_code()), (0, 0, 0));
    reply.status(b"200 OK").unwrap();
    response::head(&mut reply, &mut out, &inputs);
    assert_eq!(response::end(&mut reply, &mut out), End::Reuse);
    assert!(String::from_utf8(out).unwrap().contains("keep-alive"));
}

/// The head of a reply to a request with an id, whose application sets these fields.
fn with_request_id(reply: &mut Reply, fields: &[(&str, &str)]) -> String {
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.set_request_id(b"abc");
    reply.status(b"500 Oops").unwrap();
    reply.field(b"X-Request-Id", b"of the first try").unwrap();
    reply.status(b"200 OK").unwrap();
    for (name, value) in fields {
        reply.field(name.as_bytes(), value.as_bytes()).unwrap();
    }
    response::head(reply, &mut out, &HeadInputs { date: DATE, body_length: Some(0), ..HeadInputs::default() });
    String::from_utf8(out).unwrap()
}

#[test]
fn a_request_id_is_sent_unless_the_application_has_its_own() {
    let mut reply = Reply::default();
    let wire = with_request_id(&mut reply, &[("Content-Type", "a/b")]);
    assert!(wire.ends_with("X-Request-ID: abc\r\nContent-Type: a/b\r\n\r\n"), "{wire}");
    let wire = with_request_id(&mut reply, &[("x-request-id", "mine")]);
    assert!(wire.contains("\r\nx-request-id: mine\r\n") && !wire.contains("abc"), "{wire}");
    let mut out = Vec::new();
    reply.begin(Method::Get, Version::Http11, true);
    reply.set_request_id(b"");
    reply.status(b"200 OK").unwrap();
    response::head(&mut reply, &mut out, &HeadInputs { date: DATE, body_length: Some(0), ..HeadInputs::default() });
    assert!(!String::from_utf8(out).unwrap().contains("abc"), "an id belongs to one request");
}
