//! Attacks: requests that two parsers could end at different places. Each must be refused, whole or dribbled, and
//! nothing of what it carries may be served as a request of its own.
use crate::support;
use support::*;

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

#[rustfmt::skip]
const HEADS: &[(&str, &str, u16)] = &[
    ("CL.TE", "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", 400),
    ("TE.CL", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", 400),
    ("TE.TE, two fields", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
    ("TE.TE, one list", "Transfer-Encoding: chunked, chunked\r\n", 400),
    ("TE.TE, identity last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", 400),
    ("TE.TE, unknown last", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", 501),
    ("TE unknown", "Transfer-Encoding: xchunked\r\n", 501),
    ("TE quoted", "Transfer-Encoding: \"chunked\"\r\n", 501),
    ("TE with a parameter", "Transfer-Encoding: chunked;a=b\r\n", 501),
    ("TE with an empty element", "Transfer-Encoding: ,chunked\r\n", 501),
    ("TE with an empty element last", "Transfer-Encoding: chunked,\r\n", 501),
    ("TE empty", "Transfer-Encoding:\r\n", 501),
    ("TE with a vertical tab", "Transfer-Encoding: \x0bchunked\r\n", 400),
    ("TE with a null", "Transfer-Encoding: chunked\x00\r\n", 400),
    ("TE not final", "Transfer-Encoding: gzip\r\n", 400),
    ("TE not decoded", "Transfer-Encoding: gzip, chunked\r\n", 501),
    ("TE identity", "Transfer-Encoding: identity\r\n", 400),
    ("TE space before colon", "Transfer-Encoding : chunked\r\n", 400),
    ("TE folded", "Transfer-Encoding:\r\n chunked\r\n", 400),
    ("TE folded onto another", "X: y\r\n Transfer-Encoding: chunked\r\n", 400),
    ("TE after a bare LF", "X: y\nTransfer-Encoding: chunked\r\n", 400),
    ("TE after a bare CR", "X: y\rTransfer-Encoding: chunked\r\n", 400),
    ("TE with a leading space", " Transfer-Encoding: chunked\r\n", 400),
    ("TE with a null in the name", "Transfer-Encoding\x00: chunked\r\n", 400),
    ("CL twice, different", "Content-Length: 6\r\nContent-Length: 0\r\n", 400),
    ("CL twice, the same", "Content-Length: 6\r\nContent-Length: 6\r\n", 400),
    ("CL as a list", "Content-Length: 6, 6\r\n", 400),
    ("CL signed", "Content-Length: +6\r\n", 400),
    ("CL hexadecimal", "Content-Length: 0x6\r\n", 400),
    ("CL with a space inside", "Content-Length: 6 6\r\n", 400),
    ("CL empty", "Content-Length:\r\n", 400),
    ("CL space before colon", "Content-Length : 6\r\n", 400),
    ("CL of another script's digits", "Content-Length: \u{0666}\r\n", 400),
    ("CL and TE that cannot be", "Content-Length: 6\r\nTransfer-Encoding: identity\r\n", 400),
    ("two hosts", "Host: b\r\n", 400),
    ("header without a name", ": x\r\n", 400),
    ("a second request line", "GET /smuggled HTTP/1.1\r\n", 400),
];

#[test]
fn ambiguous_heads_are_refused() {
    for (name, lines, status) in HEADS {
        let input = post(lines, &format!("0\r\n\r\n{SMUGGLED}"));
        let outcome = read(&input);
        assert_eq!(outcome.refused.as_ref().map(|(status, ..)| *status), Some(*status), "{name}");
        assert!(outcome.requests.is_empty(), "{name}");
    }
}

#[test]
fn ambiguous_heads_are_refused_by_lenient_operators_too() {
    let policy = lenient(|leniency| {
        leniency.obsolete_folding = true;
        leniency.strip_header_spaces = true;
    });
    // With these settings the length is read as it was meant; together with the other one it stays ambiguous.
    for lines in [
        "Content-Length: 6\r\nTransfer-Encoding : chunked\r\n",
        "Content-Length: 6\r\nTransfer-Encoding:\r\n chunked\r\n",
        "Content-Length : 6\r\nContent-Length: 6\r\n",
        "Content-Length: 6\r\n 6\r\n",
    ] {
        let outcome = read_with(&policy, &post(lines, SMUGGLED));
        assert_eq!(outcome.refused.map(|(status, ..)| status), Some(400), "{lines:?}");
        assert!(outcome.requests.is_empty());
    }
}

#[test]
fn chunked_on_http_1_0_is_refused() {
    let input = format!("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{SMUGGLED}");
    assert_eq!(refused(input.as_bytes()), (400, "Invalid HTTP Header: 'TRANSFER-ENCODING'".into()));
}

#[rustfmt::skip]
const BODIES: &[(&str, &str)] = &[
    ("bare LF after a size", "1\na\r\n0\r\n\r\n"),
    ("bare LF after an extension", "1;x\na\r\n0\r\n\r\n"),
    ("bare LF in a quoted extension", "1;x=\"\n\"\r\na\r\n0\r\n\r\n"),
    ("bare CR in an extension", "1;x\ry\r\na\r\n0\r\n\r\n"),
    ("bare LF after data", "1\r\na\n0\r\n\r\n"),
    ("data longer than its size", "1\r\nab\r\n0\r\n\r\n"),
    ("size that wraps to 1", "10000000000000001\r\na\r\n0\r\n\r\n"),
    ("size with a null", "1\x00\r\na\r\n0\r\n\r\n"),
    ("bare LF after the last size", "0\n\r\n"),
    ("bare LF that ends trailers", "0\r\n\n"),
    ("bare LF after a trailer", "0\r\nX: y\n\r\n"),
    ("length as a trailer", "0\r\nContent-Length: 5\r\n\r\n"),
    ("coding as a trailer", "0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("folded trailer", "0\r\nX: y\r\n z\r\n\r\n"),
];

#[test]
fn ambiguous_chunks_are_refused() {
    for (name, body) in BODIES {
        let outcome = read(&chunked(&format!("{body}{SMUGGLED}")));
        assert_eq!(outcome.refused.as_ref().map(|(status, ..)| *status), Some(400), "{name}");
        assert_eq!(outcome.requests.len(), 1, "{name}");
        assert!(!outcome.requests[0].complete, "{name}");
    }
}

#[test]
fn unknown_codings_are_named() {
    let input = post("Transfer-Encoding: foo, chunked\r\n", "");
    assert_eq!(refused(&input), (501, "Unsupported transfer coding: 'foo, chunked'".into()));
    let input = post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", "");
    assert_eq!(refused(&input).0, 501);
    assert_eq!(accepted(&post("Transfer-Encoding: CHUNKED\r\n", "0\r\n\r\n")).body, b"");
}

/// A client that sends its head a byte at a time must not cost more than its bytes (slowloris with a twist).
#[test]
#[cfg_attr(miri, ignore = "many bytes: Miri takes minutes")]
fn a_dribbled_head_of_800_kb_costs_its_length() {
    let policy = tricorn_proto::http1::HeadPolicy::default();
    let lines = format!("A: {}\r\n", "x".repeat(8000)).repeat(98);
    let input = get(&lines);
    let mut receiver = tricorn_proto::http1::Receiver::default();
    let mut head = tricorn_proto::message::RequestHead::default();
    let mut bytes = input.clone();
    for length in 1..input.len() {
        let progress = receiver.advance(&mut bytes[..length], &policy, false, &mut head).unwrap();
        assert_eq!(progress.consumed, 0);
    }
    let progress = receiver.advance(&mut bytes, &policy, false, &mut head).unwrap();
    assert_eq!(progress.consumed, input.len());
}
