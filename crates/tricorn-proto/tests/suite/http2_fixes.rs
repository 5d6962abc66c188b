//! The faults that the h2 crate has fixed in 0.3.17 to 0.4.20, each as a case. Those of its client, of its futures and of
//! server push have no counterpart here; floods are in `http2_attacks`, the encoder's table in `hpack::encoder`.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::*;
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{EndStream, ErrorCode, PREFACE, Settings, Unsendable, Violation};
use tricorn_proto::message::FieldList;
use tricorn_proto::response::Framing;

/// Uploads 60,000 bytes through a connection in each of a hundred rounds: its window, as the client counts it, must last.
fn leaks_no_window(mut each: impl FnMut(&mut Server, u32)) {
    let rate = tricorn_proto::http2::Rate { burst: 10_000, per_second: 0 };
    let mut server = Server::with(Settings { resets: rate, ..Settings::default() });
    let mut window = 1i64 << 20;
    for round in 0..100 {
        let stream = round * 2 + 1;
        each(&mut server, stream);
        server.connection.release(stream);
        for frame in server.frames() {
            assert_ne!(frame.kind, Kind::Goaway, "round {round}: {:?}", text(&frame.payload));
            if frame.kind == Kind::WindowUpdate && frame.stream == 0 {
                window += i64::from(u32::from_be_bytes(frame.payload.try_into().unwrap()));
            }
        }
        window -= 60_000;
        assert!(window > 0, "round {round}: the window leaks");
    }
}

/// 60,000 bytes of DATA, padding included.
fn upload(stream: u32) -> Vec<u8> {
    let padded = frame(Kind::Data, PADDED, stream, &[&[200][..], &[b'x'; 14_599], &[0; 200]].concat());
    [padded.repeat(4), data(stream, &[b'x'; 800], false)].concat()
}

#[test]
fn v0_3_19_streams_that_a_shutdown_has_met_are_counted_until_they_are_over() {
    let mut server = Server::new();
    server.receive(&[get(1), get(3)].concat());
    server.connection.drain(0);
    server.connection.tick(1000).unwrap();
    server.receive(&rst_stream(1, 8));
    assert_eq!(server.connection.streams(), 2);
    server.connection.release(1);
    assert!(!server.connection.is_finished());
    server.connection.release(3);
    assert!(server.connection.is_finished());
}

#[test]
fn v0_3_20_a_request_with_a_status_is_malformed() {
    for status in ["100", "199", "200"] {
        let events = Server::new().receive(&headers(1, &[&GET[..], &[(":status", status)]].concat(), true));
        assert_eq!(events, [Event::Violated { stream: 1, violation: Violation::PseudoUnknown }]);
    }
}

#[test]
fn v0_3_20_windows_below_zero_do_not_overflow() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.head(1, Framing::Delimited);
    for _ in 0..3 {
        server.connection.send_data(1, &[0; 16_384], EndStream::No).unwrap();
    }
    for size in [0, (1 << 31) - 1 - 65_535, 0, 1, 0] {
        server.receive(&settings(&[(4, size)]));
    }
    assert_eq!(server.connection.send_data(1, b"x", EndStream::No), Ok(0));
    let events = server.receive(&window_update(1, u32::MAX >> 1));
    assert_eq!(events, [Event::Room { stream: 1 }], "what was sent leaves room for this");
}

#[test]
fn v0_3_21_and_v0_4_16_content_that_came_before_a_reset_is_delivered() {
    let mut server = Server::new();
    let events = server.receive(&[headers(1, &POST, false), data(1, b"all", true), rst_stream(1, 8)].concat());
    let body = Event::Body { stream: 1, bytes: b"all".to_vec(), end: true };
    assert_eq!(events[1..], [body, Event::Reset { stream: 1, code: 8 }]);
}

#[test]
fn v0_4_1_and_v0_4_13_a_stream_without_a_window_holds_none_of_the_connection() {
    let mut server = Server::new();
    server.receive(&settings(&[(4, 0)]));
    server.receive(&[get(1), get(3)].concat());
    for stream in [1, 3] {
        server.head(stream, Framing::Delimited);
        server.connection.offer(stream);
    }
    assert_eq!(server.connection.next_to_send(), None, "no stream has a window (0.4.15: no capacity of 0)");
    server.receive(&window_update(3, 70_000));
    assert_eq!(server.connection.next_to_send(), Some(3));
    let mut sent = 0;
    while server.connection.next_to_send() == Some(3) {
        sent += server.connection.send_data(3, &[0; 16_384], EndStream::No).unwrap();
        server.connection.offer(3);
        server.frames();
    }
    assert_eq!(sent, 65_535);
}

#[test]
fn v0_4_3_a_smaller_window_holds_from_its_acknowledgement_on() {
    let small = Settings { initial_window: 100, max_window: 100, ..Settings::default() };
    let mut server = Server::raw(small);
    server.receive(&[&PREFACE[..], &settings(&[])].concat());
    let request = |stream| [headers(stream, &POST, false), data(stream, &[0; 1000], true)].concat();
    assert_eq!(server.receive(&request(1)).len(), 2, "the default still holds");
    server.receive(&frame(Kind::Settings, ACK, 0, &[]));
    let events = server.receive(&request(3));
    assert_eq!(events.last(), Some(&Event::Violated { stream: 3, violation: Violation::StreamFlow }));
}

#[test]
fn v0_4_5_a_shutdown_without_streams_ends_by_itself() {
    let mut server = Server::new();
    server.connection.drain(0);
    let ping = server.frames().remove(1);
    server.receive(&frame(Kind::Ping, ACK, 0, &ping.payload));
    assert!(server.connection.is_finished());
}

#[test]
fn v0_4_5_connect_and_options_have_their_own_forms() {
    let mut server = Server::new();
    let events = server.receive(&headers(1, &[(":method", "CONNECT"), (":authority", "a:443")], false));
    let [Event::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*head.method, &*head.target, &*head.path), ("CONNECT", "a:443", ""));
    let events = server.receive(&headers(3, &[(":method", "OPTIONS"), GET[1], (":path", "*"), GET[3]], true));
    let [Event::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&*head.target, &*head.path), ("*", "*"));
}

#[test]
fn v0_4_6_a_head_that_is_too_large_is_no_protocol_error() {
    let long = "x".repeat(9000);
    let events = Server::new().receive(&headers(1, &[&GET[..], &[("a", &long)]].concat(), true));
    assert_eq!(events, [Event::Refused { stream: 1, status: 431 }]);
}

#[test]
fn v0_4_7_a_length_without_content_is_malformed() {
    let with = |length| headers(1, &[&POST[..], &[("content-length", length)]].concat(), true);
    let malformed = Event::Violated { stream: 1, violation: Violation::ContentLength };
    assert_eq!(Server::new().receive(&with("3")), [malformed]);
    assert!(matches!(Server::new().receive(&with("0"))[..], [Event::Request { .. }]));
}

#[test]
fn v0_4_7_and_v0_4_15_a_reset_by_the_server_is_told_to_its_caller() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    let events = server.receive(&window_update(1, 0));
    assert_eq!(events, [Event::Violated { stream: 1, violation: Violation::StreamIncrement }]);
    assert_eq!(
        server.connection.send_head(1, &response(200, Framing::None, &FieldList::new())),
        Err(Unsendable::Closed)
    );
}

#[test]
fn v0_4_8_windows_of_streams_that_have_sent_all_may_shrink() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    server.answer(1, &[0; 10_000]);
    assert_eq!(server.receive(&settings(&[(4, 0)])), []);
    assert_eq!(server.receive(&settings(&[(4, 65_535)])), [Event::Room { stream: 0 }]);
}

#[test]
fn v0_4_8_and_v0_4_14_what_a_closed_stream_has_not_sent_stays_with_the_connection() {
    let mut server = Server::new();
    server.receive(&[get(1), get(3)].concat());
    server.head(1, Framing::Delimited);
    server.connection.offer(1);
    server.receive(&rst_stream(1, 8));
    assert_eq!(server.connection.next_to_send(), None, "woken by its reset, with nothing to send");
    server.head(3, Framing::Delimited);
    let mut sent = 0;
    while sent < 65_535 {
        let length = server.connection.send_data(3, &vec![0; 65_535 - sent], EndStream::Yes).unwrap();
        assert!(length > 0, "{sent}");
        sent += length;
        server.frames();
    }
}

#[test]
fn v0_4_10_a_reset_is_no_end_of_a_request() {
    let mut server = Server::new();
    let events = server.receive(&[headers(1, &POST, false), data(1, b"half", false), rst_stream(1, 8)].concat());
    assert_eq!(events[1], Event::Body { stream: 1, bytes: b"half".to_vec(), end: false });
    assert_eq!(events[2..], [Event::Reset { stream: 1, code: 8 }]);
}

#[test]
fn v0_4_12_a_hundred_reset_streams_are_remembered() {
    let mut server = Server::new();
    for stream in (1..=221).step_by(2) {
        server.receive(&headers(stream, &POST, false));
        server.connection.reset(stream, ErrorCode::Cancel);
        server.connection.release(stream);
    }
    assert_eq!(server.receive(&data(23, &[0; 100], true)), [], "it was under way");
    assert_eq!(server.receive(&data(21, &[0; 100], true)), [Event::Failed(Violation::AfterEnd)]);
}

#[test]
fn v0_4_13_padding_is_given_back_at_once() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    let padded = frame(Kind::Data, PADDED, 1, &[&[255][..], &[b'x'; 64], &[0; 255]].concat());
    for _ in 0..10_000 {
        assert_eq!(server.receive(&padded).len(), 1);
        server.connection.took(1, 64);
        server.frames();
    }
}

#[test]
fn v0_4_14_reset_streams_leak_no_window() {
    leaks_no_window(|server, stream| {
        server.receive(&headers(stream, &POST, false));
        server.connection.reset(stream, ErrorCode::Cancel);
        assert_eq!(server.receive(&upload(stream)), []);
    });
    leaks_no_window(|server, stream| {
        server.receive(&[headers(stream, &POST, false), upload(stream), rst_stream(stream, 8)].concat());
    });
    // Reset in the middle of a frame, whose rest still comes.
    leaks_no_window(|server, stream| {
        let bytes = upload(stream);
        server.receive(&[&headers(stream, &POST, false), &bytes[..20_000]].concat());
        server.connection.reset(stream, ErrorCode::Cancel);
        server.connection.release(stream);
        assert_eq!(server.receive(&bytes[20_000..]), []);
    });
}

#[test]
fn v0_4_14_data_of_streams_that_a_shutdown_ignores_leaks_no_window() {
    let mut shut = false;
    leaks_no_window(|server, stream| {
        if !std::mem::replace(&mut shut, true) {
            server.connection.drain(0);
            server.connection.tick(1000).unwrap();
            server.frames();
        }
        assert_eq!(server.receive(&[headers(stream, &POST, false), upload(stream)].concat()), []);
    });
}

#[test]
fn v0_4_14_no_head_follows_a_reset() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.connection.reset(1, ErrorCode::Cancel);
    let list = FieldList::new();
    let head = response(200, Framing::None, &list);
    assert_eq!(server.connection.send_head(1, &head), Err(Unsendable::Closed));
    assert_eq!(server.frames().len(), 1);
}

#[test]
fn v0_4_14_a_goaway_of_the_peer_leaves_its_streams_open() {
    let mut server = Server::new();
    let events = server.receive(&[headers(1, &POST, false), frame(Kind::Goaway, 0, 0, &[0; 8])].concat());
    assert_eq!(events[1], Event::Goodbye { code: 0 });
    assert_eq!(server.receive(&data(1, b"x", true)).len(), 1);
    assert_eq!(server.answer(1, b"served"), 6);
}

#[test]
fn v0_4_15_heads_that_are_far_too_large_end_the_connection() {
    let mut server = Server::new();
    let mut bytes = frame(Kind::Headers, 0, 1, &[0; 16_384]);
    bytes.extend(frame(Kind::Continuation, 0, 1, &[0; 16_384]).repeat(5));
    assert_eq!(server.receive(&bytes), [Event::Failed(Violation::HeaderBlock)]);
}

#[test]
fn v0_4_15_all_of_a_frame_may_be_padding() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    let padded = frame(Kind::Data, PADDED | END_STREAM, 1, &[&[255][..], &[0; 255]].concat());
    assert_eq!(server.receive(&padded), [Event::Body { stream: 1, bytes: vec![], end: true }]);
}

#[test]
fn v0_4_15_content_needs_a_head_and_a_second_head_is_none() {
    let mut server = Server::new();
    server.receive(&get(1));
    assert_eq!(server.connection.send_data(1, b"x", EndStream::No), Err(Unsendable::Order));
    assert_eq!(server.connection.send_trailers(1, &FieldList::new()), Err(Unsendable::Order));
    server.head(1, Framing::Delimited);
    let list = FieldList::new();
    let head = response(200, Framing::Delimited, &list);
    assert_eq!(server.connection.send_head(1, &head), Err(Unsendable::Order));
}

#[test]
fn v0_4_15_content_that_was_sent_precedes_the_reset() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.head(1, Framing::Delimited);
    server.connection.send_data(1, b"some", EndStream::No).unwrap();
    server.connection.reset(1, ErrorCode::InternalError);
    let kinds: Vec<Kind> = server.frames().iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [Kind::Headers, Kind::Data, Kind::RstStream]);
}

#[test]
fn v0_4_16_an_upload_that_is_not_read_gives_its_window_back_at_the_end() {
    leaks_no_window(|server, stream| {
        server.receive(&[headers(stream, &POST, false), upload(stream)].concat());
        server.answer(stream, b"not read");
    });
}

#[test]
fn v0_4_17_the_last_frame_of_a_request_may_be_small() {
    let mut server = Server::new();
    for round in 0..3000 {
        let stream = round * 2 + 1;
        let events = server.receive(&[headers(stream, &POST, false), data(stream, b"x", true)].concat());
        assert_eq!(events.len(), 2, "round {round}");
        server.receive(&[window_update(0, 2)].concat());
        server.answer(stream, b"ok");
        server.connection.release(stream);
        server.frames();
    }
}
