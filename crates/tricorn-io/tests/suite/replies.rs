//! Replies on their way out: large ones, slow readers, streams.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;
use std::sync::Arc;
use tricorn_io::{Config, Engine, Exchange, IsLast, Sent};
use tricorn_proto::response::HeadInputs;

/// More than the sockets of the loopback hold.
const BIG: usize = 32 << 20;

#[test]
fn a_reply_bigger_than_the_socket_buffers_is_completed_after_its_handler_is_gone() {
    let body = Arc::new(noise(BIG));
    let kept = body.clone();
    let server = Server::start(config(), move |engine, exchange| {
        let bytes = if path(exchange) == "/big" { &kept[..] } else { b"small" };
        answer(engine, exchange, bytes);
    });
    let mut client = server.connect();
    client.ask("/big");
    server.until(Word::Requests, 1);
    assert_eq!(server.connect().get("/").body, b"small");
    assert!(client.response().body == *body);
    assert_eq!(client.get("/").body, b"small", "the connection is kept");
    assert_eq!(server.get(Word::Accepted), 2);
    until("the memory is given back", || server.spent() == 1);
}

#[test]
fn a_client_that_never_reads_is_closed_at_the_write_deadline_and_the_memory_given_back() {
    let config = Config { write_timeout: 300 * MILLI, ..config() };
    let server = Server::start(config, |engine, exchange| {
        answer(engine, exchange, &vec![0; BIG]);
    });
    let mut client = server.connect();
    client.ask("/");
    server.until(Word::Requests, 1);
    server.until(Word::WriteTimeouts, 1);
    server.until(Word::Connections, 0);
    until("the memory is given back", || server.spent() == 1);
    assert!(client.rest().len() < BIG);
}

#[test]
fn a_producer_too_far_ahead_of_a_client_that_never_reads_is_let_go_at_the_write_deadline() {
    let config = Config { write_timeout: 300 * MILLI, ..config() };
    let server = Server::start(config, |engine, exchange| {
        let piece = vec![0; 1 << 20];
        while write(engine, exchange, &piece) != Sent::Gone {}
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    server.until(Word::Requests, 1);
    server.until(Word::Connections, 0);
    server.until(Word::WriteTimeouts, 1);
    until("the memory is given back", || server.spent() >= 1);
    client.rest();
}

/// Writes pieces of a long reply, as app threads of WSGI do.
fn produce(engine: &Engine, exchange: &mut Exchange, body: &[u8]) -> Sent {
    for piece in body.chunks(100_000) {
        let sent = match push(engine, exchange, piece) {
            Sent::OverMark => engine.make_room(exchange),
            sent => sent,
        };
        if sent == Sent::Gone {
            return sent;
        }
    }
    exchange.end();
    engine.keep_rest(exchange);
    Sent::Accepted
}

#[test]
fn a_reply_that_is_not_read_goes_to_disk_and_its_handler_to_the_next_request() {
    let body = Arc::new(noise(BIG));
    let kept = body.clone();
    let config = Config { response_buffering: true, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) == "/big" {
            assert_eq!(produce(engine, exchange, &kept), Sent::Accepted);
        } else {
            answer(engine, exchange, b"small");
        }
    });
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("/big");
    }
    server.until(Word::Requests, 3);
    assert_eq!(server.connect().get("/").body, b"small", "the only thread is free");
    assert!(server.get(Word::ResponseDiskBytes) > 3 * (BIG as u64 / 2));
    for client in &mut clients {
        assert!(client.response().body == *body);
        assert_eq!(client.get("/").body, b"small", "the connection is kept");
    }
    server.until(Word::ResponseDiskBytes, 0);
    server.until(Word::ResponseBytes, 0);
}

#[test]
fn what_finds_no_room_on_disk_waits_for_its_client() {
    let body = Arc::new(noise(BIG));
    let kept = body.clone();
    let config = Config { response_buffering: true, response_disk_size: 1 << 20, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        produce(engine, exchange, &kept);
    });
    let mut client = server.connect();
    client.ask("/");
    // As long as the kernel takes more the file is used up and filled again; then nothing moves.
    until("the disk is used up", || server.get(Word::ResponseDiskBytes) > (1 << 20) - 200_000);
    assert_eq!(server.get(Word::Requests), 0, "its handler waits");
    assert!(client.response().body == *body);
    server.until(Word::ResponseDiskBytes, 0);
}

#[test]
fn a_producer_that_goes_to_disk_is_let_go_at_the_write_deadline_all_the_same() {
    let config =
        Config { response_buffering: true, write_timeout: 300 * MILLI, response_disk_size: 1 << 40, ..config() };
    let server = Server::start(config, |engine, exchange| {
        let piece = noise(100_000);
        loop {
            let sent = match push(engine, exchange, &piece) {
                Sent::OverMark => engine.make_room(exchange),
                sent => sent,
            };
            if sent == Sent::Gone {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2)); // a producer whose disk would last for long
        }
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    server.until(Word::Requests, 1);
    server.until(Word::WriteTimeouts, 1);
    server.until(Word::Connections, 0);
    server.until(Word::ResponseDiskBytes, 0);
    client.rest();
}

#[test]
fn a_stream_of_rapid_small_pieces_arrives_complete_and_in_order() {
    let server = Server::start(config(), |engine, exchange| {
        for number in 0..20_000 {
            write(engine, exchange, format!("{number}\n").as_bytes());
            if number % 5000 == 0 {
                write(engine, exchange, &vec![b'-'; 40_000]); // too much to be gathered
            }
        }
        exchange.end();
    });
    let mut expected = String::new();
    for number in 0..20_000 {
        expected.push_str(&format!("{number}\n"));
        if number % 5000 == 0 {
            expected.push_str(&"-".repeat(40_000));
        }
    }
    let mut client = server.connect();
    for _ in 0..3 {
        assert!(client.get("/").body == expected.as_bytes());
    }
}

#[test]
fn a_piece_is_not_held_back_though_its_handler_goes_on_blocking() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config(), move |engine, exchange| {
        for round in 0..3 {
            for number in 0..10 {
                write(engine, exchange, format!("{round}{number}").as_bytes());
            }
            held.pass();
        }
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    assert_eq!(client.head().0, 200);
    for round in 0..3 {
        for number in 0..10 {
            // The handler is blocked, or about to be, until all of them came.
            assert_eq!(client.chunk(), format!("{round}{number}").as_bytes());
        }
        gate.until_held(1);
        gate.open(1);
    }
    assert!(client.chunk().is_empty());
}

#[test]
fn what_the_socket_did_not_take_is_sent_while_the_handler_goes_on_blocking() {
    // PEP 3333: a server "must not delay the transmission of any block"; what was accepted goes out as the client reads.
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config(), move |engine, exchange| {
        // The socket takes a part; the rest is less than an application may be ahead, so nothing waits for room.
        rustix::net::sockopt::set_socket_send_buffer_size(socket(exchange), 4096).expect("a socket");
        write(engine, exchange, &[b'x'; PIECE]);
        held.pass();
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    gate.until_held(1);
    client.stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).expect("a timeout");
    assert_eq!(client.head().0, 200);
    assert_eq!(client.chunk().len(), PIECE);
    gate.open(1);
    assert!(client.chunk().is_empty());
}

/// More than a socket with a small buffer takes at once.
const PIECE: usize = 100_000;

#[test]
fn a_client_that_leaves_in_the_middle_of_a_stream_ends_it() {
    let server = Server::start(config(), |engine, exchange| {
        while write(engine, exchange, b"more") != Sent::Gone {}
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    client.take(10_000);
    drop(client);
    server.until(Word::Requests, 1);
    server.until(Word::ClientGone, 1);
    server.until(Word::Connections, 0);
}

#[test]
fn a_reply_given_up_closes_the_connection_without_the_last_chunk() {
    let server = Server::start(config(), |engine, exchange| {
        for _ in 0..3 {
            write(engine, exchange, b"piece");
        }
        exchange.abort();
    });
    let mut client = server.connect();
    client.ask("/");
    assert_eq!(client.head().0, 200);
    for _ in 0..3 {
        assert_eq!(client.chunk(), b"piece");
    }
    client.is_closed();
    server.until(Word::Connections, 0);
}

#[test]
fn a_file_is_sent_whole_between_pieces_and_one_that_is_too_short_closes_the_connection() {
    let body = noise(3_000_000);
    let path_of_file = std::env::temp_dir().join(format!("tricorn-replies-test-{}", std::process::id()));
    std::fs::write(&path_of_file, &body).expect("a file");
    let name = path_of_file.clone();
    let server = Server::start(config(), move |engine, exchange| {
        let length = if path(exchange) == "/short" { 3_000_001 } else { 3_000_000 };
        exchange.request.reply.status(b"200 OK").expect("a status");
        let wall = exchange.wall.clone();
        let close = engine.closes_connections();
        let inputs = HeadInputs { date: wall.date(), body_length: Some(length), close, ..HeadInputs::default() };
        let file = std::fs::File::open(&name).expect("the file");
        engine.write_file(exchange, &inputs, file.into(), (0, length), IsLast::Yes);
        exchange.end();
    });
    let mut client = server.connect();
    for _ in 0..2 {
        assert!(client.get("/").body == body);
    }
    client.ask("/short");
    assert_eq!(client.head().0, 200);
    assert!(client.rest() == body, "all there is, and a close that tells that it is not enough");
    std::fs::remove_file(path_of_file).expect("the file");
}

#[test]
fn a_reply_given_up_before_its_status_counts_for_no_class() {
    let server = Server::start(config(), |_, exchange| exchange.abort());
    let mut client = server.connect();
    client.ask("/");
    client.is_closed();
    server.until(Word::Requests, 1);
    assert_eq!([Word::Informational, Word::Successful, Word::ServerErrors].map(|word| server.get(word)), [0; 3]);
}
