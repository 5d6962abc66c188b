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
    assert_eq!(server.get(Word::HeadTimeouts), 1, "it was refused while it still came, after {fields} fields");
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

/// A client whose request head does not end.
fn half_a_head(server: &Server) -> Client {
    let before = server.get(Word::Accepted);
    let mut client = server.connect();
    client.send(b"GET /half HTTP/1.1\r\nHost: h\r\n");
    server.until_at_least(Word::Accepted, before + 1);
    client
}

#[test]
fn beyond_the_most_connections_unfinished_heads_are_closed_the_oldest_first() {
    let server = echo(Config { max_connections: 10, ..config() });
    let mut polite = server.connect();
    assert_eq!(polite.get("/").status, 200);
    let mut heads: Vec<Client> = (0..40).map(|_| half_a_head(&server)).collect();
    server.until(Word::Evicted, 31);
    assert_eq!(server.get(Word::Connections), 10);
    for head in &mut heads[..31] {
        let response = head.response();
        assert_eq!(response.status, 503);
        assert!(
            response.closes() && response.head.contains("\r\nRetry-After: 1\r\nTricorn-Refused: capacity\r\n"),
            "{}",
            response.head
        );
        head.is_closed();
    }
    // The youngest are still heard, and so is the client that was served before all of them came.
    for head in &mut heads[31..] {
        head.send(b"\r\n");
        assert_eq!(head.response().status, 200);
    }
    assert_eq!(polite.get("/").status, 200);
    assert_eq!((server.get(Word::Connections), server.get(Word::Evicted)), (10, 31));
}

#[test]
fn an_idle_connection_gives_way_to_heads_that_have_just_begun_but_not_to_old_ones() {
    let server = echo(Config { max_connections: 10, ..config() });
    let mut idle: Vec<Client> = (0..6).map(|_| server.connect()).collect();
    for client in &mut idle {
        assert_eq!(client.get("/").status, 200);
    }
    let began = std::time::Instant::now();
    let mut heads: Vec<Client> = (0..4).map(|_| half_a_head(&server)).collect();
    let mut first = half_a_head(&server);
    server.until(Word::Evicted, 1);
    assert!(heads.iter().all(|head| !head.has_something()), "a head on its way has more claim than an idle connection");
    // A head is old after a second; deadlines have steps of 67 ms.
    until("the heads are old", || began.elapsed() > std::time::Duration::from_millis(1200));
    let _second = half_a_head(&server);
    server.until(Word::Evicted, 2);
    assert_eq!(heads[0].response().status, 503, "the oldest");
    assert!(heads[1..].iter().all(|head| !head.has_something()));
    first.send(b"\r\n");
    assert_eq!(first.response().status, 200);
    let answered = idle.iter_mut().filter(|client| !client.has_something()).map(|client| client.get("/").status);
    assert_eq!(answered.collect::<Vec<_>>(), [200; 5]);
}

#[test]
fn connections_that_only_wait_for_their_clients_end_give_way() {
    let server = echo(Config { max_connections: 4, ..config() });
    let mut refused: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut refused {
        client.send(b"nonsense\r\n\r\n");
        assert_eq!(client.response().status, 400);
    }
    let mut client = server.connect();
    assert_eq!(client.get("/").status, 200);
    assert!(server.get(Word::Connections) <= 4);
}

/// Sends so many kilobytes of a head that does not end, and waits until they are counted.
fn send_half_a_head(server: &Server, client: &mut Client, kilobytes: usize) {
    let before = server.get(Word::BytesIn);
    let field = format!("x: {}\r\n", "y".repeat(1019));
    let head = ["GET / HTTP/1.1\r\nHost: h\r\n".to_owned(), field.repeat(kilobytes)].concat();
    client.send(head.as_bytes());
    server.until_at_least(Word::BytesIn, before + head.len() as u64);
}

#[test]
fn beyond_the_memory_for_unfinished_heads_the_longest_are_refused() {
    let most = 400_000;
    let mut config = Config { head_buffer_total: most, ..config() };
    config.policy.limits.fields = 1000;
    let server = echo(config);
    let mut short = server.connect();
    send_half_a_head(&server, &mut short, 1);
    server.until(Word::HeadBytes, 16 * 1024);
    let mut long: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut long {
        send_half_a_head(&server, client, 60);
        assert!(server.get(Word::HeadBytes) <= most as u64);
    }
    assert_eq!(server.connect().get("/").status, 200, "what was to be refused is");
    let refused = server.get(Word::HeadsShed);
    assert!(refused >= 14, "{refused} were refused");
    until("it is told", || server.notices().iter().any(|notice| notice.text.contains("head_buffer_total")));
    let (mut answers, mut left) = (0, 0);
    for client in &mut long {
        until("it is answered, or counted", || client.has_something() || server.get(Word::HeadsShed) == refused);
        if client.has_something() {
            let response = client.response();
            assert!(response.status == 503 && response.closes(), "{}", response.head);
            answers += 1;
        } else {
            client.send(b"\r\n");
            assert_eq!(client.response().status, 200);
            left += 1;
        }
    }
    assert_eq!((answers, answers + left), (refused, 20));
    short.send(b"\r\n");
    assert_eq!(short.response().status, 200, "the oldest, and the shortest");
    server.until(Word::HeadBytes, 0);
}

#[test]
fn of_unfinished_heads_of_one_length_the_oldest_are_refused() {
    let server = echo(Config { head_buffer_total: 10 * 16 * 1024, ..config() });
    // Deadlines have steps of 67 ms: those that begin in one of them are equally old.
    let mut oldest = half_a_head(&server);
    server.until(Word::HeadBytes, 16 * 1024);
    let begun = std::time::Instant::now();
    until("the others are younger", || begun.elapsed() > std::time::Duration::from_millis(150));
    let mut others: Vec<Client> = (0..10).map(|_| half_a_head(&server)).collect();
    assert_eq!(oldest.response().status, 503);
    // A 16th of the limit is freed at a time.
    server.until(Word::HeadsShed, 2);
    server.until(Word::HeadBytes, 9 * 16 * 1024);
    drop(oldest);
    let last = others.last_mut().expect("a client");
    last.send(b"\r\n");
    assert!([200, 503].contains(&last.response().status));
    drop(others);
    server.until(Word::HeadBytes, 0);
}

/// A client whose request has so many bytes of body still to come.
fn half_a_body(server: &Server, length: usize) -> Client {
    let before = server.get(Word::BytesIn);
    let mut client = server.connect();
    client.send(post("/", length).as_bytes());
    client.send(&noise(length / 2));
    server.until_at_least(Word::BytesIn, before + length as u64 / 2);
    client
}

#[test]
fn where_no_connection_can_be_closed_none_is_accepted() {
    let server = echo(Config { max_connections: 2, ..config() });
    let mut bodies: Vec<Client> = (0..2).map(|_| half_a_body(&server, 1000)).collect();
    let mut newcomer = server.connect();
    newcomer.ask("/");
    let told = || server.notices().iter().filter(|notice| notice.text.contains("Too many connections")).count();
    until("it is told", || told() == 1);
    assert_eq!((server.get(Word::Connections), server.get(Word::Accepted)), (2, 2));
    bodies[0].send(&noise(500));
    assert_eq!(bodies[0].response().status, 200);
    assert_eq!(newcomer.response().status, 200, "an idle connection makes room");
    assert!(server.get(Word::Connections) <= 2);
    bodies[1].send(&noise(500));
    assert_eq!(bodies[1].response().status, 200);
}

#[test]
fn bodies_in_files_take_descriptors_from_connections() {
    let server = echo(Config { max_descriptors: 6, body_buffer_size: 100, ..config() });
    let mut bodies: Vec<Client> = (0..2).map(|_| half_a_body(&server, 1000)).collect();
    server.until(Word::Spooled, 2);
    let mut idle = Vec::new();
    for evicted in [0, 0, 1, 2, 3] {
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        assert_eq!(server.get(Word::Evicted), evicted);
        assert!(server.get(Word::Connections) <= 4);
        idle.push(client);
    }
    for client in &mut bodies {
        client.send(&noise(500));
        assert_eq!(client.response().status, 200);
    }
    // The files are gone: there is room for two more.
    for _ in 0..2 {
        idle.push(server.connect());
        assert_eq!(idle.last_mut().expect("a client").get("/").status, 200);
    }
    assert_eq!((server.get(Word::Evicted), server.get(Word::Connections)), (3, 6));
}

#[test]
fn streams_take_no_descriptors_from_connections() {
    let gate = Gate::default();
    let held = gate.clone();
    let config = Config { threads: 3, max_descriptors: 6, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) != "/stream" {
            answer(engine, exchange, b"");
            return;
        }
        for _ in 0..3 {
            write(engine, exchange, b"piece");
        }
        held.pass();
        exchange.end();
    });
    let mut streams: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    for client in &mut streams {
        client.ask("/stream");
    }
    gate.until_held(2);
    let mut idle = Vec::new();
    for evicted in [0, 0, 0, 0, 1] {
        let mut client = server.connect();
        assert_eq!(client.get("/").status, 200);
        assert_eq!(server.get(Word::Evicted), evicted);
        idle.push(client);
    }
    gate.open(2);
    for client in &mut streams {
        assert_eq!(client.response().body, b"piecepiecepiece");
    }
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
