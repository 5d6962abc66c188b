//! Connections of HTTP/2: their streams are requests like others, and the connection lives on without them.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::http2::{Client2, END_STREAM};
use harness::hub::HubServer;
use harness::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tricorn_io::{Config, Engine, Exchange, Http2, Incoming, Sent, TURN, clock::SECOND};
use tricorn_proto::http2::frame::Kind;
use tricorn_proto::http2::{PREFACE, Settings};
use tricorn_proto::response::HeadInputs;

const WINDOW: u32 = 65_535;
const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const CANCEL: u32 = 8;

fn speaking(config: Config) -> Config {
    let http2 = Http2 { cleartext: true, idle_timeout: NEVER, settings: Settings::default() };
    Config { http2: Some(Box::new(http2)), ..config }
}

/// Requests are held at `/held`, `/big` brings 400,000 bytes in pieces, others get their body back.
fn server(config: Config) -> (Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(speaking(config), move |engine, exchange| match &*path(exchange) {
        "/held" => {
            held.pass();
            answer(engine, exchange, b"held");
        }
        "/big" => {
            let all_sent = (0..8).all(|_| write(engine, exchange, &[b'x'; 50_000]) == Sent::Accepted);
            if all_sent {
                exchange.end();
            }
        }
        _ => {
            let (body, _) = body_of(exchange);
            answer(engine, exchange, &body);
        }
    });
    (server, gate)
}

#[test]
fn a_stream_is_answered_while_another_one_waits() {
    let (server, gate) = server(Config { threads: 2, ..config() });
    let mut client = Client2::connect(server.address, WINDOW);
    let held = client.get("/held");
    gate.until_held(1);
    let echo = client.ask("POST", "/echo", &[("content-length", "5")], false);
    client.data(echo, b"hello", true);
    let response = client.response(echo);
    assert_eq!((response.status, &*response.body, response.reset), (200, &b"hello"[..], None));
    assert!(!client.streams[&held].is_over);
    gate.open(1);
    assert_eq!(client.response(held).body, b"held");
    assert_eq!(server.get(Word::Connections), 1, "streams are none");
}

#[test]
fn a_client_with_many_streams_has_one_turn_in_each_round() {
    let (gate, begun) = (Gate::default(), Arc::new(Mutex::new(Vec::new())));
    let (held, notes) = (gate.clone(), begun.clone());
    let server = Server::start(speaking(Config { threads: 1, ..config() }), move |engine, exchange| {
        let path = path(exchange);
        match &*path {
            "/held" => held.pass(),
            _ => notes.lock().expect("notes").push(path),
        }
        answer(engine, exchange, b"");
    });
    let mut greedy = Client2::connect(server.address, WINDOW);
    let held = greedy.get("/held");
    gate.until_held(1);
    let mut streams: Vec<u32> = (1..=4).map(|nr| greedy.get(&format!("/greedy/{nr}"))).collect();
    server.until(Word::Queued, 4);
    let mut polite = server.connect();
    polite.ask("/polite");
    server.until(Word::Queued, 5);
    let mut other = Client2::connect(server.address, WINDOW);
    let others = ["/other/1", "/other/2"].map(|path| other.get(path));
    server.until(Word::Queued, 7);
    gate.open(1);
    assert_eq!(polite.response().status, 200);
    streams.push(held);
    assert!(streams.into_iter().all(|stream| greedy.response(stream).status == 200));
    assert!(others.into_iter().all(|stream| other.response(stream).status == 200));
    let order = ["/greedy/1", "/polite", "/other/1", "/greedy/2", "/other/2", "/greedy/3", "/greedy/4"];
    assert_eq!(*begun.lock().expect("notes"), order);
    server.until(Word::Queued, 0);
}

#[test]
fn a_client_with_many_streams_does_not_keep_a_hub_from_those_whose_requests_have_come_meanwhile() {
    let server = HubServer::start(speaking(Config { threads: 8, ..config() }));
    let mut polite = server.connect();
    assert_eq!(polite.get("/now").status, 200);
    let mut greedy = Client2::connect(server.address, WINDOW);
    let mut streams = vec![greedy.get("/block")];
    server.gate.until_held(1);
    streams.extend((0..5).map(|_| greedy.get("/block")));
    polite.ask("/now");
    let blocks = || server.begun().iter().filter(|path| *path == "/block").count();
    for nr in 1..=6 {
        until("the next one has begun", || blocks() >= nr);
        // A call that computes for longer than a turn.
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_nanos(2 * TURN) {
            std::hint::spin_loop();
        }
        server.gate.open(1);
    }
    assert_eq!(polite.response().status, 200);
    assert!(streams.into_iter().all(|stream| greedy.response(stream).status == 200));
    let place = server.begun().iter().rposition(|path| path == "/now");
    assert!(place.is_some_and(|place| place <= 3), "{:?}", server.begun());
}

#[test]
fn a_preface_may_come_in_pieces() {
    let (server, _) = server(config());
    let mut pieces = server.connect();
    for piece in PREFACE.chunks(5) {
        let before = server.get(Word::BytesIn);
        pieces.send(piece);
        server.until_at_least(Word::BytesIn, before + piece.len() as u64);
    }
    let settings = pieces.take(9);
    assert_eq!((settings[3], &settings[5..]), (4, &[0; 4][..]), "SETTINGS");
}

#[test]
fn http_1_is_spoken_at_the_same_port() {
    let (server, _) = server(config());
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    let mut slow = server.connect();
    slow.send(b"P");
    slow.send(&post("/", 4).as_bytes()[1..]);
    slow.send(b"PRI ");
    assert_eq!(slow.response().body, b"PRI ", "a preface comes first or not at all");
    let mut other = server.connect();
    other.send(b"PRI * HTTP/2.0\r\n");
    other.send(b"\r\nnothing of the kind");
    let said = String::from_utf8_lossy(&other.rest()).into_owned();
    assert!(said.ends_with("invalid connection preface"), "a GOAWAY: {said}");
}

#[test]
fn a_body_larger_than_the_window_comes_whole_in_memory_and_on_disk() {
    let body: Vec<u8> = (0..600_000_u32).map(|nr| (nr % 251) as u8).collect();
    for limit in [1 << 20, 100_000] {
        let (server, _) = server(Config { body_buffer_size: limit, ..config() });
        let mut client = Client2::connect(server.address, 1 << 20);
        let stream = client.ask("POST", "/", &[], false);
        let mut sent = 0;
        while sent < body.len() {
            let window = u64::from(WINDOW) + client.updates.get(&stream).copied().unwrap_or(0);
            let piece = (window as usize).saturating_sub(sent).min(16_384).min(body.len() - sent);
            if piece == 0 {
                assert!(client.step(), "the window opens");
                continue;
            }
            client.data(stream, &body[sent..sent + piece], sent + piece == body.len());
            sent += piece;
        }
        assert_eq!(client.response(stream).body, body, "{limit}");
        assert_eq!(server.get(Word::Spooled), u64::from(limit < body.len()));
        server.until(Word::BodyBytes, 0);
    }
}

#[test]
fn a_shut_window_holds_its_own_stream_up_and_no_other() {
    let (server, _) = server(Config { threads: 2, response_buffer_size: 100_000, ..config() });
    let mut client = Client2::connect(server.address, 70_000);
    client.reads = false;
    let big = client.get("/big");
    client.until("the window is used up", |client| client.streams[&big].body.len() >= WINDOW as usize);
    client.open_window(0, 1 << 20);
    let other = client.get("/other");
    assert_eq!(client.response(other).status, 200);
    client.reads = true;
    client.open_window(big, 300_000);
    assert_eq!(client.response(big).body.len(), 400_000);
}

#[test]
fn what_a_hub_has_left_goes_out_when_the_window_opens() {
    let server = HubServer::start(speaking(Config { threads: 8, response_buffer_size: 1 << 20, ..config() }));
    let mut client = Client2::connect(server.address, 10);
    client.reads = false;
    let stream = client.get("/stream");
    server.until_open(&["/stream"]);
    assert_eq!(server.write("/stream", &[b"twenty bytes, and so"]), [Sent::Accepted]);
    client.until("the window is used up", |client| client.streams[&stream].body == b"twenty byt");
    client.open_window(stream, 100);
    client.until("the rest", |client| client.streams[&stream].body == b"twenty bytes, and so");
    server.end("/stream");
    assert!(client.response(stream).is_over);
}

#[test]
fn a_whole_answer_does_not_wait_for_a_call_that_goes_on() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(speaking(config()), move |engine, exchange| {
        answer(engine, exchange, b"whole");
        exchange.flush();
        held.pass();
    });
    let mut client = Client2::connect(server.address, WINDOW);
    let streams: Vec<u32> = (0..20).map(|_| client.get("/")).collect();
    assert_eq!(client.response(streams[0]).body, b"whole", "others wait, so that it was to be sent with theirs");
    gate.open(20);
    for stream in streams {
        assert_eq!(client.response(stream).body, b"whole");
    }
}

#[test]
fn a_stream_that_its_client_has_reset_is_told_to_its_call() {
    let gate = Gate::default();
    let (held, seen) = (gate.clone(), Arc::new(AtomicUsize::new(0)));
    let count = seen.clone();
    let server = Server::start(speaking(config()), move |engine, exchange| {
        held.pass();
        if write(engine, exchange, b"piece") == Sent::Gone {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let mut client = Client2::connect(server.address, WINDOW);
    let stream = client.get("/");
    gate.until_held(1);
    client.reset(stream);
    server.until(Word::Http2Resets, 1);
    gate.open(1);
    until("the call was told", || seen.load(Ordering::SeqCst) == 1);
    gate.open(1);
    let next = client.get("/");
    client.until("the next one is served", |client| client.streams[&next].status == 200);
}

#[test]
fn a_reply_that_stays_incomplete_is_a_reset_and_the_connection_lives() {
    let server = Server::start(speaking(config()), |engine, exchange| match &*path(exchange) {
        "/short" => {
            write(engine, exchange, b"piece");
            exchange.abort();
        }
        _ => {
            answer(engine, exchange, b"whole");
        }
    });
    let mut client = Client2::connect(server.address, WINDOW);
    let short = client.get("/short");
    assert_eq!(client.response(short).reset, Some(INTERNAL_ERROR));
    let whole = client.get("/");
    assert_eq!(client.response(whole).body, b"whole");
}

#[test]
fn a_request_that_is_answered_before_its_body_has_come_is_reset_without_an_error() {
    let server = HubServer::start(speaking(Config { threads: 8, streaming: true, ..config() }));
    let mut client = Client2::connect(server.address, WINDOW);
    let stream = client.ask("POST", "/up", &[], false);
    client.data(stream, b"first", false);
    server.until_open(&["/up"]);
    let (first, partial) = server.at("/up", |_, exchange| (body_of(exchange).0, exchange.is_partial()));
    assert!(partial && (first.is_empty() || first == b"first"), "as far as it has come");
    server.finish("/up");
    client.until("the reset", |client| client.streams[&stream].reset.is_some());
    assert_eq!((client.streams[&stream].status, client.streams[&stream].reset), (200, Some(NO_ERROR)));
}

fn receive(engine: &Engine, exchange: &mut Exchange) -> (Vec<u8>, Option<bool>) {
    let mut bytes = Vec::new();
    let last = match exchange.receive(engine.config(), &mut bytes) {
        Incoming::Bytes { last } => Some(last),
        Incoming::Wait => None,
        other => panic!("{other:?}"),
    };
    (bytes, last)
}

#[test]
fn a_body_is_read_while_it_comes_and_its_window_is_given_back_as_it_is_read() {
    let server = HubServer::start(speaking(Config { threads: 8, streaming: true, ..config() }));
    let mut client = Client2::connect(server.address, WINDOW);
    let stream = client.ask("POST", "/up", &[], false);
    server.until_open(&["/up"]);
    server.at("/up", |engine, exchange| engine.attend(exchange));
    for _ in 0..3 {
        client.data(stream, &[b'a'; 16_000], false);
    }
    let mut count = 0;
    until("it has come", || {
        count += server.at("/up", |engine, exchange| receive(engine, exchange).0.len());
        count == 48_000
    });
    client.until("half of the window is given back", |client| client.updates.contains_key(&stream));
    client.data(stream, b"end", true);
    until("the end", || server.at("/up", receive) == (b"end".to_vec(), Some(true)));
    server.finish("/up");
    assert!(client.response(stream).is_over);
}

#[test]
fn a_worker_that_leaves_says_so_and_serves_what_has_begun() {
    let (server, gate) = server(Config { threads: 2, ..config() });
    let mut client = Client2::connect(server.address, WINDOW);
    let held = client.get("/held");
    gate.until_held(1);
    server.engine.drain();
    client.until("it says so", |client| !client.goaways.is_empty());
    gate.open(1);
    assert_eq!(client.response(held).body, b"held");
    client.until_closed();
    assert_eq!(client.goaways.last(), Some(&(held, NO_ERROR)));
    server.until_ended();
}

#[test]
fn an_idle_connection_is_told_to_leave() {
    let http2 = Http2 { cleartext: true, idle_timeout: SECOND / 10, settings: Settings::default() };
    let server = Server::start(Config { http2: Some(Box::new(http2)), ..config() }, |engine, exchange| {
        answer(engine, exchange, b"");
    });
    let mut client = Client2::connect(server.address, WINDOW);
    let stream = client.get("/");
    assert_eq!(client.response(stream).status, 200);
    client.until_closed();
    assert_eq!(client.goaways.last(), Some(&(stream, NO_ERROR)));
    server.until(Word::IdleCloses, 1);
    server.until(Word::Connections, 0);
}

#[test]
fn a_client_that_takes_nothing_is_given_up_with_its_stream() {
    let (server, _) = server(Config { write_timeout: SECOND / 5, response_buffer_size: 10_000, ..config() });
    let mut client = Client2::connect(server.address, 0);
    let stream = client.get("/big");
    client.until("the stream is reset", |client| client.streams[&stream].reset.is_some());
    assert_eq!(client.streams[&stream].reset, Some(CANCEL));
    server.until(Word::WriteTimeouts, 1);
    let next = client.ask("HEAD", "/", &[], true);
    assert_eq!(client.response(next).status, 200, "the connection lives");
}

#[test]
fn a_request_that_is_too_late_is_answered_on_its_stream() {
    let (server, gate) = server(Config { threads: 2, request_timeout: SECOND / 5, ..config() });
    let mut client = Client2::connect(server.address, WINDOW);
    let late = client.get("/held");
    let response = client.response(late);
    assert_eq!((response.status, response.is_over), (504, true));
    gate.open(1);
    let next = client.get("/");
    assert_eq!(client.response(next).status, 200);
    server.until(Word::Late, 1);
}

#[test]
fn a_wrong_frame_ends_the_connection_and_a_refused_request_does_not() {
    let (server, _) = server(config());
    let mut client = Client2::connect(server.address, WINDOW);
    let refused = client.ask("GET", "/", &[("expect", "nonsense")], true);
    assert_eq!(client.response(refused).status, 417);
    let good = client.get("/");
    assert_eq!(client.response(good).status, 200);
    client.frame(Kind::Data, END_STREAM, 99, b"on a stream that is idle");
    client.until_closed();
    assert_eq!(client.goaways.last(), Some(&(good, 1)), "PROTOCOL_ERROR");
    assert_eq!(server.get(Word::Http2Violations), 1);
}

#[test]
fn a_client_that_leaves_takes_all_its_streams_with_it() {
    let server = HubServer::start(speaking(Config { threads: 8, ..config() }));
    let mut client = Client2::connect(server.address, WINDOW);
    for path in ["/a", "/b"] {
        client.get(path);
    }
    server.until_open(&["/a", "/b"]);
    for path in ["/a", "/b"] {
        server.at(path, |engine, exchange| engine.attend(exchange));
    }
    drop(client);
    let mut broken = 0;
    until("both are told", || {
        broken += server.stirs().iter().filter(|stir| stir.readiness.broken).count();
        broken >= 2
    });
    for path in ["/a", "/b"] {
        assert_eq!(server.write(path, &[b"piece"]), [Sent::Gone]);
        server.give_back(path);
    }
}

#[test]
fn trailers_and_interim_responses_are_frames_of_their_own() {
    let server = Server::start(speaking(config()), |engine, exchange| {
        let mut hints = [(&b"link"[..], &b"</a>"[..])].into_iter();
        exchange.interim(103, &mut hints).expect("a hint");
        exchange.request.reply.status(b"200 OK").expect("a status");
        let inputs = HeadInputs::default();
        engine.write(exchange, &inputs, b"content", || Box::new(b"content".to_vec()));
        exchange.request.reply.trailer(b"grpc-status", b"0").expect("a trailer");
        exchange.end();
    });
    let mut client = Client2::connect(server.address, WINDOW);
    let stream = client.get("/");
    client.until("the hint", |client| client.streams[&stream].status == 103);
    let response = client.response(stream);
    assert_eq!((response.status, &*response.body), (200, &b"content"[..]));
    assert_eq!(response.trailers.get("grpc-status").map(String::as_str), Some("0"));
}
