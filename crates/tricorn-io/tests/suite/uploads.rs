//! Uploads that come fast, and a disk that does not: what the others notice of them.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use rustix::fs::{CWD, FileType, Mode};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tricorn_io::{Config, Engine, Exchange, Failpoint, IsLast, Sent, Wake};
use tricorn_proto::response::HeadInputs;

const MIB: u64 = 1 << 20;
/// Bytes read while the baton is held once: so many steps of 16 KiB, one connection's share, and a head of each newcomer.
const STEPS: u64 = 16;
const HOLD: u64 = STEPS * 16 * 1024 + MIB / 4 + STEPS * INPUT;
/// Bytes on their way to the disk, and what is read of a connection before anything is known of its body.
const AHEAD: u64 = 8 * MIB;
const INPUT: u64 = 16 * 1024;

/// A directory for uploads on a disk that hangs until it is mended.
struct HungDisk(PathBuf);

impl HungDisk {
    fn new(name: &str) -> HungDisk {
        let disk = HungDisk::with_files(name);
        disk.hang("stall");
        disk
    }

    /// One on which single files may hang.
    fn with_files(name: &str) -> HungDisk {
        let directory = std::env::temp_dir().join(format!("tricorn-uploads-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        HungDisk(directory)
    }

    /// From now on what this FIFO stands for hangs.
    fn hang(&self, name: &str) {
        rustix::fs::mknodat(CWD, self.0.join(name), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    }

    /// From now on all reads of this file hang. The FIFO that they wait for.
    fn hang_file(&self, name: &str) -> String {
        let fifo = format!("stall-{}", std::fs::metadata(self.0.join(name)).expect("the file").ino());
        self.hang(&fifo);
        fifo
    }

    fn config(&self) -> Config {
        Config { upload_dir: Some(self.0.clone()), fault: Some(Failpoint::StallDisk), body_buffer_size: 0, ..config() }
    }

    /// The disk works for as long as the value lives. Opened both ways a FIFO waits for no peer (fifo(7)).
    fn mend(&self) -> File {
        self.mend_one("stall")
    }

    fn mend_one(&self, fifo: &str) -> File {
        OpenOptions::new().read(true).write(true).open(self.0.join(fifo)).expect("the FIFO")
    }
}

impl Drop for HungDisk {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Posts on a thread, since the server may not read all of it for a while; its answer.
fn upload(server: &Server, body: Vec<u8>) -> JoinHandle<Response> {
    let mut client = server.connect();
    std::thread::spawn(move || {
        client.post("/upload", &body);
        client.response()
    })
}

type Bodies = Arc<Mutex<Vec<Vec<u8>>>>;

fn collecting(config: Config) -> (Server, Bodies) {
    let bodies = Bodies::default();
    let list = bodies.clone();
    let server = Server::start(config, move |engine, exchange| {
        list.lock().expect("list").push(body_of(exchange).0);
        answer(engine, exchange, b"");
    });
    (server, bodies)
}

/// Sends as much of a body as the system takes.
fn flood(stream: &mut impl Write) -> u64 {
    stream.write_all(post("/", 1 << 30).as_bytes()).expect("a socket");
    let piece = vec![b'x'; 1 << 16];
    let mut sent = 0;
    while let Ok(count) = stream.write(&piece) {
        sent += count as u64;
    }
    sent
}

#[test]
fn uploads_do_not_keep_the_events_from_being_looked_at() {
    let config = Config { body_buffer_size: usize::MAX, body_buffer_total: usize::MAX, ..config() };
    // What is sent to a unix socket waits at its other end: nothing has to come while it is read.
    let path = std::env::temp_dir().join(format!("tricorn-uploads-{}", std::process::id()));
    let server = Server::by_hand(config, UnixListener::bind(&path).expect("a socket"));
    let mut uploads: Vec<_> = (0..100).map(|_| UnixStream::connect(&path).expect("a connection")).collect();
    let mut client = UnixStream::connect(&path).expect("a connection");
    client.write_all(request("/").as_bytes()).expect("a socket");
    std::fs::remove_file(&path).expect("the socket's name");
    let mut sent = 0;
    for stream in &mut uploads {
        stream.set_nonblocking(true).expect("a socket");
        sent += flood(stream);
    }
    assert!(sent > 4 * MIB, "{sent} bytes wait in the kernel");
    let slot = server.engine.join(true).expect("a place");
    let mut holds = 0;
    let exchange = until_some(|| {
        let before = server.get(Word::BytesIn);
        let wake = server.engine.next(slot, None);
        let read = server.get(Word::BytesIn) - before;
        assert!(read <= HOLD, "{read} bytes under the baton");
        holds += 1;
        match wake {
            Wake::Request(exchange) => return Some(exchange),
            Wake::Nothing if !server.engine.poll_now() => server.engine.wait(slot),
            _ => {}
        }
        None
    });
    let mut exchange = exchange.expect("the request of the client that came last");
    assert!(server.get(Word::BytesIn) < sent, "it did not wait until the uploads were read");
    answer(&server.engine, &mut exchange, b"");
    server.engine.leave(slot, Some(exchange));
    let mut status = [0; 12];
    client.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200", "after {holds} holds");
}

#[test]
fn a_crowd_is_dealt_with_in_many_holds_of_the_baton() {
    let path = std::env::temp_dir().join(format!("tricorn-crowd-{}", std::process::id()));
    let server = Server::by_hand(config(), UnixListener::bind(&path).expect("a socket"));
    let mut crowd: Vec<_> = (0..200).map(|_| UnixStream::connect(&path).expect("a connection")).collect();
    std::fs::remove_file(&path).expect("the socket's name");
    let slot = server.engine.join(true).expect("a place");
    let step = |most: u64, word: Word| {
        let before = server.get(word);
        match server.engine.next(slot, None) {
            // What was the last to come is not waited for.
            Wake::Nothing if server.get(word) == before && !server.engine.poll_now() => server.engine.wait(slot),
            _ => {}
        }
        let count = server.get(word) - before;
        assert!(count <= most, "{count} under the baton");
        server.get(word)
    };
    until("all are accepted", || step(STEPS, Word::Accepted) == 200);
    let head = "GET / HTTP/1.1\r\n";
    crowd.iter_mut().for_each(|client| client.write_all(head.as_bytes()).expect("a socket"));
    let all = 200 * head.len() as u64;
    until("all are read", || step(STEPS * head.len() as u64, Word::BytesIn) == all);
    server.engine.leave(slot, None);
}

/// Answers with the file that is named, of this directory.
fn send_file_of(directory: &Path, engine: &Engine, exchange: &mut Exchange) {
    let name = path(exchange);
    let name = name.trim_start_matches('/');
    if name.is_empty() {
        answer(engine, exchange, b"");
        return;
    }
    let file = File::open(directory.join(name)).expect("the file");
    let length = file.metadata().expect("the file").len();
    exchange.request.reply.status(b"200 OK").expect("a status");
    let wall = exchange.wall.clone();
    let inputs = HeadInputs { date: wall.date(), body_length: Some(length), ..HeadInputs::default() };
    engine.write_file(exchange, &inputs, file.into(), (0, length), IsLast::Yes);
    exchange.end();
}

#[test]
fn a_disk_that_hangs_holds_up_the_reader_of_its_own_file_alone() {
    let disk = HungDisk::new("file");
    let body = noise(20_000_000);
    std::fs::write(disk.0.join("large"), &body).expect("a file");
    let directory = disk.0.clone();
    let config = Config { threads: 2, write_timeout: 300 * MILLI, ..disk.config() };
    let server = Server::start(config, move |engine, exchange| send_file_of(&directory, engine, exchange));
    let mut client = server.connect();
    client.ask("/large");
    server.until(Word::Requests, 1);
    assert!(server.get(Word::BytesOut) < body.len() as u64, "the socket does not take it at once");
    let begun = std::time::Instant::now();
    let reader = std::thread::spawn(move || client.response());
    let mut others = 0;
    until("others are served for longer than the client of the file may take", || {
        others += 1;
        assert_eq!(server.connect().get("/").status, 200);
        begun.elapsed() > std::time::Duration::from_millis(700)
    });
    assert!(server.get(Word::BytesOut) < body.len() as u64, "the file is on the disk, after {others} others");
    let mended = disk.mend();
    assert!(reader.join().expect("a client").body == body);
    assert_eq!(server.get(Word::WriteTimeouts), 0, "the time was the disk's");
    drop(mended);
}

#[test]
fn files_that_hang_leave_the_others_of_their_disk_alone() {
    let disk = HungDisk::with_files("files");
    let body = noise(3_000_000);
    for name in ["hung", "other"] {
        std::fs::write(disk.0.join(name), &body).expect("a file");
    }
    let fifo = disk.hang_file("hung");
    let directory = disk.0.clone();
    let config = Config { write_timeout: NEVER, ..disk.config() };
    let server = Server::start(config, move |engine, exchange| send_file_of(&directory, engine, exchange));
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let mut client = server.connect();
            client.ask("/hung");
            std::thread::spawn(move || client.response())
        })
        .collect();
    server.until(Word::Requests, 3);
    for _ in 0..2 {
        assert!(server.connect().get("/other").body == body, "there are threads for it");
    }
    assert!(waiting.iter().all(|client| !client.is_finished()));
    let mended = disk.mend_one(&fifo);
    for client in waiting {
        assert!(client.join().expect("a client").body == body);
    }
    drop(mended);
}

#[test]
fn a_client_that_leaves_while_its_file_hangs_costs_no_descriptor_for_good() {
    let disk = HungDisk::with_files("left");
    std::fs::write(disk.0.join("hung"), noise(3_000_000)).expect("a file");
    let fifo = disk.hang_file("hung");
    let directory = disk.0.clone();
    let server = Server::start(disk.config(), move |engine, exchange| send_file_of(&directory, engine, exchange));
    let mut client = server.connect();
    client.ask("/hung");
    server.until(Word::Requests, 1);
    let opened = || {
        let links = std::fs::read_dir("/proc/self/fd").expect("procfs").flatten();
        links.filter_map(|entry| std::fs::read_link(entry.path()).ok()).filter(|to| to == &disk.0.join("hung")).count()
    };
    assert_eq!(opened(), 1);
    drop(client);
    let mended = disk.mend_one(&fifo);
    until("the file is closed", || opened() == 0);
    server.until(Word::Connections, 0);
    drop(mended);
}

#[test]
fn a_response_whose_file_hangs_costs_its_client_no_time() {
    let disk = HungDisk::new("overflow");
    let (piece, count) = (noise(1 << 20), 30);
    let config = Config {
        threads: 2,
        response_buffering: true,
        write_timeout: 300 * MILLI,
        header_timeout: NEVER,
        ..disk.config()
    };
    let given = piece.clone();
    let server = Server::start(config, move |engine, exchange| match path(exchange).as_str() {
        "/pieces" => {
            (0..count).all(|_| write(engine, exchange, &given) == Sent::Accepted);
            exchange.end();
        }
        _ => {
            answer(engine, exchange, b"");
        }
    });
    let mut client = server.connect();
    client.ask("/pieces");
    let begun = std::time::Instant::now();
    until("others are served for longer than the client may take", || {
        assert_eq!(server.connect().get("/").status, 200);
        begun.elapsed() > std::time::Duration::from_millis(700)
    });
    let mended = disk.mend();
    server.until_at_least(Word::ResponseDiskBytes, 1);
    let body = client.response().body;
    assert!(body.len() == count * piece.len() && body.chunks(piece.len()).all(|got| got == piece));
    assert_eq!(server.get(Word::WriteTimeouts), 0, "the time was the disk's");
    server.until(Word::ResponseDiskBytes, 0);
    drop(mended);
}

#[test]
fn a_disk_that_hangs_holds_up_its_own_upload_alone() {
    let disk = HungDisk::new("alone");
    let (server, bodies) = collecting(Config { header_timeout: 300 * MILLI, ..disk.config() });
    let body = noise(3_000_000);
    let uploading = upload(&server, body.clone());
    server.until_at_least(Word::DiskBytes, 1);
    let mut other = server.connect();
    assert_eq!(other.get("/").status, 200, "others are served");
    let mut slow = server.connect();
    slow.send(b"GET / HT");
    assert_eq!(slow.response().status, 408, "deadlines are kept");
    assert_eq!(other.get("/").status, 200);
    assert!(!uploading.is_finished());
    let _works = disk.mend();
    assert_eq!(uploading.join().expect("a client").status, 200);
    assert!(bodies.lock().expect("list").contains(&body), "the body is whole");
    server.until(Word::BodyBytes, 0);
    server.until(Word::DiskBytes, 0);
}

#[test]
fn memory_for_bytes_on_their_way_to_the_disk_is_bounded_and_clients_wait_for_more() {
    const CLIENTS: usize = 150;
    let disk = HungDisk::new("bounded");
    let (server, bodies) = collecting(disk.config());
    let body = noise(1_000_000);
    let uploading: Vec<_> = (0..CLIENTS).map(|_| upload(&server, body.clone())).collect();
    server.until(Word::Connections, CLIENTS as u64);
    // Each has sent something, and no more is read of any.
    server.until_at_least(Word::BodyBytes, AHEAD - MIB);
    let mut other = server.connect();
    assert_eq!(other.get("/").status, 200);
    let held = server.get(Word::BodyBytes);
    assert!(held <= AHEAD + CLIENTS as u64 * INPUT, "{held} bytes are held");
    let _works = disk.mend();
    for client in uploading {
        assert_eq!(client.join().expect("a client").status, 200);
    }
    let bodies = bodies.lock().expect("list");
    assert_eq!(bodies.iter().filter(|seen| **seen == body).count(), CLIENTS, "all of them came through the line");
    server.until(Word::BodyBytes, 0);
    server.until(Word::DiskBytes, 0);
}

#[test]
fn a_disk_that_takes_nothing_for_too_long_is_told_as_what_it_is() {
    let disk = HungDisk::new("too-long");
    let (server, _) = collecting(Config { body_timeout: 300 * MILLI, ..disk.config() });
    let mut client = server.connect();
    client.post("/", b"complete");
    let response = client.response();
    assert_eq!(response.status, 507, "not 408: the client has sent all");
    assert!(response.closes());
    assert_eq!(server.get(Word::BodyTimeouts), 0);
    let _works = disk.mend();
    server.until(Word::DiskBytes, 0);
    server.until(Word::BodyBytes, 0);
}

#[test]
fn an_upload_whose_client_leaves_while_its_bytes_are_written_leaves_nothing() {
    let disk = HungDisk::new("left");
    let (server, _) = collecting(disk.config());
    let mut stream = TcpStream::connect(server.address).expect("a connection");
    stream.set_nonblocking(true).expect("a socket");
    flood(&mut stream);
    server.until_at_least(Word::DiskBytes, 1);
    drop(stream);
    let _works = disk.mend();
    server.until(Word::Connections, 0);
    server.until(Word::DiskBytes, 0);
    server.until(Word::BodyBytes, 0);
    assert_eq!(server.connect().get("/").status, 200);
}

#[test]
fn a_body_that_alone_takes_more_than_the_disk_of_all_is_refused_with_413() {
    let config = Config { body_buffer_size: 1000, body_disk_total: 50_000, ..config() };
    let (server, bodies) = collecting(config);
    let mut announced = server.connect();
    announced.send(post("/", 50_001).as_bytes());
    assert_eq!(announced.response().status, 413, "before a byte of it is read");
    let mut chunked = server.connect();
    chunked.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
    chunked.send(&[b"c351\r\n".as_slice(), &noise(50_001)].concat());
    assert_eq!(chunked.response().status, 413);
    let mut fits = server.connect();
    fits.post("/", &noise(50_000));
    assert_eq!(fits.response().status, 200);
    let mut in_memory = server.connect();
    in_memory.post("/", &noise(1000));
    assert_eq!(in_memory.response().status, 200, "what stays in memory takes no disk");
    assert_eq!(bodies.lock().expect("list").len(), 2);
    server.until(Word::DiskBytes, 0);
}

#[test]
fn a_body_for_which_there_is_no_room_on_disk_now_is_told_when_to_come_again() {
    let gate = Gate::default();
    let held = gate.clone();
    let config = Config { threads: 2, body_buffer_size: 1000, body_disk_total: 100_000, ..config() };
    let server = Server::start(config, move |engine, exchange| {
        if path(exchange) == "/hold" {
            held.pass();
        }
        answer(engine, exchange, b"");
    });
    let mut first = server.connect();
    first.post("/hold", &noise(60_000));
    gate.until_held(1);
    assert_eq!(server.get(Word::DiskBytes), 60_000, "while the application has it");
    let mut second = server.connect();
    second.send(post("/", 60_000).as_bytes());
    let refused = second.response();
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("Retry-After: 1\r\nTricorn-Refused: capacity\r\n"), "{}", refused.head);
    gate.open(1);
    assert_eq!(first.response().status, 200);
    server.until(Word::DiskBytes, 0);
    let mut third = server.connect();
    third.post("/", &noise(60_000));
    assert_eq!(third.response().status, 200);
}

#[test]
fn bytes_on_disk_are_counted_where_their_request_is_and_limited_over_all_workers() {
    let config = Config { body_buffer_size: 1000, body_disk_total: 100_000, ..plan(2).config };
    let workers = Workers::echo(Plan { config, ..plan(2) });
    let mut first = workers.connect(0);
    let mut second = workers.connect(1);
    workers.block(0);
    workers.block(1);
    // Read by the worker that is busy; it waits there, or in the channel, or with the other.
    first.post("/first", &noise(60_000));
    until("it is on disk", || workers.sum(Word::DiskBytes) == 60_000 || workers.in_channel() > 0);
    second.send(post("/second", 60_000).as_bytes());
    until("refused, or it went into the channel", || second.has_something() || workers.in_channel() > 0);
    if second.has_something() {
        assert_eq!(second.response().status, 503, "the disk is the same for both");
    }
    drop(second); // else there was room for it, and it waits for its body
    workers.unblock_all();
    assert_eq!(first.response().status, 200);
    until("nothing is counted any more", || workers.sum(Word::DiskBytes) == 0);
}
