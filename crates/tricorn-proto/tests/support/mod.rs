//! What the tests have in common: a connection's whole input, in pieces, and what came out of it.
#![allow(dead_code, clippy::unwrap_used)] // A test may panic, and need not use all of this.
use std::net::{IpAddr, Ipv4Addr};
use tricorn_proto::http1::{HeadPolicy, HeaderMap, Leniency, Receiver, Step};
use tricorn_proto::message::{Framing, Method, RefusalKind, RequestHead, Scheme, Version};

pub const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// One request as text, independent of where its bytes stood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    pub kind: Method,
    pub target: String,
    pub path: String,
    pub query: String,
    pub protocol: String,
    pub version: Version,
    pub fields: Vec<(String, String)>,
    pub framing: Framing,
    pub scheme: Scheme,
    pub keep_alive: bool,
    pub expect_continue: bool,
    pub body: Vec<u8>,
    pub trailers: Vec<(Vec<u8>, Vec<u8>)>,
    /// Whether `Step::End` came.
    pub complete: bool,
}

/// Everything that came out of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub requests: Vec<Request>,
    /// Status and text; the text of a line that was too long depends on how much of it had come.
    pub refused: Option<(u16, RefusalKind, String)>,
}

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte as char).collect()
}

fn request(head: &RequestHead, bytes: &[u8]) -> Request {
    Request {
        method: text(head.method.of(bytes)),
        kind: head.kind,
        target: text(head.target.of(bytes)),
        path: text(head.path.of(bytes)),
        query: text(head.query.of(bytes)),
        protocol: text(head.protocol.of(bytes)),
        version: head.version,
        fields: head.fields.iter().map(|field| (text(field.name.of(bytes)), text(field.value.of(bytes)))).collect(),
        framing: head.framing,
        scheme: head.scheme,
        keep_alive: head.keep_alive,
        expect_continue: head.expect_continue,
        ..Request::default()
    }
}

/// Feeds the pieces one after the other; requests follow one another as on a kept-alive connection.
pub fn feed<'p>(policy: &HeadPolicy, pieces: impl IntoIterator<Item = &'p [u8]>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut receiver = Receiver::default();
    let mut head = RequestHead::default();
    let mut buffer = Vec::new();
    let trusted = policy.trust.allows(Some(PEER));
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let progress = match receiver.advance(&mut buffer, policy, trusted, &mut head) {
                Ok(progress) => progress,
                Err(refusal) => {
                    assert!(
                        receiver.advance(&mut buffer, policy, trusted, &mut head).is_err(),
                        "nothing is read after a refusal"
                    );
                    let text = match refusal.kind {
                        RefusalKind::RequestLineTooLong => String::new(),
                        _ => refusal.message(),
                    };
                    outcome.refused = Some((refusal.status(), refusal.kind, text));
                    return outcome;
                }
            };
            match progress.step {
                Step::NeedMore => {
                    buffer.drain(..progress.consumed);
                    break;
                }
                Step::Head => outcome.requests.push(request(&head, &buffer)),
                Step::Body(range) => {
                    assert!(!range.is_empty() && range.end <= progress.consumed);
                    let last = outcome.requests.last_mut().unwrap();
                    last.body.extend_from_slice(&buffer[range]);
                }
                Step::End => {
                    let last = outcome.requests.last_mut().unwrap();
                    last.trailers = head.trailers.clone();
                    last.complete = true;
                    receiver.next_request();
                    if buffer.len() == progress.consumed {
                        buffer.clear();
                        break;
                    }
                }
            }
            buffer.drain(..progress.consumed);
        }
    }
    outcome
}

pub fn whole(policy: &HeadPolicy, input: &[u8]) -> Outcome {
    feed(policy, [input])
}

/// Byte by byte; under Miri, to which each look at a head costs a tenth of a second, in four pieces.
pub fn dribbled(policy: &HeadPolicy, input: &[u8]) -> Outcome {
    feed(policy, input.chunks(if cfg!(miri) { input.len() / 4 + 1 } else { 1 }))
}

/// Under the default policy; whole and byte by byte must come to the same.
pub fn read(input: &[u8]) -> Outcome {
    read_with(&HeadPolicy::default(), input)
}

pub fn read_with(policy: &HeadPolicy, input: &[u8]) -> Outcome {
    let outcome = whole(policy, input);
    assert_eq!(dribbled(policy, input), outcome, "{:?}", text(input));
    outcome
}

/// The single complete request in `input`.
pub fn accepted(input: &[u8]) -> Request {
    accepted_with(&HeadPolicy::default(), input)
}

pub fn accepted_with(policy: &HeadPolicy, input: &[u8]) -> Request {
    let outcome = read_with(policy, input);
    assert_eq!(outcome.refused, None, "{:?}", text(input));
    assert_eq!(outcome.requests.len(), 1, "{:?}", text(input));
    assert!(outcome.requests[0].complete, "{:?}", text(input));
    outcome.requests.into_iter().next().unwrap()
}

/// Status and message of the refusal of `input`.
pub fn refused(input: &[u8]) -> (u16, String) {
    refused_with(&HeadPolicy::default(), input)
}

pub fn refused_with(policy: &HeadPolicy, input: &[u8]) -> (u16, String) {
    let outcome = read_with(policy, input);
    let (status, _, text) = outcome.refused.clone().unwrap_or_else(|| panic!("{:?}: {outcome:?}", text(input)));
    (status, text)
}

/// A request with these lines after `GET / HTTP/1.1` and a Host.
pub fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

pub fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n{body}").into_bytes()
}

pub fn chunked(body: &str) -> Vec<u8> {
    post("Transfer-Encoding: chunked\r\n", body)
}

pub fn lenient(change: impl FnOnce(&mut Leniency)) -> HeadPolicy {
    let mut policy = HeadPolicy::default();
    change(&mut policy.leniency);
    policy
}

pub fn header_map(map: HeaderMap) -> HeadPolicy {
    lenient(|leniency| leniency.header_map = map)
}

pub fn trusting() -> HeadPolicy {
    let trust = tricorn_proto::peer::Trust::parse("127.0.0.1").unwrap();
    HeadPolicy { trust, ..HeadPolicy::default() }
}
