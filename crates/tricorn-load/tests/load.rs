//! The program against small servers: what it reports of one that echoes, and of one that does not.
#![allow(clippy::unwrap_used)]
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::thread;
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};
use tricorn_proto::websocket::handshake::{Key, accept};
use tricorn_proto::websocket::{ContextPool, Delivery, Event, Receiver, Role, Sender, receiver, sender};

#[derive(Clone, Copy)]
enum Echo {
    Right,
    /// The third message comes back changed.
    Wrong,
}

/// Serves until the test ends; its port.
fn serve(echo: Echo, agrees: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            thread::spawn(move || connection(stream, echo, agrees));
        }
    });
    port
}

fn connection(mut stream: TcpStream, echo: Echo, agrees: bool) {
    let deflate = handshake(&mut stream, agrees);
    let reading = receiver::Settings {
        role: Role::Server,
        delivery: Delivery::Whole,
        max_message_size: 1 << 20,
        deflate: deflate.as_ref(),
    };
    let writing = sender::Settings { role: Role::Server, fragment: 20_000, deflate: deflate.as_ref(), seed: 0 };
    let (mut receiver, mut sender) = (Receiver::new(&reading), Sender::new(&writing));
    let (mut spare, mut input, mut out, mut count) = (ContextPool::default(), Vec::new(), Vec::new(), 0);
    let mut piece = [0; 5000];
    loop {
        let length = stream.read(&mut piece).unwrap_or(0);
        if length == 0 {
            return;
        }
        input.extend_from_slice(&piece[..length]);
        let mut at = 0;
        loop {
            let progress = receiver.advance(&mut input[at..], &mut spare).unwrap();
            at += progress.consumed;
            match progress.event {
                Event::Message { kind, data } => {
                    count += 1;
                    let mut data = data.to_vec();
                    if matches!(echo, Echo::Wrong) && count == 3 {
                        data[7] ^= 1;
                    }
                    // As servers do, in the midst of it.
                    sender.ping(&mut out, b"still there?").unwrap();
                    sender.message(&mut out, kind, &data, &mut spare).unwrap();
                }
                Event::Close(close) => sender.answer(&mut out, &close),
                Event::Pong(payload) => assert_eq!(payload, b"still there?"),
                Event::NeedMore | Event::Dropped => break,
                other => panic!("{other:?}"),
            }
        }
        input.drain(..at);
        if stream.write_all(&out).is_err() || !sender.closing().may_send() {
            return;
        }
        out.clear();
    }
}

fn handshake(stream: &mut TcpStream, agrees: bool) -> Option<Agreed> {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
    let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    let value = |name: &str| head.iter().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let key = Key::read(value("Sec-WebSocket-Key:").unwrap().as_bytes()).unwrap();
    let offer = value("Sec-WebSocket-Extensions:").filter(|_| agrees).map(|_| Offer::default());
    let agreed = Policy::default().choose(offer);
    let extension = agreed.map_or(String::new(), |agreed| format!("Sec-WebSocket-Extensions: {agreed}\r\n"));
    let accept = String::from_utf8(accept(&key).into()).unwrap();
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade";
    write!(stream, "{upgrade}\r\nSec-WebSocket-Accept: {accept}\r\n{extension}\r\n").unwrap();
    agreed
}

fn load(port: u16, options: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tricorn-load"));
    command.arg(port.to_string()).args(options.split_whitespace()).args(["--connections", "3", "--seconds", "0.2"]);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_echo_is_counted() {
    for options in ["", "--binary", "--size 1", "--size 70000", "--deflate", "--deflate --size 70000"] {
        let output = load(serve(Echo::Right, true), options);
        let said = said(&output);
        assert!(output.status.success(), "{options}: {output:?}");
        assert!(said.contains("\"errors\": {}") && !said.contains("\"messages\": 0,"), "{options}: {said}");
        assert_eq!(said.contains("\"deflate\": \"permessage-deflate\""), options.contains("deflate"), "{said}");
    }
}

#[test]
fn an_echo_that_is_wrong_is_noticed() {
    for options in ["", "--deflate", "--size 70000"] {
        let said = said(&load(serve(Echo::Wrong, true), options));
        assert!(said.contains("an echo that is not what was sent\": 3"), "{options}: {said}");
    }
}

#[test]
fn a_server_that_does_not_compress_is_no_match() {
    let output = load(serve(Echo::Right, false), "--deflate");
    assert!(!output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "did not agree to permessage-deflate\n");
}

#[test]
fn idle_ones_are_held_until_stdin_ends() {
    let port = serve(Echo::Right, false);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tricorn-load"));
    command.arg(port.to_string()).args(["--idle", "20"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "{\"open\": 20, \"echoes\": 0, \"errors\": {}, \"deflate\": null}");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\n").unwrap();
    assert_eq!(next(), "{\"open\": 20, \"echoes\": 20, \"errors\": {}, \"deflate\": null}");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
