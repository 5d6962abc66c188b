//! A request that comes by TLS or as a stream of HTTP/2, and whose worker is busy, is answered by a sibling: its connection stays.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::http2::Client2;
use harness::lending::{connect_by_tls, secured, speaking_http2};
use harness::tls::World;
use harness::*;
use std::sync::{Arc, Mutex};
use tricorn_proto::message::{Scheme, Version};

const WINDOW: u32 = 65_535;
const INTERNAL_ERROR: u32 = 2;

fn answer_of(client: &mut Client2, stream: u32) -> (String, Vec<u8>) {
    let response = client.response(stream);
    assert_eq!((response.status, response.reset), (200, None));
    let end = response.body.iter().position(|byte| *byte == b'\n').expect("a line");
    (String::from_utf8_lossy(&response.body[..end]).into_owned(), response.body[end + 1..].to_vec())
}

#[test]
fn streams_of_a_busy_worker_are_answered_by_the_idle_one() {
    let workers = Workers::echo(speaking_http2(2));
    let mut client = Client2::connect(workers.servers[0].address, WINDOW);
    let first = client.get("/first");
    client.response(first);
    workers.block(0);
    for _ in 0..3 {
        let get = client.get("/get");
        assert_eq!(answer_of(&mut client, get), ("1 /get".into(), Vec::new()));
    }
    let post = client.ask("POST", "/post", &[("content-length", "5"), ("cookie", "a=b")], false);
    client.data(post, b"hello", true);
    assert_eq!(answer_of(&mut client, post), ("1 /post".into(), b"hello".to_vec()));
    assert!(workers.get(0, Word::Lent) >= 4 && workers.get(0, Word::HandedOver) >= 4);
    assert!(workers.get(1, Word::TakenOver) >= 4);
    workers.unblock_all();
    workers.servers[1].until(Word::Connections, 0);
    let own = client.get("/own");
    assert_eq!(client.response(own).status, 200, "the connection is still there");
}

#[test]
fn the_borrower_sees_the_request_as_the_lender_would() {
    type Seen = Vec<(usize, Version, Scheme, Vec<(String, String)>, String)>;
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let told = seen.clone();
    let workers = Workers::start(speaking_http2(2), move |index, exchange| {
        let bytes = exchange.request.head_bytes();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = exchange.request.head.fields.iter();
        let fields = fields.map(|field| (text(field.name.of(bytes)), text(field.value.of(bytes)))).collect();
        let head = &exchange.request.head;
        if path(exchange).starts_with("/seen") {
            let peer = format!("{} {:?}", exchange.client.peer, exchange.lane.local_address());
            told.lock().expect("a list").push((index, head.version, head.scheme, fields, peer));
        }
    });
    let mut client = Client2::connect(workers.servers[0].address, WINDOW);
    let fields = [("x-one", "1"), ("cookie", "a=b"), ("cookie", "c=d"), ("content-length", "2")];
    let ask = |client: &mut Client2| {
        let stream = client.ask("PUT", "/seen?q=%20", &fields, false);
        client.data(stream, b"ab", true);
        answer_of(client, stream)
    };
    assert_eq!(ask(&mut client).0, "0 /seen");
    workers.block(0);
    assert_eq!(ask(&mut client).0, "1 /seen");
    workers.unblock_all();
    let seen = seen.lock().expect("a list");
    let [own, lent] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((own.0, lent.0), (0, 1));
    assert_eq!((own.1, own.2, &own.3, &own.4), (lent.1, lent.2, &lent.3, &lent.4));
    assert_eq!(lent.1, Version::Http2);
}

#[test]
fn requests_by_tls_are_lent_one_after_another_and_the_session_stays() {
    let world = World::new();
    let workers = Workers::echo(secured(&world, 2));
    let mut client = connect_by_tls(&workers, &world, 0);
    workers.block(0);
    for path in ["/a", "/b"] {
        let answer = client.get(path).answer();
        assert_eq!((answer.worker, answer.path.as_str(), answer.closes), (Some(1), path, false));
    }
    let large = vec![b'x'; 300_000];
    client.send(post("/large", large.len()).as_bytes());
    client.send(&large);
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.body.len()), (Some(1), large.len()));
    client.send(b"GET /c HTTP/1.1\r\nHost: h\r\n\r\nGET /d HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    assert_eq!(client.response().answer().path, "/c", "what is pipelined stays, and comes next");
    let last = client.response().answer();
    assert_eq!((last.path.as_str(), last.closes), ("/d", true));
    assert_eq!(client.rest(), b"", "the borrower has said so");
    assert_eq!(workers.get(0, Word::Lent), 5);
    workers.unblock_all();
    workers.servers[1].until(Word::Connections, 0);
}

#[test]
fn a_client_that_leaves_is_told_to_the_borrower() {
    let workers = Workers::echo(speaking_http2(3));
    let mut client = Client2::connect(workers.servers[0].address, WINDOW);
    let first = client.get("/first");
    client.response(first);
    workers.block(0);
    workers.block(2);
    let held = client.get("/block/1");
    workers.gates[1].until_held(1);
    let lent = workers.get(0, Word::Lent);
    assert!(lent >= 1);
    client.reset(held);
    workers.servers[0].until(Word::Http2Resets, 1);
    workers.gates[1].open(1);
    workers.servers[1].until(Word::Connections, 0);
    workers.unblock_all();
    let own = client.get("/own");
    assert_eq!(client.response(own).status, 200);
}

#[test]
fn a_borrower_that_is_gone_ends_the_stream_and_not_the_connection() {
    let workers = Workers::echo(speaking_http2(2));
    let mut client = Client2::connect(workers.servers[0].address, WINDOW);
    let first = client.get("/first");
    client.response(first);
    workers.block(0);
    workers.block(1);
    // It lies in the channel; the test takes it, and dies.
    let lost = client.get("/lost");
    workers.servers[0].until(Word::Lent, 1);
    let mut message = vec![0; 1 << 16];
    let taken = workers.channel().take(&mut message).expect("a channel").expect("a message");
    drop(taken);
    assert_eq!(client.response(lost).reset, Some(INTERNAL_ERROR));
    workers.unblock_all();
    let own = client.get("/own");
    assert_eq!(client.response(own).status, 200);
}

#[test]
fn a_slow_reader_holds_up_its_own_loan_only() {
    let workers = Workers::start(speaking_http2(2), |_, _| {});
    let mut client = Client2::connect(workers.servers[0].address, 1000);
    let first = client.get("/first");
    client.response(first);
    client.reads = false;
    workers.block(0);
    let body = vec![b'y'; 60_000];
    let big = client.ask("POST", "/big", &[], false);
    for piece in body.chunks(15_000) {
        client.data(big, piece, piece.as_ptr_range().end == body.as_ptr_range().end);
    }
    client.until("the window is used up", |client| client.streams[&big].body.len() == 1000);
    client.open_window(0, 1 << 20);
    let other = client.get("/other");
    assert_eq!(answer_of(&mut client, other).0, "1 /other");
    client.open_window(big, 1 << 20);
    assert_eq!(answer_of(&mut client, big).1, body);
    workers.unblock_all();
}
