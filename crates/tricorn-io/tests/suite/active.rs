//! What the events of a connection mean for the request under way on it, at an event loop.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::*;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::net::Shutdown;
use tricorn_io::{Active, Config, Departure, Effects, Engine, Grace, Read, Sent, clock};
use tricorn_proto::response::HeadInputs;

const GRACE: u64 = 200 * MILLI;
/// Longer than any test.
const LONG: u64 = 3600 * SECOND;

/// A client, and its request under way.
struct Scene {
    server: HubServer,
    client: Client,
    active: Active,
}

impl Scene {
    fn new(request: &str, grace: u64) -> Scene {
        Scene::with(Config { body_timeout: LONG, write_timeout: LONG, ..config() }, request, grace)
    }

    fn with(config: Config, request: &str, grace: u64) -> Scene {
        let server = HubServer::start(Config { threads: 8, streaming: true, ..config });
        let mut client = server.connect();
        // A buffer that does not grow: else the kernel takes what the client is behind with.
        set_socket_recv_buffer_size(&client.stream, 16 * 1024).expect("a socket");
        client.send(request.as_bytes());
        server.until_open(&["/x"]);
        let active = Active::new(server.take("/x"), Grace { nanos: grace, for_events: false });
        Scene { server, client, active }
    }

    fn engine(&self) -> &Engine {
        &self.server.engine
    }

    /// What the next event means.
    #[track_caller]
    fn next(&mut self) -> Effects {
        let what = self.server.stir();
        self.active.on(&self.server.engine, what)
    }

    /// The first departure that an event means; what the others mean is of no interest.
    #[track_caller]
    fn departure(&mut self) -> Departure {
        until_some(|| self.next().departure).expect("a departure")
    }

    fn read(&mut self) -> (Read, Vec<u8>) {
        let mut out = Vec::new();
        (self.active.read(&self.server.engine, &mut out), out)
    }

    /// Writes until the client is so far behind that the application has to wait.
    fn fall_behind(&mut self) {
        static PIECE: &[u8] = &[7; 512 * 1024];
        let mut exchange = self.active.take().expect("a request");
        until("the client is far behind", || push(self.engine(), &mut exchange, PIECE) == Sent::OverMark);
        self.active.put(exchange);
        assert_eq!(self.active.stall(&self.server.engine), None);
        assert!(self.active.is_stalled());
    }

    /// Sends the head of an event stream, and an event.
    fn stream_event(&mut self) {
        let mut exchange = self.active.take().expect("a request");
        exchange.request.reply.status(b"200 OK").expect("a status");
        exchange.request.reply.field(b"Content-Type", b"text/event-stream").expect("a field");
        let inputs = HeadInputs::default();
        assert_eq!(self.engine().write(&mut exchange, &inputs, EVENT, || Box::new(Vec::new())), Sent::Accepted);
        assert!(exchange.streams_events() && exchange.is_between_events());
        self.active.put(exchange);
    }

    fn end(mut self, is_answered: bool) -> Client {
        self.active.end();
        self.server.end_taken(self.active.take().expect("a request"), is_answered);
        self.client
    }
}

const EVENT: &[u8] = b"data: x\n\n";

fn get() -> &'static str {
    "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
}

fn post(length: usize, body: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{body}")
}

#[test]
fn a_client_that_closes_its_sending_side_is_told_of_once_and_has_its_grace() {
    let mut scene = Scene::new(get(), GRACE);
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(scene.departure(), Departure::HalfClosed);
    let hangup = tricorn_io::Readiness { hangup: true, ..Default::default() };
    assert_eq!(scene.active.on(&scene.server.engine, hangup).departure, None, "it is known");
    assert_eq!(scene.departure(), Departure::Overdue);
    scene.end(false);
}

#[test]
fn a_client_that_closes_its_sending_side_gets_its_response_within_the_grace() {
    let mut scene = Scene::new(get(), LONG);
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(scene.departure(), Departure::HalfClosed);
    let mut client = scene.end(true);
    assert_eq!(client.response().body, b"/x");
    client.is_closed();
}

#[test]
fn without_a_grace_a_half_closed_client_is_overdue_at_once() {
    let mut scene = Scene::new(get(), 0);
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(scene.departure(), Departure::Overdue);
    scene.end(false);
}

#[test]
fn the_reader_of_an_event_stream_that_closes_its_sending_side_has_left_unless_a_grace_is_given() {
    for (for_events, departure) in [(false, Departure::Broken), (true, Departure::HalfClosed)] {
        let mut scene = Scene::new(get(), LONG);
        let exchange = scene.active.take().expect("a request");
        scene.active = Active::new(exchange, Grace { nanos: LONG, for_events });
        scene.stream_event();
        scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(scene.departure(), departure);
        let exchange = scene.active.exchange().expect("a request");
        assert_eq!((exchange.is_gone(), exchange.is_between_events()), (!for_events, for_events));
        scene.end(false);
    }
}

#[test]
fn a_silent_event_stream_gets_a_comment_and_goes_on() {
    let config = Config { sse_ping: 20 * clock::MILLI, ..config() };
    let mut scene = Scene::with(config, get(), LONG);
    scene.stream_event();
    scene.active.wrote(&scene.server.engine);
    until("two comments are sent", || {
        assert_eq!(scene.next().departure, None);
        let exchange = scene.active.exchange().expect("a request");
        exchange.is_between_events() && exchange.request.reply.body_sent() == EVENT.len() as u64 + 2 * 8
    });
    scene.end(false);
}

#[test]
fn a_half_close_behind_a_body_counts_when_the_body_was_read() {
    let mut scene = Scene::new(&post(6, "abc"), GRACE);
    assert!(!scene.active.take_first().is_empty());
    assert!(matches!(scene.read().0, Read::Wait { is_new: true }));
    assert!(matches!(scene.read().0, Read::Wait { is_new: false }));
    scene.client.send(b"def");
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    until("the end was told", || {
        let effects = scene.next();
        assert_eq!(effects.departure, None, "its body is not read yet");
        effects.readable
    });
    let hangup = tricorn_io::Readiness { hangup: true, ..Default::default() };
    assert_eq!(scene.active.on(&scene.server.engine, hangup).departure, None, "its body is not read yet");
    let (read, bytes) = scene.read();
    assert!(matches!(read, Read::Bytes { last: true, departure: Some(Departure::HalfClosed) }), "{read:?}");
    assert_eq!(bytes, b"def");
    assert_eq!(scene.departure(), Departure::Overdue);
    scene.end(false);
}

#[test]
fn what_came_with_the_head_and_behind_it_is_one_piece() {
    let chunked = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
    for (request, rest) in [(post(9, "abc"), "defghi"), (chunked.into(), "3;a=b\r\ndef\r\n3\r\nghi\r\n0\r\n\r\n")] {
        let mut scene = Scene::new(&request, GRACE);
        let (first, second) = rest.split_at(4); // within a line, if there are any
        scene.client.send(first.as_bytes());
        scene.client.send(second.as_bytes());
        until_unread(scene.active.exchange().expect("a request"), rest.len());
        let (read, bytes) = scene.read();
        assert!(matches!(read, Read::Bytes { last: true, departure: None }), "{read:?}");
        assert_eq!(bytes, b"abcdefghi");
        scene.end(true);
    }
}

#[test]
fn what_has_come_is_handed_over_before_the_end_of_the_connection() {
    let mut scene = Scene::new(&post(9, "abc"), LONG);
    scene.client.send(b"def");
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    until_unread(scene.active.exchange().expect("a request"), 3);
    let (read, bytes) = scene.read();
    assert!(matches!(read, Read::Bytes { last: false, departure: None }), "{read:?}");
    assert_eq!(bytes, b"abcdef");
    until("the client is seen to have left", || matches!(scene.read().0, Read::Gone));
    scene.end(false);
}

#[test]
fn a_half_close_within_a_body_is_the_end_of_the_body() {
    let mut scene = Scene::new(&post(6, "abc"), LONG);
    assert!(!scene.active.take_first().is_empty());
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    until("the client is seen to have left", || matches!(scene.read().0, Read::Gone));
    scene.end(false);
}

#[test]
fn a_half_closed_client_that_is_behind_is_judged_by_its_speed() {
    let mut scene = Scene::new(get(), GRACE);
    scene.fall_behind();
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    assert_eq!(scene.departure(), Departure::HalfClosed);
    let twice = clock::now() + 3 * GRACE;
    while clock::now() < twice {
        assert_eq!(scene.next().departure, None, "its grace comes again and again");
    }
    assert!(scene.active.is_stalled());
    scene.end(false);
}

#[test]
fn a_client_that_takes_nothing_is_given_up_after_the_write_timeout() {
    let config = Config { write_timeout: GRACE, ..config() };
    let mut scene = Scene::with(config, get(), LONG);
    scene.fall_behind();
    assert_eq!(scene.departure(), Departure::Broken);
    assert!(!scene.active.is_stalled());
    scene.end(false);
}

#[test]
fn a_body_and_a_response_wait_by_timers_of_their_own() {
    let config = Config { body_timeout: GRACE, write_timeout: 3 * GRACE, ..config() };
    let mut scene = Scene::with(config, &post(6, ""), LONG);
    assert!(matches!(scene.read().0, Read::Wait { is_new: true }));
    scene.fall_behind();
    scene.client.send(b"abc");
    until("bytes have come", || scene.next().readable);
    assert!(matches!(scene.read().0, Read::Bytes { last: false, departure: None }));
    assert_eq!(scene.departure(), Departure::Broken, "the end of one wait does not end the other");
    scene.end(false);
}

#[test]
fn a_body_that_does_not_come_is_refused() {
    let config = Config { body_timeout: GRACE, ..config() };
    let mut scene = Scene::with(config, &post(6, "abc"), LONG);
    assert!(!scene.active.take_first().is_empty());
    assert!(matches!(scene.read().0, Read::Wait { .. }));
    let refusal = until_some(|| scene.next().refusal).expect("it is late");
    assert_eq!(refusal.status(), 408);
    scene.end(false);
}

#[test]
fn an_application_that_does_not_ask_for_the_body_leaves_the_client_its_time() {
    let config = Config { body_timeout: GRACE, ..config() };
    let mut scene = Scene::with(config, &post(6, "abc"), 2 * GRACE);
    assert!(!scene.active.take_first().is_empty());
    assert!(matches!(scene.read().0, Read::Wait { .. }));
    scene.active.stop_reading(&scene.server.engine);
    scene.active.begin_grace(&scene.server.engine, Departure::Broken); // a later timer, to wait for
    let departure = until_some(|| {
        let effects = scene.next();
        assert!(effects.refusal.is_none() && !effects.readable, "{effects:?}");
        effects.departure
    });
    assert_eq!(departure, Some(Departure::Overdue));
    scene.end(false);
}

#[test]
fn a_broken_connection_ends_every_wait() {
    let mut scene = Scene::new(get(), GRACE);
    scene.fall_behind();
    let broken = tricorn_io::Readiness { hangup: true, broken: true, ..Default::default() };
    let effects = scene.active.on(&scene.server.engine, broken);
    assert!(effects.writable && effects.departure == Some(Departure::Broken), "{effects:?}");
    assert_eq!(scene.active.begin_grace(&scene.server.engine, Departure::Broken), Departure::Broken);
    assert_eq!(scene.departure(), Departure::Overdue);
    scene.end(false);
}

#[test]
fn after_a_switch_of_protocols_the_end_of_input_is_read_like_input() {
    let mut scene = Scene::new(get(), GRACE);
    scene.active.exchange_mut().expect("a request").lane.switch();
    scene.client.stream.shutdown(Shutdown::Write).expect("a socket");
    until("it is told", || {
        let effects = scene.next();
        assert_eq!(effects.departure, None);
        effects.readable
    });
    scene.end(false);
}

#[test]
fn nothing_happens_to_a_request_that_is_over() {
    let mut scene = Scene::new(get(), GRACE);
    let exchange = scene.active.take().expect("a request");
    let all = tricorn_io::Readiness { readable: true, writable: true, hangup: true, broken: true, expired: true };
    let effects = scene.active.on(&scene.server.engine, all);
    assert!(!effects.readable && !effects.writable && effects.departure.is_none() && effects.refusal.is_none());
    assert!(matches!(scene.read().0, Read::Gone));
    scene.active.put(exchange);
    scene.end(true);
}
