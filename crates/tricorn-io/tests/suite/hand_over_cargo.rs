//! What travels with a connection that is handed over.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex};
use tricorn_io::{Config, Peer, ProxyProtocol};
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::peer::proxy_protocol::Accepts;
use tricorn_proto::peer::{ProxyPolicy, Trust};

/// A worker that is busy, its sibling that is not, and a connection with the busy one.
fn busy_and_idle(config: Config) -> (Workers, Client) {
    let workers = Workers::echo(Plan { config, ..plan(2) });
    let client = workers.connect(0);
    workers.block(0);
    (workers, client)
}

fn siblings() -> Config {
    plan(2).config
}

#[track_caller]
fn handed_over(workers: &Workers, least: u64) {
    until("it was handed over", || workers.sum(Word::HandedOver) >= least && workers.in_channel() == 0);
}

#[test]
fn bodies_small_and_large_arrive_whole() {
    for length in [0, 1, 5_000, 32 * 1024 - 200, 32 * 1024, 40_000, 700_000] {
        let (workers, mut client) = busy_and_idle(siblings());
        let body = noise(length);
        client.post("/body", &body);
        let answer = client.response().answer();
        assert_eq!((answer.worker, answer.path.as_str()), (Some(1), "/body"));
        assert!(answer.body == body, "{length} bytes");
        handed_over(&workers, 1);
        until("no body is counted any more", || workers.sum(Word::BodyBytes) == 0);
        workers.unblock_all();
    }
}

#[test]
fn what_a_balancer_has_announced_arrives() {
    let announces = ProxyProtocol { accepts: Accepts::Both, allow: Trust::everybody(), required: false };
    let config = Config { proxy_protocol: Some(Box::new(announces)), ..siblings() };
    let seen: Arc<Mutex<Vec<(usize, Peer, String)>>> = Arc::default();
    let notes = seen.clone();
    let workers = Workers::start(Plan { config, ..plan(2) }, move |worker, exchange| {
        let announced = exchange.request.announced().map(|announced| announced.ends.family().to_owned());
        let note = (worker, exchange.client.peer, announced.unwrap_or_default());
        notes.lock().expect("notes").push(note);
    });
    let mut client = workers.servers[0].connect();
    client.send(b"PROXY TCP6 2001:db8::9 2001:db8::1 4711 443\r\n");
    workers.block(0);
    client.post("/first", &noise(200_000));
    assert_eq!(client.response().status, 200);
    handed_over(&workers, 1);
    assert_eq!(client.get("/second").status, 200);
    let client = Peer::Internet("[2001:db8::9]:4711".parse().expect("an address"));
    let told: Vec<_> = seen.lock().expect("notes").iter().filter(|(_, peer, _)| *peer == client).cloned().collect();
    assert_eq!(told, [(1, client, "TCP6".to_owned()), (1, client, "TCP6".to_owned())]);
    workers.unblock(0);
}

#[test]
fn a_chunked_body_arrives_as_its_bytes() {
    let (workers, mut client) = busy_and_idle(siblings());
    let body = noise(50_000);
    client.send(b"POST /chunks HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    for piece in body.chunks(7_001) {
        client.send(format!("{:x}\r\n", piece.len()).as_bytes());
        client.send(piece);
        client.send(b"\r\n");
    }
    client.send(b"0\r\n\r\n");
    let answer = client.response().answer();
    assert_eq!(answer.worker, Some(1));
    assert!(answer.body == body);
    // And the next request is found behind it.
    assert_eq!(client.get("/next").answer().path, "/next");
    workers.unblock_all();
}

#[test]
fn a_body_on_disk_travels_as_its_file() {
    let (workers, mut client) = busy_and_idle(Config { body_buffer_size: 1000, ..siblings() });
    let body = noise(300_000);
    client.post("/disk", &body);
    let answer = client.response().answer();
    assert_eq!(answer.worker, Some(1));
    assert!(answer.body == body);
    assert_eq!((workers.get(0, Word::Spooled), workers.get(1, Word::Spooled)), (1, 0));
    // A chunked one, which begins in memory.
    let mut second = workers.connect_to_all();
    second.send(b"POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n");
    second.send(&body[..3000]);
    second.send(b"\r\n0\r\n\r\n");
    assert!(second.response().answer().body == body[..3000]);
    workers.unblock_all();
}

#[test]
fn requests_behind_it_on_the_connection_are_answered_in_their_order() {
    for (count, length) in [(2, 0), (10, 10), (40, 3_000)] {
        let (workers, mut client) = busy_and_idle(siblings());
        let mut stream = Vec::new();
        for number in 0..count {
            let body = noise(length + number);
            stream.extend_from_slice(post(&format!("/{number}"), body.len()).as_bytes());
            stream.extend_from_slice(&body);
        }
        client.send(&stream);
        for number in 0..count {
            let answer = client.response().answer();
            assert_eq!((answer.path, answer.worker), (format!("/{number}"), Some(1)));
            assert!(answer.body == noise(length + number), "request {number} of {count}");
        }
        handed_over(&workers, 1);
        workers.unblock_all();
    }
}

#[test]
fn requests_behind_it_go_on_when_their_worker_is_busy_with_somebody_else() {
    let gates = [Gate::default(), Gate::default()];
    let held = gates.clone();
    let workers = Workers::start(plan(2), move |_, exchange| match path(exchange).as_str() {
        "/hold/0" => held[0].pass(),
        "/hold/1" => held[1].pass(),
        _ => {}
    });
    let (mut client, mut other) = (workers.connect(0), workers.connect(1));
    client.send((request("/hold/0") + &request("/a") + &request("/b")).as_bytes());
    gates[0].until_held(1);
    workers.block(1);
    other.ask("/hold/1");
    until("the sibling's request is in the channel", || workers.in_channel() == 1);
    // The first is free: it serves who has waited longest, and that was not its own client.
    gates[0].open(1);
    assert_eq!(client.response().answer().worker, Some(0));
    gates[1].until_held(1);
    workers.unblock_all();
    for path in ["/a", "/b"] {
        let answer = client.response().answer();
        assert_eq!((answer.path.as_str(), answer.worker), (path, Some(1)));
    }
    gates[1].open(1);
    assert_eq!(other.response().answer().worker, Some(0));
    handed_over(&workers, 2);
}

/// Worker, path, peer and listener.
type Seen = (usize, String, Peer, u16);

#[test]
fn the_peer_and_the_listener_are_those_it_came_by() {
    let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let notes = seen.clone();
    let workers = Workers::start(plan(2), move |index, exchange| {
        let note = (index, path(exchange), exchange.client.peer, exchange.client.listener);
        notes.lock().expect("notes").push(note);
    });
    // Both clients are the first worker's: the second is busy while they come.
    workers.block(1);
    let mut client = workers.connect_to_all();
    assert_eq!(client.get("/").answer().worker, Some(0));
    let mut unix = workers.connect_unix();
    unix.write_all(request("/").as_bytes()).expect("a server");
    assert_eq!(read_answer(&mut unix).worker, Some(0));
    workers.unblock_all();
    workers.block(0);
    assert_eq!(client.get("/internet").answer().worker, Some(1));
    unix.write_all(request("/unix").as_bytes()).expect("a server");
    assert_eq!(read_answer(&mut unix).worker, Some(1));
    let own: SocketAddr = client.stream.local_addr().expect("an address");
    let notes = seen.lock().expect("notes").clone();
    let of = |wanted: &str| notes.iter().find(|(_, path, ..)| path == wanted).cloned().expect("a note");
    assert_eq!(of("/internet"), (1, "/internet".into(), Peer::Internet(own), 0));
    assert_eq!(of("/unix"), (1, "/unix".into(), Peer::Unix, 1));
    handed_over(&workers, 2);
    workers.unblock_all();
}

/// One response from a unix socket.
fn read_answer(stream: &mut std::os::unix::net::UnixStream) -> Answer {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let count = stream.read(&mut piece).expect("an answer");
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            assert!(count > 0, "closed: {text:?}");
            continue;
        };
        let length: usize = head
            .split("\r\n")
            .find_map(|line| line.strip_prefix("Content-Length: "))
            .and_then(|digits| digits.parse().ok())
            .expect("a length");
        if body.len() == length {
            let status = head.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status");
            return Response { status, head: format!("{head}\r\n\r\n"), body: body.as_bytes().to_vec() }.answer();
        }
        assert!(count > 0, "closed: {text:?}");
    }
}

#[test]
fn queue_times_are_counted_from_where_it_was_read_first() {
    let seen: Arc<Mutex<Vec<(String, u64)>>> = Arc::default();
    let notes = seen.clone();
    let mut config = siblings();
    config.policy.trust = Trust::parse("127.0.0.1").expect("an address");
    let workers = Workers::start(Plan { config, ..plan(2) }, move |_, exchange| {
        notes.lock().expect("notes").push((path(exchange), exchange.timing.queue));
    });
    let mut client = workers.connect(0);
    let mut fronted = workers.connect(0);
    workers.block(0);
    workers.block(1);
    client.ask("/waits");
    workers.until_waiting(1);
    // Half a minute ago, as its front end says.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let start = now.as_micros() as u64 - 30_000_000;
    fronted.send(format!("GET /fronted HTTP/1.1\r\nHost: h\r\nX-Request-Start: t={start}\r\n\r\n").as_bytes());
    workers.until_waiting(2);
    std::thread::sleep(std::time::Duration::from_millis(120)); // this is what is measured
    workers.unblock_all();
    assert_eq!(client.response().answer().path, "/waits");
    assert_eq!(fronted.response().answer().path, "/fronted");
    let notes = seen.lock().expect("notes").clone();
    let of = |wanted: &str| notes.iter().find(|(path, _)| path == wanted).expect("a note").1;
    assert!((120 * MILLI..10 * SECOND).contains(&of("/waits")), "{} ns", of("/waits"));
    assert!((30 * SECOND..45 * SECOND).contains(&of("/fronted")), "{} ns", of("/fronted"));
}

#[test]
fn a_client_that_closes_its_sending_side_with_its_request_is_served() {
    let (workers, mut client) = busy_and_idle(siblings());
    client.ask("/half");
    client.stream.shutdown(Shutdown::Write).expect("a connection");
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.path.as_str()), (Some(1), "/half"));
    client.is_closed();
    workers.unblock_all();
    until("it is forgotten", || workers.sum(Word::Connections) == 1 || workers.sum(Word::Connections) == 0);
}

#[test]
fn http_1_0_is_answered_and_closed_or_kept_as_it_asks() {
    let workers = Workers::echo(plan(2));
    let (mut client, mut other) = (workers.connect(0), workers.connect(0));
    workers.block(0);
    other.send(b"GET /old HTTP/1.0\r\n\r\n");
    assert_eq!(other.response().answer().worker, Some(1));
    other.is_closed();
    client.send(b"GET /kept HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n");
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.closes), (Some(1), false));
    client.send(b"GET /old HTTP/1.0\r\n\r\n");
    assert_eq!(client.response().answer().path, "/old");
    client.is_closed();
    workers.unblock_all();
}

#[test]
fn who_waits_for_100_continue_gets_it_from_whoever_reads_the_body() {
    let (workers, mut client) = busy_and_idle(siblings());
    client.send(b"POST /expects HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(client.head().0, 100);
    client.send(b"12345");
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.body.as_slice()), (Some(1), b"12345".as_slice()));
    handed_over(&workers, 1);
    workers.unblock_all();
}

#[test]
fn a_request_with_trailers_stays_and_waits() {
    let workers = Workers::echo(plan(2));
    let (mut client, mut other) = (workers.connect(0), workers.connect(0));
    workers.block(0);
    client.send(b"POST /trailers HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(b"3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n");
    workers.servers[0].until(Word::Queued, 1);
    // One without trailers, which came later, passes it.
    assert_eq!(other.get("/other").answer().worker, Some(1));
    workers.servers[0].until(Word::Queued, 1);
    workers.unblock_all();
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.body.as_slice()), (Some(0), b"abc".as_slice()));
}

#[test]
fn what_front_ends_say_is_applied_again_and_another_host_does_not_shift_the_body() {
    let trusted = ["x-forwarded-for", "x-forwarded-host"].map(String::from);
    let policy = HeadPolicy {
        trust: Trust::parse("*").expect("everybody"),
        proxy: Some(ProxyPolicy::new(&trusted, 1, true).expect("their names")),
        ..siblings().policy
    };
    let seen: Arc<Mutex<Vec<(usize, String, String)>>> = Arc::default();
    let noted = seen.clone();
    let plan = Plan { config: Config { policy, ..siblings() }, ..plan(2) };
    let workers = Workers::start(plan, move |index, exchange| {
        let request = &*exchange.request;
        let host = request.head.find(request.head_bytes(), b"host").expect("a host").to_vec();
        let client =
            request.claims().and_then(|claims| claims.client.clone()).map_or_else(String::new, |node| node.name);
        noted.lock().expect("no panic").push((index, String::from_utf8_lossy(&host).into_owned(), client));
    });
    let mut client = workers.connect(0);
    workers.block(0);
    let body = noise(5_000);
    let head = "POST /body HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Host: shop.example:81\r\n";
    client.send(format!("{head}Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    client.send(&body);
    let answer = client.response().answer();
    assert_eq!(answer.worker, Some(1));
    assert!(answer.body == body);
    handed_over(&workers, 1);
    let found = seen.lock().expect("no panic").iter().find(|(worker, ..)| *worker == 1).cloned();
    assert_eq!(found, Some((1, "shop.example:81".into(), "192.0.2.7".into())));
    workers.unblock_all();
}
