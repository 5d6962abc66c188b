//! Requests on their way in, with a thread that has time for them.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;

fn echo() -> Server {
    Server::start(config(), |engine, exchange| {
        let path = path(exchange);
        answer(engine, exchange, path.as_bytes());
    })
}

#[test]
fn a_request_is_answered_and_its_connection_kept() {
    let server = echo();
    let mut client = server.connect();
    for path in ["/one", "/two", "/three"] {
        let response = client.get(path);
        assert_eq!((response.status, response.body), (200, path.as_bytes().to_vec()));
        assert!(response.head.contains("\r\nConnection: keep-alive\r\n"));
    }
    assert_eq!(server.get(Word::Accepted), 1);
}

#[test]
fn ten_thousand_pipelined_requests_are_answered_in_order() {
    let server = echo();
    let mut client = server.connect();
    let mut writer = Client::new(client.stream.try_clone().expect("a descriptor"));
    let all: String = (0..10_000).map(|number| request(&format!("/{number}"))).collect();
    let writing = std::thread::spawn(move || writer.send(all.as_bytes()));
    for number in 0..10_000 {
        assert_eq!(client.response().body, format!("/{number}").into_bytes());
    }
    writing.join().expect("the writer");
}

#[test]
fn a_request_that_arrives_in_two_halves_is_one_request() {
    let server = echo();
    let mut client = server.connect();
    let whole = request("/halves");
    let mut read = 0;
    for split in [1, 3, 20, whole.len() - 1] {
        let (first, second) = whole.split_at(split);
        client.send(first.as_bytes());
        read += first.len() as u64;
        server.until(Word::BytesIn, read);
        client.send(second.as_bytes());
        read += second.len() as u64;
        assert_eq!(client.response().body, b"/halves");
    }
    server.until(Word::Requests, 4);
}

#[test]
fn a_client_that_has_said_all_it_has_to_say_is_answered_before_the_connection_closes() {
    let server = echo();
    let mut client = server.connect();
    client.ask("/last");
    client.stream.shutdown(std::net::Shutdown::Write).expect("a connection");
    assert_eq!(client.response().body, b"/last");
    client.is_closed();
    server.until(Word::Connections, 0);
}

#[test]
fn a_handler_that_blocks_does_not_delay_another_request_while_a_thread_is_idle() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(tricorn_io::Config { threads: 2, ..config() }, move |engine, exchange| {
        if path(exchange) == "/blocks" {
            held.pass();
        }
        answer(engine, exchange, b"");
    });
    let (mut slow, mut quick) = (server.connect(), server.connect());
    slow.ask("/blocks");
    gate.until_held(1);
    for _ in 0..100 {
        assert_eq!(quick.get("/").status, 200);
    }
    assert_eq!(server.connect().get("/").status, 200);
    gate.open(1);
    assert_eq!(slow.response().status, 200);
}

#[test]
fn what_is_not_http_is_refused_and_the_client_can_read_why() {
    let server = echo();
    let mut client = server.connect();
    // More than is read before the refusal: a close that resets the connection would lose the answer.
    client.send(&[b"what is this?\r\n".as_slice(), &[b'x'; 100_000]].concat());
    let response = client.response();
    assert_eq!(response.status, 400);
    assert!(response.closes());
    drop(client);
    server.until(Word::Connections, 0);
    assert_eq!((server.get(Word::Refused), server.get(Word::Requests)), (1, 0));
    until("the log is told", || server.notices().iter().any(|notice| notice.warning));
}
