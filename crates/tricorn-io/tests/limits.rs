//! How many connections, for how long.
#![allow(clippy::expect_used, reason = "a test may panic")]
mod harness;
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
