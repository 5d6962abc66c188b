//! The opening handshake: RFC 6455 section 4.2, and the negotiation of RFC 7692 section 7.1.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::{Event, Server, headers};
use crate::response;
use tricorn_proto::http1::{HeadPolicy, Receiver};
use tricorn_proto::http2::Settings;
use tricorn_proto::message::{Method, RequestHead, Version};
use tricorn_proto::response::{HeadInputs, Reply};
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::handshake::{Answer, Asked, Wanted, Wrong, answer, read};

const LINE: &str = "GET /chat HTTP/1.1\r\nHost: server.example.com\r\n";
const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const VERSION: &str = "Sec-WebSocket-Version: 13\r\n";

fn judged(parts: &[&str]) -> Result<Option<Asked>, Wrong> {
    let mut bytes = [&parts.concat(), "\r\n"].concat().into_bytes();
    let mut head = RequestHead::default();
    Receiver::default().advance(&mut bytes, &HeadPolicy::default(), false, &mut head).unwrap();
    read(&head, &bytes)
}

fn asked(more: &str) -> Asked {
    judged(&[LINE, UPGRADE, KEY, VERSION, more]).unwrap().unwrap()
}

fn wrong(parts: &[&str]) -> Wrong {
    judged(parts).unwrap_err()
}

#[test]
fn the_example_of_section_1_2_is_accepted() {
    let asked = asked("Origin: http://example.com\r\nSec-WebSocket-Protocol: chat, superchat\r\n");
    assert_eq!(asked.wanted.protocols, ["chat", "superchat"]);
    assert_eq!(asked.wanted.offers, []);
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    let facts = Answer { key: asked.key.as_ref(), protocol: Some("chat"), deflate: None };
    answer(&mut reply, &facts, [(&b"X-Mine"[..], &b"yes"[..]), (b"Content-Length", b"5"), (b"upgrade", b"h2c")])
        .unwrap();
    let mut out = Vec::new();
    let date = b"Sat, 21 Nov 2026 01:02:32 GMT";
    response::head(
        &mut reply,
        &mut out,
        &HeadInputs { date, server: b"tricorn", body_length: None, close: false, ..HeadInputs::default() },
    );
    let expected = "HTTP/1.1 101 Switching Protocols\r\nServer: tricorn\r\nDate: Sat, 21 Nov 2026 01:02:32 GMT\r\n\
        Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
        Sec-WebSocket-Protocol: chat\r\nX-Mine: yes\r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_applications_fields_are_checked() {
    let asked = asked("");
    for (name, value) in [
        ("Sec-WebSocket-Protocol", "x"),
        ("sec-websocket-accept", "x"),
        ("Sec-WebSocket-Extensions", "x"),
        ("X", "a\r\nEvil: b"),
        ("X Y", "a"),
        ("", "a"),
    ] {
        let mut reply = Reply::default();
        reply.begin(Method::Get, Version::Http11, true);
        let facts = Answer { key: asked.key.as_ref(), protocol: None, deflate: None };
        assert!(answer(&mut reply, &facts, [(name.as_bytes(), value.as_bytes())]).is_err(), "{name}");
    }
    let mut reply = Reply::default();
    reply.begin(Method::Get, Version::Http11, true);
    let facts = Answer { key: asked.key.as_ref(), protocol: Some("a\r\nEvil: b"), deflate: None };
    assert!(answer(&mut reply, &facts, []).is_err());
}

#[test]
fn what_does_not_name_the_protocol_is_an_ordinary_request() {
    for parts in [
        &[LINE][..],
        &[LINE, KEY, VERSION],
        &[LINE, "Connection: Upgrade\r\n", KEY, VERSION],
        &[LINE, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"],
        &[LINE, "Upgrade: websockets\r\nConnection: Upgrade\r\n", KEY, VERSION],
        &["GET / HTTP/1.0\r\nHost: a\r\n", UPGRADE, KEY, VERSION],
    ] {
        assert_eq!(judged(parts), Ok(None), "{parts:?}");
    }
}

#[test]
fn tokens_in_lists_and_any_case() {
    for upgrade in [
        "Upgrade: WebSocket\r\nConnection: upgrade\r\n",
        "Upgrade: h2c, websocket\r\nConnection: keep-alive, Upgrade\r\n",
        "Upgrade: h2c\r\nUpgrade: WEBSOCKET\r\nConnection: keep-alive\r\nConnection: UPGRADE\r\n",
    ] {
        assert!(matches!(judged(&[LINE, upgrade, KEY, VERSION]), Ok(Some(_))), "{upgrade}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    let post = "POST /chat HTTP/1.1\r\nHost: a\r\n";
    let cases: &[(&[&str], Wrong, u16)] = &[
        (&[post, UPGRADE, KEY, VERSION], Wrong::Method, 405),
        (&["HEAD / HTTP/1.1\r\nHost: a\r\n", UPGRADE, KEY, VERSION], Wrong::Method, 405),
        (&[LINE, UPGRADE, KEY, VERSION, "Content-Length: 1\r\n"], Wrong::Body, 400),
        (&[LINE, UPGRADE, KEY, VERSION, "Transfer-Encoding: chunked\r\n"], Wrong::Body, 400),
        (&[LINE, "Upgrade: websocket\r\n", KEY, VERSION], Wrong::Connection, 400),
        (&[LINE, "Upgrade: websocket\r\nConnection: keep-alive\r\n", KEY, VERSION], Wrong::Connection, 400),
        (&[LINE, UPGRADE, KEY], Wrong::Version, 426),
        (&[LINE, UPGRADE, KEY, "Sec-WebSocket-Version: 8\r\n"], Wrong::Version, 426),
        (&[LINE, UPGRADE, KEY, "Sec-WebSocket-Version: 13, 8\r\n"], Wrong::Version, 426),
        (&[LINE, UPGRADE, "Sec-WebSocket-Version: 8\r\n"], Wrong::Version, 426),
        (&[LINE, UPGRADE, KEY, VERSION, VERSION], Wrong::VersionTwice, 400),
        (&[LINE, UPGRADE, VERSION], Wrong::KeyMissing, 400),
        (&[LINE, UPGRADE, VERSION, KEY, KEY], Wrong::KeyTwice, 400),
        (&[LINE, UPGRADE, VERSION, "Sec-WebSocket-Key: \r\n"], Wrong::Key, 400),
        (&[LINE, UPGRADE, VERSION, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j\r\n"], Wrong::Key, 400),
        (&[LINE, UPGRADE, VERSION, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQAAAAAA\r\n"], Wrong::Key, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Protocol: a b\r\n"], Wrong::Protocol, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Protocol: a, b, a\r\n"], Wrong::ProtocolTwice, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Extensions: foo; =1\r\n"], Wrong::Extensions, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Extensions: foo bar\r\n"], Wrong::Extensions, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Extensions: foo; a=\"b\r\n"], Wrong::Extensions, 400),
        (&[LINE, UPGRADE, VERSION, KEY, "Sec-WebSocket-Extensions: foo; a=\"b c\"\r\n"], Wrong::Extensions, 400),
    ];
    for (parts, expected, status) in cases {
        assert_eq!((wrong(parts), wrong(parts).status()), (*expected, *status), "{parts:?}");
    }
    let upgrade: [(&[u8], &[u8]); 2] = [(b"Upgrade", b"websocket"), (b"Sec-WebSocket-Version", b"13")];
    assert_eq!(Wrong::Version.fields(), upgrade);
    assert_eq!(Wrong::Method.fields(), [(&b"Allow"[..], &b"GET"[..])]);
}

#[test]
fn there_is_an_end_to_protocols_and_offers() {
    let offered = |count: usize| (0..count).map(|number| format!("p{number}")).collect::<Vec<_>>().join(", ");
    let field = |count| format!("Sec-WebSocket-Protocol: {}\r\n", offered(count));
    assert_eq!(asked(&field(100)).wanted.protocols.len(), 100);
    assert_eq!(wrong(&[LINE, UPGRADE, KEY, VERSION, &field(101)]), Wrong::Protocols);
    assert!(offers(&"permessage-deflate,".repeat(300)).len() < 20);
}

#[test]
fn what_an_extended_connect_asks_for_needs_no_upgrade() {
    let mut wanted = Wanted::default();
    for (name, value) in [("sec-websocket-version", "13"), ("sec-websocket-protocol", "chat"), ("origin", "x")] {
        wanted.note(name.as_bytes(), value.as_bytes()).unwrap();
    }
    assert_eq!((wanted.check(), wanted.protocols.as_slice()), (Ok(()), &["chat".to_owned()][..]));
}

fn offers(value: &str) -> Vec<Offer> {
    asked(&format!("Sec-WebSocket-Extensions: {value}\r\n")).wanted.offers
}

fn agreed(policy: &Policy, value: &str) -> Option<Agreed> {
    policy.choose(offers(value))
}

fn told(policy: &Policy, value: &str) -> String {
    agreed(policy, value).map_or("none".into(), |agreed| agreed.to_string())
}

#[test]
fn offers_that_mean_nothing_are_declined_and_the_next_one_taken() {
    for declined in [
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=010",
        "permessage-deflate; server_max_window_bits=+9",
        "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
        "permessage-deflate; server_no_context_takeover=1",
        "permessage-deflate; client_no_context_takeover; client_no_context_takeover",
        "permessage-deflate; unknown",
        "permessage-deflate; server_max_window_bits=8",
        "x-webkit-deflate-frame",
        "permessage-bzip2; level=9",
        ", ,",
    ] {
        let policy = Policy::default();
        assert_eq!(told(&policy, declined), "none", "{declined}");
        let with_fallback = format!("{declined}, permessage-deflate");
        assert_eq!(told(&policy, &with_fallback), "permessage-deflate", "{declined}");
    }
}

#[test]
fn what_is_asked_for_is_told_and_kept() {
    let policy = Policy::default();
    for (offer, answer) in [
        ("permessage-deflate", "permessage-deflate"),
        ("Permessage-Deflate", "permessage-deflate"),
        ("permessage-deflate; client_max_window_bits", "permessage-deflate"),
        ("permessage-deflate; client_max_window_bits=10", "permessage-deflate; client_max_window_bits=10"),
        ("permessage-deflate; client_max_window_bits=8", "permessage-deflate; client_max_window_bits=8"),
        ("permessage-deflate; server_max_window_bits=10", "permessage-deflate; server_max_window_bits=10"),
        ("permessage-deflate; server_max_window_bits=\"1\\0\"", "permessage-deflate; server_max_window_bits=10"),
        ("permessage-deflate ; server_max_window_bits = 15", "permessage-deflate; server_max_window_bits=15"),
        ("permessage-deflate; server_no_context_takeover", "permessage-deflate; server_no_context_takeover"),
        ("permessage-deflate; client_no_context_takeover", "permessage-deflate; client_no_context_takeover"),
        (
            "permessage-deflate; server_max_window_bits=8, permessage-deflate; server_max_window_bits=9, permessage-deflate",
            "permessage-deflate; server_max_window_bits=9",
        ),
    ] {
        assert_eq!(told(&policy, offer), answer, "{offer}");
    }
}

#[test]
fn the_servers_own_policy() {
    let offer = "permessage-deflate; client_max_window_bits; server_max_window_bits=12";
    let small = Policy { server_max_window_bits: 10, client_max_window_bits: 11, ..Policy::default() };
    assert_eq!(told(&small, offer), "permessage-deflate; server_max_window_bits=10; client_max_window_bits=11");
    // Who does not say that it can be told a limit is not told one; that we use a smaller window is our own affair.
    let plain = agreed(&small, "permessage-deflate").unwrap();
    assert_eq!(plain.to_string(), "permessage-deflate");
    assert_eq!((plain.server_bits, plain.client_bits), (10, 15));

    let forgetful = Policy { server_context_takeover: false, client_context_takeover: false, ..Policy::default() };
    let both = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
    assert_eq!(told(&forgetful, "permessage-deflate"), both);
    assert_eq!(told(&Policy { enabled: false, ..Policy::default() }, offer), "none");
    let nonsense = Policy { server_max_window_bits: 0, client_max_window_bits: 99, level: 77, ..Policy::default() };
    let agreed = agreed(&nonsense, offer).unwrap();
    assert_eq!((agreed.server_bits, agreed.client_bits, agreed.level), (9, 15, 9));
}

#[test]
fn an_extended_connect_has_no_key_and_is_answered_200() {
    let settings = Settings { connect_protocol: true, ..Settings::default() };
    let mut server = Server::with(settings);
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":path", "/chat"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
    ];
    assert!(matches!(&server.receive(&headers(1, &fields, false))[..], [Event::Request { stream: 1, .. }]));
    let (head, bytes) = (&server.request.head, &server.request.bytes);
    let asked = read(head, bytes).expect("a good handshake").expect("a handshake");
    assert_eq!((asked.key.as_ref(), &asked.wanted.protocols[..]), (None, &["chat".to_string()][..]));
    let mut reply = Reply::default();
    reply.begin(head.kind, head.version, true);
    let facts = Answer { key: None, protocol: Some("chat"), deflate: None };
    answer(&mut reply, &facts, []).expect("an answer");
    let said: Vec<_> = reply.fields().iter().collect();
    assert_eq!((reply.status_code(), &said[..]), (200, &[(&b"Sec-WebSocket-Protocol"[..], &b"chat"[..])][..]));
}
