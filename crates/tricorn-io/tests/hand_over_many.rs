//! Ten thousand hand-overs: nothing is lost, nothing is done twice, nothing stays open. Alone in its process, whose
//! descriptors it counts.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::group::*;
use harness::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tricorn_io::Config;

const CONNECTIONS: usize = 10_000;
/// So many connections at a time, of so many clients.
const BATCH: usize = 500;
/// Of these so many before the worker has accepted them: those for which a listener has no room try again after a second.
const AT_ONCE: usize = 100;
const CLIENTS: usize = 24;

/// Bodies of all kinds: none, small, in chunks, larger than a message, on disk.
fn body(random: &mut Random) -> Vec<u8> {
    let length = match random.below(20) {
        0..6 => 0,
        6..16 => random.below(2_000),
        16..19 => 30_000 + random.below(10_000),
        _ => 100_000 + random.below(100_000),
    };
    let start = random.below(1000);
    noise(length + start).split_off(start)
}

fn message(path: &str, body: &[u8], chunked: bool) -> Vec<u8> {
    if !chunked {
        return [post(path, body.len()).as_bytes(), body].concat();
    }
    let mut bytes = format!("POST {path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for piece in body.chunks(4_000) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// Asks one to four times without waiting for answers, and compares those; how many there were.
fn converse(client: &mut Client, name: &str, random: &mut Random) -> usize {
    let asked: Vec<(String, Vec<u8>)> =
        (0..1 + random.below(4)).map(|place| (format!("/{name}/{place}"), body(random))).collect();
    let mut stream = Vec::new();
    for (path, body) in &asked {
        stream.extend_from_slice(&message(path, body, random.below(3) == 0));
    }
    let mut writer = client.stream.try_clone().expect("a descriptor");
    std::thread::scope(|scope| {
        scope.spawn(|| std::io::Write::write_all(&mut writer, &stream).expect("a server that reads"));
        for (path, body) in &asked {
            let answer = client.response().answer();
            assert_eq!((answer.status, &answer.path), (200, path));
            assert!(answer.body == *body, "{path}: {} bytes, not {}", answer.body.len(), body.len());
        }
    });
    asked.len()
}

#[test]
fn ten_thousand_are_answered_once_each_in_order_and_leave_nothing_behind() {
    let config = Config { body_buffer_size: 150_000, ..plan(3).config };
    let begun: Arc<Mutex<HashMap<String, usize>>> = Arc::default();
    let notes = begun.clone();
    let workers = Workers::start(Plan { config, ..plan(3) }, move |_, exchange| {
        let path = path(exchange);
        // Some take so long that others go elsewhere meanwhile.
        if path.ends_with("77/1") {
            std::thread::sleep(Duration::from_millis(4));
        }
        *notes.lock().expect("notes").entry(path).or_default() += 1;
    });
    let kept: Mutex<Vec<Client>> = Mutex::default();
    let before = descriptors();
    for server in &workers.servers {
        let mut client = server.connect();
        client.post("/first", &noise(200_000));
        assert_eq!(client.response().status, 200);
    }
    until("each worker has it", || workers.sum(Word::Connections) == 0 && descriptors() == before);
    let (next, asked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    while next.load(Ordering::SeqCst) < CONNECTIONS {
        // All are the first worker's, which is then busy.
        for connected in (AT_ONCE..=BATCH).step_by(AT_ONCE) {
            kept.lock().expect("clients").extend((0..AT_ONCE).map(|_| workers.servers[0].connect()));
            workers.until_sum(Word::Connections, connected as u64);
        }
        workers.block(0);
        std::thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    while let Some(mut client) = { kept.lock().expect("clients").pop() } {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        let mut random = Random(number as u64 * 2 + 1);
                        asked.fetch_add(converse(&mut client, &number.to_string(), &mut random), Ordering::SeqCst);
                    }
                });
            }
        });
        workers.until_sum(Word::Connections, 1);
        workers.unblock(0);
        workers.until_sum(Word::Connections, 0);
    }
    let asked = asked.load(Ordering::SeqCst);
    let counts: Vec<usize> = begun
        .lock()
        .expect("notes")
        .iter()
        .filter(|(path, _)| path.matches('/').count() == 2 && !path.starts_with("/block"))
        .map(|(_, n)| *n)
        .collect();
    assert_eq!((counts.len(), counts.iter().all(|count| *count == 1)), (asked, true));
    let (given, taken) = (workers.sum(Word::HandedOver), workers.sum(Word::TakenOver));
    assert!(given >= CONNECTIONS as u64, "{given} hand-overs");
    assert_eq!(given, taken);
    assert!(taken < 2 * asked as u64, "{taken} for {asked} requests");
    assert_eq!((workers.waiting(), workers.sum(Word::LeftQueue), workers.sum(Word::ClientGone)), (0, 0, 0));
    until("no memory is counted", || workers.sum(Word::BodyBytes) == 0);
    until("no descriptor stays", || workers.sum(Word::Connections) == 0 && descriptors() == before);
}
