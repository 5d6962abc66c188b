//! WebSockets against small servers: what is counted of one that echoes, and of one that does not.
#![allow(clippy::unwrap_used)]
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use tricorn_load::{Outcome, Plan, run};
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

fn load(port: u16, size: usize, binary: bool, deflate: bool) -> Result<Outcome, String> {
    let target = format!("{{\"address\": {{\"tcp\": [\"127.0.0.1\", {port}]}}, \"host\": \"here\", \"path\": \"/\"}}");
    let closed = "{\"closed\": {\"connections\": 3}}";
    let messages = format!("{{\"size\": {size}, \"binary\": {binary}, \"deflate\": {deflate}}}");
    let plan = format!(
        "{{\"targets\": [{target}], \"model\": {closed}, \"bounds\": {{\"seconds\": 0.2}}, \"websocket\": {messages}}}"
    );
    run(&Plan::from_json(plan.as_bytes()).unwrap(), &mut ())
}

#[test]
fn every_echo_is_counted() {
    for (size, binary, deflate) in [
        (125, false, false),
        (125, true, false),
        (1, false, false),
        (70_000, false, false),
        (125, false, true),
        (70_000, false, true),
    ] {
        let outcome = load(serve(Echo::Right, true), size, binary, deflate).unwrap();
        assert!(outcome.answered > 0, "{size}, {binary}, {deflate}");
        assert_eq!(outcome.errors.values().sum::<u64>(), 0, "{size}, {binary}, {deflate}: {:?}", outcome.errors);
        assert_eq!(outcome.sent, outcome.answered + outcome.rest.unanswered, "{size}, {binary}, {deflate}");
    }
}

#[test]
fn an_echo_that_is_wrong_is_noticed() {
    for (size, deflate) in [(125, false), (125, true), (70_000, false)] {
        let outcome = load(serve(Echo::Wrong, true), size, false, deflate).unwrap();
        assert_eq!((outcome.answered, outcome.errors["echo"]), (6, 3), "{size}, {deflate}");
    }
}

#[test]
fn a_server_that_does_not_compress_is_no_match() {
    let refused = load(serve(Echo::Right, false), 125, false, true).err();
    assert_eq!(refused.as_deref(), Some("the server did not agree to permessage-deflate"));
}
