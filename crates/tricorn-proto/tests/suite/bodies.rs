//! RFC 9112 sections 6 and 7.
use crate::support;
use support::*;
use tricorn_proto::http1::{HeadPolicy, HeaderMap, Progress, Receiver, Step};
use tricorn_proto::message::{Framing, RequestHead};

#[test]
fn a_request_without_length_has_no_body() {
    let outcome = read(&[get(""), get("")].concat());
    assert_eq!(outcome.requests.len(), 2);
    assert!(outcome.requests.iter().all(|request| request.framing == Framing::None));
}

#[test]
fn a_length_is_read_to_its_end_and_no_further() {
    let input = [post("Content-Length: 3\r\n", "abc"), get("")].concat();
    let outcome = read(&input);
    assert_eq!(outcome.refused, None);
    assert_eq!(outcome.requests[0].body, b"abc");
    assert_eq!(outcome.requests.len(), 2);
    assert_eq!(accepted(&post("Content-Length: 0\r\n", "")).framing, Framing::Length(0));
    assert_eq!(accepted(&post("Content-Length: 003\r\n", "abc")).body, b"abc");
}

#[test]
fn a_length_is_digits() {
    for length in ["+1", "-1", "1 1", "0x1", "1,1", "1, 1", "", "a", "1a", "18446744073709551616", "\u{b2}", "1_0"] {
        let input = post(&format!("Content-Length: {length}\r\n"), "x");
        assert_eq!(refused(&input), (400, "Invalid HTTP Header: 'CONTENT-LENGTH'".into()));
    }
    let most = post("Content-Length: 18446744073709551615\r\n", "");
    assert_eq!(read(&most).requests[0].framing, Framing::Length(u64::MAX));
}

#[test]
fn a_fixed_body_may_be_taken_elsewhere() {
    let (policy, mut head) = (HeadPolicy::default(), RequestHead::default());
    let mut receiver = Receiver::default();
    assert!(receiver.is_idle());
    assert_eq!(receiver.fixed_remaining(), None);
    let mut input = post("Content-Length: 10\r\n", "abc");
    let end = input.len() - 3;
    let progress = receiver.advance(&mut input, &policy, false, &mut head).unwrap();
    assert_eq!(progress, Progress { consumed: end, step: Step::Head });
    assert!(!receiver.is_idle());
    let progress = receiver.advance(&mut input[end..], &policy, false, &mut head).unwrap();
    assert_eq!(progress, Progress { consumed: 3, step: Step::Body(0..3) });
    assert_eq!(receiver.fixed_remaining(), Some(7));
    let waiting = Progress { consumed: 0, step: Step::NeedMore };
    assert_eq!(receiver.advance(&mut [], &policy, false, &mut head).unwrap(), waiting);
    receiver.took_fixed(6);
    assert_eq!(receiver.fixed_remaining(), Some(1));
    receiver.took_fixed(1);
    assert_eq!(receiver.fixed_remaining(), None);
    let done = Progress { consumed: 0, step: Step::End };
    for _ in 0..2 {
        let progress = receiver.advance(&mut get(""), &policy, false, &mut head).unwrap();
        assert_eq!(progress, done, "nothing is read before next_request");
    }
    receiver.next_request();
    assert!(receiver.is_idle());
    let progress = receiver.advance(&mut get(""), &policy, false, &mut head).unwrap();
    assert_eq!(progress.step, Step::Head);
}

#[test]
fn no_next_request_is_read_while_a_body_is_to_come() {
    let (policy, mut head) = (HeadPolicy::default(), RequestHead::default());
    let mut receiver = Receiver::default();
    let mut input = post("Content-Length: 10\r\n", "");
    receiver.advance(&mut input, &policy, false, &mut head).unwrap();
    receiver.next_request();
    assert!(receiver.advance(&mut get(""), &policy, false, &mut head).is_err());
}

#[test]
fn a_refused_head_holds_nothing_of_the_request_before_it() {
    for policy in [HeadPolicy::default(), lenient(|leniency| leniency.obsolete_folding = true)] {
        let (mut receiver, mut head) = (Receiver::default(), RequestHead::default());
        receiver.advance(&mut get("A: b\r\n"), &policy, false, &mut head).unwrap();
        receiver.advance(&mut [], &policy, false, &mut head).unwrap();
        receiver.next_request();
        let mut bad = b"nonsense\r\n\r\n".to_vec();
        assert!(receiver.advance(&mut bad, &policy, false, &mut head).is_err());
        assert_eq!(head, RequestHead::default());
    }
}

#[test]
fn the_receiver_is_small() {
    assert!(size_of::<Receiver>() <= 64, "{}", size_of::<Receiver>());
}

#[test]
fn chunks_are_joined() {
    let request = accepted(&chunked("3\r\nabc\r\n0A\r\n0123456789\r\n0\r\n\r\n"));
    assert_eq!(request.framing, Framing::Chunked);
    assert_eq!(request.body, b"abc0123456789");
    assert!(request.trailers.is_empty());
    let input = [chunked("1\r\na\r\n000\r\n\r\n"), get("")].concat();
    assert_eq!(read(&input).requests.len(), 2);
    assert_eq!(accepted(&chunked("0000000000000001\r\na\r\n0\r\n\r\n")).body, b"a");
}

#[test]
fn chunk_sizes_are_hexadecimal_digits_only() {
    for (size, shown) in [
        ("zz", "b'zz'"),
        ("0x1", "b'0x1'"),
        ("+1", "b'+1'"),
        ("-1", "b'-1'"),
        (" 1", "b' 1'"),
        ("1 ", "b'1 '"),
        ("1\t", "b'1\\t'"),
        ("", "b''"),
        ("1_0", "b'1_0'"),
        (";a", "b''"),
        ("00000000000000001", "b'00000000000000001'"),
        ("10000000000000000", "b'10000000000000000'"),
        ("1\r1", "b'1\\r1'"),
    ] {
        let input = chunked(&format!("{size}\r\na\r\n0\r\n\r\n"));
        assert_eq!(refused(&input), (400, format!("Invalid chunk size: {shown}")), "{size:?}");
    }
}

#[test]
fn a_chunk_may_be_as_large_as_64_bits_say() {
    let outcome = read(&chunked("ffffffffffffffff\r\nabc"));
    assert_eq!(outcome.refused, None);
    assert_eq!(outcome.requests[0].body, b"abc");
    assert!(!outcome.requests[0].complete);
}

#[test]
fn a_chunk_ends_with_crlf() {
    for (end, shown) in [("ab", "b'ab'"), ("\n0", "b'\\n0'"), ("\ra", "b'\\ra'"), ("\r\r", "b'\\r\\r'")] {
        let input = chunked(&format!("1\r\na{end}\r\n0\r\n\r\n"));
        let message = format!("Invalid chunk terminator is not '\\r\\n': {shown}");
        assert_eq!(refused(&input), (400, message));
    }
}

#[test]
fn extensions_are_skipped_if_they_are_well_formed() {
    for extension in [";a", ";a=b", ";a=\"b\"", ";a;b=c", " ; a = b", ";a=\"\\\"\"", "\t;a", ";a=\"\""] {
        let input = chunked(&format!("1{extension}\r\nx\r\n0{extension}\r\n\r\n"));
        assert_eq!(accepted(&input).body, b"x", "{extension:?}");
    }
    for extension in
        [";", ";=b", ";a=", ";a b", ";a=\"b", ";a=b\"", ";a=\"\\", ";a;", "; ", ";a=\x01", ";a=\"\r\"", ";a\r"]
    {
        let (status, text) = refused(&chunked(&format!("1{extension}\r\nx\r\n0\r\n\r\n")));
        assert_eq!((status, text.as_str()), (400, "Invalid chunk extension: invalid chunk extension"));
    }
}

#[test]
fn extensions_are_bounded_per_line_and_per_body() {
    let long = format!("1;a={}\r\nx\r\n0\r\n\r\n", "x".repeat(8190));
    assert_eq!(refused(&chunked(&long)).0, 400);
    let unfinished = format!("1;a={}", "x".repeat(8190));
    assert_eq!(refused(&chunked(&unfinished)).0, 400);
    let many = format!("1;{}\r\nx\r\n", "a".repeat(1000)).repeat(17);
    let (status, text) = refused(&chunked(&many));
    assert_eq!(status, 400);
    assert!(text.contains("16384"), "{text}");
}

#[test]
fn trailers_are_kept_apart() {
    let request = accepted(&chunked("1\r\na\r\n0\r\nX-Sum: 1 \r\nY:\r\n\r\n"));
    let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    assert_eq!(request.trailers, [pair("X-Sum", "1"), pair("Y", "")]);
    assert_eq!(request.fields.len(), 2);
    // And forgotten with the request.
    let input = [chunked("0\r\nX: y\r\n\r\n"), chunked("0\r\n\r\n")].concat();
    assert!(read(&input).requests[1].trailers.is_empty());
}

#[test]
fn trailers_that_frame_route_or_authenticate_are_refused() {
    for name in ["Host", "Content-Length", "Transfer-Encoding", "Trailer", "Authorization", "TE", "connection"] {
        let input = chunked(&format!("0\r\n{name}: 1\r\n\r\n"));
        let message = format!("Invalid HTTP header name: '{}'", name.to_uppercase());
        assert_eq!(refused(&input), (400, message));
    }
}

#[test]
fn trailers_obey_the_field_grammar_and_its_limits() {
    for lines in ["A : b", "A", " A: b", "A: b\r\n c", "A: b\nC: d", "A: \x00"] {
        assert_eq!(refused(&chunked(&format!("0\r\n{lines}\r\n\r\n"))).0, 400, "{lines:?}");
    }
    let many = format!("0\r\n{}\r\n", "A: b\r\n".repeat(101));
    assert_eq!(refused(&chunked(&many)).0, 431);
    let long = format!("0\r\nA: {}", "x".repeat(8190));
    assert_eq!(refused(&chunked(&long)).0, 431);
    let underscore = chunked("0\r\nA_B: c\r\n\r\n");
    assert!(accepted(&underscore).trailers.is_empty());
    assert_eq!(accepted_with(&header_map(HeaderMap::Dangerous), &underscore).trailers.len(), 1);
    assert_eq!(refused_with(&header_map(HeaderMap::Refuse), &underscore).0, 400);
}

#[test]
fn a_truncated_body_never_completes() {
    for body in
        ["", "3", "3\r\n", "3\r\nab", "3\r\nabc", "3\r\nabc\r", "3\r\nabc\r\n", "0\r\n", "0\r\n\r", "0\r\nA: b\r\n"]
    {
        let outcome = read(&chunked(body));
        assert_eq!(outcome.refused, None, "{body:?}");
        assert!(!outcome.requests[0].complete, "{body:?}");
    }
}

fn at_most(body: u64) -> HeadPolicy {
    let mut policy = HeadPolicy::default();
    policy.limits.body = body;
    policy
}

#[test]
fn a_length_over_the_limit_is_refused_with_its_head() {
    let limited = at_most(3);
    assert_eq!(accepted_with(&limited, &post("Content-Length: 3\r\n", "abc")).body, b"abc");
    assert_eq!(accepted_with(&limited, &get("")).body, b"");
    let (status, text) = refused_with(&limited, &post("Content-Length: 4\r\n", ""));
    assert_eq!((status, text.as_str()), (413, "Request body is too large (4 > 3)"));
    let most = post("Content-Length: 18446744073709551615\r\n", "");
    assert_eq!(refused_with(&limited, &most).0, 413);
    assert!(read_with(&limited, &most).requests.is_empty(), "the application hears nothing of it");
}

#[test]
fn chunks_over_the_limit_are_refused_by_their_size() {
    let limited = at_most(5);
    assert_eq!(accepted_with(&limited, &chunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")).body, b"abcde");
    for body in ["6\r\n", "3\r\nabc\r\n3\r\n", "3\r\nabc\r\n2\r\nde\r\n1\r\n"] {
        assert_eq!(refused_with(&limited, &chunked(body)), (413, "Request body is too large (6 > 5)".into()), "{body}");
    }
    let overflow = chunked("3\r\nabc\r\nffffffffffffffff\r\n");
    assert_eq!(refused_with(&limited, &overflow).0, 413);
    let trailers = chunked("5\r\nabcde\r\n0\r\nTrailer-Is-No-Body: 1\r\n\r\n");
    assert_eq!(accepted_with(&limited, &trailers).body, b"abcde");
}

#[test]
fn each_request_of_a_connection_has_the_whole_limit() {
    let one = chunked("3\r\nabc\r\n0\r\n\r\n");
    let outcome = read_with(&at_most(3), &[one.clone(), one, post("Content-Length: 3\r\n", "abc")].concat());
    assert_eq!((outcome.refused, outcome.requests.len()), (None, 3));
}
