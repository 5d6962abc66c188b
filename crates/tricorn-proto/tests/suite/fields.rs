//! RFC 9112 section 5, RFC 9110 sections 5 to 7.
use crate::support;
use support::*;
use tricorn_proto::http1::{HeadPolicy, HeaderMap};
use tricorn_proto::message::Scheme;

/// Every byte; under Miri, to which each head costs a tenth of a second, one of seventeen.
const EACH: usize = if cfg!(miri) { 17 } else { 1 };

#[test]
fn values_are_trimmed_and_names_keep_their_case() {
    let request = accepted(&get("X-a:b\r\nY: \t c d \t \r\nEmpty:\r\nBlank:  \r\nZ: \u{e9}\r\n"));
    let fields: Vec<_> = request.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let expected = [("Host", "a"), ("X-a", "b"), ("Y", "c d"), ("Empty", ""), ("Blank", ""), ("Z", "\u{c3}\u{a9}")];
    assert_eq!(fields, expected);
}

#[test]
fn every_byte_is_judged_in_a_name() {
    for byte in (0..=255u8).step_by(EACH) {
        let mut input = b"GET / HTTP/1.1\r\nHost: a\r\nX".to_vec();
        input.push(byte);
        input.extend_from_slice(b"Y: b\r\n\r\n");
        let tchar = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        // With a colon there the name just ends sooner.
        let accepted = read(&input).refused.is_none();
        assert_eq!(accepted, tchar || byte == b':', "{byte:#x}");
    }
}

#[test]
fn every_byte_is_judged_in_a_value() {
    for byte in (0..=255u8).step_by(EACH) {
        for around in [["", ""], ["x", "y"], ["", "y"], ["x", ""]] {
            let mut input = b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec();
            input.extend_from_slice(around[0].as_bytes());
            input.push(byte);
            input.extend_from_slice(around[1].as_bytes());
            input.extend_from_slice(b"\r\nY: z\r\n\r\n");
            let text = byte == b'\t' || (byte >= b' ' && byte != 0x7f);
            assert_eq!(read(&input).refused.is_none(), text, "{byte:#x} {around:?}");
        }
    }
}

#[test]
fn broken_lines_are_named() {
    for (lines, message) in [
        ("Foo : b\r\n", "Invalid HTTP header name: 'Foo '"),
        ("Foo\t: b\r\n", "Invalid HTTP header name: 'Foo\\t'"),
        ("Foo\r\n", "Invalid HTTP Header: 'Foo'"),
        (": b\r\n", "Invalid HTTP Header: ': b'"),
        ("Foo: a\x00b\r\n", "Invalid HTTP Header: 'FOO'"),
        ("Foo: a\rb\r\n", "Invalid HTTP Header: 'FOO'"),
        ("Foo: a\r\n b\r\n", "Obsolete line folding is unacceptable: 'FOO'"),
        ("Foo: a\r\n\tb\r\n", "Obsolete line folding is unacceptable: 'FOO'"),
        ("Foo:\r\n \r\n", "Obsolete line folding is unacceptable: 'FOO'"),
        ("Foo: a\n", "Invalid HTTP Header: 'bare LF as line terminator'"),
        ("Foo: a\nBar: b\r\n", "Invalid HTTP Header: 'bare LF as line terminator'"),
        ("\"Foo\": b\r\n", "Invalid HTTP header name: '\"Foo\"'"),
        ("Fo\u{e9}: b\r\n", "Invalid HTTP header name: 'Fo\u{c3}\u{a9}'"),
    ] {
        assert_eq!(refused(&get(lines)), (400, message.into()), "{lines:?}");
    }
}

#[test]
fn the_head_ends_with_an_empty_line_of_crlf() {
    for end in ["\n\n", "\r\n\n", "\n\r\n", "\r\r\n"] {
        let input = format!("GET / HTTP/1.1\r\nHost: a{end}");
        assert_eq!(refused(input.as_bytes()).0, 400, "{end:?}");
    }
    let request = accepted(b"GET / HTTP/1.0\r\n\r\n");
    assert!(request.fields.is_empty() && !request.keep_alive);
    assert_eq!(refused(b"GET / HTTP/1.0\r\n\n").0, 400);
    assert_eq!(refused(b"GET / HTTP/1.0\n\r\n").0, 400);
    assert_eq!(refused(b"GET / HTTP/1.0\r\n A: b\r\n\r\n").0, 400);
}

#[test]
fn rfc_9112_3_2_every_1_1_request_has_one_valid_host() {
    let message = "Missing Host header (RFC 9112 section 3.2)";
    assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n"), (400, message.into()));
    assert_eq!(accepted(b"GET / HTTP/1.1\r\nHost:\r\n\r\n").fields[0].1, "");
    for lines in ["Host: a\r\n", "host: a\r\n", "HOST: b\r\n"] {
        assert_eq!(refused(&get(lines)), (400, "Invalid HTTP Header: 'HOST'".into()));
    }
    for host in ["a b", "a/b", "a@b", "a:b", "a,b:c", "[::1"] {
        let input = format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n");
        assert_eq!(refused(input.as_bytes()), (400, "Invalid HTTP Header: 'HOST'".into()));
    }
}

#[test]
fn fields_with_one_member_must_not_be_repeated() {
    let lines = "Content-Type: a/b\r\nContent-Type: a/b\r\n";
    assert_eq!(refused(&get(lines)), (400, "Invalid HTTP Header: 'CONTENT-TYPE'".into()));
    let lines = "Content-Length: 0\r\nContent-Length: 0\r\n";
    assert_eq!(refused(&get(lines)), (400, "Invalid HTTP Header: 'CONTENT-LENGTH'".into()));
    assert_eq!(accepted(&get("Accept: a\r\nAccept: b\r\n")).fields.len(), 3);
}

#[test]
fn close_wins_over_all_connection_fields() {
    for (version, lines, keep_alive) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: CLOSE\r\n", false),
        ("1.1", "Connection: keep-alive, close\r\n", false),
        ("1.1", "Connection: foo ,\tclose\r\n", false),
        ("1.1", "Connection: close\r\nConnection: keep-alive\r\n", false),
        ("1.1", "Connection: keep-alive\r\nConnection: close\r\n", false),
        ("1.1", "Connection: closed\r\n", true),
        ("1.1", "Connection: upgrade\r\n", true),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: foo, keep-alive\r\n", true),
        ("1.0", "Connection: keep-alive\r\nConnection: close\r\n", false),
    ] {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{lines}\r\n");
        assert_eq!(accepted(input.as_bytes()).keep_alive, keep_alive, "{version} {lines:?}");
    }
}

#[test]
fn rfc_9110_10_1_1_expectations() {
    let body = "Content-Length: 1\r\n";
    let expects = |line: &str| accepted(&post(&format!("{body}{line}"), "x")).expect_continue;
    assert!(expects("Expect: 100-continue\r\n"));
    assert!(expects("Expect: 100-Continue\r\n"));
    assert!(!expects(""));
    assert!(!accepted(&get("Expect: 100-continue\r\n")).expect_continue, "no body is to come");
    let message = "Unable to comply with expectation: 'foo'";
    assert_eq!(refused(&get("Expect: foo\r\n")), (417, message.into()));
    let old = b"GET / HTTP/1.0\r\nExpect: foo\r\n\r\n";
    assert!(!accepted(old).expect_continue, "a 1.0 client cannot expect");
}

#[test]
fn an_underscore_needs_a_reason() {
    let input = get("X_A: 1\r\nX-A: 2\r\nScript_Name: /s\r\n_: b\r\n");
    let names = |policy: &HeadPolicy| -> Vec<String> {
        accepted_with(policy, &input).fields.into_iter().skip(1).map(|(name, _)| name).collect()
    };
    assert_eq!(names(&HeadPolicy::default()), ["X-A"]);
    assert_eq!(names(&header_map(HeaderMap::Dangerous)), ["X_A", "X-A", "Script_Name", "_"]);
    let refuse = header_map(HeaderMap::Refuse);
    assert_eq!(refused_with(&refuse, &input), (400, "Invalid HTTP header name: 'X_A'".into()));
    assert_eq!(names(&trusting()), ["X-A", "Script_Name"]);
    let mut all = trusting();
    all.forwarder_headers = vec![b"*".to_vec()];
    assert_eq!(names(&all).len(), 4);
    all.trust = Default::default();
    assert_eq!(names(&all), ["X-A"], "only a trusted peer may send them");
}

#[test]
fn underscores_in_values_are_nobodys_business() {
    let request = accepted(&get("A: x_y\r\nB: _\r\nC: c\r\nD_: d_\r\nE: e_\r\n"));
    let names: Vec<_> = request.fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["Host", "A", "B", "C", "E"]);
}

#[test]
fn the_scheme_is_what_a_trusted_peer_says() {
    let https = get("X-Forwarded-Proto: https\r\n");
    assert_eq!(accepted_with(&trusting(), &https).scheme, Scheme::Https);
    assert_eq!(accepted(&https).scheme, Scheme::Http, "not trusted");
    for (value, scheme) in [
        ("HTTPS", Scheme::Https),
        ("wss", Scheme::Https),
        ("WSS", Scheme::Https),
        ("http, https", Scheme::Https),
        ("http", Scheme::Http),
        ("ws", Scheme::Http),
        ("https, http", Scheme::Http),
        ("on", Scheme::Http),
        ("", Scheme::Http),
    ] {
        let lines = format!("X-Forwarded-Proto: {value}\r\n");
        assert_eq!(accepted_with(&trusting(), &get(&lines)).scheme, scheme, "{value}");
    }
    for lines in ["X-Foo: https\r\n", "X_Forwarded_Proto: https\r\n", "X-Forwarded-Ssl: wss\r\n"] {
        assert_eq!(accepted_with(&trusting(), &get(lines)).scheme, Scheme::Http, "{lines}");
    }
    let same = get("X-Forwarded-Proto: https\r\nx-forwarded-ssl: on\r\n");
    assert_eq!(accepted_with(&trusting(), &same).scheme, Scheme::Https);
    let other = get("X-Forwarded-Proto: https\r\nX-Forwarded-Ssl: off\r\n");
    let message = "Contradictory scheme headers";
    assert_eq!(refused_with(&trusting(), &other), (400, message.into()));
    assert_eq!(accepted(&other).scheme, Scheme::Http);
}

#[test]
fn folded_lines_may_be_permitted() {
    let policy = lenient(|leniency| leniency.obsolete_folding = true);
    let request = accepted_with(&policy, &get("A: b\r\n c \r\n\t d\r\nE: f\r\n"));
    assert_eq!(request.fields[1], ("A".into(), "b c d".into()));
    assert_eq!(request.fields[2], ("E".into(), "f".into()));
    for bad in ["A: b\r\n \x00c\r\n", "A b\r\n c: d\r\n", "A : b\r\n c\r\n", "A: b\n c\r\n"] {
        assert_eq!(refused_with(&policy, &get(bad)).0, 400, "{bad:?}");
    }
    assert_eq!(refused_with(&policy, b"GET / HTTP/1.0\r\n A: b\r\n\r\n").0, 400);
}

#[test]
fn a_folded_length_is_still_digits_only() {
    let policy = lenient(|leniency| leniency.obsolete_folding = true);
    let input = post("Content-Length: 1\r\n 0\r\n", "0123456789");
    assert_eq!(refused_with(&policy, &input).0, 400);
}

#[test]
fn spaces_before_the_colon_may_be_stripped() {
    let policy = lenient(|leniency| leniency.strip_header_spaces = true);
    let request = accepted_with(&policy, &get("A \t: b\r\nContent-Length : 0\r\n"));
    assert_eq!(request.fields[1], ("A".into(), "b".into()));
    assert_eq!(request.fields[2], ("Content-Length".into(), "0".into()));
    assert_eq!(refused_with(&policy, &get(" A: b\r\n")).0, 400);
    assert_eq!(refused_with(&policy, &get("A B: b\r\n")).0, 400);
}

#[test]
fn limits_are_exact_and_early() {
    let mut policy = HeadPolicy::default();
    policy.limits.fields = 3;
    policy.limits.field_size = 12;
    assert_eq!(accepted_with(&policy, &get("A: b\r\nABC: 56789\r\n")).fields.len(), 3);
    let size = (431, "Error parsing headers: 'limit request headers fields size'".into());
    assert_eq!(refused_with(&policy, &get("ABC: 567890\r\n")), size);
    assert_eq!(refused_with(&policy, b"GET / HTTP/1.1\r\nABC: 567890"), size);
    let count = (431, "Error parsing headers: 'limit request headers fields'".into());
    assert_eq!(refused_with(&policy, &get("A: b\r\nC: d\r\nE: f\r\n")), count);
    assert_eq!(refused_with(&policy, b"GET / HTTP/1.1\r\nA:b\r\nA:b\r\nA:b\r\nA"), count);
}

#[test]
fn dropped_fields_count_too() {
    let mut policy = HeadPolicy::default();
    policy.limits.fields = 2;
    assert_eq!(refused_with(&policy, &get("A_: b\r\nB_: b\r\n")).0, 431);
}

#[test]
fn the_default_limits_are_gunicorns() {
    let fields = |count: usize| get(&"A: b\r\n".repeat(count - 1));
    assert_eq!(accepted(&fields(100)).fields.len(), 100);
    assert_eq!(refused(&fields(101)).0, 431);
    let size = |bytes: usize| get(&format!("A: {}\r\n", "x".repeat(bytes - 5)));
    assert_eq!(accepted(&size(8190)).fields.len(), 2);
    assert_eq!(refused(&size(8191)).0, 431);
}

#[test]
#[cfg_attr(miri, ignore = "many bytes: Miri takes minutes")]
fn zero_means_the_hard_maximum() {
    let mut policy = HeadPolicy::default();
    policy.limits.fields = 0;
    policy.limits.field_size = 0;
    let mut lines = "A: b\r\n".repeat(5000);
    lines.push_str(&format!("B: {}\r\n", "x".repeat(100_000)));
    assert_eq!(whole(&policy, &get(&lines)).requests[0].fields.len(), 5002);
    let many = get(&"A: b\r\n".repeat(32_768));
    assert_eq!(whole(&policy, &many).refused.unwrap().0, 431);
}

#[test]
fn a_folded_field_is_bounded_as_one() {
    let mut policy = lenient(|leniency| leniency.obsolete_folding = true);
    policy.limits.field_size = 19;
    policy.limits.fields = 2;
    assert_eq!(accepted_with(&policy, &get("A: b\r\n 7890123456\r\n")).fields.len(), 2);
    assert_eq!(refused_with(&policy, &get("A: b\r\n 78901234567\r\n")).0, 431);
    assert_eq!(refused_with(&policy, b"GET / HTTP/1.1\r\nA: b\r\n 789012345678").0, 431);
}
