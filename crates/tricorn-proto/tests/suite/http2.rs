//! RFC 9113: exchanges, heads, windows, and how a connection leaves.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::*;
use tricorn_proto::http1::Limits;
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{Connection, EndStream, ErrorCode, PREFACE, Settings, Unsendable, Violation};
use tricorn_proto::message::FieldList;
use tricorn_proto::response::{Framing, Interim};

#[test]
fn settings_come_first_and_are_acknowledged() {
    let mut server = Server::raw(Settings::default());
    let kinds: Vec<Kind> = server.frames().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [Kind::Settings, Kind::WindowUpdate]);
    assert_eq!(server.receive(&[&PREFACE[..], &settings(&[])].concat()), []);
    let frames = server.frames();
    assert_eq!((frames[0].kind, frames[0].flags), (Kind::Settings, ACK));
}

#[test]
fn a_request_becomes_the_head_that_http_1_yields() {
    let mut server = Server::new();
    let fields = [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "example.com"),
        (":path", "/a%20b?c=d"),
        ("cookie", "a=b"),
        ("accept", "*/*"),
        ("x_under", "score"),
        ("cookie", "c=d"),
        ("te", "trailers"),
    ];
    let events = server.receive(&headers(1, &fields, true));
    let [Event::Request { stream: 1, end: true, head }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*head.method, &*head.target, &*head.path, &*head.query), ("GET", "/a%20b?c=d", "/a%20b", "c=d"));
    assert_eq!(head.protocol, "HTTP/2.0");
    let expected = [("host", "example.com"), ("cookie", "a=b; c=d"), ("accept", "*/*"), ("te", "trailers")];
    assert_eq!(head.fields, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    assert_eq!(head.rest, "Get None Http true false");
}

#[test]
fn only_a_trusted_peer_tells_the_scheme() {
    for (trusted, scheme) in [(false, "Http"), (true, "Https")] {
        let mut server = Server::new();
        server.trusted = trusted;
        let mut fields = GET;
        fields[1].1 = "https";
        let events = server.receive(&headers(1, &fields, true));
        let [Event::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(head.rest, format!("Get None {scheme} true false"));
    }
}

#[test]
fn a_body_is_taken_piece_by_piece_and_trailers_follow() {
    let mut server = Server::new();
    let fields = [&POST[..], &[("content-length", "10"), ("expect", "100-continue")]].concat();
    let events = server.receive(&headers(1, &fields, false));
    let [Event::Request { end: false, head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(head.rest, "Other Length(10) Http true true");
    let padded = frame(Kind::Data, PADDED, 1, b"\x03helloxyz");
    let (first, second) = padded.split_at(12);
    let body = |bytes: &[u8], end| Event::Body { stream: 1, bytes: bytes.to_vec(), end };
    assert_eq!(server.receive(first), [body(b"he", false)]);
    assert_eq!(server.receive(second), [body(b"llo", false)]);
    assert_eq!(server.receive(&data(1, b"world", false)), [body(b"world", false)]);
    let trailers = Event::Trailers { stream: 1, fields: vec![("x-sum".to_string(), "1".to_string())] };
    assert_eq!(server.receive(&headers(1, &[("x-sum", "1")], true)), [trailers]);
    assert_eq!(errors(&server.frames()), []);
}

#[test]
fn a_body_without_a_length_lasts_until_the_end_of_its_stream() {
    for (end, rest) in [(false, "Other Chunked Http true false"), (true, "Other None Http true false")] {
        let mut server = Server::new();
        let events = server.receive(&headers(1, &POST, end));
        let [Event::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(head.rest, rest);
    }
}

#[test]
fn the_rest_of_a_frame_is_dropped_once_its_stream_was_reset() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    let hello = data(1, b"hello", true);
    let (first, second) = hello.split_at(hello.len() - 3);
    let body = Event::Body { stream: 1, bytes: b"he".to_vec(), end: false };
    assert_eq!(server.receive(first), [body]);
    server.connection.reset(1, ErrorCode::Cancel);
    assert_eq!(server.receive(second), []);
}

#[test]
fn trailers_have_the_limit_of_fields() {
    let names: Vec<String> = (0..=Limits::default().fields).map(|number| format!("x-{number}")).collect();
    let fields: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "1")).collect();
    for (count, is_accepted) in [(fields.len() - 1, true), (fields.len(), false)] {
        let mut server = Server::new();
        server.receive(&headers(1, &POST, false));
        let events = server.receive(&headers(1, &fields[..count], true));
        match &events[..] {
            [Event::Trailers { fields, .. }] if is_accepted => assert_eq!(fields.len(), count),
            [Event::Violated { violation: Violation::TrailersTooLarge, .. }] if !is_accepted => {}
            _ => panic!("{count}: {events:?}"),
        }
    }
}

/// Section 5.1.2: streams count that are open or half-closed. A client that has read a response begins its next request, whether
/// the call is over or not.
#[test]
fn a_stream_that_is_complete_is_no_concurrent_one() {
    let mut server = Server::with(Settings { max_concurrent_streams: 2, ..Settings::default() });
    let asks = |server: &mut Server, stream: u32| match server.receive(&get(stream)).as_slice() {
        [Event::Request { .. }] => true,
        [Event::Violated { violation: Violation::TooManyStreams, .. }] => false,
        other => panic!("{other:?}"),
    };
    assert!(asks(&mut server, 1) && asks(&mut server, 3) && !asks(&mut server, 5));
    server.answer(1, b"done");
    assert!(asks(&mut server, 7) && !asks(&mut server, 9));
    server.answer(3, b"done");
    assert!(asks(&mut server, 11));
    server.answer(7, b"done");
    assert!(!asks(&mut server, 13), "four calls run on");
    server.connection.release(3);
    assert!(asks(&mut server, 15) && !asks(&mut server, 17));
}

#[test]
fn a_response_has_interim_heads_a_head_content_and_trailers() {
    let mut server = Server::new();
    server.receive(&get(1));
    let fields = |pairs: &[(&[u8], &[u8])]| FieldList::from_iter(pairs.iter().copied());
    let interim = Interim { status: 103, fields: fields(&[(b"Link", b"</a>; rel=preload")]) };
    server.connection.send_interim(1, &interim).unwrap();
    let list = fields(&[(b"Content-Type", b"text/plain"), (b"Upgrade", b"websocket")]);
    server.connection.send_head(1, &response(200, Framing::Delimited, &list)).unwrap();
    assert_eq!(server.connection.send_data(1, b"hello", EndStream::No), Ok(5));
    server.connection.send_trailers(1, &fields(&[(b"grpc-status", b"0")])).unwrap();
    let frames = server.frames();
    let flags: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    let head = (Kind::Headers, END_HEADERS);
    assert_eq!(flags, [head, head, (Kind::Data, 0), (Kind::Headers, END_HEADERS | END_STREAM)]);
    let decoded: Vec<_> = [0, 1, 3].iter().map(|&at| server.decode(&frames[at])).collect();
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    };
    assert_eq!(decoded[0], pairs(&[(":status", "103"), ("link", "</a>; rel=preload")]));
    assert_eq!(decoded[1], pairs(&[(":status", "200"), ("content-type", "text/plain")]));
    assert_eq!(decoded[2], pairs(&[("grpc-status", "0")]));
    assert_eq!(server.connection.send_data(1, b"x", EndStream::No), Err(Unsendable::Closed));
    server.connection.release(1);
    assert_eq!((server.frames(), server.connection.streams()), (vec![], 0));
}

#[test]
fn a_head_larger_than_a_frame_continues() {
    let mut server = Server::new();
    server.receive(&get(1));
    let value = "x".repeat(40_000);
    let list = FieldList::from_iter([(&b"x-large"[..], value.as_bytes())]);
    server.connection.send_head(1, &response(200, Framing::None, &list)).unwrap();
    let frames = server.frames();
    let kinds: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    let more = (Kind::Continuation, 0);
    assert_eq!(kinds, [(Kind::Headers, END_STREAM), more, (Kind::Continuation, END_HEADERS)]);
}

#[test]
fn content_waits_for_both_windows() {
    let mut server = Server::new();
    server.receive(&[get(1), get(3)].concat());
    server.head(1, Framing::Delimited);
    server.head(3, Framing::Delimited);
    server.connection.offer(1);
    let content = vec![b'x'; 100_000];
    let mut sent = 0;
    while server.connection.next_to_send() == Some(1) {
        sent += server.connection.send_data(1, &content[sent..], EndStream::Yes).unwrap();
        server.frames();
    }
    assert_eq!(sent, 65_535);
    server.connection.offer(3);
    assert_eq!(server.connection.next_to_send(), None, "the window of the connection is empty");
    assert_eq!(server.receive(&window_update(0, 10)), [Event::Room { stream: 0 }]);
    assert_eq!(server.connection.next_to_send(), Some(3), "the window of stream 1 is empty");
    assert_eq!(server.connection.send_data(3, b"0123456789", EndStream::Yes), Ok(10));
    server.receive(&[window_update(0, 100_000), window_update(1, 100_000)].concat());
    while sent < content.len() {
        sent += server.connection.send_data(1, &content[sent..], EndStream::Yes).unwrap();
    }
    assert!(server.frames().last().unwrap().flags == END_STREAM);
}

#[test]
fn the_initial_window_changes_all_windows_even_below_zero() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.head(1, Framing::Delimited);
    assert_eq!(server.connection.send_data(1, &[0; 100], EndStream::No), Ok(100));
    server.receive(&settings(&[(4, 50)]));
    assert_eq!(server.connection.send_data(1, b"x", EndStream::No), Ok(0));
    server.receive(&window_update(1, 50));
    assert_eq!(server.connection.send_data(1, b"x", EndStream::No), Ok(0));
    server.receive(&window_update(1, 1));
    assert_eq!(server.connection.send_data(1, b"xy", EndStream::No), Ok(1));
}

#[test]
fn an_upload_that_is_read_gets_a_larger_window() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    let (mut window, mut largest) = (65_535i64, 0);
    for _ in 0..1000 {
        let length = window.min(16_384);
        server.receive(&data(1, &vec![0; length as usize], false));
        window -= length;
        server.connection.took(1, length as usize);
        let updates = server.frames().into_iter().filter(|frame| frame.stream == 1);
        window += updates.map(|frame| i64::from(u32::from_be_bytes(frame.payload.try_into().unwrap()))).sum::<i64>();
        largest = largest.max(window);
    }
    assert!((900_000..=1 << 20).contains(&largest), "{largest}");
}

#[test]
fn the_urgent_are_sent_first() {
    let mut server = Server::new();
    let urgent = [&GET[..], &[("priority", "u=0")]].concat();
    let update = frame(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x05u=1");
    server.receive(&[get(1), headers(3, &urgent, true), update, get(5)].concat());
    for stream in [1, 3, 5] {
        server.head(stream, Framing::Delimited);
        server.connection.offer(stream);
    }
    let mut order = Vec::new();
    while let Some(stream) = server.connection.next_to_send() {
        server.connection.send_data(stream, b"x", EndStream::Yes).unwrap();
        order.push(stream);
    }
    assert_eq!(order, [3, 5, 1]);
}

#[test]
fn a_stream_that_has_nothing_to_send_loses_its_turn() {
    let mut server = Server::new();
    server.receive(&[get(1), get(3)].concat());
    for stream in [1, 3] {
        server.head(stream, Framing::Delimited);
        server.connection.offer(stream);
    }
    assert_eq!(server.connection.next_to_send(), Some(1));
    assert_eq!(server.connection.send_data(1, b"", EndStream::No), Ok(0));
    assert_eq!(server.connection.next_to_send(), Some(3));
}

#[test]
fn extended_connect_names_a_protocol_where_it_is_allowed() {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "http"),
        (":path", "/chat?a"),
        (":authority", "a"),
        ("sec-websocket-version", "13"),
    ];
    let mut server = Server::with(Settings { connect_protocol: true, ..Settings::default() });
    let events = server.receive(&headers(1, &fields, false));
    let [Event::Request { end: false, head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*head.method, &*head.path, &*head.query), ("CONNECT", "/chat", "a"));
    server.connection.send_head(1, &response(200, Framing::UntilClose, &FieldList::new())).unwrap();
    assert_eq!(server.receive(&data(1, b"frame", false)).len(), 1);
    assert_eq!(server.connection.send_data(1, b"frame", EndStream::No), Ok(5));
    let events = Server::new().receive(&headers(1, &fields, false));
    assert_eq!(events, [Event::Violated { stream: 1, violation: Violation::ConnectForm }]);
}

#[test]
fn a_drain_serves_what_is_under_way() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.connection.drain(1000);
    let frames = server.frames();
    assert_eq!((frames[0].kind, &frames[0].payload[..4]), (Kind::Goaway, &[0x7f, 0xff, 0xff, 0xff][..]));
    assert_eq!(server.receive(&get(3)).len(), 1, "sent before the client knew");
    server.receive(&frame(Kind::Ping, ACK, 0, &frames[1].payload));
    assert_eq!(server.frames()[0].payload[..4], [0, 0, 0, 3]);
    assert_eq!(server.receive(&[get(5), data(5, b"x", true)].concat()), [], "begun too late");
    for stream in [1, 3] {
        assert!(!server.connection.is_finished());
        server.answer(stream, b"ok");
        server.connection.release(stream);
    }
    assert!(server.connection.is_finished());
}

#[test]
fn a_client_that_ignores_the_ping_has_until_the_last_call() {
    let mut server = Server::new();
    server.connection.drain(1000);
    assert_eq!(server.connection.deadline(), Some(2000));
    server.connection.tick(1999).unwrap();
    assert!(!server.connection.is_finished());
    server.connection.tick(2000).unwrap();
    assert!(server.connection.is_finished() && server.connection.deadline().is_none());
}

#[test]
fn preface_settings_and_header_blocks_must_come_in_time() {
    let mut connection = Connection::new(Settings::default(), 500);
    assert_eq!(connection.deadline(), Some(10_500));
    assert_eq!((connection.tick(10_499), connection.tick(10_500)), (Ok(()), Err(Violation::Preface)));
    let mut server = Server::raw(Settings::default());
    server.receive(&[&PREFACE[..], &settings(&[])].concat());
    assert_eq!(server.connection.tick(10_000), Err(Violation::SettingsTimeout));
    let mut server = Server::new();
    assert_eq!(server.connection.deadline(), None);
    server.now = 7;
    server.receive(&frame(Kind::Headers, 0, 1, &block(&GET)));
    assert_eq!(server.connection.tick(10_007), Err(Violation::HeaderTimeout));
}

#[test]
fn what_is_missing_at_the_end_of_a_call_is_told() {
    let mut server = Server::new();
    server.receive(&[headers(1, &POST, false), get(3)].concat());
    server.answer(1, b"not read");
    server.frames();
    server.connection.release(1);
    server.connection.release(3);
    let codes = [ErrorCode::NoError, ErrorCode::InternalError].map(number);
    assert_eq!(errors(&server.frames()), [(1, codes[0]), (3, codes[1])]);
}

#[test]
fn however_the_bytes_are_cut_they_mean_the_same() {
    let fields = [&POST[..], &[("content-length", "300"), ("cookie", "a=b"), ("cookie", "c=d")]].concat();
    let wire = block(&fields);
    let stream = [
        &PREFACE[..],
        &settings(&[(4, 1000), (1, 100)]),
        &frame(Kind::Headers, 0, 1, &wire[..20]),
        &frame(Kind::Continuation, END_HEADERS, 1, &wire[20..]),
        &get(3),
        &frame(Kind::Data, PADDED, 1, &[&[9][..], &[b'a'; 200], &[0; 9]].concat()),
        &window_update(1, 5),
        &data(1, &[b'b'; 100], false),
        &headers(1, &[("x", "y")], true),
        &rst_stream(3, 8),
        &data(3, b"late", true),
    ]
    .concat();
    let whole = Server::raw(Settings::default()).receive(&stream);
    assert_eq!(whole.len(), 8, "{whole:?}");
    for size in 1..40 {
        let mut server = Server::raw(Settings::default());
        let mut events: Vec<Event> = Vec::new();
        for piece in stream.chunks(size) {
            for event in server.receive(piece) {
                match (events.last_mut(), event) {
                    (Some(Event::Body { bytes, end, .. }), Event::Body { bytes: more, end: last, .. }) => {
                        bytes.extend(more);
                        *end |= last;
                    }
                    (_, event) => events.push(event),
                }
            }
        }
        assert_eq!(events, whole, "pieces of {size}");
    }
}
