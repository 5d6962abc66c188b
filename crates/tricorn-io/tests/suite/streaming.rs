//! Requests that begin with their heads: their bodies come while they run, and what happens to their connections is told.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::*;
use std::net::Shutdown;
use tricorn_io::{Body, Config, Engine, Exchange, Incoming, Patience, Sent};
use tricorn_proto::exchange::End;

fn server() -> HubServer {
    HubServer::start(Config { threads: 8, streaming: true, ..config() })
}

/// A head at `path`, with more fields, each with its line end.
fn head(path: &str, fields: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes()
}

/// What a test sees of [`Incoming`].
#[derive(Debug, PartialEq, Eq)]
enum Came {
    More(Vec<u8>),
    Last(Vec<u8>),
    Wait,
    Gone,
    Refused(u16),
}

fn receive(engine: &Engine, exchange: &mut Exchange) -> Came {
    let mut bytes = Vec::new();
    match exchange.receive(engine.config(), &mut bytes) {
        Incoming::Bytes { last: false } => Came::More(bytes),
        Incoming::Bytes { last: true } => Came::Last(bytes),
        Incoming::Wait => Came::Wait,
        Incoming::Gone => Came::Gone,
        Incoming::Refused(refusal) => Came::Refused(refusal.status()),
    }
}

/// All of the body that is still to come.
fn rest(server: &HubServer, path: &str) -> Vec<u8> {
    let mut all = Vec::new();
    until("the body is there", || match server.at(path, receive) {
        Came::More(bytes) => {
            all.extend(bytes);
            false
        }
        Came::Last(bytes) => {
            all.extend(bytes);
            true
        }
        Came::Wait => false,
        other => panic!("{other:?}"),
    });
    all
}

fn first(server: &HubServer, path: &str) -> (Vec<u8>, bool) {
    server.at(path, |_, exchange| {
        let partial = exchange.is_partial();
        (body_of(exchange).0, partial)
    })
}

#[test]
fn a_body_of_known_length_is_read_while_it_comes() {
    let server = server();
    let mut client = server.connect();
    client.send(&[head("/up", "Content-Length: 10\r\n"), b"abc".to_vec()].concat());
    server.until_open(&["/up"]);
    assert_eq!(first(&server, "/up"), (b"abc".to_vec(), true));
    assert_eq!(server.at("/up", receive), Came::Wait);
    server.at("/up", |engine, exchange| engine.attend(exchange));
    client.send(b"defg");
    assert!(server.stir().readable);
    assert_eq!(server.at("/up", receive), Came::More(b"defg".to_vec()));
    client.send(b"hij");
    assert!(server.stir().readable);
    assert_eq!(server.at("/up", receive), Came::Last(b"hij".to_vec()));
    server.finish("/up");
    assert_eq!(client.response().status, 200);
    assert_eq!(client.get("/now").status, 200, "the connection is kept");
}

#[test]
fn a_chunked_body_is_followed_by_the_next_request() {
    let server = server();
    let mut client = server.connect();
    client.send(&[head("/up", "Transfer-Encoding: chunked\r\n"), b"3\r\nabc\r\n".to_vec()].concat());
    server.until_open(&["/up"]);
    assert_eq!(first(&server, "/up"), (b"abc".to_vec(), true));
    assert_eq!(server.at("/up", receive), Came::Wait);
    client.send(&[b"2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n".to_vec(), request("/next").into_bytes()].concat());
    assert_eq!(rest(&server, "/up"), b"de");
    assert_eq!(server.at("/up", |_, exchange| exchange.request.head.trailers.len()), 1);
    assert_eq!(server.open(), ["/up"], "one request of a connection at a time");
    server.finish("/up");
    assert_eq!(client.response().body, b"/up");
    server.until_open(&["/next"]);
    server.finish("/next");
    assert_eq!(client.response().body, b"/next");
}

#[test]
fn what_came_with_the_head_is_all_there() {
    let server = server();
    let mut client = server.connect();
    client.send(&[head("/up", "Content-Length: 3\r\n"), b"abc".to_vec(), request("/next").into_bytes()].concat());
    server.until_open(&["/up"]);
    assert_eq!(first(&server, "/up"), (b"abc".to_vec(), false));
    server.finish("/up");
    assert_eq!(client.response().status, 200);
    server.until_open(&["/next"]);
    server.finish("/next");
    assert_eq!(client.response().body, b"/next");
}

#[test]
fn a_client_that_asks_first_is_told_when_somebody_reads() {
    let server = server();
    let mut client = server.connect();
    client.send(&head("/up", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
    server.until_open(&["/up"]);
    assert!(!client.has_something());
    assert_eq!(server.at("/up", receive), Came::Wait);
    assert_eq!(server.at("/up", receive), Came::Wait);
    assert_eq!(client.head().1, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(!client.has_something(), "once");
    client.send(b"abc");
    assert_eq!(rest(&server, "/up"), b"abc");
    server.finish("/up");
    assert_eq!(client.response().status, 200);
    assert_eq!(client.get("/now").status, 200);
}

#[test]
fn a_client_that_was_never_told_to_send_loses_its_connection() {
    let server = server();
    let mut client = server.connect();
    client.send(&head("/up", "Content-Length: 3\r\nExpect: 100-continue\r\n"));
    server.until_open(&["/up"]);
    server.finish("/up");
    assert_eq!(client.response().status, 200);
    client.is_closed();
}

#[test]
fn a_body_that_nobody_read_costs_the_connection_only_if_it_is_not_there() {
    let server = server();
    let mut client = server.connect();
    for (sent, is_kept) in [(b"0123456789".as_slice(), true), (b"01234", false)] {
        client.send(&head("/up", "Content-Length: 10\r\n"));
        server.until_open(&["/up"]);
        client.send(sent);
        until("it has come", || {
            server.at("/up", |_, exchange| rustix::io::ioctl_fionread(exchange.socket()).expect("a socket") as usize)
                == sent.len()
        });
        server.finish("/up");
        assert_eq!(client.response().body, b"/up");
        if is_kept {
            assert_eq!(client.get("/now").status, 200);
        } else {
            client.is_closed();
        }
    }
}

#[test]
fn bad_chunks_are_refused_while_the_request_runs() {
    let server = server();
    let mut client = server.connect();
    client.send(&head("/up", "Transfer-Encoding: chunked\r\n"));
    server.until_open(&["/up"]);
    client.send(b"zz\r\n");
    until("it is seen", || match server.at("/up", receive) {
        Came::Wait => false,
        came => {
            assert_eq!(came, Came::Refused(400));
            true
        }
    });
    server.at("/up", |_, exchange| exchange.answer_error(400, "bad chunk"));
    server.give_back("/up");
    assert_eq!(client.response().status, 400);
    client.is_closed();
}

#[test]
fn a_client_that_leaves_is_told_of() {
    let server = server();
    let mut client = server.connect();
    client.ask("/wait");
    server.until_open(&["/wait"]);
    server.at("/wait", |engine, exchange| engine.attend(exchange));
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    let what = server.stir();
    assert!(what.hangup && !what.broken, "{what:?}");
    server.finish("/wait");
    assert_eq!(client.response().body, b"/wait", "it may listen still");
    client.is_closed();
}

#[test]
fn a_client_that_left_before_anybody_attended_is_told_of_too() {
    let server = server();
    let mut client = server.connect();
    assert_eq!(client.get("/now").status, 200);
    client.ask("/wait");
    server.until_open(&["/wait"]);
    client.stream.shutdown(Shutdown::Both).expect("a socket");
    let turns = server.turns();
    until("the hub has seen it", || server.turns() > turns);
    assert!(server.stirs().is_empty(), "nobody attends");
    server.at("/wait", |engine, exchange| engine.attend(exchange));
    assert!(server.stir().hangup);
    server.give_back("/wait");
    server.until(Word::Connections, 0);
}

#[test]
fn a_body_that_ends_too_early_is_told_of() {
    let server = server();
    let mut client = server.connect();
    client.send(&[head("/up", "Content-Length: 10\r\n"), b"abc".to_vec()].concat());
    server.until_open(&["/up"]);
    assert_eq!(first(&server, "/up").0, b"abc");
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    until("it is seen", || server.at("/up", receive) == Came::Gone);
    server.give_back("/up");
    client.is_closed();
}

#[test]
fn room_for_more_is_told_of() {
    static PIECE: &[u8] = &[7; 512 * 1024];
    let server = server();
    let mut client = server.connect();
    client.ask("/down");
    server.until_open(&["/down"]);
    let mut sent = 0;
    until("the client is far behind", || {
        sent += PIECE.len();
        server.push("/down", PIECE) == Sent::OverMark
    });
    server.at("/down", |engine, exchange| engine.attend(exchange));
    let mut patience: Option<Patience> = None;
    let mut all = Vec::new();
    until("there is room", || {
        let mut now = patience;
        let over;
        (over, patience) = server.at("/down", move |engine, exchange| {
            let over = engine.wait_for_room(exchange, &mut now);
            (over, now)
        });
        if let Some(sent) = over {
            assert_eq!(sent, Sent::Accepted);
            return true;
        }
        // How much has to be taken before the socket counts as writable is the kernel's affair.
        until("it is told that the socket takes more", || {
            if client.has_something() {
                all.append(&mut client.take_some());
            }
            !server.stirs().is_empty()
        });
        assert!(server.stir().writable);
        false
    });
    server.end("/down");
    all.extend(client.take_until(b"\r\n0\r\n\r\n"));
    assert!(all.len() > sent);
}

#[test]
fn a_reminder_comes_at_its_time_and_only_if_it_was_not_taken_back() {
    let server = server();
    let mut client = server.connect();
    client.ask("/wait");
    server.until_open(&["/wait"]);
    server.at("/wait", |engine, exchange| {
        engine.attend(exchange);
        engine.remind(exchange, Some(tricorn_io::clock::now() + 10 * MILLI));
    });
    assert!(server.stir().expired);
    server.at("/wait", |engine, exchange| {
        engine.remind(exchange, Some(tricorn_io::clock::now() + 100 * MILLI));
        engine.remind(exchange, None);
    });
    let mut other = server.connect();
    other.ask("/other");
    server.until_open(&["/wait", "/other"]);
    server.at("/other", |engine, exchange| {
        engine.attend(exchange);
        engine.remind(exchange, Some(tricorn_io::clock::now() + 300 * MILLI));
    });
    let _ = server.stir();
    assert!(server.stirs().is_empty());
    for path in ["/wait", "/other"] {
        server.finish(path);
    }
    assert_eq!(client.response().status, 200);
    assert_eq!(other.response().status, 200);
}

#[test]
fn nothing_is_told_of_a_call_that_is_over() {
    let server = server();
    let mut client = server.connect();
    client.ask("/wait");
    server.until_open(&["/wait"]);
    server.at("/wait", |engine, exchange| engine.attend(exchange));
    server.finish("/wait");
    assert_eq!(client.response().status, 200);
    client.ask("/again");
    server.until_open(&["/again"]);
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    let turns = server.turns();
    until("the hub has seen it", || server.turns() > turns);
    assert!(server.stirs().is_empty());
    server.finish("/again");
}

#[test]
fn time_in_which_nobody_waits_is_not_the_clients() {
    let config = Config { threads: 1, streaming: true, body_timeout: 10 * SECOND, body_min_rate: 100, ..config() };
    let server = HubServer::start(config);
    let mut client = server.connect();
    client.send(&head("/up", "Content-Length: 1000\r\n"));
    server.until_open(&["/up"]);
    server.at("/up", |engine, exchange| {
        let config = engine.config();
        assert_eq!(exchange.await_body(config, 5 * SECOND), 15 * SECOND);
        exchange.body_came(200, 8 * SECOND); // two seconds earned, three used
        assert_eq!(exchange.await_body(config, 100 * SECOND), 109 * SECOND);
        let refusal = exchange.body_is_late(config).expect("nothing has come");
        assert_eq!(refusal.status(), 408);
    });
    client.send(b"abc");
    until("what has come is not late", || {
        server.at("/up", |engine, exchange| exchange.body_is_late(engine.config()).is_none())
    });
    server.give_back("/up");
}

#[test]
fn bytes_that_follow_a_switch_of_protocols_go_both_ways() {
    let server = server();
    let mut client = server.connect();
    let upgrade = b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nearly".to_vec();
    client.send(&upgrade);
    server.until_open(&["/ws"]);
    let early = server.at("/ws", |engine, exchange| {
        engine.attend(exchange);
        exchange.request.reply.status(b"101 Switching Protocols").expect("a status");
        exchange.request.reply.field(b"Upgrade", b"echo").expect("a field");
        assert_eq!(push(engine, exchange, b""), Sent::Accepted);
        let early = engine.take_unread(exchange);
        assert_eq!(exchange.write_raw(&early, || Box::new(Vec::new())), Sent::Accepted);
        early
    });
    assert_eq!(early, b"early");
    assert_eq!(client.head().0, 101);
    assert_eq!(client.take(5), b"early");
    client.send(b"late");
    let mut got = Vec::new();
    until("it has come", || {
        got.extend(server.at("/ws", |_, exchange| {
            let mut bytes = Vec::new();
            let _ = exchange.read_raw(&mut bytes, 100);
            bytes
        }));
        got == b"late"
    });
    server.at("/ws", |_, exchange| assert_eq!(exchange.end(), End::Close));
    server.give_back("/ws");
    client.is_closed();
}

#[test]
fn no_body_streams_that_is_not_asked_to() {
    let server = HubServer::start(Config { threads: 8, ..config() });
    let mut client = server.connect();
    client.send(&[head("/up", "Content-Length: 6\r\n"), b"abc".to_vec()].concat());
    server.until_at_least(Word::BytesIn, 1);
    assert!(server.open().is_empty());
    client.send(b"def");
    server.until_open(&["/up"]);
    let body = server.at("/up", |_, exchange| exchange.take_body());
    assert!(matches!(&body, Body::Memory(bytes) if bytes == b"abcdef"), "{body:?}");
    server.finish("/up");
    assert_eq!(client.response().status, 200);
}
