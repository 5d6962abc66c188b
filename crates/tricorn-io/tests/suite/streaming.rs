//! Requests that begin with their heads: their bodies come while they run, and what happens to their connections is told.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::*;
use std::net::Shutdown;
use tricorn_io::{Awaited, Body, Config, Engine, Exchange, Incoming, Patience, Sent, Timer, clock};
use tricorn_proto::response::End;

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
fn a_chunked_body_may_be_cut_anywhere() {
    let server = server();
    let mut client = server.connect();
    let body = b"3\r\nabc\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\nX-Sum: 5\r\n\r\n";
    for cut in 0..body.len() {
        client.send(&head("/up", "Transfer-Encoding: chunked\r\n"));
        server.until_open(&["/up"]);
        let mut all = Vec::new();
        client.send(&body[..cut]);
        server.at("/up", move |_, exchange| until_unread(exchange, cut));
        match server.at("/up", receive) {
            Came::More(bytes) => all.extend(bytes),
            came => assert_eq!(came, Came::Wait, "cut at {cut}"),
        }
        client.send(&[&body[cut..], request("/next").as_bytes()].concat());
        all.extend(rest(&server, "/up"));
        assert_eq!(all, b"abc0123456789", "cut at {cut}");
        assert_eq!(server.at("/up", |_, exchange| exchange.request.head.trailers.len()), 1, "cut at {cut}");
        server.finish("/up");
        assert_eq!(client.response().body, b"/up");
        server.until_open(&["/next"]);
        server.finish("/next");
        assert_eq!(client.response().body, b"/next");
    }
}

#[test]
fn a_piece_is_at_most_256_kib() {
    let server = server();
    for framing in ["Content-Length: 2000000\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut client = server.connect();
        client.send(&head("/up", framing));
        server.until_open(&["/up"]);
        let sender = std::thread::spawn(move || {
            let body = vec![b'x'; 2_000_000];
            if framing.starts_with('C') {
                client.send(&body);
            } else {
                client.send(&[b"1e8480\r\n".as_slice(), &body, b"\r\n0\r\n\r\n"].concat());
            }
            client
        });
        let (mut count, mut is_last) = (0, false);
        until("the body is there", || {
            match server.at("/up", receive) {
                Came::More(bytes) | Came::Last(bytes) if bytes.len() > 256 * 1024 => panic!("{} bytes", bytes.len()),
                Came::More(bytes) => count += bytes.len(),
                Came::Last(bytes) => (count, is_last) = (count + bytes.len(), true),
                came => assert_eq!(came, Came::Wait),
            }
            is_last
        });
        assert_eq!(count, 2_000_000);
        server.finish("/up");
        assert_eq!(sender.join().expect("a sender").response().status, 200);
    }
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
            server.at("/up", |_, exchange| rustix::io::ioctl_fionread(socket(exchange)).expect("a socket") as usize)
                == sent.len()
        });
        server.at("/up", |engine, exchange| {
            exchange.request.reply.status(b"200 OK").expect("a status");
            exchange.foresee_close_unread(true);
            let wall = exchange.wall.clone();
            exchange.write_last(&engine.head_inputs(&wall, None, Some(3)), b"/up", || Box::new(b"/up".to_vec()));
        });
        server.give_back("/up");
        let response = client.response();
        assert_eq!(response.body, b"/up");
        assert_eq!(response.closes(), !is_kept, "the head says what becomes of the connection");
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
fn what_happens_to_a_connection_while_the_hub_is_away_is_told_once() {
    let server = server();
    let mut client = server.connect();
    client.send(&head("/up", "Content-Length: 100000\r\n"));
    server.until_open(&["/up"]);
    server.at("/up", |engine, exchange| engine.attend(exchange));
    assert_eq!(server.at("/up", receive), Came::Wait);
    let stuck = server.block();
    server.until_at_least(Word::Rescues, 1);
    let mut sent = 0;
    for _ in 0..30 {
        let before = server.get(Word::Heartbeat);
        until("the monitor has looked at it", || {
            client.send(b"x"); // again, for one that comes while the monitor still looks does not wake it
            sent += 1;
            server.get(Word::Heartbeat) != before
        });
    }
    server.release(stuck);
    // What happened is told before the next request begins.
    assert_eq!(server.connect().get("/now").status, 200);
    let told = server.stirs();
    assert!((1..=3).contains(&told.len()), "it was told {} times", told.len());
    assert!(told[0].readiness.readable);
    let mut came = 0;
    until("all bytes are there", || {
        if let Came::More(bytes) = server.at("/up", receive) {
            came += bytes.len();
        }
        came == sent
    });
    server.give_back("/up");
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
    assert!(server.stirs().is_empty(), "no exchange is attended");
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
fn a_timer_comes_at_its_time_whatever_becomes_of_the_others() {
    let server = server();
    let mut client = server.connect();
    client.ask("/wait");
    server.until_open(&["/wait"]);
    let began = clock::now();
    server.at("/wait", move |engine, exchange| {
        engine.attend(exchange);
        engine.set_timer(exchange, Timer::Room, began + 300 * MILLI);
        engine.set_timer(exchange, Timer::Body, began + 100 * MILLI);
        exchange.stop_timer(Timer::Body);
    });
    // The stopped one may still be told of; it is not due then, and the other is waited for.
    loop {
        assert!(server.stir().expired);
        let due = server.at("/wait", |engine, exchange| engine.take_due(exchange));
        assert!(!due.has(Timer::Body), "it was stopped");
        if due.has(Timer::Room) {
            break;
        }
    }
    assert!(clock::now() >= began + 300 * MILLI);
    server.finish("/wait");
    assert_eq!(client.response().status, 200);
}

#[test]
fn nothing_is_told_of_timers_when_their_call_is_over() {
    let server = server();
    let mut client = server.connect();
    client.ask("/wait");
    server.until_open(&["/wait"]);
    server.at("/wait", |engine, exchange| {
        engine.attend(exchange);
        engine.set_timer(exchange, Timer::Body, clock::now() + 100 * MILLI);
    });
    server.finish("/wait");
    assert_eq!(client.response().status, 200);
    client.ask("/other");
    server.until_open(&["/other"]);
    server.at("/other", |engine, exchange| {
        engine.attend(exchange);
        engine.set_timer(exchange, Timer::Ping, clock::now() + 300 * MILLI);
    });
    assert!(server.stir().expired);
    assert!(server.stirs().is_empty());
    assert!(server.at("/other", |engine, exchange| engine.take_due(exchange)).has(Timer::Ping));
    server.finish("/other");
    assert_eq!(client.response().status, 200);
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
        let until = |exchange: &mut Exchange, now| match exchange.await_body(config, now) {
            Awaited::Until { due, .. } => due,
            Awaited::Late(refusal) => panic!("{}", refusal.message()),
        };
        assert_eq!(until(exchange, 5 * SECOND), 15 * SECOND);
        exchange.body_came(200, 8 * SECOND); // two seconds earned, three used
        assert_eq!(until(exchange, 100 * SECOND), 109 * SECOND);
        exchange.body_came(100_000, 101 * SECOND); // earned for a quarter of an hour, which is not to be spent at once
        assert_eq!(until(exchange, 200 * SECOND), 210 * SECOND);
        assert!(matches!(exchange.await_body(config, 210 * SECOND), Awaited::Late(_)), "the wait went on");
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
        assert_eq!(engine.write_raw(exchange, &early, || Box::new(Vec::new())), Sent::Accepted);
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

/// The answer to a request whose body was still to come ends its connection: no second answer, whatever follows.
#[track_caller]
fn is_the_last_answer(client: &mut Client) {
    let response = client.response();
    assert_eq!(response.status, 503);
    assert!(response.closes(), "{}", response.head);
    client.send(b"defghij");
    client.is_closed();
}

#[test]
fn a_request_turned_away_before_its_body_came_ends_its_connection() {
    let server = HubServer::start(Config { threads: 1, streaming: true, queue_limit: 1, ..config() });
    let (mut runs, mut waits) = (server.connect(), server.connect());
    runs.ask("/runs");
    server.until_open(&["/runs"]);
    waits.ask("/waits");
    server.until(Word::Queued, 1);
    for framing in ["Content-Length: 10\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut beyond = server.connect();
        let first: &[u8] = if framing.starts_with('C') { b"abc" } else { b"a\r\nabc" };
        beyond.send(&[head("/up", framing), first.to_vec()].concat());
        is_the_last_answer(&mut beyond);
    }
    // A body that is all there keeps its connection.
    let mut whole = server.connect();
    whole.send(&[head("/up", "Content-Length: 3\r\n"), b"abc".to_vec()].concat());
    let response = whole.response();
    assert!(response.status == 503 && !response.closes(), "{}", response.head);
    server.finish("/runs");
    server.until_open(&["/waits"]);
    server.finish("/waits");
    assert_eq!((runs.response().status, waits.response().status), (200, 200));
    assert_eq!(whole.get("/now").status, 200);
    assert_eq!(server.get(Word::ClientErrors), 0);
}

#[test]
fn a_request_stranded_before_its_body_came_ends_its_connection() {
    let server = HubServer::start(Config { threads: 8, streaming: true, timeout: 300 * MILLI, ..config() });
    let stuck = server.block();
    let mut waits = server.connect();
    waits.send(&[head("/up", "Content-Length: 10\r\n"), b"abc".to_vec()].concat());
    server.until(Word::Queued, 1);
    server.engine.drain();
    is_the_last_answer(&mut waits);
    server.release(stuck);
    server.until_ended();
}
