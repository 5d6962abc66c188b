//! One thread with an event loop of its own has many calls under way at once.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::hub::{HubServer, Way};
use harness::*;
use std::time::Duration;
use tricorn_io::{Config, DRAIN, Sent};

fn room_for(calls: usize) -> Config {
    Config { threads: calls, ..config() }
}

/// Clients that ask for `/0`, `/1`, …, one after the other has been heard.
fn ask_all(server: &HubServer, count: usize) -> Vec<Client> {
    let (begun, queued) = (server.begun().len(), server.get(Word::Queued) as usize);
    (0..count)
        .map(|nr| {
            let mut client = server.connect();
            client.ask(&format!("/{nr}"));
            let heard = begun + queued + nr + 1;
            until("it is heard", || server.begun().len() + server.get(Word::Queued) as usize == heard);
            client
        })
        .collect()
}

#[test]
fn calls_that_wait_leave_the_hub_to_others() {
    let server = HubServer::start(room_for(100));
    let mut clients = ask_all(&server, 100);
    assert_eq!((server.get(Word::InFlight), server.get(Word::Entries)), (100, 100));
    let mut quick = server.connect();
    server.finish("/7");
    assert_eq!(clients[7].response().body, b"/7");
    assert_eq!(quick.get("/now").status, 200);
    for nr in (0..100).rev().filter(|nr| *nr != 7) {
        server.finish(&format!("/{nr}"));
        assert_eq!(clients[nr].response().body, format!("/{nr}").into_bytes());
    }
    server.until(Word::InFlight, 0);
    assert_eq!(server.get(Word::Entries), 100, "a place that is given back is taken again");
}

#[test]
fn no_more_run_than_there_is_room_for_and_the_others_follow_in_order() {
    let server = HubServer::start(room_for(3));
    let mut clients = ask_all(&server, 8);
    server.until(Word::Queued, 5);
    assert_eq!((server.open().len(), server.get(Word::InFlight), server.get(Word::Entries)), (3, 3, 3));
    for nr in [1, 0, 3, 4, 2, 5, 7, 6] {
        server.finish(&format!("/{nr}"));
        assert_eq!(clients[nr].response().body, format!("/{nr}").into_bytes());
        assert!(server.get(Word::InFlight) <= 3);
    }
    let wanted: Vec<String> = (0..8).map(|nr| format!("/{nr}")).collect();
    assert_eq!(server.begun(), wanted);
}

#[test]
fn a_call_that_ends_without_going_on_leaves_its_place_too() {
    let server = HubServer::start(room_for(1));
    let mut clients = ask_all(&server, 2);
    server.give_back("/0");
    clients[0].is_closed();
    server.until_open(&["/1"]);
    server.finish("/1");
    assert_eq!(clients[1].response().body, b"/1");
}

#[test]
fn a_full_hub_leaves_connections_to_its_siblings_until_there_is_room() {
    let server = HubServer::start(Config { siblings: true, ..room_for(3) });
    let mut clients = ask_all(&server, 3);
    let mut newcomer = server.connect();
    newcomer.ask("/new");
    let turns = server.turns_when_quiet();
    assert_eq!(server.get(Word::Accepted), 3);
    assert_eq!(server.turns_when_quiet(), turns, "a closed gate wakes no hub");
    server.finish("/1");
    assert_eq!(clients[1].response().status, 200);
    server.until(Word::Accepted, 4);
    until("the newcomer's call begins", || server.open() == ["/0", "/2", "/new"]);
    server.finish("/new");
    assert_eq!(newcomer.response().body, b"/new");
    for nr in [0, 2] {
        server.finish(&format!("/{nr}"));
        assert_eq!(clients[nr].response().status, 200);
    }
}

#[test]
fn the_last_call_that_ends_opens_the_doors_again() {
    let server = HubServer::start(Config { siblings: true, ..room_for(1) });
    let mut clients = ask_all(&server, 1);
    let mut newcomer = server.connect();
    newcomer.ask("/now");
    server.turns_when_quiet();
    assert_eq!(server.get(Word::Accepted), 1);
    server.finish("/0"); // no event comes after it, and no call is left for which the hub would be rung
    assert_eq!(clients[0].response().status, 200);
    assert_eq!(newcomer.response().status, 200);
}

#[test]
fn a_full_hub_without_siblings_takes_newcomers_and_turns_away_those_beyond_the_limit() {
    let server = HubServer::start(Config { queue_limit: 2, ..room_for(1) });
    let mut clients = ask_all(&server, 3);
    server.until(Word::Queued, 2);
    assert_eq!(server.connect().get("/beyond").status, 503);
    for (nr, client) in clients.iter_mut().enumerate() {
        server.finish(&format!("/{nr}"));
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn whoever_had_connected_when_a_full_hub_began_to_drain_is_heard() {
    let server = HubServer::start(Config { siblings: true, ..room_for(1) });
    let mut clients = ask_all(&server, 1);
    let mut newcomer = server.connect();
    newcomer.ask("/new");
    server.turns_when_quiet();
    assert_eq!(server.get(Word::Accepted), 1);
    server.engine.drain();
    // The monitor takes it with the listeners' last, and nothing but the wake-up tells the hub.
    server.until(Word::Queued, 1);
    server.finish("/0");
    assert_eq!(clients[0].response().status, 200);
    server.finish("/new");
    assert_eq!(newcomer.response().body, b"/new");
}

#[test]
fn an_incomplete_head_is_given_up_while_the_hub_waits() {
    let server = HubServer::start(Config { header_timeout: 300 * MILLI, ..room_for(2) });
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHo");
    assert_eq!(client.response().status, 408);
    client.is_closed();
    assert_eq!(server.get(Word::HeadTimeouts), 1);
    assert_eq!(server.connect().get("/now").status, 200);
}

#[test]
fn an_idle_connection_is_closed_without_waking_the_hub() {
    let server = HubServer::start(Config { keepalive: 300 * MILLI, ..room_for(2) });
    let mut client = server.connect();
    assert_eq!(client.get("/now").status, 200);
    let turns = server.turns_when_quiet();
    client.is_closed();
    server.until(Word::Connections, 0);
    assert_eq!(server.get(Word::IdleCloses), 1);
    assert_eq!(server.turns(), turns);
}

#[test]
fn an_idle_hub_is_not_woken_and_its_monitor_sleeps() {
    let server = HubServer::start(room_for(2));
    assert_eq!(server.connect().get("/now").status, 200);
    server.until(Word::Connections, 0);
    let turns = server.turns_when_quiet();
    until("the monitor sleeps", || rests_its_monitor(&server));
    assert_eq!(server.turns(), turns);
}

/// Whether its monitor sleeps for fifty ticks.
fn rests_its_monitor(server: &HubServer) -> bool {
    let before = server.get(Word::Heartbeat);
    std::thread::sleep(Duration::from_millis(50));
    server.get(Word::Heartbeat) == before
}

#[test]
fn the_monitor_sleeps_when_the_time_of_a_request_is_over_that_was_begun_before() {
    let server = HubServer::start(Config { queue_timeout: SECOND, ..room_for(1) });
    let mut clients = ask_all(&server, 2);
    for (nr, client) in clients.iter_mut().enumerate() {
        server.until_open(&[&format!("/{nr}")]);
        server.finish(&format!("/{nr}"));
        assert_eq!(client.response().status, 200);
    }
    drop(clients);
    server.until(Word::Connections, 0);
    std::thread::sleep(Duration::from_secs(1)); // until the second would have waited too long
    until("the monitor sleeps", || rests_its_monitor(&server));
}

#[test]
fn what_comes_while_the_hub_is_away_is_read_and_begins_when_it_is_back() {
    let server = HubServer::start(room_for(4));
    let first = server.block();
    let mut clients = ask_all(&server, 3);
    server.until(Word::Queued, 3);
    assert!(server.get(Word::Rescues) >= 1);
    assert_eq!(server.get(Word::Free), 0, "no sibling should count on it");
    server.release(first);
    server.until_open(&["/0", "/1", "/2"]);
    server.until(Word::Free, 1);
    for (nr, client) in clients.iter_mut().enumerate() {
        server.finish(&format!("/{nr}"));
        assert_eq!(client.response().body, format!("/{nr}").into_bytes());
    }
}

#[test]
fn a_hub_that_was_away_is_covered_again_the_next_time() {
    let server = HubServer::start(room_for(4));
    for round in 0..5 {
        let first = server.block();
        let mut client = server.connect();
        client.ask("/now");
        server.until(Word::Queued, 1);
        server.release(first);
        assert_eq!(client.response().status, 200, "round {round}");
        server.until(Word::InFlight, 0);
    }
}

#[test]
fn deadlines_hold_while_the_hub_is_away() {
    let server = HubServer::start(Config { header_timeout: 300 * MILLI, ..room_for(2) });
    let first = server.block();
    let mut client = server.connect();
    client.send(b"GET / HTTP/1.1\r\nHo");
    assert_eq!(client.response().status, 408);
    assert_eq!(server.gate.held(), 1);
    server.release(first);
}

#[test]
fn a_slow_reader_gets_its_rest_while_the_hub_is_away() {
    static PIECE: [u8; 1 << 20] = [b'x'; 1 << 20];
    let server = HubServer::start(room_for(2));
    let mut slow = server.connect();
    slow.ask("/big");
    server.until_open(&["/big"]);
    // As much as the socket takes, and what the application may be ahead of it.
    let mut sent = 1;
    while server.push("/big", &PIECE) != Sent::OverMark {
        sent += 1;
    }
    server.end("/big");
    let first = server.block();
    assert_eq!(slow.response().body.len(), sent * PIECE.len());
    assert_eq!(server.gate.held(), 1);
    server.release(first);
}

#[test]
fn beyond_queue_limit_a_request_is_turned_away_though_the_hub_is_away() {
    let server = HubServer::start(Config { queue_limit: 2, ..room_for(1) });
    let first = server.block();
    let mut clients = ask_all(&server, 2);
    let mut beyond = server.connect();
    beyond.ask("/beyond");
    let response = beyond.response();
    assert_eq!((response.status, response.closes()), (503, false));
    server.until(Word::QueueFull, 1);
    server.release(first);
    for (nr, client) in clients.iter_mut().enumerate() {
        server.until_open(&[&format!("/{nr}")]);
        server.finish(&format!("/{nr}"));
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn whoever_waits_too_long_for_a_place_is_turned_away_though_no_call_moves() {
    let server = HubServer::start(Config { queue_timeout: 300 * MILLI, ..room_for(1) });
    let mut clients = ask_all(&server, 3);
    for client in &mut clients[1..] {
        assert_eq!(client.response().status, 503);
    }
    server.until(Word::QueueLate, 2);
    assert_eq!(server.open(), ["/0"]);
    server.finish("/0");
    assert_eq!(clients[0].response().status, 200);
}

#[test]
fn pieces_that_are_gathered_are_sent_though_the_hub_rests() {
    static PIECES: [&[u8]; 3] = [b"one ", b"two ", b"three"];
    let server = HubServer::start(room_for(40));
    let mut clients = ask_all(&server, 40);
    for round in 0..2 {
        for nr in 0..clients.len() {
            server.write(&format!("/{nr}"), &PIECES);
        }
        for (nr, client) in clients.iter_mut().enumerate() {
            if round == 0 {
                assert_eq!(client.head().0, 200);
            }
            let mut got = Vec::new();
            while got.len() < 13 {
                got.extend(client.chunk());
            }
            assert_eq!(got, b"one two three", "{nr}");
        }
    }
    for (nr, client) in clients.iter_mut().enumerate() {
        server.end(&format!("/{nr}"));
        assert_eq!(client.chunk(), b"");
    }
    // Their slots are taken again.
    for (nr, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/{nr}"));
        until("it has begun", || server.open().contains(&format!("/{nr}")));
        server.finish(&format!("/{nr}"));
        assert_eq!(client.response().body, format!("/{nr}").into_bytes());
    }
}

#[test]
fn a_drain_waits_for_calls_that_wait_and_for_requests_that_were_read() {
    let server = HubServer::start(room_for(2));
    let mut clients = ask_all(&server, 3);
    server.engine.drain();
    server.until(Word::State, DRAINING);
    server.finish("/0");
    server.until_open(&["/1", "/2"]);
    assert_eq!(server.ended(), 0);
    for nr in [2, 1] {
        server.finish(&format!("/{nr}"));
    }
    for client in &mut clients {
        let response = client.response();
        assert!(response.closes(), "{}", response.head);
    }
    server.until_ended();
}

#[test]
fn an_idle_hub_that_is_to_drain_ends() {
    let server = HubServer::start(room_for(2));
    assert_eq!(server.connect().get("/now").status, 200);
    server.engine.drain();
    server.until_ended();
}

#[test]
fn a_drain_that_the_arbiter_orders_reaches_a_hub_that_is_away() {
    let server = HubServer::start(room_for(2));
    let first = server.block();
    server.set(Word::Orders, DRAIN);
    server.until(Word::State, DRAINING);
    assert_eq!(server.gate.held(), 1);
    server.release(first);
    server.until_ended();
}

#[test]
fn those_that_wait_behind_a_stuck_hub_that_leaves_are_turned_away() {
    let server = HubServer::start(Config { timeout: 200 * MILLI, ..room_for(2) });
    let first = server.block();
    let mut client = server.connect();
    client.ask("/waits");
    server.until(Word::Queued, 1);
    server.set(Word::Orders, DRAIN);
    let response = client.response();
    assert_eq!((response.status, response.closes()), (503, true));
    server.release(first);
    server.until_ended();
    assert!(!server.begun().contains(&"/waits".to_owned()));
}

#[test]
fn a_call_that_waits_for_too_long_is_told_and_no_other() {
    let server = HubServer::start(Config { request_timeout: 500 * MILLI, ..room_for(4) });
    let mut clients = ask_all(&server, 1);
    let mut quick = server.connect();
    until("it is told", || {
        assert_eq!(quick.get("/now").status, 200);
        server.late() == ["/0"]
    });
    server.conclude("/0");
    server.finish("/0");
    assert_eq!(clients[0].response().status, 200);
    // The place is taken again by a call that is young.
    assert_eq!(quick.get("/now").status, 200);
    clients[0].ask("/again");
    server.until_open(&["/again"]);
    server.finish("/again");
    assert_eq!(clients[0].response().status, 200);
    assert_eq!(server.late(), ["/0"]);
}

#[test]
fn a_late_call_that_does_not_end_is_answered_in_its_place() {
    let server = HubServer::start(Config { request_timeout: 200 * MILLI, ..room_for(4) });
    let mut clients = ask_all(&server, 2);
    server.write("/1", &[b"begun "]);
    assert_eq!(clients[0].response().status, 504);
    assert_eq!(clients[1].head().0, 200);
    assert_eq!(clients[1].chunk(), b"begun ");
    server.finish("/0");
    server.end("/1");
    assert_eq!(clients[1].chunk(), b"");
    clients[0].is_closed();
    let mut late = server.late();
    late.sort();
    assert_eq!(late, ["/0", "/1"]);
}

#[test]
fn a_hub_that_does_not_come_is_told_once_and_calls_that_wait_are_not() {
    let (read, messages) = pipe();
    let server = HubServer::start(Config { timeout: 300 * MILLI, messages, ..room_for(4) });
    let mut ear = Ear::new(read);
    let mut clients = ask_all(&server, 1);
    let since = std::time::Instant::now();
    until("the call has waited for longer than it may", || since.elapsed() > Duration::from_millis(600));
    assert_eq!(ear.listen(), "");
    for round in 1..=2 {
        let first = server.block();
        let lines = ear.until_lines(2 * round);
        assert!(lines[2 * round - 2].starts_with("stuck timeout 0 "), "{lines:?}");
        assert!(lines[2 * round - 2].contains(" GET /block "), "{lines:?}");
        assert_eq!(lines[2 * round - 1], "stuck-end 0");
        server.release(first);
        server.until(Word::InFlight, 1);
    }
    assert_eq!(ear.listen().lines().count(), 4);
    server.finish("/0");
    assert_eq!(clients[0].response().status, 200);
}

#[test]
fn a_hub_that_never_comes_is_found_though_no_client_says_anything() {
    let (read, messages) = pipe();
    let server = HubServer::start(Config { timeout: 300 * MILLI, messages, ..room_for(4) });
    let first = server.block();
    assert!(Ear::new(read).until_lines(1)[0].contains(" GET /block"));
    server.release(first);
}

/// A hub and a worker with one thread, with room for so many calls each.
fn pair() -> (Workers, HubServer) {
    let workers = Workers::echo(Plan { by_hand: Some(0), hub: true, ..plan(2) });
    let Server { engine, address, .. } = &workers.servers[0];
    let hub = HubServer::with(engine.clone(), *address, workers.pages[0], Way::Epoll);
    (workers, hub)
}

#[test]
fn what_waits_for_a_hub_that_is_away_goes_to_a_sibling() {
    let (workers, hub) = pair();
    let mut client = hub.connect();
    assert_eq!(client.get("/now").body, b"/now");
    let first = hub.block();
    client.ask("/w");
    assert_eq!(client.response().answer().worker, Some(1));
    hub.until(Word::HandedOver, 1);
    assert_eq!(workers.get(1, Word::TakenOver), 1);
    hub.release(first);
}

#[test]
fn what_a_full_hub_has_no_room_for_goes_to_a_sibling() {
    let (workers, hub) = pair();
    let mut client = hub.connect();
    assert_eq!(client.get("/now").body, b"/now");
    let mut clients = ask_all(&hub, 1);
    client.ask("/w");
    assert_eq!(client.response().answer().worker, Some(1));
    assert_eq!(workers.get(1, Word::TakenOver), 1);
    hub.finish("/0");
    assert_eq!(clients[0].response().body, b"/0");
}

#[test]
fn a_hub_that_waits_takes_what_a_sibling_has_no_thread_for() {
    let (workers, hub) = pair();
    let mut client = workers.connect(1);
    workers.block(1);
    client.ask("/w");
    hub.until_open(&["/w"]);
    assert_eq!(hub.get(Word::TakenOver), 1);
    hub.finish("/w");
    assert_eq!(client.response().body, b"/w");
    workers.unblock_all();
}

#[test]
fn a_full_hub_takes_from_the_channel_when_a_call_ends() {
    for give_back in [false, true] {
        let (workers, hub) = pair();
        let mut client = workers.connect(1);
        workers.block(1);
        let mut clients = ask_all(&hub, 1);
        client.ask("/w");
        until("it is in the channel", || workers.in_channel() == 1);
        hub.turns_when_quiet();
        if give_back {
            hub.give_back("/0");
            clients[0].is_closed();
        } else {
            hub.finish("/0");
            assert_eq!(clients[0].response().body, b"/0");
        }
        hub.until_open(&["/w"]);
        hub.finish("/w");
        assert_eq!(client.response().body, b"/w");
        workers.unblock_all();
    }
}

/// Every request is answered, in whatever order calls end, and though the hub is away now and then.
#[test]
fn nothing_is_forgotten_in_any_order() {
    const CLIENTS: usize = 24;
    let server = HubServer::start(Config { threads: 8, worker_connections: 16, ..config() });
    let done = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for nr in 0..CLIENTS {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut random = Random(nr as u64 * 2 + 1);
                let mut client = server.connect();
                for round in 0..30 {
                    let path = if random.below(3) == 0 { "/now".to_owned() } else { format!("/{nr}/{round}") };
                    assert_eq!(client.get(&path).body, path.as_bytes());
                    if random.below(8) == 0 {
                        client = server.connect();
                    }
                }
                done.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            });
        }
        let mut random = Random(4711);
        while done.load(std::sync::atomic::Ordering::SeqCst) < CLIENTS {
            match server.open() {
                open if open.is_empty() => std::thread::sleep(Duration::from_micros(100)),
                open => server.finish(&open[random.below(open.len())]),
            }
            if random.below(50) == 0 {
                server.be_away(Duration::from_millis(random.below(8) as u64));
            }
        }
    });
    server.until(Word::InFlight, 0);
    assert!(server.get(Word::Entries) <= 8);
}

/// Hubs that share a listener, when each of them has come for the first time.
fn hubs(count: usize, way: Way) -> Vec<HubServer> {
    let config = Config { siblings: true, ..room_for(4) };
    let hubs = HubServer::side_by_side(count, &config, way);
    quiet(&hubs);
    hubs
}

/// How often each hub had been woken when all rested.
fn quiet(hubs: &[HubServer]) -> Vec<usize> {
    hubs.iter().map(HubServer::turns_when_quiet).collect()
}

fn taken(hubs: &[HubServer]) -> Vec<u64> {
    hubs.iter().map(|hub| hub.get(Word::Accepted)).collect()
}

#[test]
fn a_connection_wakes_one_hub() {
    let hubs = hubs(3, Way::Epoll);
    for _ in 0..8 {
        let before = quiet(&hubs);
        let mut client = hubs[0].connect();
        client.send(b"GET /now HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
        assert_eq!(client.response().body, b"/now");
        let woken = quiet(&hubs).iter().zip(before).filter(|(now, before)| *now != before).count();
        assert_eq!(woken, 1);
    }
}

#[test]
fn a_connection_wakes_another_hub_while_the_first_is_busy() {
    let hubs = hubs(2, Way::Epoll);
    let (busy, blocked) = HubServer::block_one(&hubs);
    // When its monitor steps in it takes a connection that may have woken no other one (`take_missed`). Nothing is handed over here.
    hubs[busy].until_at_least(Word::Rescues, 1);
    assert_eq!(hubs[0].connect().get("/now").status, 200);
    assert_eq!(taken(&hubs), [1, 1]);
    hubs[busy].release(blocked);
}

#[test]
fn a_loop_that_calls_in_vain_takes_a_connection_for_which_a_sibling_was_woken() {
    let hubs = hubs(2, Way::Epoll);
    for hub in &hubs {
        assert!(!hub.call_in_vain(), "there is no connection");
    }
    let before = quiet(&hubs);
    let mut client = hubs[0].connect();
    client.send(b"GET /now HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().body, b"/now");
    let first = usize::from(quiet(&hubs)[0] == before[0]);
    until("it was quicker than the monitor of the sibling", || {
        quiet(&hubs);
        let (mut client, is_held) = hubs[first].is_held_up_by(|| hubs[0].connect(), "/now");
        if !is_held {
            return false;
        }
        let found = hubs[1 - first].call_in_vain();
        assert_eq!(client.response().status, 200);
        hubs[first].gate.open(1);
        found
    });
}

#[test]
fn connections_that_stay_go_to_the_hubs_in_turn() {
    let hubs = hubs(3, Way::Epoll);
    let clients: Vec<Client> = (0..9)
        .map(|_| {
            let mut client = hubs[0].connect();
            assert_eq!(client.get("/now").status, 200);
            quiet(&hubs);
            client
        })
        .collect();
    assert_eq!(taken(&hubs), [3, 3, 3]);
    drop(clients);
}

#[test]
fn a_hub_whose_epoll_is_not_found_is_woken_by_the_poller() {
    let hubs = hubs(2, Way::Poll);
    for _ in 0..4 {
        assert_eq!(hubs[0].connect().get("/now").status, 200);
        quiet(&hubs);
    }
    assert_eq!(hubs.iter().map(|hub| hub.get(Word::Rescues)).sum::<u64>(), 0, "no monitor came in their place");
}

#[test]
fn a_connection_for_which_a_hub_was_woken_that_is_held_up_goes_to_a_sibling() {
    let (workers, hub) = pair();
    let mut passed_on = 0;
    until("it was quicker than its monitor", || {
        hub.turns_when_quiet();
        // A worker that was busy for long comes back to the end of the row, as the hub does whose monitor was quicker.
        let rescues = workers.get(1, Word::Rescues);
        workers.block(1);
        workers.servers[1].until_at_least(Word::Rescues, rescues + 1);
        workers.unblock(1);
        workers.servers[1].until(Word::Free, 1);
        hub.turns_when_quiet();
        passed_on = workers.get(1, Word::TakenOver);
        let (mut client, is_held) = hub.is_held_up_by(|| workers.connect_to_all(), "/w");
        assert_eq!(client.response().answer().worker, Some(1));
        is_held
    });
    hub.gate.open(1);
    assert_eq!(workers.get(1, Word::TakenOver), passed_on + 1);
}

#[test]
fn a_call_that_waits_is_cancelled_and_no_other() {
    let server = HubServer::start(Config { request_timeout: 100 * SECOND, ..room_for(4) });
    let mut clients = ask_all(&server, 2);
    let started = server.call_started(1).expect("a call");
    // The monitor sleeps, and looks for orders by itself.
    assert_eq!(server.cancel(0, started), ENDED, "another call than the one that is meant");
    assert_eq!(server.cancel(1, started), TOLD);
    until("the hub is told", || server.late() == ["/1"]);
    assert!(server.engine.was_cancelled(1) && !server.engine.was_cancelled(0));
    assert_eq!(server.cancel(1, started), OVER);
    assert_eq!(clients[1].response().status, 504, "it does not end");
    server.finish("/1");
    server.finish("/0");
    assert_eq!(clients[0].response().status, 200);
    assert_eq!(server.cancel(1, started), ENDED);
    assert_eq!(server.late(), ["/1"]);
}
