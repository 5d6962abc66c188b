//! Drain, stop and close.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;
use std::net::{TcpListener, TcpStream};
use std::time::Instant;
use tricorn_io::{Config, Engine, Logs, Scoreboard};

fn with_gate(config: Config) -> (Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config, move |engine, exchange| {
        match path(exchange).as_str() {
            "/block" => held.pass(),
            "/stream" => {
                write(engine, exchange, b"begun");
                held.pass();
                write(engine, exchange, b"done");
                exchange.end();
                return;
            }
            _ => {}
        }
        answer(engine, exchange, b"done");
    });
    (server, gate)
}

/// Its address refuses connections.
fn is_deaf(server: &Server) -> bool {
    TcpStream::connect(server.address).is_err()
}

#[test]
fn a_drain_finishes_what_runs_closes_what_is_idle_and_ends_every_thread() {
    let (server, gate) = with_gate(Config { threads: 3, ..config() });
    let (mut idle, mut running) = (server.connect(), server.connect());
    assert_eq!(idle.get("/").status, 200);
    running.ask("/block");
    gate.until_held(1);
    server.engine.drain();
    assert_eq!(server.get(Word::State), DRAINING);
    idle.is_closed();
    until("the listener closes", || is_deaf(&server));
    assert_eq!(server.ended(), 0, "a request still runs");
    gate.open(1);
    let response = running.response();
    assert!(response.closes());
    assert_eq!(response.body, b"done");
    running.is_closed();
    server.until_ended();
    assert_eq!(server.get(Word::Connections), 0);
}

/// With `reload`, and a pipe to the arbiter.
fn reloading() -> (Server, Gate, Ear) {
    let (read, messages) = pipe();
    let (server, gate) = with_gate(Config { threads: 3, closes_idle: true, messages, ..config() });
    (server, gate, Ear::new(read))
}

#[test]
fn with_reload_a_worker_that_leaves_says_so_when_its_idle_connections_are_closed() {
    let (server, gate, mut ear) = reloading();
    let mut idle: Vec<Client> = (0..600).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/").status, 200);
    }
    let mut running = server.connect();
    running.ask("/block");
    gate.until_held(1);
    server.engine.drain();
    assert_eq!(ear.until_lines(1), ["parted"]);
    // All of them, though the baton is let go of meanwhile; and not in two seconds, but by now.
    assert!(idle.iter().all(Client::has_something), "their ends have come");
    idle.iter_mut().for_each(Client::is_closed);
    assert_eq!(server.ended(), 0, "a request still runs");
    gate.open(1);
    assert_eq!(running.response().body, b"done");
    server.until_ended();
    server.engine.close();
    assert_eq!(ear.listen(), "parted\n", "it is said once");
}

#[test]
fn with_reload_a_request_that_is_on_its_way_when_the_worker_leaves_is_answered() {
    let (server, gate, mut ear) = reloading();
    // All threads are busy, and what comes meanwhile waits.
    let mut busy: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    let mut kept = server.connect();
    assert_eq!(kept.get("/").status, 200);
    for client in &mut busy {
        client.ask("/block");
    }
    gate.until_held(3);
    kept.ask("/");
    server.engine.drain();
    assert_eq!(ear.until_lines(1), ["parted"]);
    gate.open(3);
    for client in busy.iter_mut().chain([&mut kept]) {
        let response = client.response();
        assert!(response.status == 200 && response.closes());
    }
    server.until_ended();
}

#[test]
fn with_reload_a_promise_to_keep_the_connection_does_not_hold_for_the_worker_that_leaves() {
    let (server, gate, mut ear) = reloading();
    let mut client = server.connect();
    client.ask("/stream");
    assert!(client.head().1.contains("\r\nConnection: keep-alive\r\n"), "the drain had not begun");
    assert_eq!(client.chunk(), b"begun");
    gate.until_held(1);
    server.engine.drain();
    assert_eq!(ear.until_lines(1), ["parted"]);
    gate.open(1);
    assert_eq!(client.chunk(), b"done");
    assert!(client.chunk().is_empty());
    client.is_closed();
    server.until_ended();
}

#[test]
fn connections_made_before_the_drain_are_still_served() {
    let (server, gate) = with_gate(Config { siblings: true, ..config() });
    let mut first = server.connect();
    first.ask("/block");
    gate.until_held(1);
    server.until_at_least(Word::Rescues, 1);
    // The gate is closed: these stay in the kernel's queue.
    let mut waiting: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut waiting {
        client.ask("/");
    }
    assert_eq!(server.get(Word::Accepted), 1);
    server.engine.drain();
    gate.open(1);
    assert!(first.response().closes());
    for client in &mut waiting {
        let response = client.response();
        assert!(response.status == 200 && response.closes());
    }
    server.until_ended();
}

#[test]
fn a_client_that_says_nothing_does_not_hold_up_a_drain_for_its_header_timeout() {
    let (server, gate) = with_gate(Config { siblings: true, ..config() });
    let mut first = server.connect();
    first.ask("/block");
    gate.until_held(1);
    server.until_at_least(Word::Rescues, 1);
    // The gate is closed: it is taken when the drain closes the listeners. `header_timeout` is an hour.
    let mut silent = server.connect();
    assert_eq!(server.get(Word::Accepted), 1);
    server.engine.drain();
    gate.open(1);
    assert!(first.response().closes());
    server.until_ended();
    silent.is_closed();
    assert_eq!(server.get(Word::Accepted), 2);
}

#[test]
fn requests_queued_before_the_drain_are_answered() {
    let (server, gate) = with_gate(config());
    let mut first = server.connect();
    first.ask("/block");
    gate.until_held(1);
    let mut queued: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut queued {
        client.ask("/");
    }
    server.until(Word::Queued, 5);
    server.engine.drain();
    gate.open(1);
    assert!(first.response().closes());
    for client in &mut queued {
        assert!(client.response().closes());
    }
    server.until_ended();
}

#[test]
fn a_reply_begun_before_the_drain_does_not_hold_it_up_for_the_keep_alive_time() {
    let (server, gate) = with_gate(config());
    let mut client = server.connect();
    client.ask("/stream");
    assert!(client.head().1.contains("\r\nConnection: keep-alive\r\n"), "the drain had not begun");
    assert_eq!(client.chunk(), b"begun");
    gate.until_held(1);
    server.engine.drain();
    gate.open(1);
    assert_eq!(client.chunk(), b"done");
    assert!(client.chunk().is_empty());
    client.is_closed();
    server.until_ended();
}

#[test]
fn a_drained_worker_without_connections_ends_at_once() {
    let (server, _gate) = with_gate(Config { threads: 4, ..config() });
    server.engine.drain();
    server.until_ended();
    assert!(is_deaf(&server));
}

#[test]
fn a_stop_ends_every_thread_that_is_idle_and_the_others_after_their_request() {
    let (server, gate) = with_gate(Config { threads: 3, ..config() });
    let (mut idle, mut running) = (server.connect(), server.connect());
    assert_eq!(idle.get("/").status, 200);
    running.ask("/block");
    gate.until_held(1);
    server.engine.stop();
    until("the idle threads end", || server.ended() == 2);
    gate.open(1);
    assert_eq!(running.response().status, 200);
    server.until_ended();
}

#[test]
fn a_close_joins_the_monitor_closes_connections_and_can_be_repeated() {
    let (server, _gate) = with_gate(config());
    let mut idle = server.connect();
    assert_eq!(idle.get("/").status, 200);
    server.engine.stop();
    server.until_ended();
    server.engine.close();
    idle.is_closed();
    assert_eq!((server.get(Word::Connections), server.get(Word::State)), (0, STOPPED));
    assert!(is_deaf(&server));
    let before = server.get(Word::Heartbeat);
    server.engine.close();
    assert_eq!(server.get(Word::Heartbeat), before, "the monitor is gone");
}

#[test]
fn whoever_waits_for_a_signal_learns_of_the_end() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let engine =
        Engine::new(config(), vec![listener.into()], Scoreboard::private(1), Logs::default()).expect("an engine");
    engine.start().expect("a monitor");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| while engine.wait_for_signal() {});
        engine.stop();
        until("the wait ends", || waiting.is_finished());
    });
    engine.close();
}

#[test]
fn a_client_that_connected_just_before_the_drain_has_a_moment_to_ask() {
    // Nothing is kept alive: there is no other reason why it may be silent for a moment.
    let (server, _gate) = with_gate(Config { keepalive: 0, ..config() });
    let mut client = server.connect();
    server.until(Word::Accepted, 1);
    server.engine.drain();
    until("the worker has seen to it", || is_deaf(&server));
    assert!(client.get("/").closes());
    server.until_ended();
}

#[test]
fn a_client_that_asks_for_nothing_does_not_outlive_the_drain_by_long() {
    let (server, _gate) = with_gate(config());
    let (mut silent, begin) = (server.connect(), Instant::now());
    server.until(Word::Accepted, 1);
    server.engine.drain();
    silent.is_closed();
    server.until_ended();
    assert!(begin.elapsed() < DEADLINE);
}
