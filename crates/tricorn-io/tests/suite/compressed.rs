//! Replies that are compressed on their way: what ends them, what does not, and what is beside their body.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;
use std::io::{Read, Write};
use tricorn_io::{Compressors, Config, Door, Exchange, FrontEnd, IsLast};
use tricorn_proto::cgi::Protocol;
use tricorn_proto::message::coding::Coding;
use tricorn_proto::peer::Trust;
use tricorn_proto::response::compression::{MediaRange, Policy};
use tricorn_proto::response::{End, HeadInputs};

fn compressing() -> Config {
    let types = MediaRange::parse("text/*").into_iter().collect();
    Config { compress: Compressors::of(Policy { codings: vec![Coding::Gzip], types, private: false }), ..config() }
}

/// Text that does not shrink to nothing.
fn text(length: usize) -> Vec<u8> {
    noise(length).into_iter().map(|byte| b'a' + byte % 16).collect()
}

fn begin(exchange: &mut Exchange) {
    exchange.request.reply.status(b"200 OK").expect("a status");
    exchange.request.reply.field(b"Content-Type", b"text/plain").expect("a field");
}

fn promise(exchange: &mut Exchange, length: usize) {
    exchange.request.reply.field(b"Content-Length", length.to_string().as_bytes()).expect("a field");
}

fn asks(client: &mut Client, path: &str) {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n").as_bytes());
}

/// What can be read of a body, and whether it is whole.
fn decoded(bytes: &[u8]) -> (Vec<u8>, bool) {
    let (mut decoder, mut out) = (flate2::read::GzDecoder::new(bytes), Vec::new());
    let mut room = [0; 1024];
    loop {
        match decoder.read(&mut room) {
            Ok(0) => return (out, true),
            Ok(count) => out.extend_from_slice(&room[..count]),
            Err(_) => return (out, false),
        }
    }
}

/// The chunks of a body until the connection ends, and whether the last one is among them.
fn chunks_of(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(at) = bytes.windows(2).position(|pair| pair == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..at]).expect("a size"), 16).expect("a size");
        if size == 0 {
            return (body, true);
        }
        body.extend_from_slice(&bytes[at + 2..][..size]);
        bytes = &bytes[at + 2 + size + 2..];
    }
    (body, false)
}

#[test]
fn a_whole_body_has_its_own_length_and_the_connection_goes_on() {
    let server = Server::start(compressing(), |_, exchange| {
        begin(exchange);
        finish(exchange, &text(50_000));
    });
    let mut client = server.connect();
    for _ in 0..2 {
        asks(&mut client, "/");
        let response = client.response();
        assert!(response.head.contains("\r\nContent-Encoding: gzip\r\n"), "{}", response.head);
        assert!(decoded(&response.body) == (text(50_000), true));
        assert_eq!(client.get("/").body, text(50_000), "a client that accepts nothing");
    }
}

/// A reply that is not what it has promised, or is given up, is cut off in the coding and in its framing.
#[test]
fn what_is_not_whole_has_no_end() {
    let server = Server::start(compressing(), |engine, exchange| {
        begin(exchange);
        match path(exchange).as_str() {
            "/short" => {
                promise(exchange, 5000);
                write(engine, exchange, &text(4000));
                assert_eq!(exchange.end(), End::Short { missing: 1000 });
            }
            "/short_at_once" => {
                promise(exchange, 5000);
                assert_eq!(finish(exchange, &text(4000)), End::Short { missing: 1000 });
            }
            "/short_at_last" => {
                promise(exchange, 5000);
                write(engine, exchange, &text(3000));
                assert_eq!(finish(exchange, &text(4000)[3000..]), End::Short { missing: 1000 });
            }
            _ => {
                write(engine, exchange, &text(4000));
                exchange.abort();
            }
        }
    });
    for path in ["/short", "/short_at_last", "/aborted"] {
        let mut client = server.connect();
        asks(&mut client, path);
        assert!(client.head().1.contains("\r\nContent-Encoding: gzip\r\n"));
        let (body, is_ended) = chunks_of(&client.rest());
        assert!(decoded(&body) == (text(4000), false), "{path}");
        assert!(!is_ended, "{path}");
    }
    let mut client = server.connect();
    asks(&mut client, "/short_at_once");
    assert!(client.head().1.contains("\r\nContent-Length: 5000\r\n"), "it is not compressed");
    assert_eq!(client.rest(), text(4000));
}

/// The last piece of a reply whose status is set.
fn finish(exchange: &mut Exchange, piece: &[u8]) -> End {
    let inputs = HeadInputs { server: b"", body_length: Some(piece.len() as u64), ..HeadInputs::default() };
    exchange.write_last(&inputs, piece, || Box::new(piece.to_vec()))
}

#[test]
fn what_is_beyond_the_promised_length_is_not_sent() {
    let server = Server::start(compressing(), |engine, exchange| {
        begin(exchange);
        promise(exchange, 5000);
        if path(exchange) == "/whole" {
            write(engine, exchange, &text(5000));
        } else {
            write(engine, exchange, &text(3000));
            write(engine, exchange, &text(7000)[3000..]);
        }
        assert!(exchange.request.reply.is_full());
        write(engine, exchange, b"more");
        assert_eq!(exchange.end(), End::Reuse);
        assert_eq!(exchange.request.reply.body_taken(), 5000);
    });
    let mut client = server.connect();
    for path in ["/whole", "/pieces"] {
        asks(&mut client, path);
        let response = client.response();
        assert!(decoded(&response.body) == (text(5000), true), "{path}");
        // As long as it promises: its first piece is all of it, and the length of that is known.
        assert_eq!(response.head.contains("\r\nContent-Length: "), path == "/whole", "{}", response.head);
    }
}

#[test]
fn a_file_behind_a_compressed_head_is_compressed_too_and_one_before_it_is_not() {
    let server = Server::start(compressing(), |engine, exchange| {
        begin(exchange);
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        let mut file = std::fs::File::from(file);
        file.write_all(&text(300_000)).expect("memory");
        let inputs = HeadInputs { server: b"", ..HeadInputs::default() };
        if path(exchange) == "/behind" {
            write(engine, exchange, b"");
        }
        engine.write_file(exchange, &inputs, file.into(), (1000, 299_000), IsLast::Yes);
        exchange.end();
    });
    let mut client = server.connect();
    asks(&mut client, "/behind");
    let response = client.response();
    assert!(response.head.contains("\r\nContent-Encoding: gzip\r\n"));
    assert!(decoded(&response.body) == (text(300_000)[1000..].to_vec(), true));
    asks(&mut client, "/before");
    let response = client.response();
    assert!(!response.head.contains("\r\nContent-Encoding: "));
    assert!(response.body == text(300_000)[1000..]);
}

/// Its records have a most of bytes: what is compressed may be longer than that.
#[test]
fn a_front_end_gets_it_in_records() {
    let front_end = FrontEnd { protocol: Protocol::FastCgi, allow: Trust::parse("127.0.0.0/8").expect("a network") };
    let door = Door { front_end: Some(Box::new(front_end)), ..Door::default() };
    let config = Config { doors: vec![door], ..compressing() };
    let server = Server::start(config, |engine, exchange| {
        begin(exchange);
        if path(exchange) == "/whole" {
            finish(exchange, &text(400_000));
        } else {
            write(engine, exchange, &text(400_000));
            exchange.end();
        }
    });
    for path in ["/whole", "/pieces"] {
        let vars = [
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", path),
            ("HTTP_ACCEPT_ENCODING", "gzip"),
            ("CONTENT_LENGTH", "0"),
        ];
        let pairs: Vec<u8> = vars
            .iter()
            .flat_map(|(key, value)| [&[key.len() as u8, value.len() as u8], key.as_bytes(), value.as_bytes()].concat())
            .collect();
        let record = |kind: u8, content: &[u8]| [&[1, kind, 0, 1, 0, content.len() as u8, 0, 0], content].concat();
        let mut client = server.connect();
        client
            .send(&[record(1, &[0, 1, 0, 0, 0, 0, 0, 0]), record(4, &pairs), record(4, b""), record(5, b"")].concat());
        let (bytes, mut output, mut is_ended) = (client.rest(), Vec::new(), false);
        let mut at = 0;
        while let Some(head) = bytes.get(at..at + 8) {
            let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
            let content = &bytes[at + 8..][..length];
            match head[1] {
                6 => output.extend_from_slice(content),
                kind => is_ended = kind == 3,
            }
            at += 8 + length + usize::from(head[6]);
        }
        assert!(is_ended, "{path}");
        let end = output.windows(4).position(|mark| mark == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8_lossy(&output[..end]);
        assert!(head.contains("Content-Encoding: gzip"), "{head}");
        assert!(decoded(&output[end + 4..]) == (text(400_000), true), "{path}");
    }
}
