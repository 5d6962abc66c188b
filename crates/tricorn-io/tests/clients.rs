//! Clients that split their requests anywhere and leave at any time. (Alone in its process: it counts descriptors.)
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::*;
use std::io::{Read, Write};
use tricorn_io::Config;

/// One client's life; whether it got all its answers.
fn live(server: &Server, random: &mut Random) -> bool {
    let requests = 1 + random.below(4);
    let mut bytes = Vec::new();
    for _ in 0..requests {
        match random.below(4) {
            0 => bytes.extend_from_slice(request("/plain").as_bytes()),
            1 => bytes.extend_from_slice(request("/stream").as_bytes()),
            2 => bytes.extend_from_slice(request("/big").as_bytes()),
            _ => {
                // All that a client sends fits the sockets: it reads nothing before it has sent everything.
                let length = random.below(15_000);
                bytes.extend_from_slice(post("/upload", length).as_bytes());
                bytes.resize(bytes.len() + length, b'b');
            }
        }
    }
    let leaves_at = if random.below(2) == 0 { random.below(bytes.len()) } else { usize::MAX };
    let mut client = server.connect();
    let mut at = 0;
    while at < bytes.len() {
        let most = 1 + random.below(20_000);
        let piece = (1 + random.below(most)).min(bytes.len() - at);
        // A server that answers, or has closed, may leave no room for more: a client that does not read gives up.
        if client.stream.write_all(&bytes[at..at + piece]).is_err() {
            return false;
        }
        at += piece;
        if at >= leaves_at {
            if random.below(2) == 0 {
                // A part of an answer, if there is one: the close is then a reset.
                client.stream.set_nonblocking(true).expect("a socket");
                let _ = client.stream.read(&mut [0; 100]);
            }
            return false;
        }
    }
    for _ in 0..requests {
        assert_eq!(client.response().status, 200);
    }
    true
}

#[test]
fn no_connection_and_no_descriptor_is_left_behind() {
    let config = Config { threads: 3, body_buffer_size: 10_000, ..config() };
    let before = descriptors();
    let server = Server::start(config, |engine, exchange| match path(exchange).as_str() {
        "/stream" => {
            for _ in 0..50 {
                write(engine, exchange, b"a piece of a stream");
            }
            exchange.end();
        }
        "/big" => {
            answer(engine, exchange, &vec![0; 500_000]);
        }
        _ => {
            body_of(exchange);
            answer(engine, exchange, b"plain");
        }
    });
    assert_eq!(server.connect().get("/").status, 200);
    server.until(Word::Connections, 0);
    let running = descriptors();
    let mut client = server.connect();
    client.post("/upload", &noise(12_000));
    assert_eq!(client.response().status, 200);
    drop(client);
    server.until(Word::Connections, 0);
    until("the body's file is closed", || descriptors() == running);
    let answered: usize = std::thread::scope(|scope| {
        let lives = |seed: u64| {
            let server = &server;
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed);
                (0..250).filter(|_| live(server, &mut random)).count()
            })
        };
        let clients: Vec<_> = (1..=4).map(lives).collect();
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    });
    assert!(answered > 100, "{answered} clients of a thousand stayed to the end");
    for word in [Word::Connections, Word::InFlight, Word::Queued, Word::BodyBytes] {
        server.until(word, 0);
    }
    until("every descriptor is closed", || descriptors() == running);
    assert_eq!(server.connect().get("/").status, 200);
    drop(server);
    assert_eq!(descriptors(), before, "nor does the engine leave one");
}
