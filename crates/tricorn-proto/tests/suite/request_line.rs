//! RFC 9112 section 3.
use crate::support;
use support::*;
use tricorn_proto::message::{Method, Version};

fn line(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

#[test]
fn a_request_line_has_three_parts() {
    let request = accepted(&line("GET /a/b?x=1&y=%20 HTTP/1.1"));
    assert_eq!(request.method, "GET");
    assert_eq!(request.kind, Method::Get);
    assert_eq!(request.target, "/a/b?x=1&y=%20");
    assert_eq!((request.path.as_str(), request.query.as_str()), ("/a/b", "x=1&y=%20"));
    assert_eq!((request.protocol.as_str(), request.version), ("HTTP/1.1", Version::Http11));
    assert!(request.keep_alive);
}

#[test]
fn other_numbers_of_parts_are_refused() {
    for text in ["GET", "GET /", "GET  / HTTP/1.1", "GET /  HTTP/1.1", " GET / HTTP/1.1", "", " ", "  "] {
        assert_eq!(refused(&line(text)).0, 400, "{text:?}");
    }
    let message = "Invalid Request Line 'Invalid HTTP request line: 'GET''";
    assert_eq!(refused(&line("GET")), (400, message.into()));
    // The rest belongs to the third part, which is then no version.
    assert_eq!(refused(&line("GET / HTTP/1.1 ")).0, 400);
    assert_eq!(refused(&line("GET /\tHTTP/1.1")).0, 400);
}

#[test]
fn methods_are_tokens_and_usual() {
    for (method, kind) in [
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Other),
        ("PROPFIND", Method::Other),
        ("M-SEARCH", Method::Other),
    ] {
        assert_eq!(accepted(&line(&format!("{method} / HTTP/1.1"))).kind, kind);
    }
    let message = "Invalid Method 'Invalid HTTP method: 'GeT''";
    assert_eq!(refused(&line("GeT / HTTP/1.1")), (400, message.into()));
    for method in ["GE", "G#T", "ABCDEFGHIJKLMNOPQRSTU", "G(T", "GE\x00T", "G\u{e9}T", "\"GET\""] {
        let (status, text) = refused(&line(&format!("{method} / HTTP/1.1")));
        assert_eq!(status, 400);
        assert!(text.starts_with("Invalid Method"), "{text}");
    }
}

#[test]
fn of_a_broken_method_and_a_broken_target_the_method_is_named() {
    let (_, text) = refused(&line("G(T /\u{1} HTTP/1.1"));
    assert!(text.starts_with("Invalid Method"), "{text}");
    let (_, text) = refused(&line("GET /\u{1} HTTP/1.1"));
    assert!(text.starts_with("Invalid Request Line"), "{text}");
}

#[test]
fn unconventional_methods_may_be_permitted_but_must_be_tokens() {
    let policy = lenient(|leniency| leniency.unconventional_method = true);
    for method in ["get", "G", "G#T", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"] {
        let request = accepted_with(&policy, &line(&format!("{method} / HTTP/1.1")));
        assert_eq!((request.method.as_str(), request.kind), (method, Method::Other));
    }
    assert_eq!(refused_with(&policy, &line("G@T / HTTP/1.1")).0, 400);
}

#[test]
fn a_method_is_upper_cased_only_if_the_operator_says_so() {
    let policy = lenient(|leniency| {
        leniency.unconventional_method = true;
        leniency.casefold_method = true;
    });
    for (text, method, kind) in
        [("get", "GET", Method::Get), ("hEaD", "HEAD", Method::Head), ("purge", "PURGE", Method::Other)]
    {
        let request = accepted_with(&policy, &line(&format!("{text} / HTTP/1.1")));
        assert_eq!((request.method.as_str(), request.kind), (method, kind));
    }
}

#[test]
fn the_fragment_belongs_to_neither_path_nor_query() {
    for (target, path, query) in [
        ("/a#b", "/a", ""),
        ("/a?b#c", "/a", "b"),
        ("/a#b?c", "/a", ""),
        ("/a?b?c", "/a", "b?c"),
        ("/a?", "/a", ""),
        ("//a/b", "//a/b", ""),
        ("/a/../b", "/a/../b", ""),
    ] {
        let request = accepted(&line(&format!("GET {target} HTTP/1.1")));
        assert_eq!(request.target, target);
        assert_eq!((request.path.as_str(), request.query.as_str()), (path, query), "{target}");
    }
}

#[test]
fn the_path_of_an_absolute_form_is_that_of_its_uri() {
    for (target, path, query) in [
        ("http://a/b?c", "/b", "c"),
        ("http://a", "/", ""),
        ("http://a?c#d", "/", "c"),
        ("http://a#d/e", "/", ""),
        ("HTTPS://A:443/b", "/b", ""),
        ("http://a/b://c", "/b://c", ""),
    ] {
        let request = accepted(&line(&format!("GET {target} HTTP/1.1")));
        assert_eq!((request.path.as_str(), request.query.as_str()), (path, query), "{target}");
        // The Host field is what the client sent.
        assert_eq!(request.fields[0], ("Host".into(), "a".into()));
    }
}

#[test]
fn an_absolute_form_must_name_the_host_that_the_field_names() {
    let named = |target: &str, host: &str| format!("GET {target} HTTP/1.1\r\n{host}\r\n\r\n").into_bytes();
    for (target, host) in [
        ("http://good.example/", "Host: GOOD.example"),
        ("http://good.example:80/", "Host: good.example"),
        ("http://good.example/", "X: y\r\nHost: good.example:80"),
        ("http://[::1]:8000/", "Host: [::1]:8000"),
    ] {
        assert_eq!(accepted(&named(target, host)).path, "/", "{target} {host}");
    }
    for (target, host) in [
        ("http://good.example/", "Host: evil.example"),
        ("http://good.example", "Host: evil.example"),
        ("http://good.example?/evil.example", "Host: evil.example"),
        ("http://good.example/", "Host:"),
        ("http://good.example/", "Host: good.example:8080"),
        ("https://good.example/", "Host: good.example:80"),
    ] {
        let (status, message) = refused(&named(target, host));
        assert_eq!(status, 400, "{target} {host}");
        assert!(message.starts_with("Host does not match the request target"), "{message}");
    }
    // An old client may send no Host at all.
    assert_eq!(accepted(b"GET http://good.example HTTP/1.0\r\n\r\n").path, "/");
    let message = "Host does not match the request target (RFC 9112 section 3.2.2): 'evil.example'";
    let old = b"GET http://good.example/ HTTP/1.0\r\nHost: evil.example\r\n\r\n";
    assert_eq!(refused(old), (400, message.into()));
}

#[test]
fn targets_of_no_form_are_refused() {
    for target in [
        "a",
        "a/b",
        "a:80",
        "*",
        "?a",
        "#a",
        "://a/b",
        "http:/a",
        "http:a",
        "1http://a/",
        "ftp://a/",
        "httpx://a/",
        "ws://a/",
        "http:///b",
        "http://u@a/",
        "http://a b/",
        "http://:80/",
        "http://a:b/",
        "/a\x00",
        "/a\x7f",
        "/\u{e9}",
        "/a\x01b",
        "http://a?://b/@c d",
    ] {
        assert_eq!(refused(&line(&format!("GET {target} HTTP/1.1"))).0, 400, "{target:?}");
    }
}

#[test]
fn asterisk_form_is_for_options_and_authority_form_for_connect() {
    assert_eq!(accepted(&line("OPTIONS * HTTP/1.1")).path, "*");
    let request = accepted(&line("CONNECT a:443 HTTP/1.1"));
    assert_eq!((request.kind, request.path.as_str()), (Method::Connect, ""));
    assert!(!request.keep_alive, "after CONNECT no request is served on the connection");
    assert!(!accepted(&line("CONNECT [::1]:443 HTTP/1.1")).keep_alive);
    for bad in ["OPTIONS *a", "GET *", "CONNECT a", "CONNECT /", "CONNECT :443", "CONNECT a:", "GET a:443"] {
        assert_eq!(refused(&line(&format!("{bad} HTTP/1.1"))).0, 400, "{bad}");
    }
}

#[test]
fn versions_are_1_x() {
    assert_eq!(accepted(&line("GET / HTTP/1.0")).version, Version::Http10);
    let newer = accepted(&line("GET / HTTP/1.9"));
    assert_eq!((newer.version, newer.protocol.as_str()), (Version::Http11, "HTTP/1.9"));
    for (version, shown) in [
        ("HTTP/2.0", "(2, 0)"),
        ("HTTP/0.9", "(0, 9)"),
        ("http/1.1", "'http/1.1'"),
        ("HTTP/1.10", "'HTTP/1.10'"),
        ("HTTP/11", "'HTTP/11'"),
        ("HTTP/1.1 x", "'HTTP/1.1 x'"),
        ("HTTP/1.\u{b2}", "'HTTP/1.\u{c2}\u{b2}'"),
    ] {
        let message = format!("Invalid HTTP Version 'Invalid HTTP Version: {shown}'");
        assert_eq!(refused(&line(&format!("GET / {version}"))), (400, message));
    }
    let policy = lenient(|leniency| leniency.unconventional_version = true);
    assert_eq!(accepted_with(&policy, &line("GET / HTTP/2.0")).version, Version::Http11);
    assert_eq!(accepted_with(&policy, &line("GET / HTTP/0.9")).version, Version::Http10);
    assert_eq!(refused_with(&policy, &line("GET / HTTP/x.y")).0, 400);
}

#[test]
fn one_empty_line_may_stand_before_it_section_2_2() {
    let good = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(accepted(good).path, "/");
    for bad in [
        &b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        assert_eq!(refused(bad).0, 400);
    }
    let twice = [&good[..], good].concat();
    assert_eq!(read(&twice).requests.len(), 2);
}

#[test]
fn a_line_over_the_limit_is_414_before_its_end_has_come() {
    let mut policy = tricorn_proto::http1::HeadPolicy::default();
    policy.limits.request_line = 20;
    assert_eq!(accepted_with(&policy, &line("GET /aaaaaa HTTP/1.1")).path, "/aaaaaa");
    assert_eq!(refused_with(&policy, &line("GET /aaaaaaa HTTP/1.1")).0, 414);
    assert_eq!(refused_with(&policy, b"GET /aaaaaaaaaaaaaaaa").0, 414);
    let long = format!("GET /{} HTTP/1.1", "a".repeat(5000));
    let refusal = {
        let mut receiver = tricorn_proto::http1::Receiver::default();
        let mut head = tricorn_proto::message::RequestHead::default();
        let policy = tricorn_proto::http1::HeadPolicy::default();
        receiver.advance(&mut line(&long), &policy, false, &mut head).unwrap_err()
    };
    assert_eq!(refusal.message(), "Request Line is too large (5014 > 4094)");
    policy.limits.request_line = 0;
    assert_eq!(accepted_with(&policy, &line(&long)).path.len(), 5001);
}
