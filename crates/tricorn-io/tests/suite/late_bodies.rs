//! Requests that wait before their bodies have come, as they may where applications read bodies themselves: with its end a request is
//! whole, and an idle sibling answers it.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::http2::Client2;
use harness::lending::{connect_by_tls, secured, speaking_http2};
use harness::tls::World;
use harness::*;
use std::io::{Read, Write};
use std::net::Shutdown;
use tricorn_io::Config;
use tricorn_proto::http1::Limits;

const FIXED: &str = "Content-Length: 10\r\n";
const CHUNKED: &str = "Transfer-Encoding: chunked\r\n";

fn streaming(plan: Plan) -> Plan {
    Plan { config: Config { streaming: true, ..plan.config }, ..plan }
}

fn head(path: &str, framing: &str) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{framing}\r\n").into_bytes()
}

/// The first worker is busy, and a request waits there of whose body this has come.
#[track_caller]
fn waits<S: Read + Write>(workers: &Workers, client: &mut Client<S>, head: &[u8], first: &[u8]) {
    let before = workers.sum(Word::HandedOver);
    client.send(head);
    client.send(first);
    workers.servers[0].until(Word::Queued, 1);
    assert_eq!(workers.sum(Word::HandedOver), before, "an idle sibling gets no part of a request");
}

/// What came of a body after its request: in pieces, with lengths or chunks.
fn bodies() -> [(&'static str, Vec<&'static [u8]>); 2] {
    let chunks: Vec<&[u8]> = vec![b"3\r\nabc\r\n", b"7\r\ndef", b"ghij\r\n", b"0\r\n\r\n"];
    [(FIXED, vec![b"abc", b"def", b"g", b"hij"]), (CHUNKED, chunks)]
}

#[test]
fn a_request_is_handed_over_once_its_body_has_come() {
    for (framing, pieces) in bodies() {
        let workers = Workers::echo(streaming(plan(2)));
        let mut client = workers.connect(0);
        workers.block(0);
        waits(&workers, &mut client, &head("/up", framing), pieces[0]);
        pieces[1..].iter().for_each(|piece| client.send(piece));
        client.ask("/next");
        let answer = client.response().answer();
        assert_eq!((answer.worker, answer.body.as_slice(), answer.closes), (Some(1), b"abcdefghij".as_slice(), false));
        let next = client.response().answer();
        assert_eq!((next.worker, next.path.as_str()), (Some(1), "/next"), "what is pipelined goes with its connection");
        workers.servers[0].until(Word::BodyBytes, 0);
        workers.unblock_all();
    }
}

#[test]
fn a_body_that_lay_in_the_socket_when_its_request_began_to_wait_is_read_as_well() {
    let workers = Workers::echo(streaming(plan(2)));
    let mut client = workers.connect(0);
    workers.block(0);
    // More than is read at once, and no edge comes for the rest.
    let body = noise(700_000);
    client.post("/large", &body);
    let answer = client.response().answer();
    assert_eq!(answer.worker, Some(1));
    assert!(answer.body == body, "{} bytes", answer.body.len());
    workers.unblock_all();
}

#[test]
fn a_request_by_tls_is_lent_once_its_body_has_come() {
    for (framing, pieces) in bodies() {
        let world = World::new();
        let workers = Workers::echo(streaming(secured(&world, 2)));
        let mut client = connect_by_tls(&workers, &world, 0);
        workers.block(0);
        waits(&workers, &mut client, &head("/up", framing), pieces[0]);
        let lent = workers.get(0, Word::Lent);
        pieces[1..].iter().for_each(|piece| client.send(piece));
        let answer = client.response().answer();
        assert_eq!((answer.worker, answer.body.as_slice()), (Some(1), b"abcdefghij".as_slice()));
        assert_eq!(workers.get(0, Word::Lent), lent + 1);
        workers.unblock_all();
    }
}

#[test]
fn a_stream_is_lent_once_its_content_has_come() {
    let workers = Workers::echo(streaming(speaking_http2(2)));
    let mut client = Client2::connect(workers.servers[0].address, 65_535);
    let first = client.get("/first");
    client.response(first);
    workers.block(0);
    let before = (workers.sum(Word::HandedOver), workers.get(0, Word::Lent));
    let post = client.ask("POST", "/up", &[], false);
    client.data(post, b"abc", false);
    workers.servers[0].until(Word::Queued, 1);
    assert_eq!(workers.sum(Word::HandedOver), before.0);
    let content = noise(80_000);
    let (first, second) = content.split_at(40_000);
    first.chunks(10_000).for_each(|piece| client.data(post, piece, false));
    // The window is given back by parts.
    let wanted = 3 + 80_000 - 65_535;
    client.until("there is room for more", |client| client.updates.get(&post).is_some_and(|given| *given >= wanted));
    second.chunks(10_000).for_each(|piece| client.data(post, piece, false));
    client.data(post, b"", true);
    let response = client.response(post);
    assert!(
        response.body == [b"1 /up\nabc", content.as_slice()].concat(),
        "{} {:?} {} bytes",
        response.status,
        response.reset,
        response.body.len()
    );
    assert_eq!(workers.get(0, Word::Lent), before.1 + 1);
    workers.unblock_all();
}

#[test]
fn a_body_that_is_larger_than_what_memory_holds_of_one_stays_with_its_client() {
    let plan = streaming(plan(2));
    let config = Config { body_buffer_size: 50_000, ..plan.config };
    let workers = Workers::echo(Plan { config, ..plan });
    let mut client = workers.connect(0);
    workers.block(0);
    waits(&workers, &mut client, &head("/up", "Content-Length: 100000\r\n"), b"abc");
    client.send(&noise(99_997));
    let mut other = workers.servers[0].connect();
    assert_eq!(other.get("/other").answer().worker, Some(1), "it holds nobody else up");
    workers.servers[0].until(Word::Queued, 1);
    assert!(workers.get(0, Word::BodyBytes) < 50_000);
    workers.unblock(0);
    assert_eq!(client.response().answer().worker, Some(0));
}

#[test]
fn what_is_wrong_with_a_body_is_said_while_its_request_waits() {
    let limits = Limits { body: 10, ..Limits::default() };
    for (rest, status) in [(&b"d\r\nnothing of length\r\n"[..], 400), (b"\r\nb\r\nabcdefghijk\r\n", 413)] {
        let mut plan = streaming(plan(2));
        plan.config.policy.limits = limits.clone();
        let workers = Workers::echo(plan);
        let mut client = workers.connect(0);
        workers.block(0);
        waits(&workers, &mut client, &head("/up", CHUNKED), b"3\r\nabc");
        client.send(rest);
        let response = client.response();
        assert_eq!((response.status, response.closes()), (status, true));
        workers.servers[0].until(Word::Queued, 0);
        client.is_closed();
        workers.unblock_all();
        workers.servers[0].until(Word::BodyBytes, 0);
    }
}

#[test]
fn a_client_that_leaves_before_the_end_of_its_body_leaves_the_queue() {
    let workers = Workers::echo(streaming(plan(2)));
    let mut client = workers.connect(0);
    workers.block(0);
    waits(&workers, &mut client, &head("/up", FIXED), b"abc");
    client.stream.shutdown(Shutdown::Write).expect("a connection");
    workers.servers[0].until(Word::LeftQueue, 1);
    workers.servers[0].until(Word::Queued, 0);
    client.is_closed();
    workers.unblock_all();
}

#[test]
fn a_client_that_closes_its_sending_side_with_the_end_of_its_body_is_answered() {
    // Of the others, nothing more is read before they begin.
    let fixed: [&[u8]; 2] = [b"abc", b"defghij"];
    let chunks: [&[u8]; 2] = [b"3\r\nabc", b"\r\n7\r\ndefghij\r\n0\r\n\r\n"];
    for (framing, [first, rest], buffer, worker) in
        [(FIXED, fixed, 1 << 20, 1), (FIXED, fixed, 5, 0), (CHUNKED, chunks, 3, 0)]
    {
        let plan = streaming(plan(2));
        let config = Config { body_buffer_size: buffer, ..plan.config };
        let workers = Workers::echo(Plan { config, ..plan });
        let mut client = workers.connect(0);
        workers.block(0);
        waits(&workers, &mut client, &head("/up", framing), first);
        // As long as it takes to tell such a client from one that has left.
        std::thread::sleep(std::time::Duration::from_millis(60));
        client.send(rest);
        client.stream.shutdown(Shutdown::Write).expect("a connection");
        if worker == 0 {
            let mut other = workers.servers[0].connect();
            assert_eq!(other.get("/other").answer().worker, Some(1));
            workers.unblock(0);
        }
        assert_eq!(client.response().answer().worker, Some(worker));
        assert_eq!(workers.sum(Word::LeftQueue), 0);
        workers.unblock_all();
    }
}
