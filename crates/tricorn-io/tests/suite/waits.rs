//! What waits costs nothing: beside calls that go on and streams that say nothing the monitor waits in the kernel, and misses
//! nothing that comes.
use crate::harness;
use harness::*;
use std::time::Duration;
use tricorn_io::{Config, Sent};

/// More than a socket takes whose client does not read.
const MUCH: usize = 16 << 20;

/// Whether the monitor sleeps for fifty ticks.
fn sleeps(server: &Server) -> bool {
    let before = server.get(Word::Heartbeat);
    std::thread::sleep(Duration::from_millis(50)); // the time that is measured
    server.get(Word::Heartbeat) == before
}

#[track_caller]
fn until_asleep(server: &Server) {
    until("the monitor sleeps", || sleeps(server));
}

/// A server whose calls are held at `/held`, and answer others at once.
fn holding(config: Config) -> (Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) == "/held" {
            held.pass();
        }
        answer(engine, exchange, b"done");
    });
    (server, gate)
}

/// One more call that is held.
fn hold(server: &Server, gate: &Gate) -> Client {
    let before = gate.held();
    let mut client = server.connect();
    client.ask("/held");
    gate.until_held(before + 1);
    client
}

#[test]
fn beside_calls_that_wait_the_monitor_sleeps_and_what_comes_is_served() {
    let (server, gate) = holding(Config { threads: 4, ..config() });
    let mut clients = Vec::from([(); 3].map(|()| hold(&server, &gate)));
    until_asleep(&server);
    for _ in 0..3 {
        assert_eq!(server.connect().get("/").body, b"done");
        until_asleep(&server);
    }
    // The last free thread goes, and the monitor covers: in the kernel, too, where it sees what clients say.
    clients.push(hold(&server, &gate));
    until_asleep(&server);
    let mut late = server.connect();
    late.ask("/late");
    server.until(Word::Queued, 1);
    until_asleep(&server);
    gate.open(4);
    for client in clients.iter_mut().chain([&mut late]) {
        assert_eq!(client.response().body, b"done");
    }
}

#[test]
fn a_call_that_ends_wakes_a_monitor_that_sleeps_beside_it() {
    let (server, gate) = holding(Config { threads: 3, ..config() });
    let mut clients = [(); 2].map(|()| hold(&server, &gate));
    until_asleep(&server);
    let before = server.get(Word::Heartbeat);
    gate.open(1);
    until("the monitor looks", || server.get(Word::Heartbeat) != before);
    until_asleep(&server);
    gate.open(1);
    clients.iter_mut().for_each(|client| assert_eq!(client.response().status, 200));
}

#[test]
fn a_call_that_is_silent_for_too_long_is_told_in_time_beside_a_monitor_that_sleeps() {
    let (ear, messages) = pipe();
    let mut ear = Ear::new(ear);
    let config = Config { threads: 3, timeout: 400 * MILLI, messages, ..config() };
    let (server, gate) = holding(config);
    let mut client = hold(&server, &gate);
    until_asleep(&server);
    let told = ear.until_lines(1).remove(0);
    assert!(told.starts_with("stuck timeout ") && told.ends_with(" GET /held"), "{told}");
    let age: u64 = told.split(' ').nth(3).and_then(|age| age.parse().ok()).expect("milliseconds");
    assert!((400..4_000).contains(&age), "{told}");
    gate.open(1);
    assert_eq!(client.response().status, 200);
}

#[test]
fn a_stream_that_has_nothing_to_say_keeps_no_monitor_awake_and_what_it_says_next_is_sent() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { threads: 3, ..config() }, move |engine, exchange| {
        for _ in 0..3 {
            write(engine, exchange, b"piece");
        }
        held.pass();
        for _ in 0..3 {
            write(engine, exchange, b"again"); // the last ones are gathered
        }
        held.pass();
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/stream");
    client.head();
    for _ in 0..3 {
        assert_eq!(client.chunk(), b"piece");
    }
    gate.until_held(1);
    until_asleep(&server);
    gate.open(1);
    for _ in 0..3 {
        assert_eq!(client.chunk(), b"again");
    }
    until_asleep(&server);
    gate.open(1);
    assert_eq!(client.chunk(), b"");
}

#[test]
fn a_client_that_does_not_read_is_waited_for_in_the_kernel() {
    let gate = Gate::default();
    let held = gate.clone();
    let config = Config { threads: 3, response_buffer_size: 2 * MUCH, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        for _ in 0..2 {
            assert_eq!(write(engine, exchange, &vec![b'x'; MUCH / 2]), Sent::Accepted);
        }
        held.pass();
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/stream");
    gate.until_held(1);
    until_asleep(&server);
    // All of it comes, though the application says nothing.
    client.head();
    for _ in 0..2 {
        assert_eq!(client.chunk().len(), MUCH / 2);
    }
    until_asleep(&server);
    gate.open(1);
    assert_eq!(client.chunk(), b"");
}
