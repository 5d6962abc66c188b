//! Sockets that applications take, over TLS and in the clear: both mean the same.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::tls::*;
use harness::*;
use rustix::net::sockopt::{set_socket_linger, set_socket_send_buffer_size};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tricorn_io::{Config, Engine, Exchange, Taken};

/// More than the sockets of the loopback hold.
const BIG: usize = 8 << 20;
/// More than a pair of sockets holds, and less than it and the marks do.
const MUCH: usize = 300_000;

/// A client's connection, however it speaks.
trait Peer: Read + Write + Send {
    fn sock(&self) -> &TcpStream;
    /// Says that it sends no more, as its protocol does.
    fn finish(&mut self);
}

impl Peer for TcpStream {
    fn sock(&self) -> &TcpStream {
        self
    }

    fn finish(&mut self) {
        self.shutdown(Shutdown::Write).expect("a socket");
    }
}

impl Peer for rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    fn sock(&self) -> &TcpStream {
        &self.sock
    }

    fn finish(&mut self) {
        self.conn.send_close_notify();
        self.flush().expect("a server that reads");
    }
}

type AnyClient = Client<Box<dyn Peer>>;

/// A server whose application has the socket of each request.
struct TakingServer {
    server: Server,
    world: Option<World>,
}

impl TakingServer {
    fn start(
        secure: bool,
        config: Config,
        application: impl Fn(&str, &mut Own) + Send + Sync + 'static,
    ) -> TakingServer {
        let world = secure.then(World::new);
        let config = world.as_ref().map_or_else(|| config.clone(), |world| world.secure(config.clone()));
        let server = Server::start(config, move |engine, exchange| {
            let path = path(exchange);
            application(&path, &mut taken(engine, exchange));
        });
        TakingServer { server, world }
    }

    fn connect(&self) -> AnyClient {
        match &self.world {
            Some(world) => Client::over(Box::new(world.connect(&self.server).stream)),
            None => Client::over(Box::new(self.server.connect().stream)),
        }
    }

    /// One that has asked for a path, and has what the application says first.
    fn ask(&self, path: &str) -> AnyClient {
        let mut client = self.connect();
        client.ask(path);
        assert_eq!(client.take(5), b"taken");
        client
    }
}

/// The application's socket, which blocks. What was read behind the request is read first.
struct Own {
    socket: TcpStream,
    unread: Vec<u8>,
}

impl Read for Own {
    fn read(&mut self, piece: &mut [u8]) -> std::io::Result<usize> {
        if self.unread.is_empty() {
            return self.socket.read(piece);
        }
        let count = piece.len().min(self.unread.len());
        piece[..count].copy_from_slice(&self.unread[..count]);
        self.unread.drain(..count);
        Ok(count)
    }
}

impl Write for Own {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn taken(engine: &Engine, exchange: &mut Exchange) -> Own {
    let Taken { socket, unread } = engine.let_go(exchange).expect("descriptors");
    let socket = TcpStream::from(socket);
    socket.set_nonblocking(false).expect("a socket");
    socket.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    socket.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    let mut own = Own { socket, unread };
    own.write_all(b"taken").expect("a client");
    own
}

fn read_all(socket: &mut impl Read) -> Vec<u8> {
    let mut got = Vec::new();
    socket.read_to_end(&mut got).expect("the end");
    got
}

#[test]
fn bytes_pass_both_ways_whole() {
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            let mut got = vec![0; BIG];
            socket.read_exact(&mut got).expect("a client that sends");
            socket.write_all(&got).expect("a client that reads");
        });
        let mut client = server.ask("/");
        client.send(&noise(BIG));
        assert!(client.take(BIG) == noise(BIG), "secure: {secure}");
        client.is_closed();
        server.server.until(Word::Connections, 0);
    }
}

#[test]
fn both_sides_speak_at_once_in_thousands_of_small_pieces() {
    const COUNT: usize = 5_000;
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            let mut other = socket.socket.try_clone().expect("a descriptor");
            let reader = std::thread::spawn(move || {
                let mut sum = 0_usize;
                for nr in 0..COUNT {
                    let mut piece = vec![0; 1 + nr % 7];
                    other.read_exact(&mut piece).expect("a client that sends");
                    assert!(piece.iter().all(|byte| *byte == nr as u8), "{nr}: {piece:?}");
                    sum += piece.len();
                }
                sum
            });
            for nr in 0..COUNT {
                socket.write_all(&vec![nr as u8; 1 + nr % 5]).expect("a client that reads");
            }
            let sum = reader.join().expect("all has come");
            socket.write_all(format!("{sum:8}").as_bytes()).expect("a client that reads");
        });
        let mut client = server.ask("/");
        for nr in 0..COUNT {
            client.send(&vec![nr as u8; 1 + nr % 7]);
        }
        for nr in 0..COUNT {
            assert_eq!(client.take(1 + nr % 5), vec![nr as u8; 1 + nr % 5], "secure: {secure}");
        }
        let sum: usize = (0..COUNT).map(|nr| 1 + nr % 7).sum();
        assert_eq!(client.take(8), format!("{sum:8}").into_bytes());
        client.is_closed();
    }
}

#[test]
fn what_came_with_the_request_comes_first() {
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            let mut got = [0; 12];
            socket.read_exact(&mut got).expect("a client that sends");
            socket.write_all(&got).expect("a client that reads");
        });
        let mut client = server.connect();
        client.send((request("/") + "early").as_bytes());
        assert_eq!(client.take(5), b"taken");
        client.send(b"; later");
        assert_eq!(client.take(12), b"early; later", "secure: {secure}");
        client.is_closed();
    }
}

#[test]
fn a_client_that_has_said_all_is_heard_to_the_end_and_answered() {
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            let got = read_all(socket);
            socket.write_all(&got).expect("a client that reads");
        });
        let mut client = server.ask("/");
        client.send(&noise(MUCH));
        client.stream.finish();
        assert!(client.take(MUCH) == noise(MUCH), "secure: {secure}");
        client.is_closed();
    }
}

#[test]
fn the_end_of_the_connection_without_the_end_of_the_session_is_an_end() {
    let server = TakingServer::start(true, config(), |_, socket| {
        let got = read_all(socket);
        socket.write_all(&got).expect("a client that reads");
    });
    let mut client = server.ask("/");
    client.send(b"half");
    client.stream.sock().shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(client.take(4), b"half");
    client.is_closed();
}

#[test]
fn an_application_that_has_said_all_is_heard_to_the_end_and_still_told() {
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            socket.write_all(&noise(MUCH)).expect("a client that reads");
            socket.socket.shutdown(Shutdown::Write).expect("a socket");
            assert_eq!(read_all(socket), b"so long");
        });
        let mut client = server.ask("/");
        assert!(client.take(MUCH) == noise(MUCH), "secure: {secure}");
        client.is_closed();
        client.send(b"so long");
        client.stream.sock().shutdown(Shutdown::Write).expect("a socket");
        server.server.until(Word::Connections, 0);
    }
}

#[test]
fn a_client_that_leaves_ends_the_application() {
    for secure in [false, true] {
        let gate = Gate::default();
        let held = gate.clone();
        let server = TakingServer::start(secure, config(), move |path, socket| {
            if path == "/reads" {
                let mut piece = [0; 16];
                let end = socket.read(&mut piece);
                assert!(matches!(end, Ok(0)) || end.is_err(), "{end:?}");
            } else {
                let end = loop {
                    if let Err(error) = socket.write_all(&[7; 50_000]) {
                        break error.kind();
                    }
                };
                assert!(matches!(end, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{end:?}");
            }
            held.pass();
        });
        for path in ["/reads", "/writes"] {
            let client = server.ask(path);
            let socket = client.stream.sock();
            set_socket_linger(socket, Some(Duration::ZERO)).expect("a socket");
            drop(client); // with RST
            gate.until_held(1);
            assert_eq!(server.server.get(Word::Connections), 1, "the call is waited for");
            gate.open(1);
            server.server.until(Word::Connections, 0);
        }
    }
}

#[test]
fn what_the_application_sends_before_it_returns_reaches_a_slow_reader() {
    for secure in [false, true] {
        let server = TakingServer::start(secure, config(), |_, socket| {
            socket.write_all(&noise(BIG)).expect("a client that reads");
        });
        let mut client = server.ask("/");
        let mut got = Vec::new();
        while got.len() < BIG - MUCH {
            got.extend(client.take(10_000));
        }
        server.server.until(Word::Requests, 1); // the call is over: the rest is with the sockets, or sent by the reactor
        got.extend(client.take(BIG - got.len()));
        assert!(got == noise(BIG), "secure: {secure}");
        client.is_closed();
        server.server.until(Word::Connections, 0);
    }
}

/// A socket tells of room when a third is free. The rest must not fit into room that was not told of: the socket to the client is
/// small, and does not grow.
#[test]
fn a_client_that_does_not_take_the_rest_has_write_timeout() {
    let world = World::new();
    let config = world.secure(Config { write_timeout: 300 * MILLI, ..config() });
    let server = Server::start(config, |engine, exchange| {
        set_socket_send_buffer_size(socket(exchange), 16 * 1024).expect("a socket");
        let mut own = taken(engine, exchange);
        // As long as there is room, however late the worker comes to make some.
        own.socket.set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
        let full = own.write_all(&noise(4 * BIG)).expect_err("a client that does not read");
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
    });
    let server = TakingServer { server, world: Some(world) };
    let client = server.ask("/");
    server.server.until(Word::Requests, 1);
    server.server.until(Word::Connections, 0);
    assert_eq!(server.server.get(Word::WriteTimeouts), 1);
    drop(client);
}

/// Libraries have threads, which say the last words when the call is over.
#[test]
fn a_thread_that_has_the_socket_goes_on_after_the_call() {
    for secure in [false, true] {
        let gate = Gate::default();
        let held = gate.clone();
        let server = TakingServer::start(secure, config(), move |_, socket| {
            let mut own = socket.socket.try_clone().expect("a descriptor");
            let gate = held.clone();
            std::thread::spawn(move || {
                gate.pass();
                let mut piece = [0; 5];
                own.read_exact(&mut piece).expect("a client that sends");
                own.write_all(&piece).expect("a client that reads");
            });
        });
        let mut client = server.ask("/");
        gate.until_held(1);
        server.server.until(Word::Requests, 1);
        client.send(b"hello");
        gate.open(1);
        assert_eq!(client.take(5), b"hello", "secure: {secure}");
        client.is_closed();
        server.server.until(Word::Connections, 0);
    }
}

#[test]
fn a_worker_that_leaves_does_not_wait_for_a_thread_that_has_the_socket() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = TakingServer::start(true, config(), move |_, socket| {
        let own = socket.socket.try_clone().expect("a descriptor");
        let gate = held.clone();
        std::thread::spawn(move || {
            gate.pass();
            drop(own);
        });
    });
    let mut client = server.ask("/");
    server.server.until(Word::Requests, 1);
    server.server.engine.drain();
    client.is_closed();
    server.server.until_ended();
    gate.open(1);
}

#[test]
fn an_application_that_reads_nothing_holds_up_its_client_and_no_other() {
    for secure in [false, true] {
        let gate = Gate::default();
        let held = gate.clone();
        let server = TakingServer::start(secure, Config { threads: 2, ..config() }, move |path, socket| {
            if path == "/sleeps" {
                held.pass();
                let mut got = vec![0; BIG];
                socket.read_exact(&mut got).expect("a client that sends");
                assert!(got == noise(BIG));
            }
            socket.write_all(b"bye").expect("a client that reads");
        });
        let mut slow = server.ask("/sleeps");
        gate.until_held(1);
        let writer = std::thread::scope(|scope| {
            let writer = scope.spawn(|| slow.send(&noise(BIG)));
            for _ in 0..20 {
                assert_eq!(server.ask("/other").take(3), b"bye");
            }
            assert!(!writer.is_finished(), "there is no room for so much");
            gate.open(1);
            writer.join()
        });
        writer.expect("all is sent");
        assert_eq!(slow.take(3), b"bye");
        slow.is_closed();
    }
}

#[test]
fn a_drain_waits_for_the_call_and_the_end_of_the_worker_does_not() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = TakingServer::start(true, config(), move |_, socket| {
        socket.write_all(b"last words").expect("a client that reads");
        held.pass();
    });
    let mut client = server.ask("/");
    gate.until_held(1);
    server.server.engine.drain();
    assert_eq!(client.take(10), b"last words");
    assert_eq!((server.server.get(Word::Connections), server.server.ended()), (1, 0), "the call goes on");
    gate.open(1);
    client.is_closed();
    server.server.until_ended();
}

#[test]
fn the_end_of_the_worker_ends_the_connection_in_order() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = TakingServer::start(true, config(), move |_, socket| {
        socket.write_all(b"last words").expect("a client that reads");
        held.pass();
        assert_eq!(read_all(socket), b"");
    });
    let mut client = server.ask("/");
    gate.until_held(1);
    server.server.engine.close();
    assert_eq!(client.take(10), b"last words");
    client.is_closed();
    gate.open(1);
    server.server.until_ended();
}

#[test]
fn under_a_hub_bytes_are_carried_while_it_is_away() {
    let world = World::new();
    let server = HubServer::start(world.secure(Config { threads: 8, ..config() }));
    let mut client = world.connect(&server);
    client.ask("/taken");
    server.until_open(&["/taken"]);
    let mut socket = server.at("/taken", |engine, exchange| {
        engine.attend(exchange);
        taken(engine, exchange)
    });
    assert_eq!(client.take(5), b"taken");
    let mut got = [0; 5];
    for is_away in [false, true] {
        let blocked = is_away.then(|| {
            let mut blocked = world.connect(&server);
            blocked.ask("/block");
            server.gate.until_held(1);
            blocked
        });
        client.send(b"hello");
        socket.read_exact(&mut got).expect("a client that sends");
        socket.write_all(&got).expect("a client that reads");
        assert_eq!(client.take(5), b"hello", "the hub is away: {is_away}");
        if let Some(mut blocked) = blocked {
            server.gate.open(1);
            assert_eq!(blocked.response().status, 200);
        }
    }
    drop(socket);
    server.give_back("/taken");
    client.is_closed();
    assert_eq!(server.stirs(), [], "it is the application's");
}

#[test]
fn a_second_taking_is_of_the_same_socket() {
    let world = World::new();
    let server = Server::start(world.secure(config()), |engine, exchange| {
        let mut first = taken(engine, exchange);
        let Taken { socket, unread } = engine.let_go(exchange).expect("a descriptor");
        assert!(unread.is_empty());
        TcpStream::from(socket).write_all(b" twice").expect("a client");
        first.write_all(b", once").expect("a client");
        // By way of the exchange, as after a `start_response`.
        answer(engine, exchange, b"and HTTP");
    });
    let mut client = world.connect(&server);
    client.ask("/");
    assert_eq!(client.take(17), b"taken twice, once");
    assert_eq!(client.response().body, b"and HTTP");
    client.is_closed();
}

#[test]
fn a_call_that_is_late_gets_no_answer_of_ours_into_it() {
    let (gate, world) = (Gate::default(), World::new());
    let held = gate.clone();
    let config = Config { request_timeout: 100 * MILLI, ..config() };
    let server = Server::start(world.secure(config), move |engine, exchange| {
        let mut socket = taken(engine, exchange);
        held.pass();
        socket.write_all(b", after").expect("a client");
    });
    let mut client = world.connect(&server);
    client.ask("/taken");
    gate.until_held(1);
    until("the monitor would have answered", || {
        server.call_started(0).is_some_and(|start| tricorn_io::clock::now() > start + 1300 * MILLI)
    });
    gate.open(1);
    assert_eq!(client.take(12), b"taken, after");
    client.is_closed();
}

#[test]
fn a_reply_that_has_begun_stays_before_what_the_application_sends() {
    let world = World::new();
    let server = Server::start(world.secure(config()), |engine, exchange| {
        for piece in [b"one ".as_slice(), b"two ", b"three "] {
            write(engine, exchange, piece); // the last ones are gathered
        }
        let mut socket = taken(engine, exchange);
        socket.write_all(b"; four").expect("a client");
    });
    let mut client = world.connect(&server);
    client.ask("/");
    client.head();
    let mut got = String::new();
    for _ in 0..3 {
        got += &String::from_utf8(client.chunk()).expect("text");
    }
    assert_eq!((got.as_str(), client.take(11)), ("one two three ", b"taken; four".to_vec()));
    client.is_closed();
}
