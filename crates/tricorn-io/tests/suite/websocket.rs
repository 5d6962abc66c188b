//! Deadlines of WebSockets.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::*;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::sync::{Arc, Mutex};
use tricorn_io::{Config, Engine, Exchange, Sent, WebSocket, WebSocketBuffers, WebSocketIo};
use tricorn_proto::websocket::session::Settings;
use tricorn_proto::websocket::{Kind, Role};

const SETTINGS: Settings<'_> = Settings {
    role: Role::Server,
    max_message_size: 1 << 20,
    deflate: None,
    inbox: 1 << 20,
    ping_interval: 0,
    ping_timeout: 0,
    close_timeout: SECOND,
    seed: 0,
};

#[derive(Clone, Default)]
struct Link(Arc<Mutex<Option<Begun>>>);

type Begun = (WebSocket<Vec<u8>>, WebSocketBuffers);

impl Link {
    /// Answers the handshake.
    fn begin(&self, engine: &Engine, exchange: &mut Exchange) {
        engine.attend(exchange);
        exchange.request.reply.status(b"101 Switching Protocols").expect("a status");
        let mut buffers = WebSocketBuffers::new(0);
        let wall = exchange.wall.clone();
        let inputs = engine.head_inputs(&wall, None, None);
        let mut io = WebSocketIo { engine, exchange, buffers: &mut buffers };
        let link = WebSocket::begin(&mut io, &SETTINGS, &inputs, |_, data| data.to_vec());
        *self.0.lock().expect("no panic") = Some((link, buffers));
    }

    fn work<T>(
        &self,
        engine: &Engine,
        exchange: &mut Exchange,
        work: impl FnOnce(&mut WebSocket<Vec<u8>>, &mut WebSocketIo<'_>) -> T,
    ) -> T {
        let mut guard = self.0.lock().expect("no panic");
        let (link, buffers) = guard.as_mut().expect("a WebSocket");
        work(link, &mut WebSocketIo { engine, exchange, buffers })
    }
}

#[test]
fn the_last_bytes_of_a_websocket_have_a_deadline_though_the_application_does_not_wait() {
    static MESSAGE: [u8; 1000] = [7; 1000];
    // What the kernel still squeezes in is no progress.
    let config = Config { threads: 8, streaming: true, write_timeout: SECOND, body_min_rate: 1 << 20, ..config() };
    let server = HubServer::start(config);
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 4096).expect("a socket");
    client.send(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    server.until_open(&["/ws"]);
    let link = Link::default();
    let begun = link.clone();
    server.at("/ws", move |engine, exchange| {
        set_socket_send_buffer_size(socket(exchange), 4096).expect("a socket");
        begun.begin(engine, exchange);
    });
    let (mut sent, mut taken) = (0, 0);
    // By more than the kernel may still take, and by less than makes the application wait.
    until("the client is behind", || {
        let link = link.clone();
        let (accepted, bytes) = server.at("/ws", move |engine, exchange| {
            link.work(engine, exchange, |link, io| {
                let sent = link.send(io, Kind::Binary, &MESSAGE, || Box::new(MESSAGE.to_vec())).expect("an open one");
                (sent, link.bytes_sent(io.exchange))
            })
        });
        assert_eq!(accepted, Sent::Accepted, "the application need not wait");
        sent += MESSAGE.len() as u64;
        taken = bytes;
        taken + 40_000 < sent
    });
    until("it is given up", || {
        let Some(what) = server.stirs().last().map(|stir| stir.readiness) else { return false };
        let link = link.clone();
        server.at("/ws", move |engine, exchange| {
            link.work(engine, exchange, |link, io| {
                link.on_readiness(io, what);
                link.session().is_over()
            })
        })
    });
    server.give_back("/ws");
    server.until(Word::WriteTimeouts, 1);
}
