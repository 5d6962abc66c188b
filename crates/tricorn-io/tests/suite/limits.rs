//! How many connections, for how long.
#![allow(clippy::expect_used, reason = "a test may panic")]
use crate::harness;
use harness::*;
use tricorn_io::Config;

fn echo(config: Config) -> Server {
    Server::start(config, |engine, exchange| {
        answer(engine, exchange, b"");
    })
}

#[test]
fn an_idle_connection_is_closed_at_its_deadline() {
    let server = echo(Config { keepalive: 300 * MILLI, ..config() });
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    client.is_closed();
    server.until(Word::IdleCloses, 1);
    server.until(Word::Connections, 0);
}

#[test]
fn a_connection_on_which_nothing_comes_is_closed_at_the_head_deadline() {
    let server = echo(Config { header_timeout: 300 * MILLI, ..config() });
    server.connect().is_closed();
    server.until(Word::Connections, 0);
}

#[test]
fn a_head_that_drips_is_refused_with_408_at_its_deadline() {
    let server = echo(Config { header_timeout: 500 * MILLI, ..config() });
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    let mut fields = 0;
    client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n");
    // Each field comes when the one before was read: the client is never silent for long.
    while server.get(Word::HeadTimeouts) == 0 && fields < 90 {
        let before = server.get(Word::BytesIn);
        client.send(b"a: b\r\n");
        fields += 1;
        until("the field is read", || server.get(Word::BytesIn) > before || server.get(Word::HeadTimeouts) == 1);
        std::thread::sleep(std::time::Duration::from_millis(20)); // the drip
    }
    assert_eq!(client.response().status, 408);
}

#[test]
fn without_keep_alive_every_reply_closes() {
    let server = echo(Config { keepalive: 0, ..config() });
    let mut client = server.connect();
    assert!(client.get("/").closes());
    client.is_closed();
}

#[test]
fn at_the_most_connections_idle_ones_are_closed_and_newcomers_served() {
    let server = echo(Config { max_connections: 10, ..config() });
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        clients.push(client);
        assert!(server.get(Word::Connections) <= 10);
    }
    server.until(Word::Evicted, 40);
    drop(clients);
    server.until(Word::Connections, 0);
}

fn limited(body: u64) -> Server {
    let mut config = config();
    config.policy.limits.body = body;
    Server::start(config, |engine, exchange| {
        let (body, _) = body_of(exchange);
        answer(engine, exchange, body.len().to_string().as_bytes());
    })
}

#[test]
fn a_body_over_the_limit_is_refused_before_it_comes() {
    let server = limited(1000);
    let mut client = server.connect();
    client.post("/", &noise(1000));
    assert_eq!(client.response().body, b"1000");
    server.until(Word::Requests, 1); // counted with its bytes, a moment after the client has them
    let sent = server.get(Word::BytesOut);
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
    let response = client.response();
    assert_eq!(response.status, 413, "and no 100 before");
    let page = response.head.len() + response.body.len();
    assert!(response.closes());
    client.is_closed();
    assert_eq!((server.get(Word::Requests), server.get(Word::Refused)), (1, 1));
    assert_eq!(server.get(Word::BytesOut) - sent, page as u64);
    assert_eq!((server.get(Word::Informational), server.get(Word::ClientErrors)), (0, 1));
    assert_eq!(server.get(Word::BodyBytes), 0);
}

#[test]
fn chunks_over_the_limit_are_refused_when_they_are_announced() {
    let server = limited(1000);
    let mut client = server.connect();
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n");
    client.send(&noise(1000));
    client.send(b"\r\n0\r\n\r\n");
    assert_eq!(client.response().body, b"1000");
    client.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n");
    client.send(&noise(1000));
    client.send(b"\r\n1\r\n");
    assert_eq!(client.response().status, 413);
    client.is_closed();
    server.until(Word::BodyBytes, 0);
}

#[test]
fn a_client_that_goes_on_sending_can_read_why_it_was_refused() {
    let server = limited(1000);
    let mut client = server.connect();
    client.send(post("/", 4 << 20).as_bytes());
    client.send(&noise(4 << 20));
    assert_eq!(client.response().status, 413);
    server.until(Word::Connections, 0);
}
