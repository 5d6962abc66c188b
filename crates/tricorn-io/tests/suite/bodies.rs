//! Request bodies: where they are kept, and which never reach a handler.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;
use std::sync::{Arc, Mutex};
use tricorn_io::Config;

/// Every body a handler saw, and whether it was on disk.
type Seen = Arc<Mutex<Vec<(Vec<u8>, bool)>>>;

fn collecting(config: Config) -> (Server, Seen) {
    let seen = Seen::default();
    let list = seen.clone();
    let server = Server::start(config, move |engine, exchange| {
        list.lock().expect("list").push(body_of(exchange));
        answer(engine, exchange, b"");
    });
    (server, seen)
}

fn chunked(body: &[u8], piece: usize) -> Vec<u8> {
    let mut bytes = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for chunk in body.chunks(piece) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

#[test]
fn a_body_within_the_limit_stays_in_memory_and_is_given_back() {
    let (server, seen) = collecting(Config { body_buffer_size: 100_000, ..config() });
    let body = noise(100_000);
    let mut client = server.connect();
    client.post("/", &body);
    assert_eq!(client.response().status, 200);
    client.send(&chunked(&body, 7000));
    assert_eq!(client.response().status, 200);
    for (got, on_disk) in seen.lock().expect("list").iter() {
        assert!(got == &body && !on_disk);
    }
    assert_eq!(server.get(Word::Spooled), 0);
    server.until(Word::BodyBytes, 0);
}

#[test]
fn a_body_over_the_memory_limit_is_spooled_and_complete() {
    let (server, seen) = collecting(Config { body_buffer_size: 100_000, ..config() });
    let body = noise(3_000_001);
    let mut client = server.connect();
    client.post("/", &body);
    assert_eq!(client.response().status, 200);
    client.send(&chunked(&body, 70_000));
    assert_eq!(client.response().status, 200);
    assert_eq!(client.get("/").status, 200);
    let seen = seen.lock().expect("list");
    assert!(seen[0] == (body.clone(), true), "of known length");
    assert!(seen[1] == (body, true), "chunked");
    assert!(seen[2] == (Vec::new(), false), "a request after it has none of it");
    assert_eq!(server.get(Word::Spooled), 2);
}

#[test]
fn bodies_beyond_the_memory_of_all_go_to_disk() {
    let config = Config { body_buffer_size: 100_000, body_buffer_total: 150_000, ..config() };
    let (server, seen) = collecting(config);
    let body = noise(100_000);
    let (mut first, mut second) = (server.connect(), server.connect());
    // All but the last byte of one that fits …
    first.send(post("/", body.len()).as_bytes());
    first.send(&body[..body.len() - 1]);
    server.until_at_least(Word::BytesIn, body.len() as u64);
    // … and one for which there is no room beside it.
    second.post("/", &body);
    assert_eq!(second.response().status, 200);
    first.send(&body[body.len() - 1..]);
    assert_eq!(first.response().status, 200);
    let seen = seen.lock().expect("list");
    assert!(seen[0] == (body.clone(), true), "the second");
    assert!(seen[1] == (body, false), "the first");
    assert_eq!(server.get(Word::Spooled), 1);
}

#[test]
fn the_scoreboard_tells_how_much_memory_bodies_take() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config(), move |engine, exchange| {
        held.pass();
        answer(engine, exchange, b"");
    });
    let mut client = server.connect();
    client.post("/", &noise(100_000));
    gate.until_held(1);
    assert_eq!(server.get(Word::BodyBytes), 100_000, "while the request is answered");
    gate.open(1);
    assert_eq!(client.response().status, 200);
    server.until(Word::BodyBytes, 0);
}

#[test]
fn an_upload_cut_short_never_reaches_a_handler() {
    let (server, seen) = collecting(Config { body_buffer_size: 50_000, ..config() });
    let body = noise(100_000);
    let uploads = [
        [post("/", body.len()).into_bytes(), body[..99_999].to_vec()].concat(),
        [post("/", 40_000).into_bytes(), body[..39_999].to_vec()].concat(),
        chunked(&body, 1000)[..90_000].to_vec(),
        chunked(b"short", 5)[..].strip_suffix(b"\r\n").expect("an end").to_vec(),
    ];
    for upload in &uploads {
        let mut client = server.connect();
        client.send(upload);
        client.stream.shutdown(std::net::Shutdown::Write).expect("a connection");
        client.is_closed();
    }
    server.until(Word::ClientGone, uploads.len() as u64);
    server.until(Word::Connections, 0);
    server.until(Word::BodyBytes, 0);
    assert!(seen.lock().expect("list").is_empty());
    assert_eq!(server.get(Word::Requests), 0);
}

#[test]
fn a_body_slower_than_the_minimum_rate_is_refused_with_408() {
    let config = Config { body_timeout: 300 * MILLI, body_min_rate: 1_000_000, ..config() };
    let (server, seen) = collecting(config);
    let mut client = server.connect();
    client.send(post("/", 1000).as_bytes());
    client.send(b"a few bytes");
    let response = client.response();
    assert_eq!(response.status, 408);
    assert!(response.closes());
    client.is_closed();
    assert_eq!(server.get(Word::BodyTimeouts), 1);
    assert!(seen.lock().expect("list").is_empty());
}

#[test]
fn a_body_that_begins_with_its_head_and_stops_is_refused_at_the_bodys_deadline() {
    // The head and the first bytes come together, and are more than one read takes.
    let config = Config { body_timeout: 300 * MILLI, body_min_rate: 1_000_000_000, ..config() };
    let (server, _) = collecting(config);
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    client.send(&[post("/", 200_000).into_bytes(), noise(100_000)].concat());
    assert_eq!(client.response().status, 408, "and not at the deadline the connection had before");
}

#[test]
fn a_client_that_waits_for_100_is_told_to_go_on() {
    let (server, seen) = collecting(config());
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().0, 100);
    client.send(b"body");
    assert_eq!(client.response().status, 200);
    assert_eq!(seen.lock().expect("list")[0].0, b"body");
}
