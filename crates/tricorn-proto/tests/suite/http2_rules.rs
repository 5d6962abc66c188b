//! What a peer that breaks a rule of RFC 9113 gets, and that it is the answer that the RFC names.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::*;
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{PREFACE, Scope, Settings, Violation};

/// Bytes after the exchange of settings, and what they break.
#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<(Vec<u8>, Violation)> {
    use Violation::*;
    let open = headers(1, &POST, false);
    let ended = get(1);
    let head = |extra: &[(&'static str, &'static str)]| headers(1, &[&GET[..], extra].concat(), true);
    let after = |opening: &[u8], frame: Vec<u8>| [opening, &frame].concat();
    vec![
        (frame(Kind::Data, 0, 1, &[0; 16_385]), FrameTooLarge),
        (frame(Kind::Ping, 0, 0, &[0; 7]), FrameLength),
        (frame(Kind::RstStream, 0, 1, &[0; 3]), FrameLength),
        (frame(Kind::WindowUpdate, 0, 0, &[0; 5]), FrameLength),
        (frame(Kind::Settings, 0, 0, &[0; 5]), FrameLength),
        (frame(Kind::Settings, ACK, 0, &[0; 6]), FrameLength),
        (frame(Kind::Goaway, 0, 0, &[0; 7]), FrameLength),
        (frame(Kind::Headers, PRIORITY | END_HEADERS, 1, &[0; 4]), FrameLength),
        (data(0, b"x", false), StreamZero),
        (headers(0, &GET, true), StreamZero),
        (rst_stream(0, 8), StreamZero),
        (frame(Kind::Settings, 0, 1, &[]), NotStreamZero),
        (frame(Kind::Ping, 0, 1, &[0; 8]), NotStreamZero),
        (frame(Kind::Goaway, 0, 1, &[0; 8]), NotStreamZero),
        (after(&open, frame(Kind::Data, PADDED, 1, &[5, 0, 0, 0, 0])), Padding),
        (after(&open, frame(Kind::Data, PADDED, 1, &[])), Padding),
        (frame(Kind::Headers, PADDED | END_HEADERS, 1, &[9, 0]), Padding),
        (get(2), EvenStream),
        (data(1, b"x", false), IdleStream),
        (rst_stream(1, 8), IdleStream),
        (window_update(1, 1), IdleStream),
        (after(&get(5), get(3)), StreamOrder),
        (after(&frame(Kind::Headers, 0, 1, &[]), get(1)), Interleaved),
        (after(&frame(Kind::Headers, 0, 1, &[]), frame(Kind::Continuation, END_HEADERS, 3, &[])), Interleaved),
        (frame(Kind::Continuation, END_HEADERS, 1, &[]), NothingToContinue),
        (frame(Kind::Headers, END_HEADERS, 1, &[0x80]), Compression),
        (frame(Kind::PushPromise, END_HEADERS, 1, &[0; 4]), PushPromise),
        (settings(&[(2, 2)]), SettingValue),
        (settings(&[(5, 16_383)]), SettingValue),
        (settings(&[(5, 1 << 24)]), SettingValue),
        (settings(&[(8, 2)]), SettingValue),
        (settings(&[(9, 1)]), SettingValue),
        (settings(&[(4, 1 << 31)]), SettingWindow),
        (window_update(0, 0), ConnectionIncrement),
        (window_update(0, u32::MAX >> 1), ConnectionWindow),
        (after(&[open.clone(), window_update(1, 1)].concat(), settings(&[(4, u32::MAX >> 1)])), ConnectionWindow),
        (frame(Kind::PriorityUpdate, 0, 0, &[0; 4]), PriorityTarget),
        (frame(Kind::PriorityUpdate, 0, 0, &[0; 3]), FrameLength),
        (after(&open, window_update(1, 0)), StreamIncrement),
        (after(&open, window_update(1, u32::MAX >> 1)), StreamWindow),
        (after(&ended, data(1, b"x", true)), StreamClosed),
        (after(&ended, headers(1, &[("a", "b")], true)), StreamClosed),
        (after(&[open.clone(), rst_stream(1, 8)].concat(), data(1, b"x", true)), StreamClosed),
        (after(&open, frame(Kind::Priority, 0, 1, &[0; 4])), PriorityLength),
        (after(&open, frame(Kind::Priority, 0, 1, &[0, 0, 0, 1, 0])), SelfDependency),
        (
            frame(Kind::Headers, PRIORITY | END_HEADERS, 1, &[&[0, 0, 0, 1, 0][..], &block(&GET)].concat()),
            SelfDependency,
        ),
        (after(&open, headers(1, &[("a", "b")], false)), TrailersOpen),
        (after(&open, headers(1, &[(":path", "/")], true)), PseudoTrailer),
        (after(&open, headers(1, &[("content-length", "1")], true)), TrailerField),
        (after(&open, headers(1, &[("A", "b")], true)), FieldName),
        (head(&[("Upper", "x")]), FieldName),
        (head(&[("sp ace", "x")]), FieldName),
        (head(&[("", "x")]), FieldName),
        (head(&[("a", "line\nbreak")]), FieldValue),
        (head(&[("a", "null\0")]), FieldValue),
        (head(&[("a", " blank")]), FieldValue),
        (head(&[("a", "blank\t")]), FieldValue),
        (head(&[("connection", "close")]), ConnectionField),
        (head(&[("transfer-encoding", "chunked")]), ConnectionField),
        (head(&[("upgrade", "h2c")]), ConnectionField),
        (head(&[("te", "gzip")]), TeField),
        (head(&[(":foo", "x")]), PseudoUnknown),
        (head(&[(":status", "200")]), PseudoUnknown),
        (head(&[("a", "b"), (":protocol", "x")]), PseudoOrder),
        (head(&[(":path", "/")]), PseudoTwice),
        (headers(1, &GET[1..], true), PseudoMissing),
        (headers(1, &[GET[0], GET[2]], true), PseudoMissing),
        (headers(1, &GET[..2], true), PseudoMissing),
        (headers(1, &[GET[0], GET[1], (":path", "")], true), Path),
        (headers(1, &[GET[0], GET[1], (":path", "http://a/")], true), Path),
        (headers(1, &[GET[0], GET[1], (":path", "*"), GET[3]], true), Path),
        (headers(1, &[GET[0], GET[1], (":path", "/a b"), GET[3]], true), Path),
        (headers(1, &[GET[0], (":scheme", "1"), GET[2]], true), SchemeName),
        (headers(1, &[GET[0], GET[1], GET[2], (":authority", "u@a")], true), Authority),
        (headers(1, &[GET[0], GET[1], GET[2], (":authority", "")], true), Authority),
        (head(&[("host", "b")]), HostMismatch),
        (headers(1, &[(":method", "CONNECT"), GET[1], GET[2], GET[3]], false), ConnectForm),
        (headers(1, &[(":method", "CONNECT")], false), ConnectForm),
        (head(&[("content-length", "1")]), ContentLength),
        (
            after(&headers(1, &[&POST[..], &[("content-length", "1")]].concat(), false), data(1, b"ab", false)),
            ContentLength,
        ),
        (
            after(&headers(1, &[&POST[..], &[("content-length", "2")]].concat(), false), data(1, b"a", true)),
            ContentLength,
        ),
    ]
}

#[test]
fn each_broken_rule_has_the_answer_of_its_row() {
    for (bytes, violation) in cases() {
        let mut server = Server::new();
        let events = server.receive(&bytes);
        let (expected, stream) = match violation.scope() {
            Scope::Connection => (Event::Failed(violation), 0),
            Scope::Stream => (Event::Violated { stream: 1, violation }, 1),
        };
        assert_eq!(events.last(), Some(&expected), "{violation:?}: {events:?}");
        let answer = (stream, violation.code().number());
        assert_eq!(errors(&server.frames()).last(), Some(&answer), "{violation:?}");
        let still = server.receive(&get(101));
        assert_eq!(still.len(), 1);
        assert_eq!(matches!(still[0], Event::Request { .. }), violation.scope() == Scope::Stream, "{violation:?}");
    }
}

#[test]
fn after_a_bad_preface_or_another_first_frame_nothing_is_read() {
    for (bytes, violation) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), Violation::Preface),
        (b"PRI * HTTP/2.1".to_vec(), Violation::Preface),
        ([&PREFACE[..], &get(1)].concat(), Violation::SettingsExpected),
        ([&PREFACE[..], &frame(Kind::Settings, ACK, 0, &[])].concat(), Violation::SettingsExpected),
    ] {
        let mut server = Server::raw(Settings::default());
        assert_eq!(server.receive(&bytes), [Event::Failed(violation)]);
        assert_eq!(errors(&server.frames()), [(0, violation.code().number())]);
    }
}

#[test]
fn a_stream_that_both_sides_have_ended_takes_no_frames() {
    for frame in [data(1, b"x", true), headers(1, &GET, true)] {
        let mut server = Server::new();
        server.receive(&get(1));
        server.answer(1, b"done");
        server.connection.release(1);
        assert_eq!(server.receive(&window_update(1, 1)), [], "late, but allowed");
        assert_eq!(server.receive(&rst_stream(1, 8)), [], "late, but allowed");
        assert_eq!(server.receive(&frame), [Event::Failed(Violation::AfterEnd)]);
    }
}

#[test]
fn heads_over_a_limit_are_answered_and_the_connection_goes_on() {
    let long = "x".repeat(9000);
    let path = format!("/{}", "x".repeat(5000));
    let many = vec![("a", "b"); 101];
    let crumbs = vec![("cookie", "b"); 101];
    let large = vec![("a", &long[..8000]); 9];
    for (extra, path, status) in [
        (&[("a", &*long)][..], "/", 431),
        (&many[..], "/", 431),
        (&crumbs[..], "/", 431),
        (&large[..], "/", 431),
        (&[], &*path, 414),
        (&[("content-length", "x")], "/", 400),
        (&[("expect", "200-ok")], "/", 417),
    ] {
        let mut server = Server::new();
        let fields = [&[GET[0], GET[1], (":path", path), GET[3]][..], extra].concat();
        let wire = block(&fields);
        let mut pieces = wire.chunks(16_384).peekable();
        let last = if wire.len() <= 16_384 { END_HEADERS } else { 0 };
        let mut bytes = frame(Kind::Headers, END_STREAM | last, 1, pieces.next().unwrap());
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() { END_HEADERS } else { 0 };
            bytes.extend(frame(Kind::Continuation, flags, 1, piece));
        }
        assert_eq!(server.receive(&bytes), [Event::Refused { stream: 1, status }]);
        server.answer(1, b"too large");
        assert_eq!(server.receive(&get(3)).len(), 1);
    }
}

#[test]
fn a_request_without_an_authority_is_refused_as_over_http_1() {
    assert_eq!(Server::new().receive(&headers(1, &GET[..3], true)), [Event::Refused { stream: 1, status: 400 }]);
    let mut server = Server::new();
    let events = server.receive(&headers(1, &[&GET[..3], &[("host", "a")]].concat(), true));
    assert!(matches!(events[..], [Event::Request { .. }]));
}
