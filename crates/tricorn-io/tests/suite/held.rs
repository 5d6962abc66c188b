//! Answers that are ready while requests wait are sent together (`Reactor::send_held`), and none of them is kept.
use crate::harness;
use harness::*;
use std::time::{Duration, Instant};

/// Short calls, as long as those whose answers are held back.
fn work() {
    let began = Instant::now();
    while began.elapsed() < Duration::from_micros(100) {
        std::hint::spin_loop();
    }
}

#[test]
fn answers_held_back_are_sent_though_the_next_call_blocks() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config(), move |engine, exchange| {
        match path(exchange).as_str() {
            "/block" => held.pass(),
            _ => work(),
        }
        answer(engine, exchange, b"done");
    });
    let mut blocker = server.connect();
    blocker.ask("/block");
    gate.until_held(1);
    // A queue of short calls with a long one behind them. The first ones teach the engine that calls are short.
    let mut clients: Vec<Client> = (0..60).map(|_| server.connect()).collect();
    for (index, client) in clients.iter_mut().enumerate() {
        client.ask("/work");
        server.until(Word::Queued, index as u64 + 1);
    }
    let mut last = server.connect();
    last.ask("/block");
    server.until(Word::Queued, 61);
    gate.open(1);
    assert_eq!(blocker.response().body, b"done");
    for client in &mut clients {
        assert_eq!(client.response().body, b"done");
    }
    gate.open(1);
    assert_eq!(last.response().body, b"done");
}

#[test]
fn a_drain_and_a_stop_keep_no_answer() {
    let server = Server::start(config(), |engine, exchange| {
        work();
        answer(engine, exchange, b"done");
    });
    let mut clients: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    for round in 0..5 {
        for client in &mut clients {
            client.ask("/work");
        }
        if round == 4 {
            server.engine.drain();
        }
        for client in &mut clients {
            assert_eq!(client.response().body, b"done");
        }
    }
    server.until_ended();
}
