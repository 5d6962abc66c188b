//! Calls that take too long, and what the monitor does about them while no app thread can.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::hub::HubServer;
use harness::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tricorn_io::{Config, DRAIN, IsLast, Sent};
use tricorn_proto::response::HeadInputs;

fn with_gate(config: Config) -> (Server, Gate) {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange).starts_with("/block") {
            held.pass();
        }
        answer(engine, exchange, b"done");
    });
    (server, gate)
}

/// The milliseconds a `stuck` line tells.
fn age(line: &str) -> u64 {
    line.split(' ').nth(3).and_then(|number| number.parse().ok()).expect("an age")
}

#[test]
fn a_stuck_call_is_told_once() {
    let (read, messages) = pipe();
    let (server, gate) = with_gate(Config { timeout: 200 * MILLI, messages, ..config() });
    let mut ear = Ear::new(read);
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    client.ask("/block?x=1");
    let lines = ear.until_lines(2);
    assert!(lines[0].starts_with("stuck timeout 0 "), "{lines:?}");
    assert!(lines[0].ends_with(" GET /block?x=1"), "{lines:?}");
    assert!((200..2000).contains(&age(&lines[0])));
    assert_eq!(lines[1], "stuck-end 0");
    server.until_at_least(Word::Rescues, 1);
    gate.open(1);
    assert_eq!(client.response().status, 200);
    // Another call is another matter.
    client.ask("/block2");
    assert!(ear.until_lines(4)[2].ends_with(" GET /block2"));
    gate.open(1);
    assert_eq!(client.response().status, 200);
    assert_eq!(ear.listen().lines().count(), 4);
}

#[test]
fn a_call_that_is_not_stuck_is_not_told() {
    let (read, messages) = pipe();
    let (server, _gate) =
        with_gate(Config { timeout: 20 * SECOND, request_timeout: 20 * SECOND, messages, ..config() });
    let mut client = server.connect();
    for _ in 0..1000 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(Ear::new(read).listen(), "");
}

#[test]
fn reports_come_one_after_another_and_each_with_its_end() {
    let (read, messages) = pipe();
    let (server, gate) = with_gate(Config { threads: 3, timeout: 200 * MILLI, messages, ..config() });
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("/block");
    }
    gate.until_held(3);
    let mut ear = Ear::new(read);
    let lines = ear.until_lines(6);
    for pair in lines.chunks(2) {
        let slot = pair[0].split(' ').nth(2).expect("a slot");
        assert_eq!(pair[1], format!("stuck-end {slot}"), "{lines:?}");
    }
    gate.open(3);
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_late_call_is_marked_and_its_client_answered_for_it() {
    let (read, messages) = pipe();
    let (server, gate) = with_gate(Config { request_timeout: 200 * MILLI, messages, ..config() });
    let (mut client, begin) = (server.connect(), Instant::now());
    client.ask("/block");
    let lines = Ear::new(read).until_lines(2);
    assert!(lines[0].starts_with("stuck request_timeout 0 "), "{lines:?}");
    assert!(server.engine.is_late(), "the first thread is the main thread");
    let response = client.response();
    assert!(response.status == 504 && response.closes());
    assert!(begin.elapsed() >= Duration::from_millis(1200));
    client.is_closed();
    // What the application writes later goes nowhere.
    gate.open(1);
    server.until(Word::Requests, 1);
    assert!(!server.engine.is_late());
    let counted = [Word::ServerErrors, Word::Successful, Word::ClientGone].map(|word| server.get(word));
    assert_eq!(counted, [1, 0, 0]);
    assert_eq!(server.get(Word::BytesOut), (response.head.len() + response.body.len()) as u64);
    assert_eq!(server.connect().get("/").status, 200);
}

#[test]
fn a_reply_that_has_begun_is_left_alone() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { request_timeout: 100 * MILLI, ..config() }, move |engine, exchange| {
        write(engine, exchange, b"begun");
        held.pass();
        write(engine, exchange, b"done");
        exchange.end();
    });
    let mut client = server.connect();
    client.ask("/");
    assert_eq!(client.head().0, 200);
    assert_eq!(client.chunk(), b"begun");
    until("the call is late", || server.engine.is_late());
    until("the monitor would have answered", || {
        server.call_started(0).is_some_and(|start| tricorn_io::clock::now() > start + 1300 * MILLI)
    });
    gate.open(1);
    assert_eq!(client.chunk(), b"done");
    assert!(client.chunk().is_empty());
}

#[test]
fn an_exception_is_raised_once_in_the_call_it_is_meant_for_and_taken_back_after_it() {
    let gate = Gate::default();
    let held = gate.clone();
    let concluded: Arc<(AtomicBool, AtomicBool)> = Arc::default();
    let seen = concluded.clone();
    let config = Config { threads: 2, request_timeout: 100 * MILLI, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) == "/block" {
            held.pass();
            let raised = engine.conclude_call(exchange.slot());
            seen.0.store(raised, Ordering::SeqCst);
            seen.1.store(engine.conclude_call(exchange.slot()), Ordering::SeqCst);
        }
        answer(engine, exchange, b"");
    });
    let (mut one, mut two) = (server.connect(), server.connect());
    one.ask("/block");
    two.ask("/block");
    gate.until_held(2);
    let mut raised = Vec::new();
    until("a late call off the main thread", || {
        server.engine.raise_in_late_calls(|slot| {
            raised.push(slot);
            true
        });
        !raised.is_empty()
    });
    server.engine.raise_in_late_calls(|slot| panic!("again in {slot}"));
    assert_eq!(raised, [1], "the main thread is told by a signal");
    gate.open(2);
    one.response();
    two.response();
    assert!(!concluded.1.load(Ordering::SeqCst), "it is taken back once");
    server.engine.raise_in_late_calls(|slot| panic!("no call is late, that of {slot} neither"));
}

#[test]
fn a_thread_that_waits_for_its_client_comes_back_at_the_limit() {
    let config = Config { request_timeout: 300 * MILLI, ..config() };
    let server = Server::start(config, |engine, exchange| {
        while path(exchange) == "/flood" && write(engine, exchange, &[b'x'; 1 << 16]) != Sent::Gone {}
        if !exchange.is_gone() {
            answer(engine, exchange, b"");
        }
    });
    let mut deaf = server.connect();
    deaf.ask("/flood");
    server.until(Word::Requests, 1);
    assert_eq!(server.connect().get("/").status, 200);
}

#[test]
fn a_client_is_answered_once_whoever_is_first() {
    // Calls that end just when the monitor answers for them.
    let config = Config { threads: 4, request_timeout: 10 * MILLI, ..config() };
    let server = Server::start(config, |engine, exchange| {
        let extra: u64 = path(exchange)[1..].parse().expect("a number");
        std::thread::sleep(Duration::from_micros(1_009_500 + extra)); // the application is what takes its time
        answer(engine, exchange, b"done");
    });
    let threads: Vec<_> = (0..24u64)
        .map(|number| {
            let mut client = server.connect();
            std::thread::spawn(move || {
                client.ask(&format!("/{}", number * 97 % 2000));
                let response = client.response();
                let rest = if response.status == 504 { client.rest() } else { Vec::new() };
                (response.status, rest)
            })
        })
        .collect();
    let got: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("an answer")).collect();
    assert!(got.iter().all(|(status, rest)| [200, 504].contains(status) && rest.is_empty()), "{got:?}");
    let late = got.iter().filter(|(status, _)| *status == 504).count() as u64;
    server.until(Word::Requests, 24);
    assert_eq!((server.get(Word::ServerErrors), server.get(Word::Successful)), (late, 24 - late));
}

#[test]
fn an_interim_response_leaves_the_answer_to_whoever_comes_first() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { request_timeout: 100 * MILLI, ..config() }, move |engine, exchange| {
        let fields: [(&[u8], &[u8]); 1] = [(b"Link", b"</a>")];
        exchange.interim(103, &mut fields.into_iter()).expect("a hint");
        held.pass();
        answer(engine, exchange, b"");
    });
    let mut client = server.connect();
    client.ask("/");
    assert_eq!((client.head().0, client.response().status), (103, 504));
    gate.open(1);
    client.is_closed();
}

#[test]
fn the_arbiter_is_told_once_when_enough_requests_were_served() {
    let (read, messages) = pipe();
    let (server, _gate) = with_gate(Config { max_requests: 10, messages, ..config() });
    let mut ear = Ear::new(read);
    let mut client = server.connect();
    for _ in 0..9 {
        assert_eq!(client.get("/").status, 200);
    }
    // The tenth asks the monitor to look again, should it have missed the ninth.
    assert_eq!(ear.listen(), "");
    for _ in 0..20 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(ear.until_lines(1), ["retire max_requests"]);
    for _ in 0..100 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(ear.listen(), "retire max_requests\n");
}

#[test]
fn a_pipe_that_is_full_holds_up_nobody_and_is_asked_again() {
    let (read, messages) = pipe();
    let full = messages.clone().expect("a pipe");
    rustix::io::ioctl_fionbio(&*full, true).expect("a pipe");
    while rustix::io::write(&full, &[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&*full, false).expect("a pipe");
    let (server, gate) = with_gate(Config { timeout: 50 * MILLI, messages, ..config() });
    let (mut client, mut other) = (server.connect(), server.connect());
    client.ask("/block");
    gate.until_held(1);
    // The monitor goes on: it reads what comes though it cannot say what it has to.
    until("over the limit", || {
        server.call_started(0).is_some_and(|start| tricorn_io::clock::now() > start + 200 * MILLI)
    });
    other.ask("/");
    server.until(Word::Queued, 1);
    let lines = Ear::new(read).until_lines(2); // the first one behind all that was in the pipe
    assert!(lines[0].ends_with("GET /block"), "{lines:?}");
    gate.open(1);
    assert_eq!((client.response().status, other.response().status), (200, 200));
}

#[test]
fn an_order_drains_a_worker_whose_threads_are_busy() {
    let (server, gate) = with_gate(config());
    let mut client = server.connect();
    client.ask("/block");
    gate.until_held(1);
    server.set(Word::Orders, DRAIN);
    // As the interpreter's C handler does when the arbiter's signal comes.
    let pipe = tricorn_io::duplicate(server.engine.wakeup_fd()).expect("a descriptor");
    rustix::io::write(&pipe, b"\x0f").expect("a pipe");
    server.until(Word::State, DRAINING);
    assert_eq!(server.get(Word::Requests), 0);
    gate.open(1);
    assert!(client.response().closes());
    server.until_ended();
}

#[test]
fn an_order_reaches_whoever_waits_for_signals() {
    let (server, _gate) = with_gate(config());
    server.set(Word::Orders, DRAIN);
    let pipe = tricorn_io::duplicate(server.engine.wakeup_fd()).expect("a descriptor");
    rustix::io::write(&pipe, b"\x0f").expect("a pipe");
    server.until(Word::State, DRAINING);
    server.until_ended();
}

#[test]
fn who_waits_behind_stuck_threads_of_a_leaving_worker_is_turned_away() {
    let config = Config { threads: 2, timeout: 300 * MILLI, ..config() };
    let (server, gate) = with_gate(config);
    let mut stuck: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    for client in &mut stuck {
        client.ask("/block");
    }
    gate.until_held(2);
    let mut queued: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    let mut late = server.connect();
    for client in &mut queued {
        client.ask("/");
    }
    late.send(b"GET /late HTTP/1.1\r\n");
    server.until(Word::Queued, 3);
    server.engine.drain();
    for client in &mut queued {
        let response = client.response();
        assert!(response.status == 503 && response.closes());
        assert!(response.head.contains("\r\nRetry-After: 1\r\nTricorn-Refused: leaving\r\n"));
        client.is_closed();
    }
    // One whose request is complete only now.
    late.send(b"Host: a\r\n\r\n");
    assert_eq!(late.response().status, 503);
    for (word, count) in [(Word::Queued, 0), (Word::Leaving, 4), (Word::ServerErrors, 4)] {
        server.until(word, count);
    }
    gate.open(2);
    for client in &mut stuck {
        assert_eq!(client.response().status, 200);
    }
    server.until_ended();
    assert!(server.notices().iter().any(|notice| notice.warning && notice.text.contains("Rejected a request")));
}

#[test]
fn nobody_is_turned_away_while_one_thread_may_come_back() {
    let config = Config { threads: 2, timeout: 300 * MILLI, ..config() };
    let (server, gate) = with_gate(config);
    let (mut first, mut second) = (server.connect(), server.connect());
    first.ask("/block");
    gate.until_held(1);
    until("the first is stuck", || {
        server.call_started(0).is_some_and(|start| tricorn_io::clock::now() > start + 300 * MILLI)
    });
    second.ask("/block");
    gate.until_held(2);
    let mut waiting = server.connect();
    waiting.ask("/");
    server.until(Word::Queued, 1);
    server.engine.drain();
    gate.open(2);
    assert_eq!(waiting.response().status, 200);
    first.response();
    second.response();
    server.until_ended();
}

#[test]
fn a_place_that_was_left_is_taken_again_and_no_other() {
    let (server, _gate) = with_gate(config());
    assert_eq!(server.engine.join(false), None, "it is full");
    let more = tricorn_io::Engine::new(
        Config { threads: 3, ..config() },
        Vec::new(),
        tricorn_io::Scoreboard::private(3),
        tricorn_io::Logs::default(),
    );
    let engine = more.expect("an engine");
    let places: Vec<_> = (0..3).map(|_| engine.join(false)).collect();
    assert_eq!(places, [Some(0), Some(1), Some(2)]);
    engine.leave(1, None);
    assert_eq!((engine.join(false), engine.join(false)), (Some(1), None));
}

#[test]
fn the_page_says_what_runs_and_what_is_read_meanwhile_is_whole() {
    let (server, gate) = with_gate(config());
    let mut client = server.connect();
    client.ask("/block");
    gate.until_held(1);
    until("it is told", || server.call_text(0).is_some_and(|text| text == b"GET /block"));
    gate.open(1);
    assert_eq!(client.response().status, 200);
    until("it is over", || server.call_started(0).is_none());
    let texts: Vec<String> =
        (b'a'..=b'f').map(|letter| format!("/{}", char::from(letter).to_string().repeat(90))).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for text in texts.iter().cycle().take(6000) {
                assert_eq!(client.get(text).status, 200);
            }
            done.store(true, Ordering::SeqCst);
        });
        let mut seen = 0;
        while !done.load(Ordering::SeqCst) {
            if let Some(text) = server.call_text(0) {
                seen += 1;
                let text = String::from_utf8(text).expect("ASCII");
                assert!(texts.iter().any(|path| text == format!("GET {path}")), "{text}");
            }
        }
        assert!(seen > 100, "{seen}");
    });
}

#[test]
fn a_limit_that_is_not_reached_changes_no_reply() {
    // The paths that write: at once, in pieces, from a file, and held back.
    let server = Server::start(Config { request_timeout: NEVER, ..config() }, |engine, exchange| {
        match path(exchange).as_str() {
            "/pieces" => {
                for _ in 0..50 {
                    write(engine, exchange, b"piece");
                }
                exchange.end();
            }
            "/file" => {
                exchange.request.reply.status(b"200 OK").expect("a status");
                let file = std::fs::File::open("Cargo.toml").expect("this crate's");
                let length = file.metadata().expect("a file").len();
                let wall = exchange.wall.clone();
                let inputs = HeadInputs { date: wall.date(), body_length: Some(length), ..HeadInputs::default() };
                engine.write_file(exchange, &inputs, file.into(), (0, length), IsLast::Yes);
                exchange.end();
            }
            _ => {
                answer(engine, exchange, b"whole");
            }
        }
    });
    let mut client = server.connect();
    for _ in 0..3 {
        assert_eq!(client.get("/").body, b"whole");
        assert_eq!(client.get("/pieces").body, b"piece".repeat(50));
        assert_eq!(client.get("/file").body, std::fs::read("Cargo.toml").expect("a file"));
    }
}

/// No event follows the one that the hub has taken: the monitor must know of the call before it sleeps, or be woken.
#[test]
fn a_call_that_holds_up_the_hub_while_the_monitor_falls_asleep_is_seen_to_be_late() {
    let server = HubServer::start(Config { request_timeout: 20 * MILLI, ..config() });
    let (mut client, mut random) = (server.connect(), Random(4711));
    for round in 0..100 {
        assert_eq!(client.get("/now").status, 200); // the monitor is awake, and sleeps some milliseconds later
        std::thread::sleep(Duration::from_micros(random.below(8000) as u64));
        client.ask("/block");
        server.gate.until_held(1);
        until(&format!("round {round}: the call is late"), || server.engine.is_late_at(0));
        server.gate.open(1);
        assert_eq!(client.response().status, 200);
    }
}

#[test]
fn a_call_that_lasts_beyond_the_limit_without_being_stuck_leaves_the_heartbeat_fresh() {
    let (read, messages) = pipe();
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { timeout: 200 * MILLI, messages, ..config() }, move |engine, exchange| {
        engine.let_go(exchange).expect("a descriptor");
        held.pass();
    });
    let mut client = server.connect();
    client.ask("/taken");
    gate.until_held(1);
    server.until_at_least(Word::Rescues, 1);
    // A monitor that covers has no other reason to wake up: no event comes, and no limit applies.
    let mut beats = std::collections::HashSet::new();
    until("heartbeats for longer than the limit", || {
        beats.insert(server.get(Word::Heartbeat));
        beats.len() > 8
    });
    gate.open(1);
    client.is_closed();
    assert_eq!(Ear::new(read).listen(), "");
}

#[test]
fn nothing_is_answered_into_a_connection_that_the_application_has_taken() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { request_timeout: 100 * MILLI, ..config() }, move |engine, exchange| {
        engine.let_go(exchange).expect("a descriptor");
        let socket = exchange.lane.descriptor().duplicate().expect("a descriptor");
        rustix::io::write(&socket, b"before;").expect("a socket");
        held.pass();
        rustix::io::write(&socket, b"after").expect("a socket");
    });
    let mut client = server.connect();
    client.ask("/taken");
    gate.until_held(1);
    until("the monitor would have answered", || {
        server.call_started(0).is_some_and(|start| tricorn_io::clock::now() > start + 1300 * MILLI)
    });
    gate.open(1);
    assert_eq!(client.rest(), b"before;after");
}

#[test]
fn a_call_that_is_cancelled_is_marked_at_once_and_its_client_answered_for_it() {
    let (read, messages) = pipe();
    let (server, gate) = with_gate(Config { request_timeout: NEVER, messages, ..config() });
    let (mut client, begin) = (server.connect(), Instant::now());
    client.ask("/block");
    gate.until_held(1);
    let started = server.call_started(0).expect("a call");
    for (slot, started) in [(0, started + 1), (1, started), (usize::MAX, started), (0, 1)] {
        assert_eq!(server.cancel(slot, started), ENDED);
    }
    assert!(!server.engine.is_late() && !server.engine.was_cancelled(0));
    assert_eq!(server.cancel(0, started), TOLD);
    assert!(server.engine.is_late() && server.engine.was_cancelled(0));
    assert_eq!(server.cancel(0, started), OVER, "it was told");
    let lines = Ear::new(read).until_lines(2);
    assert!(lines[0].starts_with("stuck cancel 0 ") && lines[0].ends_with(" GET /block"), "{lines:?}");
    assert_eq!(client.response().status, 504);
    assert!(begin.elapsed() >= Duration::from_millis(1000));
    assert_eq!(server.get(Word::Late), 0, "it was over no limit");
    gate.open(1);
    server.until(Word::Requests, 1);
    // The next call in this slot is none that was cancelled.
    let mut next = server.connect();
    next.ask("/block");
    gate.until_held(1);
    assert!(!server.engine.is_late() && !server.engine.was_cancelled(0));
    gate.open(1);
    assert_eq!(next.response().status, 200);
    assert_eq!(server.cancel(0, started), ENDED);
}

#[test]
fn a_call_that_has_concluded_is_not_cancelled() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(Config { request_timeout: NEVER, ..config() }, move |engine, exchange| {
        engine.conclude_call(exchange.slot());
        held.pass();
        answer(engine, exchange, b"done");
    });
    let mut client = server.connect();
    client.ask("/");
    gate.until_held(1);
    assert_eq!(server.cancel(0, server.call_started(0).expect("a call")), OVER);
    assert!(!server.engine.is_late() && !server.engine.was_cancelled(0));
    gate.open(1);
    assert_eq!(client.response().status, 200);
}
