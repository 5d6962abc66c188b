//! Attacks on servers of HTTP/2, each named after its CVE or its kind: what it costs the peer, and what memory it gets.
#![allow(clippy::unwrap_used)] // A test may panic.
use crate::h2::*;
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{EndStream, ErrorCode, Request, Settings, Violation};
use tricorn_proto::response::Framing;

/// Sends the frames of `each` round until the connection ends. Returns in which round, and why.
fn flood(server: &mut Server, mut each: impl FnMut(u32, &mut Server) -> Vec<u8>) -> (u32, Violation) {
    for round in 0..20_000 {
        let bytes = each(round, server);
        let events = server.receive(&bytes);
        if let Some(Event::Failed(violation)) = events.last() {
            return (round, *violation);
        }
        assert!(!events.contains(&Event::Choked), "the output is read");
        server.frames();
    }
    panic!("20,000 rounds were served");
}

fn id(round: u32) -> u32 {
    round * 2 + 1
}

#[test]
fn cve_2023_44487_rapid_reset() {
    let mut server = Server::new();
    let reset = |round: u32, server: &mut Server| {
        server.connection.release(id(round.max(1) - 1));
        [get(id(round)), rst_stream(id(round), 8)].concat()
    };
    assert_eq!(flood(&mut server, reset), (200, Violation::Resets));
    assert_eq!(errors(&server.frames()).last(), Some(&(0, number(ErrorCode::EnhanceYourCalm))));
}

/// Calls cannot be cancelled, so those of reset streams count: the peer gets no more of them than concurrent streams.
#[test]
fn cve_2023_44487_calls_of_reset_streams_count() {
    let mut server = Server::new();
    let mut begun = 0;
    for round in 0..150 {
        let events = server.receive(&[get(id(round)), rst_stream(id(round), 8)].concat());
        begun += events.iter().filter(|event| matches!(event, Event::Request { .. })).count();
    }
    assert_eq!((begun, server.connection.streams()), (100, 100));
}

#[test]
fn cve_2025_8671_made_you_reset() {
    let broken: [fn(u32) -> Vec<u8>; 5] = [
        |stream| window_update(stream, 0),
        |stream| window_update(stream, u32::MAX >> 1),
        |stream| frame(Kind::Priority, 0, stream, &[0; 4]),
        |stream| data(stream, b"x", false),
        |stream| headers(stream, &GET, true),
    ];
    for broken in broken {
        let mut server = Server::new();
        let made = |round: u32, server: &mut Server| {
            server.connection.release(id(round.max(1) - 1));
            [get(id(round)), broken(id(round))].concat()
        };
        let (rounds, violation) = flood(&mut server, made);
        assert_eq!((rounds, violation), (200, Violation::Resets));
    }
}

#[test]
fn cve_2024_27316_continuation_flood() {
    let open = frame(Kind::Headers, 0, 1, &block(&GET));
    let mut server = Server::new();
    server.receive(&open);
    let empty = |_, _: &mut Server| frame(Kind::Continuation, 0, 1, &[]);
    assert_eq!(flood(&mut server, empty), (8, Violation::Continuations));
    let mut server = Server::new();
    server.receive(&open);
    let full = |_, _: &mut Server| frame(Kind::Continuation, 0, 1, &[0; 16_384]);
    assert_eq!(flood(&mut server, full), (4, Violation::HeaderBlock));
}

/// A thousand references of one byte to a field of 4,000: what is stored is the limit's, not the product.
#[test]
fn hpack_bomb_cve_2026_49975() {
    let mut server = Server::new();
    let long = "x".repeat(3_900);
    let mut wire = block(&GET);
    wire.extend_from_slice(&[0x40, 1, b'a', 0x7f, 0xbd, 0x1d]);
    wire.extend_from_slice(long.as_bytes());
    wire.extend_from_slice(&[0xbe; 10_000]);
    let events = server.receive(&frame(Kind::Headers, END_HEADERS | END_STREAM, 1, &wire));
    assert_eq!(events, [Event::Refused { stream: 1, status: 431 }]);
    assert!(held(&server.request) < 2 * 65_536, "{}", held(&server.request));
    // The block was decoded to its end: the table still serves the next request.
    let next = [&block(&GET)[..], &[0xbe]].concat();
    let events = server.receive(&frame(Kind::Headers, END_HEADERS | END_STREAM, 3, &next));
    let [Event::Request { head, .. }] = &events[..] else { panic!("{events:?}") };
    assert_eq!(head.fields[1], ("a".to_string(), long));
}

fn held(request: &Request) -> usize {
    request.bytes.capacity() + request.head.fields.capacity() * 28
}

#[test]
fn hpack_bomb_of_empty_fields_and_of_crumbs() {
    for crumb in [&b"\x00\x01a\x00"[..], b"\x60\x00"] {
        let mut server = Server::new();
        let wire = [&block(&GET)[..], &crumb.repeat(3000)].concat();
        let events = server.receive(&frame(Kind::Headers, END_HEADERS | END_STREAM, 1, &wire));
        assert_eq!(events, [Event::Refused { stream: 1, status: 431 }]);
        assert!(held(&server.request) < 16_384);
    }
}

#[test]
fn cve_2019_9512_cve_2019_9515_cve_2019_9518_frames_that_carry_nothing() {
    let floods: [fn(u32) -> Vec<u8>; 9] = [
        |_| frame(Kind::Ping, 0, 0, &[0; 8]),
        |_| frame(Kind::Ping, ACK, 0, &[0; 8]),
        |_| settings(&[]),
        |_| frame(Kind::Settings, ACK, 0, &[]),
        |round| frame(Kind::PriorityUpdate, 0, 0, &(round * 2 + 1).to_be_bytes()),
        |_| frame(Kind::Priority, 0, 1, &[0, 0, 0, 5, 0]),
        |_| frame(Kind::Unknown, 0, 0, &[]),
        |_| window_update(0, 1),
        |_| frame(Kind::Goaway, 0, 0, &[0; 8]),
    ];
    for each in floods {
        let (rounds, violation) = flood(&mut Server::new(), |round, _| each(round));
        assert_eq!(violation, Violation::ControlFrames);
        assert!((999..=1000).contains(&rounds), "{rounds}");
    }
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    assert_eq!(flood(&mut server, |_, _| data(1, b"", false)), (999, Violation::ControlFrames));
}

#[test]
fn many_short_messages_are_no_flood() {
    let mut server = Server::new();
    server.receive(&headers(1, &POST, false));
    for _ in 0..20_000 {
        let events = server.receive(&data(1, b"short", false));
        assert!(matches!(events[..], [Event::Body { .. }]), "{events:?}");
        server.connection.took(1, 5);
        server.frames();
    }
}

#[test]
fn cve_2019_9512_answers_that_are_not_read_stop_the_reading() {
    let rate = tricorn_proto::http2::Rate { burst: 1_000_000, per_second: 0 };
    let mut server = Server::with(Settings { control_frames: rate, ..Settings::default() });
    let pings = frame(Kind::Ping, 0, 0, &[0; 8]).repeat(50_000);
    assert_eq!(server.receive(&pings), [Event::Choked]);
    assert!(server.connection.output().len() < 160 * 1024);
    server.frames();
    assert_eq!(server.receive(&[]), [Event::Choked], "reading goes on where it stopped");
}

#[test]
fn bytes_without_payload_end_the_connection() {
    let mut server = Server::new();
    let unknown = |_, server: &mut Server| {
        server.now += 1000;
        frame(Kind::Unknown, 0, 0, &[0; 16_000])
    };
    let (rounds, violation) = flood(&mut server, unknown);
    assert_eq!((rounds, violation), (523, Violation::Overhead));
}

/// A client that downloads for hours sends many window updates: DATA earns them.
#[test]
fn a_long_download_is_no_flood() {
    let mut server = Server::new();
    server.receive(&get(1));
    server.head(1, Framing::Delimited);
    for _ in 0..5000 {
        assert_eq!(server.connection.send_data(1, &[0; 16_384], EndStream::No), Ok(16_384));
        server.frames();
        let events = server.receive(&[window_update(0, 16_384), window_update(1, 16_384)].concat());
        assert_eq!(events, [Event::Room { stream: 0 }, Event::Room { stream: 1 }]);
    }
}

/// A budget is a rate, too: what a client does slowly is no flood.
#[test]
fn resets_now_and_then_are_served_for_ever() {
    let mut server = Server::new();
    for round in 0..2000 {
        server.now += 50;
        let events = server.receive(&[get(id(round)), rst_stream(id(round), 8)].concat());
        assert_eq!(events.len(), 2, "round {round}");
        server.connection.release(id(round));
    }
}

#[test]
fn refused_streams_spend_the_reset_budget() {
    let mut server = Server::with(Settings { max_concurrent_streams: 1, ..Settings::default() });
    server.receive(&get(1));
    let (rounds, violation) = flood(&mut server, |round, _| get(id(round + 1)));
    assert_eq!((rounds, violation), (200, Violation::Resets));
}

#[test]
fn malformed_requests_spend_the_reset_budget() {
    let upper = |round, _: &mut Server| headers(id(round), &[&GET[..], &[("A", "b")]].concat(), true);
    assert_eq!(flood(&mut Server::new(), upper), (200, Violation::Resets));
}

/// CVE-2025-8671 by a limit: the answer is complete, and the server resets what is left of the request.
#[test]
fn requests_over_a_limit_spend_the_reset_budget_if_content_is_to_come() {
    let path = format!("/{}", "x".repeat(5000));
    let fields = [(":method", "POST"), GET[1], (":path", &*path), GET[3]];
    let refused = |round: u32, server: &mut Server, end: bool| {
        server.connection.release(id(round.max(1) - 1));
        headers(id(round), &fields, end)
    };
    let (rounds, violation) = flood(&mut Server::new(), |round, server| refused(round, server, false));
    assert_eq!((rounds, violation), (200, Violation::Resets));
    let mut server = Server::new();
    for round in 0..300 {
        let bytes = refused(round, &mut server, true);
        assert_eq!(
            server.receive(&bytes),
            [Event::Refused { stream: id(round), status: 414 }],
            "nothing is to be reset"
        );
    }
}

#[test]
fn data_beyond_the_windows_is_an_error() {
    let full = data(1, &[0; 16_384], false).repeat(4);
    let mut server = Server::new();
    let events = server.receive(&[headers(1, &POST, false), full].concat());
    assert_eq!(events.last(), Some(&Event::Violated { stream: 1, violation: Violation::StreamFlow }));
    // 1 MiB for the connection, by streams that are within their windows.
    let mut server = Server::new();
    let some = |stream| [headers(stream, &POST, false), data(stream, &[0; 16_384], false).repeat(3)].concat();
    let (rounds, violation) = flood(&mut server, |round, _| some(id(round)));
    assert_eq!((rounds, violation), (21, Violation::ConnectionFlow));
}
