//! What a session of TLS has taken out of its socket makes no event there: it is read all the same. No monitor sees the events first.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::tls::{TlsClient, World};
use harness::*;
use rustix::fd::OwnedFd;
use std::cell::RefCell;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::mpsc::channel;
use tricorn_io::{Config, Engine, Exchange, Incoming, Wake};

/// The test's thread is the app thread of a server with TLS, until the client is done. `between`: what it does where it would wait.
fn by_hand(
    name: &str,
    config: Config,
    mut serve: impl FnMut(&Server, &mut Exchange),
    mut between: impl FnMut(&Server),
    client: impl FnOnce(TlsClient) + Send,
) {
    let world = World::new();
    let path = std::env::temp_dir().join(format!("tricorn-{name}-{}", std::process::id()));
    let server = Server::by_hand(world.secure(config), UnixListener::bind(&path).expect("a socket"));
    std::fs::remove_file(&path).expect("the socket's name");
    let slot = server.engine.join(true).expect("a place");
    let connection = world.connect(&server);
    let ends = Ends(server.engine.clone());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ends = ends;
            client(connection);
        });
        let mut done = None;
        loop {
            match server.engine.next(slot, done.take()) {
                Wake::Request(mut exchange) => {
                    serve(&server, &mut exchange);
                    done = Some(exchange);
                }
                Wake::Nothing => {
                    between(&server);
                    if !server.engine.poll_now() {
                        server.engine.wait(slot);
                    }
                }
                Wake::Ended => break,
                _ => {}
            }
        }
    });
    server.engine.leave(slot, None);
}

/// The client has what it wants, or has given up.
struct Ends(Arc<Engine>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[test]
fn a_request_in_one_record_with_the_end_of_a_body_that_its_application_reads_is_answered() {
    let ((begun, has_begun), (sent, is_sent)) = (channel(), channel());
    let rest = ["12345", &request("/next")].concat();
    let length = rest.len();
    let serve = |server: &Server, exchange: &mut Exchange| {
        let mut body = Vec::new();
        if exchange.is_partial() {
            begun.send(()).expect("a client");
            is_sent.recv().expect("a client");
            until_unread(exchange, length);
            let incoming = exchange.receive(server.engine.config(), &mut body);
            assert!(matches!(incoming, Incoming::Bytes { last: true }), "{incoming:?}");
        }
        let text = [path(exchange).as_bytes(), &body].concat();
        answer(&server.engine, exchange, &text);
    };
    let config = Config { streaming: true, ..config() };
    by_hand(
        "record",
        config,
        serve,
        |_| {},
        move |mut client| {
            client.send(post("/", 5).as_bytes());
            has_begun.recv().expect("a server");
            client.send(rest.as_bytes());
            sent.send(()).expect("a server");
            assert_eq!(client.response().body, b"/12345");
            assert_eq!(client.response().body, b"/next");
        },
    );
}

#[test]
fn a_request_that_has_come_when_its_worker_begins_to_leave_is_answered() {
    let (asked, has_asked) = channel();
    // The server's end of the connection, once its first request is answered.
    let idle: RefCell<Option<OwnedFd>> = RefCell::new(None);
    let serve = |server: &Server, exchange: &mut Exchange| {
        if path(exchange) == "/first" {
            *idle.borrow_mut() = Some(socket(exchange).try_clone_to_owned().expect("a descriptor"));
        }
        answer(&server.engine, exchange, b"");
    };
    let between = |server: &Server| {
        if let Some(socket) = idle.take() {
            has_asked.recv().expect("a client");
            let unread = || rustix::io::ioctl_fionread(socket.as_fd()).expect("a socket");
            until("it has come", || unread() > 0);
            server.engine.drain();
            assert_eq!(unread(), 0, "it was looked at, and is with the session");
        }
    };
    let config = Config { closes_idle: true, ..config() };
    by_hand("leaves", config, serve, between, move |mut client| {
        assert_eq!(client.get("/first").status, 200);
        client.ask("/second");
        asked.send(()).expect("a server");
        let response = client.response();
        assert_eq!((response.status, response.closes()), (200, true));
    });
}
