//! What the scoreboard says is what happened.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::*;

#[test]
#[allow(clippy::too_many_lines, reason = "one account")]
fn counters_and_histograms_add_up() {
    let server = Server::start(tricorn_io::Config { threads: 2, ..config() }, |engine, exchange| {
        let status: &[u8] = match path(exchange).as_str() {
            "/moved" => b"302 Found",
            "/missing" => b"404 Not Found",
            "/fails" => {
                exchange.app_failed();
                exchange.answer_error(500, "");
                return;
            }
            _ => {
                answer(engine, exchange, b"twelve bytes");
                return;
            }
        };
        exchange.request.reply.status(status).expect("a status");
        let wall = exchange.wall.clone();
        let inputs = tricorn_proto::response::HeadInputs {
            date: wall.date(),
            body_length: Some(0),
            close: engine.closes_connections(),
            ..Default::default()
        };
        exchange.write_last(&inputs, b"", || Box::new(Vec::new()));
    });
    assert_eq!(server.get(Word::State), SERVING);
    let (mut sent, mut received) = (0, 0);
    let mut clients: Vec<Client> = (0..3).map(|_| server.connect()).collect();
    for round in 0..10 {
        for client in &mut clients {
            for path in ["/", "/moved", "/missing"] {
                sent += request(path).len();
                let response = client.get(path);
                received += response.head.len() + response.body.len();
            }
        }
        assert_eq!(server.get(Word::Accepted), 3, "round {round}");
    }
    for client in &mut clients {
        sent += request("/fails").len();
        let response = client.get("/fails");
        assert_eq!(response.status, 500);
        received += response.head.len() + response.body.len();
        client.is_closed();
    }
    let mut wrong = server.connect();
    wrong.send(b"wrong\r\n\r\n");
    sent += 9;
    let refusal = wrong.response();
    assert_eq!(refusal.status, 400);
    received += refusal.head.len() + refusal.body.len();
    wrong.is_closed();
    server.until(Word::Requests, 93);
    let expected = [
        (Word::Accepted, 4),
        (Word::Refused, 1),
        (Word::Informational, 0),
        (Word::Successful, 30),
        (Word::Redirection, 30),
        (Word::ClientErrors, 31),
        (Word::ServerErrors, 3),
        (Word::AppErrors, 3),
        (Word::BytesIn, sent as u64),
        (Word::BytesOut, received as u64),
        (Word::ClientGone, 0),
        (Word::Connections, 0),
        (Word::InFlight, 0),
        (Word::Queued, 0),
        (Word::BodyBytes, 0),
    ];
    for (word, value) in expected {
        server.until(word, value);
    }
    for histogram in HISTOGRAMS {
        assert_eq!(server.observations(histogram), 93);
    }
}

#[test]
fn streams_and_files_and_the_reactors_own_writes_are_counted_as_sent() {
    let server = Server::start(config(), |engine, exchange| {
        if path(exchange) == "/big" {
            answer(engine, exchange, &vec![0; 16 << 20]);
            return;
        }
        for number in 0..1000 {
            write(engine, exchange, format!("{number}").as_bytes());
        }
        exchange.end();
    });
    let mut client = server.connect();
    let mut received = 0;
    for round in 1..=3 {
        client.ask("/stream");
        let head = client.head().1;
        let body = client.take_until(b"\r\n0\r\n\r\n");
        received += (head.len() + body.len()) as u64;
        server.until(Word::Requests, 2 * round - 1);
        server.until(Word::BytesOut, received);
        let response = client.get("/big");
        received += (response.head.len() + response.body.len()) as u64;
        server.until(Word::BytesOut, received);
    }
}

#[test]
fn requests_under_way_and_waiting_are_gauged() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = Server::start(tricorn_io::Config { threads: 2, ..config() }, move |engine, exchange| {
        held.pass();
        answer(engine, exchange, b"");
    });
    let mut clients: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.ask("/");
    }
    gate.until_held(2);
    server.until(Word::Queued, 3);
    assert_eq!((server.get(Word::InFlight), server.get(Word::Connections)), (2, 5));
    gate.open(5);
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }
    server.until(Word::InFlight, 0);
    server.until(Word::Queued, 0);
}
