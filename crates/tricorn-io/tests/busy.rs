//! Every app thread is inside the application: what the monitor must still see to.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tricorn_io::Config;

/// One thread, blocked by `/block` until the gate is opened; the paths in the order in which they were started.
fn blocked(config: Config) -> (Server, Gate, Client, Arc<Mutex<Vec<String>>>) {
    let gate = Gate::default();
    let started = Arc::new(Mutex::new(Vec::new()));
    let (held, paths) = (gate.clone(), started.clone());
    let server = Server::start(config, move |engine, exchange| {
        let path = path(exchange);
        paths.lock().expect("paths").push(path.clone());
        match path.as_str() {
            "/block" => held.pass(),
            "/big" => {
                answer(engine, exchange, &vec![b'x'; BIG]);
                return;
            }
            _ => {}
        }
        answer(engine, exchange, path.as_bytes());
    });
    let mut first = server.connect();
    first.ask("/block");
    gate.until_held(1);
    (server, gate, first, started)
}

/// More than the sockets of the loopback hold.
const BIG: usize = 32 << 20;

#[test]
fn requests_are_read_and_queued_and_start_in_the_order_of_their_heads() {
    let (server, gate, mut first, started) = blocked(config());
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    // Not the order in which the connections were made.
    for (place, index) in [3, 0, 4, 1, 2].into_iter().enumerate() {
        clients[index].ask(&format!("/{place}"));
        server.until(Word::Queued, place as u64 + 1);
    }
    // One that is kept alive does not jump the queue.
    first.ask("/kept-alive");
    gate.open(1);
    assert_eq!(first.response().body, b"/block");
    assert_eq!(first.response().body, b"/kept-alive");
    for (place, index) in [3, 0, 4, 1, 2].into_iter().enumerate() {
        assert_eq!(clients[index].response().body, format!("/{place}").into_bytes());
    }
    assert_eq!(*started.lock().expect("paths"), ["/block", "/0", "/1", "/2", "/3", "/4", "/kept-alive"]);
    server.until(Word::Queued, 0);
    assert!(server.get(Word::Rescues) >= 1);
}

#[test]
fn the_head_deadline_is_enforced_with_408() {
    let (server, gate, mut first, _) = blocked(Config { header_timeout: 300 * MILLI, ..config() });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHo");
    let response = client.response();
    assert_eq!(response.status, 408);
    assert!(response.closes());
    client.is_closed();
    assert_eq!(server.get(Word::HeadTimeouts), 1);
    gate.open(1);
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_slow_reader_gets_the_rest_of_its_reply() {
    let (server, gate, mut first, _) = blocked(config());
    gate.open(1);
    assert_eq!(first.response().status, 200);
    let mut slow = server.connect();
    slow.ask("/big");
    // The reply is beyond the handler: its rest is with the reactor, and the thread blocks in the next request.
    server.until(Word::Requests, 2);
    first.ask("/block");
    gate.until_held(1);
    assert_eq!(slow.response().body.len(), BIG);
    gate.open(1);
    assert_eq!(first.response().status, 200);
}

#[test]
fn without_siblings_new_connections_are_accepted_though_every_thread_is_busy() {
    let (server, gate, mut first, _) = blocked(config());
    let mut newcomer = server.connect();
    newcomer.ask("/new");
    server.until(Word::Accepted, 2);
    server.until(Word::Queued, 1);
    gate.open(1);
    assert_eq!(first.response().status, 200);
    assert_eq!(newcomer.response().status, 200);
}

#[test]
fn with_siblings_no_new_connection_is_accepted_while_every_thread_is_busy() {
    let config = Config { siblings: true, ..config() };
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) == "/block" {
            held.pass();
        }
        answer(engine, exchange, b"");
    });
    let (mut first, mut second) = (server.connect(), server.connect());
    assert_eq!(first.get("/").status, 200);
    assert_eq!(second.get("/").status, 200);
    first.ask("/block");
    gate.until_held(1);
    server.until_at_least(Word::Rescues, 1);
    let mut newcomer = server.connect();
    newcomer.ask("/");
    // The monitor has looked at the sockets after the newcomer came: it read this.
    second.ask("/");
    server.until(Word::Queued, 1);
    assert_eq!(server.get(Word::Accepted), 2);
    gate.open(1);
    assert!(first.response().closes(), "a request waits here that a sibling could take: go and try");
    assert_eq!(second.response().status, 200);
    assert_eq!(newcomer.response().status, 200);
    assert_eq!(server.get(Word::Accepted), 3);
}

#[test]
fn a_full_worker_accepts_nothing_until_a_request_is_done() {
    let (server, gate, mut first, _) = blocked(Config { worker_connections: 2, ..config() });
    let mut idle = server.connect();
    server.until(Word::Accepted, 2);
    let mut second = server.connect();
    second.ask("/2");
    server.until(Word::Queued, 1);
    let mut third = server.connect();
    third.ask("/3");
    // That this is read shows that the monitor has looked at the sockets since.
    let before = server.get(Word::BytesIn);
    idle.send(b"G");
    server.until(Word::BytesIn, before + 1);
    assert_eq!(server.get(Word::Accepted), 3);
    gate.open(1);
    for client in [&mut first, &mut second, &mut third] {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_worker_that_never_rests_accepts_again_once_its_threads_are_free() {
    // Four clients. Each pair of requests makes the other two ask while it is answered: whenever the thread looks there
    // are two more, and it never sleeps. Before that a full worker closes the gate to a newcomer.
    let gate = Gate::default();
    let held = gate.clone();
    let askers: Arc<Mutex<Vec<Client>>> = Arc::default();
    let (clients, rounds) = (askers.clone(), Arc::new(AtomicUsize::new(0)));
    let (count, enough) = (rounds.clone(), Arc::new(AtomicUsize::new(usize::MAX)));
    let end = enough.clone();
    let server = Server::start(Config { worker_connections: 3, ..config() }, move |engine, exchange| {
        let path = path(exchange);
        if path == "/block" {
            held.pass();
        }
        let round = if path == "/2" || path == "/4" { count.fetch_add(1, Ordering::SeqCst) } else { 0 };
        if path == "/2" && round < end.load(Ordering::SeqCst) {
            let mut clients = clients.lock().expect("clients");
            clients[2].ask("/3");
            clients[3].ask("/4");
        } else if path == "/4" && round < end.load(Ordering::SeqCst) {
            let mut clients = clients.lock().expect("clients");
            clients[0].ask("/1");
            clients[1].ask("/2");
        }
        answer(engine, exchange, b"");
    });
    for _ in 0..4 {
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        askers.lock().expect("clients").push(client);
    }
    let mut first = server.connect();
    first.ask("/block");
    gate.until_held(1);
    {
        let mut clients = askers.lock().expect("clients");
        clients[0].ask("/1");
        clients[1].ask("/2");
    }
    server.until(Word::Queued, 2);
    let mut newcomer = server.connect();
    newcomer.ask("/new");
    gate.open(1);
    let served = until_some(|| {
        (server.get(Word::Accepted) == 6 || rounds.load(Ordering::SeqCst) > 20_000)
            .then(|| server.get(Word::Accepted) == 6)
    });
    let at = rounds.load(Ordering::SeqCst);
    enough.store(0, Ordering::SeqCst);
    assert_eq!(newcomer.response().status, 200);
    assert_eq!(served, Some(true), "a newcomer waited for {at} rounds of other clients' requests");
}

/// Processor time of the monitor of this process's only engine that is blocked; by its thread's name.
fn monitors_time() -> Duration {
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task").expect("proc").flatten() {
        let path = task.path();
        let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
        if name.trim_end() == "tricorn-monitor" {
            let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            total += text.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Duration::from_nanos(total)
}

/// Whether the monitors keep a processor busy over a period: they look around a few times a millisecond at most.
fn is_spinning(server: &Server) -> bool {
    let (begin, before) = (Instant::now(), monitors_time());
    let (mut looks, mut last) = (0, server.get(Word::Heartbeat));
    while begin.elapsed() < Duration::from_millis(300) {
        let beat = server.get(Word::Heartbeat);
        looks += u32::from(beat != last);
        last = beat;
        std::thread::sleep(Duration::from_micros(200));
    }
    // Both: it looked around at nearly every look of ours, and it used a good part of the time.
    looks > 500 && monitors_time() - before > begin.elapsed() / 4
}

#[test]
fn a_drain_while_every_thread_is_busy_does_not_keep_the_monitor_running() {
    let (server, gate, mut first, _) = blocked(config());
    server.until_at_least(Word::Rescues, 1);
    server.engine.drain();
    assert!(!is_spinning(&server), "the kick is never taken back while no app thread returns");
    gate.open(1);
    assert_eq!(first.response().status, 200);
    server.until_ended();
}

#[test]
fn a_signal_while_every_thread_is_busy_does_not_keep_the_monitor_running() {
    let (server, gate, mut first, _) = blocked(config());
    server.until_at_least(Word::Rescues, 1);
    // As the interpreter's C handler does.
    let pipe = tricorn_io::duplicate(server.engine.wakeup_fd()).expect("a descriptor");
    rustix::io::write(&pipe, b"\x0f").expect("a pipe");
    assert!(!is_spinning(&server), "the signal's byte is never read while no app thread returns");
    gate.open(1);
    assert_eq!(first.response().status, 200);
}
