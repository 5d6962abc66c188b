//! Every worker is busy: how requests wait, and for how long.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tricorn_io::{Config, QueueOrder};
use tricorn_proto::peer::Trust;

/// The paths in the order in which their requests were begun, with the number of the worker.
type Begun = Arc<Mutex<Vec<(String, usize)>>>;

fn group(workers: usize, config: Config) -> (Workers, Begun) {
    let begun = Begun::default();
    let notes = begun.clone();
    let workers = Workers::start(Plan { config, ..plan(workers) }, move |index, exchange| {
        notes.lock().expect("notes").push((path(exchange), index));
    });
    (workers, begun)
}

fn paths(begun: &Begun) -> Vec<String> {
    let wanted = |path: &str| path.starts_with("/w");
    begun.lock().expect("notes").iter().map(|(path, _)| path.clone()).filter(|path| wanted(path)).collect()
}

fn siblings() -> Config {
    plan(2).config
}

#[track_caller]
fn is_turned_away(response: &Response) {
    assert_eq!(response.status, 503);
    assert!(response.head.contains("\r\nRetry-After: 1\r\nTricorn-Refused: queue\r\n"), "{}", response.head);
    assert!(!response.closes(), "{}", response.head);
}

#[test]
fn whoever_waits_longest_in_any_worker_is_served_first() {
    let turn = Gate::default();
    let (held, begun) = (turn.clone(), Begun::default());
    let notes = begun.clone();
    let workers = Workers::start(plan(3), move |index, exchange| {
        notes.lock().expect("notes").push((path(exchange), index));
        if path(exchange).starts_with("/w") {
            held.pass();
        }
    });
    let mut clients: Vec<Client> = (0..12).map(|place| workers.connect([2, 0, 1, 0, 2, 1][place % 6])).collect();
    for index in 0..3 {
        workers.block(index);
    }
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/w/{place}"));
        workers.until_waiting(place as u64 + 1);
    }
    until("the front is in the channel", || workers.in_channel() == 3);
    // Any worker that is free takes the next one; and there is time enough to fill the channel up again.
    workers.gates[0].open(1);
    for waiting in (0..12).rev() {
        turn.until_held(1);
        workers.until_waiting(waiting);
        until("the front is in the channel", || workers.in_channel() == waiting.min(3));
        turn.open(1);
    }
    for (place, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().answer().path, format!("/w/{place}"));
    }
    let wanted: Vec<String> = (0..12).map(|place| format!("/w/{place}")).collect();
    assert_eq!(paths(&begun), wanted);
    workers.unblock(1);
    workers.unblock(2);
}

#[test]
fn the_newest_come_first_once_a_queue_has_stood_if_that_is_wanted() {
    let config = Config { queue_order: QueueOrder::Adaptive, ..siblings() };
    let (workers, begun) = group(1, config);
    let mut clients: Vec<Client> = (0..6).map(|_| workers.connect(0)).collect();
    workers.block(0);
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/w/{place}"));
        workers.until_waiting(place as u64 + 1);
    }
    std::thread::sleep(Duration::from_millis(120)); // the queue stands
    workers.unblock_all();
    for client in &mut clients {
        assert_eq!(client.response().answer().status, 200);
    }
    let wanted: Vec<String> = (0..6).rev().map(|place| format!("/w/{place}")).collect();
    assert_eq!(paths(&begun), wanted);
}

#[test]
fn the_oldest_come_first_while_a_queue_has_not_stood_for_long() {
    let config = Config { queue_order: QueueOrder::Adaptive, ..siblings() };
    // Whether a machine is quick enough to fill and empty a queue in 100 ms is luck: one time of many is enough.
    until("it is quick enough", || {
        let (workers, begun) = group(1, config.clone());
        let mut clients: Vec<Client> = (0..3).map(|_| workers.connect(0)).collect();
        workers.block(0);
        let begin = Instant::now();
        for (place, client) in clients.iter_mut().enumerate() {
            client.ask(&format!("/w/{place}"));
            workers.until_waiting(place as u64 + 1);
        }
        workers.gates[0].open(1);
        clients.iter_mut().for_each(|client| assert_eq!(client.response().answer().status, 200));
        let quick = begin.elapsed() < Duration::from_millis(100);
        assert!(!quick || paths(&begun) == ["/w/0", "/w/1", "/w/2"], "{:?}", paths(&begun));
        quick
    });
}

#[test]
fn one_more_than_the_limit_is_turned_away_and_keeps_its_connection() {
    let (workers, begun) = group(2, Config { queue_limit: 3, ..siblings() });
    let mut clients: Vec<Client> = (0..7).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    // Two lie in the channel, three wait here.
    for (place, client) in clients.iter_mut().take(5).enumerate() {
        client.ask(&format!("/w/{place}"));
        workers.until_waiting(place as u64 + 1);
        until("the front is in the channel", || workers.in_channel() == (place as u64 + 1).min(2));
    }
    assert_eq!(workers.get(0, Word::Queued), 3);
    let (rest, beyond) = clients.split_at_mut(5);
    is_turned_away(&beyond[0].get("/w/beyond"));
    // HEAD gets the head only: what comes next is read where it begins.
    beyond[1].send(b"HEAD /w/head HTTP/1.1\r\nHost: h\r\n\r\nGET /w/behind HTTP/1.1\r\nHost: h\r\n\r\n");
    let (status, head) = beyond[1].head();
    assert_eq!(status, 503);
    assert!(head.contains("\r\nContent-Length: "), "{head}");
    is_turned_away(&beyond[1].response());
    workers.servers[0].until(Word::QueueFull, 3);
    workers.servers[0].until(Word::ServerErrors, 3);
    workers.unblock_all();
    for client in rest {
        assert_eq!(client.response().answer().status, 200);
    }
    for client in beyond {
        assert_eq!(client.get("/w/again").answer().status, 200, "its connection was kept");
    }
    assert_eq!(paths(&begun).iter().filter(|path| !path.starts_with("/w/again")).count(), 5);
    assert_eq!(workers.sum(Word::QueueFull), 3);
}

#[test]
fn a_body_that_came_with_a_request_beyond_the_limit_is_no_next_request() {
    let (workers, _) = group(1, Config { queue_limit: 1, ..siblings() });
    let (mut first, mut beyond) = (workers.connect(0), workers.connect(0));
    workers.block(0);
    first.ask("/w/first");
    workers.until_waiting(1);
    for _ in 0..3 {
        beyond.post("/w/beyond", &noise(50_000));
        is_turned_away(&beyond.response());
    }
    until("no body is counted", || workers.sum(Word::BodyBytes) == 0);
    workers.unblock_all();
    assert_eq!(first.response().answer().status, 200);
    beyond.post("/w/again", b"xyz");
    assert_eq!(beyond.response().answer().body, b"xyz");
}

#[test]
fn whoever_is_turned_away_and_asks_to_close_is_closed() {
    let (workers, _) = group(1, Config { queue_limit: 1, ..siblings() });
    let (mut first, mut beyond) = (workers.connect(0), workers.connect(0));
    workers.block(0);
    first.ask("/w/first");
    workers.until_waiting(1);
    beyond.send(b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let response = beyond.response();
    assert_eq!((response.status, response.closes()), (503, true));
    beyond.is_closed();
    workers.unblock_all();
    assert_eq!(first.response().answer().status, 200);
}

#[test]
fn who_waited_too_long_is_turned_away_at_that_time_though_no_thread_is_free() {
    let (workers, begun) = group(2, Config { queue_timeout: 300 * MILLI, ..siblings() });
    // Some of them lie in the channel.
    let mut clients: Vec<Client> = (0..6).map(|place| workers.connect(place % 2)).collect();
    workers.block(0);
    workers.block(1);
    let begin = Instant::now();
    for client in &mut clients {
        client.ask("/w");
    }
    for client in &mut clients {
        is_turned_away(&client.response());
    }
    let took = begin.elapsed();
    assert!((Duration::from_millis(299)..DEADLINE).contains(&took), "{took:?}");
    workers.until_sum(Word::QueueLate, 6);
    workers.until_waiting(0);
    workers.unblock_all();
    assert!(paths(&begun).is_empty());
    for client in &mut clients {
        assert_eq!(client.get("/w").answer().status, 200);
    }
}

#[test]
fn the_time_before_a_trusted_front_end_counts() {
    let mut config = Config { queue_timeout: 20 * SECOND, ..siblings() };
    config.policy.trust = Trust::parse("127.0.0.1").expect("an address");
    let (workers, begun) = group(2, config);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let ago = |seconds: u64| {
        let start = now.as_micros() as u64 - seconds * 1_000_000;
        format!("GET /w/{seconds} HTTP/1.1\r\nHost: h\r\nX-Request-Start: t={start}\r\n\r\n")
    };
    // Too late before it came, though no other request waits.
    let mut client = workers.connect(0);
    client.send(ago(21).as_bytes());
    is_turned_away(&client.response());
    client.send(ago(2).as_bytes());
    assert_eq!(client.response().answer().path, "/w/2");
    let mut others: Vec<Client> = (0..4).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    let begin = Instant::now();
    for client in &mut others {
        client.send(ago(19).as_bytes());
    }
    for client in &mut others {
        is_turned_away(&client.response());
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    workers.unblock_all();
    assert_eq!(paths(&begun), ["/w/2"]);
    workers.until_sum(Word::QueueLate, 5);
}

#[test]
fn the_time_a_stranger_gives_does_not_count() {
    let (workers, _) = group(1, Config { queue_timeout: SECOND, ..siblings() });
    let mut client = workers.connect(0);
    client.send(b"GET /w HTTP/1.1\r\nHost: h\r\nX-Request-Start: t=1700000000\r\n\r\n");
    assert_eq!(client.response().answer().status, 200);
}

#[test]
fn the_log_is_told_of_those_who_were_turned_away() {
    let (workers, _) = group(1, Config { queue_limit: 1, ..siblings() });
    let (mut first, mut beyond) = (workers.connect(0), workers.connect(0));
    workers.block(0);
    first.ask("/w/first");
    workers.until_waiting(1);
    is_turned_away(&beyond.get("/w/beyond"));
    workers.unblock_all();
    assert_eq!(first.response().answer().status, 200);
    let told = || workers.servers[0].notices().iter().any(|notice| notice.text.contains("queue_limit"));
    until("a notice", || {
        let _ = beyond.get("/w/next");
        told()
    });
}

#[test]
fn who_closes_while_it_waits_is_dropped() {
    let (workers, begun) = group(2, siblings());
    let mut clients: Vec<Client> = (0..8).map(|place| workers.connect(place % 2)).collect();
    workers.block(0);
    workers.block(1);
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/w/{place}"));
        workers.until_waiting(place as u64 + 1);
    }
    until("the front is in the channel", || workers.in_channel() == 2);
    std::thread::sleep(Duration::from_millis(60)); // longer than a client may take to close its side with its request
    let mut stay = clients.split_off(7);
    for (place, client) in clients.iter().enumerate() {
        if place % 2 == 0 {
            // With a reset.
            let linger = Some(Duration::ZERO);
            rustix::net::sockopt::set_socket_linger(&client.stream, linger).expect("an option");
        }
    }
    drop(clients);
    workers.until_sum(Word::LeftQueue, 7);
    workers.until_waiting(1);
    workers.unblock_all();
    assert_eq!(stay[0].response().answer().path, "/w/7");
    assert_eq!(paths(&begun), ["/w/7"]);
    until("none is held", || workers.sum(Word::Connections) <= 3);
}

#[test]
fn who_closes_its_sending_side_with_its_request_is_served_however_long_it_waits() {
    let (workers, begun) = group(2, siblings());
    let mut clients: Vec<Client> = (0..6).map(|place| workers.connect(place % 2)).collect();
    workers.block(0);
    workers.block(1);
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/w/{place}"));
        client.stream.shutdown(Shutdown::Write).expect("a connection");
        workers.until_waiting(place as u64 + 1);
    }
    std::thread::sleep(Duration::from_millis(200)); // they wait
    workers.unblock_all();
    for (place, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.response().answer().path, format!("/w/{place}"));
        client.is_closed();
    }
    assert_eq!((paths(&begun).len(), workers.sum(Word::LeftQueue)), (6, 0));
}

#[test]
fn who_closes_its_sending_side_a_moment_later_is_served_though_nobody_looked() {
    // The moment is 50 ms. A machine may be too slow to be within it, but is not always.
    until("it is quick enough", || {
        let (workers, _) = group(2, siblings());
        let mut client = workers.connect(0);
        workers.block(0);
        workers.block(1);
        let begin = Instant::now();
        client.ask("/w");
        until("it is in the channel, where no worker sees it", || workers.in_channel() == 1);
        client.stream.shutdown(Shutdown::Write).expect("a connection");
        let in_time = begin.elapsed() < Duration::from_millis(40);
        std::thread::sleep(Duration::from_millis(100)); // it waits
        workers.unblock_all();
        if in_time {
            assert_eq!(client.response().answer().path, "/w");
        }
        in_time
    });
}
