//! A reply: whatever the application says, the bytes are one response with one framing, and no line is its own making.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::response::{End, HeadInputs, Reply};
use tricorn_proto::http1::chunked::{Decoder, Trailers};
use tricorn_proto::http1::{HeadPolicy, Step, encode};
use tricorn_proto::message::{Method, Version};

const DATE: &[u8] = b"Sat, 21 Nov 2026 01:02:32 GMT";

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let method = match choices.byte() % 5 {
        0 => Method::Head,
        1 => Method::Connect,
        2 => Method::Options,
        3 => Method::Other,
        _ => Method::Get,
    };
    let version = if choices.flag() {
        Version::Http11
    } else {
        Version::Http10
    };
    let keep_alive = choices.flag();
    let mut reply = Reply::default();
    let mut wire = Vec::new();
    reply.begin(method, version, keep_alive);
    let _ = reply.status(choices.bytes());
    if !reply.has_status() {
        let digits = u16::from(choices.byte()) * 3 + 200; // those below 200 are no final ones
        reply
            .status(format!("{digits} X").as_bytes())
            .expect("a valid status");
    }
    let mut accepted = Vec::new();
    for _ in 0..choices.byte() % 8 {
        let (name, value) = match choices.byte() % 6 {
            0 => (&b"Content-Length"[..], choices.bytes()),
            1 => (&b"Connection"[..], choices.bytes()),
            2 => (&b"Upgrade"[..], &b"websocket"[..]),
            3 => (&b"Transfer-Encoding"[..], &b"chunked"[..]),
            _ => (choices.bytes(), choices.bytes()),
        };
        if reply.field(name, value).is_ok() {
            accepted.push(name.to_ascii_lowercase());
        }
    }
    let pieces: Vec<_> = (0..choices.byte() % 6).map(|_| choices.bytes()).collect();
    let offered: usize = pieces.iter().map(|piece| piece.len()).sum();
    let body_length = choices.flag().then_some(offered as u64);
    let close = choices.flag();
    let inputs = HeadInputs {
        date: DATE,
        server: b"tricorn",
        body_length,
        close,
    };
    if let Some(head) = reply.head(&inputs) {
        encode::head(&mut wire, &head);
    }
    let head_end = wire.len();
    let mut sent = Vec::new();
    for piece in &pieces {
        let portion = reply.body(piece.len() as u64);
        let send = portion.length as usize;
        encode::before(&mut wire, portion);
        sent.extend_from_slice(&piece[..send]);
        wire.extend_from_slice(&piece[..send]);
        wire.extend_from_slice(encode::after(portion));
    }
    let ending = reply.end();
    encode::end(&mut wire, ending.mark);
    let end = ending.end;
    assert_eq!(reply.body_sent(), sent.len() as u64);
    assert_eq!(reply.body_sent() + reply.body_dropped(), offered as u64);
    check(
        &reply, method, version, &wire, head_end, &sent, end, &accepted,
    );
    if end == End::Reuse {
        assert!(keep_alive && !close);
    }
});

#[allow(clippy::too_many_arguments)]
fn check(
    reply: &Reply,
    method: Method,
    version: Version,
    wire: &[u8],
    head_end: usize,
    sent: &[u8],
    end: End,
    accepted: &[Vec<u8>],
) {
    let (head, body) = wire.split_at(head_end);
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut fields);
    assert_eq!(parsed.parse(head), Ok(httparse::Status::Complete(head_end)));
    assert_eq!(parsed.code, Some(reply.status_code()));
    assert_eq!(
        parsed.version,
        Some(if version == Version::Http11 { 1 } else { 0 })
    );
    let named = |name: &str| {
        let named = parsed
            .headers
            .iter()
            .filter(move |field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect::<Vec<_>>()
    };
    // No more lines than fields of the application and ours.
    assert!(parsed.headers.len() <= accepted.len() + 5);
    let lines = head.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!(lines, parsed.headers.len() + 2);
    assert_eq!(named("connection").len(), 1);
    assert!(
        named("date").len() == 1 || accepted.iter().filter(|name| *name == b"date").count() > 1
    );
    let (lengths, codings) = (named("content-length"), named("transfer-encoding"));
    assert!(lengths.len() <= 1 && codings.len() <= 1 && lengths.len() + codings.len() <= 1);
    let status = reply.status_code();
    let no_body = method == Method::Head || status < 200 || status == 204 || status == 304;
    if status < 200 || status == 204 {
        assert!(lengths.is_empty());
    }
    if status == 205 && method != Method::Connect {
        assert!(lengths == [b"0"] && body.is_empty());
    }
    if no_body {
        assert!(codings.is_empty() && body.is_empty() && sent.is_empty());
        return;
    }
    if !codings.is_empty() {
        assert_eq!(version, Version::Http11);
        assert_eq!(decoded(body), sent);
    } else if let [length] = lengths[..] {
        let length: u64 = std::str::from_utf8(length).unwrap().parse().unwrap();
        assert_eq!(body, sent);
        match end {
            End::Short { missing } => assert_eq!(body.len() as u64 + missing, length),
            _ => assert_eq!(body.len() as u64, length),
        }
    } else {
        assert_eq!((body, end), (sent, End::Close));
        assert!(named("connection").iter().all(|value| value.starts_with(b"close")));
    }
}

fn decoded(wire: &[u8]) -> Vec<u8> {
    let (mut decoder, mut trailers) = (Decoder::default(), Trailers::new());
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let policy = HeadPolicy::default();
        let progress = decoder
            .advance(&wire[at..], &policy, &mut trailers)
            .expect("our own chunks");
        match progress.step {
            Step::Body(range) => body.extend_from_slice(&wire[at..][range]),
            Step::End => {
                assert_eq!(at + progress.consumed, wire.len());
                return body;
            }
            step => panic!("{step:?} in a complete body"),
        }
        at += progress.consumed;
    }
}
