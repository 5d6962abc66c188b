//! Tickets over real sockets: how many a client gets, and with what.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::tls::*;
use harness::*;
use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tricorn_io::{Engine, Exchange};

fn tell_whether_again(engine: &Engine, exchange: &mut Exchange) {
    let is_resumed = exchange.facts().is_some_and(|facts| facts.is_resumed);
    answer(engine, exchange, if is_resumed { b"again" } else { b"new" });
}

/// Sessions of a client, and how many tickets it was given.
#[derive(Debug)]
struct Counting {
    sessions: ClientSessionMemoryCache,
    came: AtomicUsize,
}

impl ClientSessionStore for Counting {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.sessions.set_kx_hint(name, group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.sessions.kx_hint(name)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.sessions.set_tls12_session(name, session);
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.sessions.tls12_session(name)
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.sessions.remove_tls12_session(name);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.came.fetch_add(1, Ordering::SeqCst);
        self.sessions.insert_tls13_ticket(name, ticket);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.sessions.take_tls13_ticket(name)
    }
}

/// Sends the end of the handshake and a request at once.
fn hurry(client: &mut TlsClient) {
    let stream = &mut client.stream;
    stream.conn.write_tls(&mut stream.sock).expect("a hello");
    while stream.conn.is_handshaking() {
        stream.conn.read_tls(&mut stream.sock).expect("a flight");
        stream.conn.process_new_packets().expect("no alert");
    }
    client.stream.conn.writer().write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("a request");
    client.stream.conn.write_tls(&mut client.stream.sock).expect("a request");
}

#[test]
fn a_client_gets_two_tickets_and_then_one_for_each_that_it_spends() {
    let world = World::with(|_, bundle| {
        bundle.ticket_keys = vec![[7; 32]];
        bundle.ticket_lifetime = 3600;
    });
    let server = Server::start(world.secure(config()), tell_whether_again);
    for hurries in [false, true] {
        let sessions = ClientSessionMemoryCache::new(8);
        let counting = Arc::new(Counting { sessions, came: AtomicUsize::new(0) });
        let mut client = world.of_version(&TLS13);
        client.resumption = Resumption::store(counting.clone());
        let client = Arc::new(client);
        for (told, came) in [("new", 2), ("again", 3), ("again", 4)] {
            let mut client = connect(server.address, client.clone(), "localhost");
            // A request that comes with the end of the handshake is answered together with the tickets.
            let answer = if hurries {
                hurry(&mut client);
                client.response()
            } else {
                client.get("/")
            };
            assert_eq!(String::from_utf8_lossy(&answer.body), told);
            assert_eq!(counting.came.load(Ordering::SeqCst), came, "in a hurry: {hurries}");
        }
    }
}
