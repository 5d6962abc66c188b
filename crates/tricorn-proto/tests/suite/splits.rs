//! How a stream of bytes was split over reads must never change what it means.
use crate::cuts::split;
use crate::support;
use proptest::prelude::*;
use support::*;
use tricorn_proto::http1::HeadPolicy;

/// Pieces of requests, good and bad; the first of each are the good ones and are taken more often.
#[rustfmt::skip]
const LINES: &[&str] = &[
    "GET / HTTP/1.1\r\n", "POST /a?b#c HTTP/1.1\r\n", "HEAD * HTTP/1.0\r\n", "OPTIONS * HTTP/1.1\r\n",
    "CONNECT a:1 HTTP/1.1\r\n", "GET http://a/p HTTP/1.1\r\n", "GET http://h HTTP/1.1\r\n", "get / HTTP/1.1\r\n",
    "GET / HTTP/2.0\r\n", "GET\r\n", "\r\nGET / HTTP/1.1\r\n", "\r\n\r\n", "GET / HTTP/1.1\n", "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n",
];
#[rustfmt::skip]
const FIELDS: &[&str] = &[
    "Transfer-Encoding: chunked\r\n", "Content-Length: 5\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n",
    // As long as the small limit allows, and one longer.
    "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n", "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n",
    "A: b\r\n", "X_Y: z\r\n", "X-Forwarded-Proto: https\r\n", "X-Forwarded-Ssl: off\r\n", " folded\r\n", "A : b\r\n",
    "Content-Length: x\r\n", "Transfer-Encoding: gzip\r\n", "Host: a b\r\n", "A: b\n", "A: \r\r\n", "A: \x00\r\n", "A\r\n",
];
#[rustfmt::skip]
const BODIES: &[&str] = &[
    "3\r\nabc\r\n", "5;x=y\r\nhello\r\n", "0\r\n\r\n", "0\r\nA: b\r\n\r\n", "abcde", "0\r\n", "1;\"\r\n", "\r\n", "\n", "zz\r\n",
];

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    let good = prop::sample::select(&words[..words.len() / 2]);
    prop_oneof![4 => good, 1 => prop::sample::select(words)]
}

fn request() -> impl Strategy<Value = String> {
    let host = prop_oneof![9 => Just("Host: a\r\n"), 1 => Just("")];
    let end = prop_oneof![9 => Just("\r\n"), 1 => Just("\n")];
    let fields = prop::collection::vec(one_of(FIELDS), 0..3);
    let body = prop::collection::vec(one_of(BODIES), 0..4);
    (one_of(LINES), host, fields, end, body)
        .prop_map(|(line, host, fields, end, body)| [line, host, &fields.concat(), end, &body.concat()].concat())
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(request(), 1..4).prop_map(|requests| requests.concat().into_bytes())
}

fn policy() -> impl Strategy<Value = HeadPolicy> {
    (any::<[bool; 6]>(), 0..3usize, prop::sample::select(&[0, 1, 4, 5, 7][..])).prop_map(|(flags, limits, body)| {
        let mut policy = if flags[0] { trusting() } else { HeadPolicy::default() };
        policy.leniency.obsolete_folding = flags[1];
        policy.leniency.strip_header_spaces = flags[2];
        policy.leniency.unconventional_method = flags[3];
        policy.leniency.unconventional_version = flags[4];
        policy.leniency.casefold_method = flags[5];
        policy.limits.body = body;
        if limits == 0 {
            policy.limits.request_line = 24;
            policy.limits.fields = 3;
            policy.limits.field_size = 40;
        }
        policy
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 5 } else { 4000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_yields_the_same_requests_and_the_same_refusal(
        bytes in stream(),
        policy in policy(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let expected = whole(&policy, &bytes);
        prop_assert_eq!(&feed(&policy, split(&bytes, &cuts)), &expected);
        prop_assert_eq!(&dribbled(&policy, &bytes), &expected);
        for request in &expected.requests {
            let longest = if policy.limits.body == 0 { u64::MAX } else { policy.limits.body };
            prop_assert!(request.body.len() as u64 <= longest);
        }
        if let Some((status, ..)) = expected.refused {
            prop_assert!((400..=501).contains(&status) && status != 500);
        }
    }
}
