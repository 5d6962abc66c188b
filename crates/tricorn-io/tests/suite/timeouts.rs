//! Deadlines of clients that hold on. A test does not touch the server while it waits: that would wake the worker.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::Read;
use std::time::{Duration, Instant};
use tricorn_io::{Config, Engine, Exchange, Sent};

/// More than the sockets of the loopback hold.
const BIG: usize = 32 << 20;

/// Two threads, of which one waits for events when the other ends the call at `/held`.
fn held(config: Config, end: impl Fn(&Engine, &mut Exchange) + Send + Sync + 'static) -> (Server, Gate) {
    let gate = Gate::default();
    let inside = gate.clone();
    let server = Server::start(Config { threads: 2, ..config }, move |engine, exchange| {
        if path(exchange) == "/held" {
            inside.pass();
            end(engine, exchange);
        } else {
            answer(engine, exchange, b"");
        }
    });
    (server, gate)
}

/// Ends the call at `/held` while the other thread sleeps, without a deadline that is near.
fn end_beside_a_sleeper(server: &Server, gate: &Gate) -> Client {
    let mut client = server.connect();
    client.ask("/held");
    gate.until_held(1);
    let mut other = server.connect();
    other.send(b"GET /other HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(other.response().status, 200, "the other thread is up");
    other.is_closed();
    gate.open(1);
    server.until(Word::Requests, 2);
    client
}

#[test]
fn a_write_deadline_is_kept_by_a_thread_that_slept_when_it_was_set() {
    let (server, gate) = held(Config { write_timeout: 300 * MILLI, ..config() }, |engine, exchange| {
        answer(engine, exchange, &vec![0; BIG]);
    });
    let _client = end_beside_a_sleeper(&server, &gate);
    server.until(Word::WriteTimeouts, 1);
    server.until(Word::Connections, 0);
}

#[test]
fn an_idle_deadline_is_kept_by_a_thread_that_slept_when_it_was_set() {
    let (server, gate) = held(Config { keepalive: 300 * MILLI, ..config() }, |engine, exchange| {
        answer(engine, exchange, b"");
    });
    let mut client = end_beside_a_sleeper(&server, &gate);
    assert_eq!(client.response().status, 200);
    server.until(Word::IdleCloses, 1);
}

/// Reads at so many bytes a second until the server has closed, or `most` have come; how many did.
fn read_at(client: &mut Client, rate: usize, most: usize) -> usize {
    let began = Instant::now();
    let mut piece = vec![0; 4096];
    let mut got = 0;
    while got < most && began.elapsed() < DEADLINE {
        if began.elapsed().as_secs_f64() * (rate as f64) < got as f64 {
            std::thread::sleep(Duration::from_millis(1)); // this client is slow
            continue;
        }
        match client.stream.read(&mut piece) {
            Ok(0) | Err(_) => return got,
            Ok(count) => got += count,
        }
    }
    got
}

/// A second to take two megabytes of a reply.
fn measured() -> Config {
    Config { write_timeout: SECOND, body_min_rate: 2 << 20, ..config() }
}

#[test]
fn a_reader_below_the_minimum_rate_is_closed_though_it_takes_some_at_each_deadline() {
    let server = Server::start(measured(), |engine, exchange| {
        set_socket_send_buffer_size(socket(exchange), 64 * 1024).expect("a socket");
        answer(engine, exchange, &vec![0; BIG]);
    });
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 16 * 1024).expect("a socket");
    client.ask("/");
    let got = read_at(&mut client, 200_000, BIG);
    assert_eq!(server.get(Word::WriteTimeouts), 1, "after {got} bytes");
    assert!(got < 3_000_000, "{got} bytes are more than one deadline");
}

#[test]
fn a_reader_below_the_minimum_rate_does_not_hold_a_producer() {
    let server = Server::start(measured(), |engine, exchange| {
        set_socket_send_buffer_size(socket(exchange), 64 * 1024).expect("a socket");
        let piece = vec![0; 1 << 20];
        while write(engine, exchange, &piece) != Sent::Gone {}
        exchange.end();
    });
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 16 * 1024).expect("a socket");
    client.ask("/");
    let got = read_at(&mut client, 200_000, BIG);
    server.until(Word::WriteTimeouts, 1);
    assert!(got < 3_000_000, "{got} bytes are more than one deadline");
}

#[test]
fn a_reader_above_the_minimum_rate_is_served_for_as_long_as_it_takes() {
    const LENGTH: usize = 3 << 20;
    let config = Config { body_min_rate: 100_000, ..measured() };
    let server = Server::start(config, |engine, exchange| {
        set_socket_send_buffer_size(socket(exchange), 64 * 1024).expect("a socket");
        answer(engine, exchange, &vec![0; LENGTH]);
    });
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 16 * 1024).expect("a socket");
    client.ask("/");
    let got = read_at(&mut client, 1 << 20, LENGTH);
    assert!(got >= LENGTH, "closed after {got} bytes");
    assert_eq!(server.get(Word::WriteTimeouts), 0);
}

fn collecting(body_timeout: u64) -> Server {
    let config = Config { body_timeout, body_min_rate: 240, header_timeout: NEVER, ..config() };
    Server::start(config, |engine, exchange| {
        let (body, _) = body_of(exchange);
        answer(engine, exchange, body.len().to_string().as_bytes());
    })
}

#[test]
fn a_body_that_began_fast_may_not_stop() {
    let server = collecting(300 * MILLI);
    for chunked in [false, true] {
        let mut client = server.connect();
        let how =
            if chunked { "Transfer-Encoding: chunked\r\n\r\n100000\r\n" } else { "Content-Length: 2000000\r\n\r\n" };
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{how}").as_bytes());
        client.send(&noise(1_000_000));
        let response = client.response();
        assert_eq!(response.status, 408);
        let page = String::from_utf8_lossy(&response.body).into_owned();
        assert!(page.contains("(1000000 bytes so far, and no more for"), "{page}");
        client.is_closed();
    }
    assert_eq!(server.get(Word::BodyTimeouts), 2);
}

#[test]
fn what_frames_a_body_does_not_count_as_its_progress() {
    let server = collecting(SECOND);
    // A trailer that never ends, and a chunk's extension.
    for (rest, drip) in [("\r\n0\r\nX-Sum: ", b"x"), ("\r\n5;name=", b"v")] {
        let before = server.get(Word::BodyTimeouts);
        let mut client = server.connect();
        client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n");
        client.send(&[noise(100_000), rest.into()].concat());
        let mut sent = 0;
        while server.get(Word::BodyTimeouts) == before {
            assert!(sent < 500, "it goes on for ever");
            let read = server.get(Word::BytesIn);
            client.send(drip);
            sent += 1;
            until("it is read", || server.get(Word::BytesIn) > read || server.get(Word::BodyTimeouts) > before);
            std::thread::sleep(Duration::from_millis(20)); // the drip
        }
        assert_eq!(client.response().status, 408);
    }
}

#[test]
fn a_body_that_comes_in_time_is_taken_however_long_it_is_under_way() {
    let server = collecting(SECOND);
    let mut client = server.connect();
    client.send(post("/", 5 * 300).as_bytes());
    let began = Instant::now();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(400)); // this client is slow: 750 bytes a second, 240 are asked for
        client.send(&noise(300));
    }
    assert_eq!(client.response().body, b"1500");
    assert!(began.elapsed() > Duration::from_secs(1));
}
