//! The library against small servers: is every request counted, and every failure named?
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tricorn_load::{Ended, Outcome, Plan, Progress, Watcher, run};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

/// A thread for each connection; what it answers is said by a function of the request's head and its number on the connection.
struct Server {
    port: u16,
    served: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
}

impl Server {
    fn start(answer: impl Fn(&str, u64) -> String + Clone + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server =
            Server { port: listener.local_addr().unwrap().port(), served: Arc::default(), connections: Arc::default() };
        let (served, connections) = (Arc::clone(&server.served), Arc::clone(&server.connections));
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, served) = (answer.clone(), Arc::clone(&served));
                let reading = stream.try_clone().unwrap();
                thread::spawn(move || converse(reading, stream, &answer, &served));
            }
        });
        server
    }

    fn run(&self, model: &str, bounds: &str, more: &str) -> Outcome {
        let text = plan(&format!("{{\"tcp\": [\"127.0.0.1\", {}]}}", self.port), model, bounds, more);
        run(&Plan::from_json(text.as_bytes()).unwrap(), &mut ()).unwrap()
    }

    fn served(&self) -> u64 {
        self.served.load(Ordering::SeqCst)
    }
}

fn plan(address: &str, model: &str, bounds: &str, more: &str) -> String {
    let target = format!("{{\"address\": {address}, \"host\": \"here\", \"path\": \"/\"}}");
    format!("{{\"targets\": [{target}], \"model\": {model}, \"bounds\": {bounds}{more}}}")
}

/// Until the client leaves, or an answer says that the connection ends (or is none).
fn converse(from: impl Read, mut to: impl Write, answer: &impl Fn(&str, u64) -> String, served: &AtomicU64) {
    let mut reader = BufReader::new(from);
    for number in 1.. {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body).unwrap();
        let said = answer(&head, number);
        served.fetch_add(u64::from(!said.is_empty()), Ordering::SeqCst);
        let ends = said.is_empty() || said.contains("Connection: close") || head.contains("Connection: close");
        if to.write_all(said.as_bytes()).is_err() || ends {
            return;
        }
    }
}

const CLOSED: &str = "{\"closed\": {\"connections\": 7}}";

#[test]
fn every_request_is_sent_once_and_counted() {
    let server = Server::start(|_, _| HELLO.into());
    let outcome = server.run(CLOSED, "{\"requests\": 1000}", "");
    assert_eq!((outcome.sent, outcome.answered, server.served()), (1000, 1000, 1000));
    assert_eq!(outcome.statuses["200"], 1000);
    assert_eq!((outcome.errors.len(), outcome.rest.unanswered, outcome.unsent), (0, 0, 0));
    assert_eq!(outcome.bytes.received, 1000 * HELLO.len() as u64);
    assert_eq!(outcome.bytes.body, 6000);
    assert_eq!(server.connections.load(Ordering::SeqCst), 7 + 1);
    let figures = ["min", "p50", "p90", "p99", "max"].map(|name| outcome.latency[name]);
    assert!(figures.is_sorted() && figures[0] > 0.0, "{figures:?}");
}

#[test]
fn threads_share_the_requests_and_the_connections() {
    let server = Server::start(|_, _| HELLO.into());
    let outcome = server.run(CLOSED, "{\"requests\": 1001}", ", \"threads\": {\"count\": 3}");
    assert_eq!((outcome.answered, server.served(), outcome.generator.threads), (1001, 1001, 3));
    assert_eq!(server.connections.load(Ordering::SeqCst), 7 + 1);
}

#[test]
fn what_is_under_way_when_the_time_is_over_is_waited_for() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(30));
        HELLO.into()
    });
    let outcome = server.run(CLOSED, "{\"seconds\": 0.1}", "");
    assert_eq!((outcome.sent, outcome.rest.unanswered), (outcome.answered, 0));
    assert_eq!(outcome.answered, server.served());
    assert!(outcome.seconds >= 0.1 && outcome.latency["min"] >= 0.03, "{outcome:?}");
}

#[test]
fn a_connection_for_each_request() {
    let server = Server::start(|head, _| {
        assert!(head.contains("Connection: close\r\n"));
        HELLO.into()
    });
    let outcome = server.run(CLOSED, "{\"requests\": 50}", ", \"connection\": {\"keep_alive\": false}");
    assert_eq!((outcome.answered, outcome.errors.len()), (50, 0));
    assert_eq!(server.connections.load(Ordering::SeqCst), 50 + 1);
}

#[test]
fn every_framing_is_understood() {
    let answers = [
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end",
    ];
    let turn = Arc::new(AtomicU64::new(0));
    let server =
        Server::start(move |_, _| answers[turn.fetch_add(1, Ordering::SeqCst) as usize % answers.len()].into());
    let outcome = server.run("{\"closed\": {\"connections\": 1}}", "{\"requests\": 12}", "");
    assert_eq!((outcome.answered, outcome.errors.len(), outcome.rest.retried), (12, 0, 0), "{outcome:?}");
    let statuses: Vec<(&str, u64)> = outcome.statuses.iter().map(|(status, count)| (status.as_str(), *count)).collect();
    assert_eq!(statuses, [("200", 6), ("201", 2), ("204", 2), ("304", 2)]);
    assert_eq!(server.connections.load(Ordering::SeqCst), 4 + 1);
}

#[test]
fn the_answer_to_head_has_no_body() {
    let server = Server::start(|head, _| {
        assert!(head.starts_with("HEAD / HTTP/1.1\r\n"));
        "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n".into()
    });
    let outcome = server.run(CLOSED, "{\"requests\": 20}", ", \"request\": {\"method\": \"HEAD\"}");
    assert_eq!((outcome.answered, outcome.bytes.body), (20, 0));
}

#[test]
fn a_body_that_is_longer_than_any_buffer_is_sent() {
    let server = Server::start(|_, _| HELLO.into());
    let zeros = "AAAA".repeat(1 << 20);
    let request = format!(", \"request\": {{\"method\": \"POST\", \"body\": \"{zeros}\"}}");
    let outcome = server.run("{\"closed\": {\"connections\": 2}}", "{\"requests\": 4}", &request);
    assert_eq!((outcome.answered, server.served()), (4, 4));
    assert!(outcome.bytes.sent > 4 * (3 << 20));
}

#[test]
fn failures_have_names() {
    let kinds: [(&str, &str); 3] = [
        ("malformed", "HTTP/1.1 banana\r\n\r\n"),
        ("closed", ""),
        ("closed", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nshort"),
    ];
    for (name, answer) in kinds {
        let server = Server::start(move |_, _| answer.into());
        let outcome = server.run(CLOSED, "{\"requests\": 14}", "");
        assert_eq!((outcome.answered, outcome.errors.get(name)), (0, Some(&14)), "{name}: {outcome:?}");
    }
}

#[test]
fn an_answer_that_does_not_come_in_time() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_secs(2));
        HELLO.into()
    });
    let outcome = server.run(CLOSED, "{\"requests\": 7}", ", \"connection\": {\"timeout\": 0.2}");
    assert_eq!((outcome.answered, outcome.errors.get("timeout")), (0, Some(&7)), "{outcome:?}");
}

#[test]
fn a_kept_connection_that_the_server_closed_costs_no_request() {
    // It says nothing of it: the request that follows meets a closed connection.
    let server = Server::start(|_, number| if number <= 3 { HELLO.into() } else { String::new() });
    let outcome = server.run("{\"closed\": {\"connections\": 1}}", "{\"requests\": 9}", "");
    assert_eq!((outcome.answered, outcome.errors.len(), outcome.rest.retried), (9, 0, 2), "{outcome:?}");
    let post = ", \"request\": {\"method\": \"POST\"}";
    let outcome = server.run("{\"closed\": {\"connections\": 1}}", "{\"requests\": 4}", post);
    assert_eq!((outcome.answered, outcome.errors.get("closed")), (3, Some(&1)), "{outcome:?}");
}

#[test]
fn redirects_are_followed_on_the_same_server() {
    let answer = |head: &str, _| match head.split(' ').nth(1).unwrap() {
        "/" => {
            "HTTP/1.1 302 Found\r\nLocation: /there?x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n".into()
        }
        "/there?x" => HELLO.into(),
        other => panic!("{other}"),
    };
    let follow = ", \"connection\": {\"follows_redirects\": true}";
    let outcome = Server::start(answer).run(CLOSED, "{\"requests\": 10}", follow);
    assert_eq!((outcome.answered, outcome.statuses["200"], outcome.rest.redirected), (10, 10, 10));
    let outcome = Server::start(answer).run(CLOSED, "{\"requests\": 10}", "");
    assert_eq!(outcome.statuses["302"], 10);
    let circle = Server::start(|_, _| "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".into());
    assert_eq!(circle.run(CLOSED, "{\"requests\": 7}", follow).errors["redirects"], 7);
}

#[test]
fn requests_that_were_given_up_before_there_was_a_connection_are_counted_once() {
    let path = std::env::temp_dir().join(format!("tricorn-load-{}-full.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    rustix::net::listen(&listener, 10).unwrap();
    thread::spawn(move || {
        // Until then connections beyond the queue of the listener are refused.
        thread::sleep(Duration::from_millis(700));
        for stream in listener.incoming().map(Result::unwrap) {
            let reading = stream.try_clone().unwrap();
            thread::spawn(move || converse(reading, stream, &|_, _| HELLO.into(), &AtomicU64::new(0)));
        }
    });
    let model = "{\"closed\": {\"connections\": 300}}";
    let more = ", \"connection\": {\"timeout\": 0.25}";
    let text = plan(&format!("{{\"unix\": {path:?}}}"), model, "{\"requests\": 3000}", more);
    let outcome = run(&Plan::from_json(text.as_bytes()).unwrap(), &mut ()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let failed: u64 = outcome.errors.values().sum();
    assert!(outcome.errors["timeout"] > 100, "{outcome:?}");
    assert_eq!(
        (outcome.sent, outcome.answered + failed, outcome.rest.unanswered),
        (3000, 3000, 0),
        "{:?}",
        outcome.errors
    );
}

#[test]
fn a_unix_socket() {
    let path = std::env::temp_dir().join(format!("tricorn-load-{}.sock", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let served = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&served);
    thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            let counting = Arc::clone(&counting);
            let reading = stream.try_clone().unwrap();
            thread::spawn(move || converse(reading, stream, &|_, _| HELLO.into(), &counting));
        }
    });
    // More clients than the queue of the listener has places for.
    let model = "{\"closed\": {\"connections\": 300}}";
    let text = plan(&format!("{{\"unix\": {path:?}}}"), model, "{\"requests\": 900}", "");
    let outcome = run(&Plan::from_json(text.as_bytes()).unwrap(), &mut ()).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((outcome.answered, served.load(Ordering::SeqCst), outcome.errors.len()), (900, 900, 0));
}

/// A server that stands still for a tenth of the time: for 100 ms of each second since `start`.
fn stalling(start: Instant) -> Server {
    Server::start(move |_, _| {
        let phase = start.elapsed().as_secs_f64().fract();
        if phase < STALL {
            thread::sleep(Duration::from_secs_f64(STALL - phase));
        }
        HELLO.into()
    })
}

const STALL: f64 = 0.1;

#[test]
fn an_open_model_sees_a_stall_as_its_clients_would() {
    // Requests that come evenly while it stands still wait from STALL down to nothing. So the share of all that waits
    // longer than x is STALL - x, for a cycle of a second, and the quantile q is STALL - (1 - q).
    let model = "{\"open\": {\"connections\": 4, \"arrivals\": {\"rate\": {\"rate\": 1000}}}}";
    let outcome = stalling(Instant::now()).run(model, "{\"seconds\": 2}", "");
    assert_eq!((outcome.sent, outcome.answered, outcome.unsent), (2000, 2000, 0), "{outcome:?}");
    for (name, share) in [("p95", 0.95), ("p99", 0.99)] {
        let expected = STALL - (1.0 - share);
        let seen = outcome.latency[name];
        assert!((seen - expected).abs() < 0.02, "{name}: {seen} instead of {expected}");
    }
    assert!(outcome.rest.late >= 150, "{}", outcome.rest.late);
    // Four clients in a closed model are hardly hit: that is what coordinated omission means.
    let pace = "{\"closed\": {\"connections\": 4, \"pace\": 250}}";
    let omitting = stalling(Instant::now()).run(pace, "{\"seconds\": 1}", "");
    // At most four requests of each stall; a busy machine makes fewer of the others, so that the last hundredth may be theirs.
    assert!(omitting.latency["p95"] < 0.03, "{omitting:?}");
}

#[test]
fn requests_that_no_connection_was_free_for_are_unsent() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(400));
        HELLO.into()
    });
    let model = "{\"open\": {\"connections\": 1, \"arrivals\": {\"rate\": {\"rate\": 100}}}}";
    let outcome = server.run(model, "{\"seconds\": 0.2, \"drain\": 0.1}", "");
    assert_eq!((outcome.sent, outcome.answered, outcome.rest.unanswered, outcome.unsent), (1, 0, 1, 19), "{outcome:?}");
}

#[test]
fn a_log_is_replayed_with_its_times_and_paths() {
    let server = Server::start(|head, _| {
        let line = head.lines().next().unwrap();
        let status = if line == "DELETE /b?c HTTP/1.1" { 202 } else { 200 };
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{line}", line.len())
    });
    let entries = "[[0, \"GET\", \"/a\"], [0.05, \"DELETE\", \"/b?c\"], [0.15, \"GET\", \"/a\"]]";
    let model =
        format!("{{\"open\": {{\"connections\": 3, \"arrivals\": {{\"replay\": {{\"entries\": {entries}}}}}}}}}");
    let outcome = server.run(&model, "{}", "");
    assert_eq!((outcome.answered, outcome.statuses["200"], outcome.statuses["202"]), (3, 2, 1));
    assert!(outcome.seconds >= 0.15 && outcome.seconds < 5.0, "{outcome:?}");
}

#[test]
fn weights_of_targets_are_kept() {
    let server = Server::start(|head, _| {
        let status = if head.starts_with("GET /rare ") { 404 } else { 200 };
        format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")
    });
    let target = |path, weight| {
        let address = format!("{{\"tcp\": [\"127.0.0.1\", {}]}}", server.port);
        format!("{{\"address\": {address}, \"host\": \"h\", \"path\": \"{path}\", \"weight\": {weight}}}")
    };
    let targets = [target("/", 3), target("/rare", 1)].join(",");
    let model = "{\"closed\": {\"connections\": 1}}";
    let text = format!("{{\"targets\": [{targets}], \"model\": {model}, \"bounds\": {{\"requests\": 100}}}}");
    let outcome = run(&Plan::from_json(text.as_bytes()).unwrap(), &mut ()).unwrap();
    assert_eq!((outcome.statuses["200"], outcome.statuses["404"]), (75, 25));
}

#[test]
fn what_comes_before_the_end_of_the_warm_up_is_not_counted() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(5));
        HELLO.into()
    });
    let outcome = server.run(CLOSED, "{\"seconds\": 0.1, \"warmup\": 0.3}", "");
    assert!(outcome.answered < server.served() / 2, "{} of {}", outcome.answered, server.served());
    assert!(outcome.seconds < 0.3, "{outcome:?}");
    assert!(outcome.bytes.body < (outcome.answered + 8) * 6, "{outcome:?}");
    assert_eq!(outcome.rest.opened, 0, "all were opened before");
}

/// Stops the run at once.
struct Impatient;

impl Watcher for Impatient {
    fn goes_on(&mut self) -> bool {
        false
    }

    fn tick(&mut self, _: &Progress) -> bool {
        true
    }
}

#[test]
fn a_run_that_is_stopped_tells_what_it_has() {
    let server = Server::start(|_, _| HELLO.into());
    let text = plan(&format!("{{\"tcp\": [\"127.0.0.1\", {}]}}", server.port), CLOSED, "{\"seconds\": 60}", "");
    let outcome = run(&Plan::from_json(text.as_bytes()).unwrap(), &mut Impatient).unwrap();
    assert!(outcome.rest.stopped && outcome.seconds < 30.0);
    assert_eq!(outcome.sent, outcome.answered + outcome.rest.unanswered);
}

#[test]
fn a_sample_has_what_became_of_a_request() {
    let server = Server::start(|_, number| {
        if number == 3 {
            return String::new();
        }
        thread::sleep(Duration::from_millis(10));
        "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n".to_owned() + &format!("{number:040}")
    });
    let model = "{\"closed\": {\"connections\": 1}}";
    let outcome = server.run(model, "{\"requests\": 4}", ", \"samples\": 3, \"request\": {\"method\": \"POST\"}");
    let samples = outcome.samples.unwrap();
    assert_eq!(samples.ended, [Ended::Answered(200), Ended::Answered(200), Ended::Failed("closed")]);
    assert_eq!(samples.left_out, 1);
    assert_eq!(samples.body, [&format!("{:032}", 0), &format!("{:032}", 0), ""], "32 bytes are kept");
    for at in 0..3 {
        let moments =
            [&samples.due, &samples.begun, &samples.connected, &samples.written, &samples.first, &samples.done];
        assert!(moments.map(|column| column[at]).is_sorted(), "{samples:?}");
        assert!(at == 2 || samples.first[at] - samples.written[at] >= 0.009, "{samples:?}");
    }
    assert!(samples.connected[0] > samples.begun[0], "the first one made a connection");
    assert_eq!(samples.connected[1], samples.begun[1]);
    assert_eq!(outcome.rest.opened, 2);
}

#[test]
fn without_samples_none_are_kept() {
    let server = Server::start(|_, _| HELLO.into());
    assert_eq!(server.run(CLOSED, "{\"requests\": 10}", "").samples, None);
}

#[test]
fn a_sample_tells_that_its_request_was_held() {
    let server = Server::start(|_, _| {
        thread::sleep(Duration::from_millis(50));
        HELLO.into()
    });
    let model = replay(1, &[0.0, 0.01], "");
    let samples = server.run(&model, "{}", ", \"samples\": 9").samples.unwrap();
    assert_eq!(samples.held, [false, true]);
    assert!(samples.begun[1] - samples.due[1] >= 0.03 && samples.due[1] == 0.01, "{samples:?}");
}

/// Which of its connection's requests each was, as the server counts them.
fn numbers_on_connections(more: &str) -> Vec<String> {
    let server = Server::start(|_, number| format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{number:03}"));
    // The first four open the connections, and have half a second for it.
    let dues: Vec<f64> = (0..64).map(|turn| f64::from(turn) / 200.0 + if turn < 4 { 0.0 } else { 0.5 }).collect();
    let outcome = server.run(&replay(4, &dues, more), "{\"warmup\": 0.5}", ", \"samples\": 99");
    assert_eq!(
        (outcome.answered, outcome.rest.opened),
        (60, 0),
        "the first four, which open connections, do not count"
    );
    outcome.samples.unwrap().body
}

/// How many requests the busiest connection has had. In turns it is sixteen: fifteen after the first, which opened it.
fn most_on_a_connection(more: &str) -> usize {
    let numbers = numbers_on_connections(more);
    numbers.iter().filter_map(|number| number.parse().ok()).max().unwrap_or(0)
}

#[test]
fn first_requests_open_all_connections_and_others_take_turns() {
    // Two that are late on a busy machine leave one turn out.
    let most = most_on_a_connection(", \"opens_all\": true");
    assert!((16..=20).contains(&most), "{most}");
}

#[test]
fn a_request_takes_any_free_connection() {
    // Where a busy machine has all of them late it may look like turns.
    let is_uneven = |_| most_on_a_connection(", \"opens_all\": true, \"any_connection\": true") > 20;
    assert!((0..5).any(is_uneven));
}

fn replay(connections: usize, dues: &[f64], more: &str) -> String {
    let entries: Vec<String> = dues.iter().map(|due| format!("[{due}, \"GET\", \"/\"]")).collect();
    let arrivals = format!("{{\"replay\": {{\"entries\": [{}]}}}}", entries.join(", "));
    format!("{{\"open\": {{\"connections\": {connections}, \"arrivals\": {arrivals}{more}}}}}")
}
