//! HTTP/2 against small servers that speak it frame by frame: is every request counted, and every failure named?
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tricorn_load::{Ended, Outcome, Plan, run};
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind};
use tricorn_proto::http2::frame::{data, goaway, headers, rst_stream, settings, window_update};
use tricorn_proto::http2::hpack::{Decoder, Encoder};
use tricorn_proto::http2::{ErrorCode, PREFACE};

/// A request whose end has come.
struct Request {
    /// Which connection of the run it came over; 0 is that of the trial.
    connection: u64,
    /// Which request of its connection it is, from 1 on.
    number: u64,
    stream: u32,
    fields: Vec<(String, String)>,
    content: usize,
}

/// What a server does about a request.
enum Reply {
    Answer(&'static str),
    /// Nothing yet: all that wait are answered with the next `Answer`.
    Later,
    Reset(ErrorCode),
    /// GOAWAY; streams after this one are not answered.
    Leave(u32),
    Redirect(&'static str),
    Close,
}

impl Request {
    fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    served: AtomicU64,
    /// Most requests that waited at a time on a connection.
    most: AtomicU64,
}

struct Server {
    port: u16,
    counts: Arc<Counts>,
}

/// The server's side of a connection.
struct Peer<S> {
    stream: S,
    connection: u64,
    counts: Arc<Counts>,
    encoder: Encoder,
    waiting: Vec<u32>,
}

impl Server {
    fn start(settings: &'static [(u16, u32)], reply: impl Fn(&Request) -> Reply + Clone + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server { port: listener.local_addr().unwrap().port(), counts: Arc::default() };
        let counts = Arc::clone(&server.counts);
        thread::spawn(move || {
            for stream in listener.incoming().map(Result::unwrap) {
                let connection = counts.connections.fetch_add(1, Ordering::SeqCst);
                let (reply, counts) = (reply.clone(), Arc::clone(&counts));
                thread::spawn(move || {
                    stream.set_nodelay(true).unwrap();
                    let encoder = Encoder::default();
                    // Whatever breaks is the client's end of the connection.
                    Peer { stream, connection, counts, encoder, waiting: Vec::new() }.serve(settings, &reply)
                });
            }
        });
        server
    }

    fn run(&self, model: &str, bounds: &str, more: &str) -> Outcome {
        self.try_run(model, bounds, more).unwrap()
    }

    fn try_run(&self, model: &str, bounds: &str, more: &str) -> Result<Outcome, String> {
        run(&Plan::from_json(plan(self.port, model, bounds, more).as_bytes())?, &mut ())
    }

    fn served(&self) -> u64 {
        self.counts.served.load(Ordering::SeqCst)
    }

    /// Without that of the trial.
    fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst) - 1
    }
}

impl<S: Read + Write> Peer<S> {
    fn serve(mut self, settings: &[(u16, u32)], reply: &impl Fn(&Request) -> Reply) -> Option<()> {
        let mut preface = [0; PREFACE.len()];
        self.stream.read_exact(&mut preface).ok()?;
        assert_eq!(&preface, PREFACE);
        self.write(|out| settings::write(settings, out))?;
        let (mut decoder, mut open, mut number) = (Decoder::default(), Vec::<Request>::new(), 0);
        loop {
            let (header, payload) = self.frame()?;
            match header.kind {
                Kind::Headers => {
                    let mut fields = Vec::new();
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    decoder.decode(&payload, |name, value| fields.push((text(name), text(value)))).unwrap();
                    number += 1;
                    let (connection, stream) = (self.connection, header.stream);
                    open.push(Request { connection, number, stream, fields, content: 0 });
                }
                Kind::Data => {
                    let length = payload.len();
                    open.iter_mut().find(|request| request.stream == header.stream)?.content += length;
                    if length > 0 {
                        self.write(|out| {
                            window_update::write(0, length as u32, out);
                            window_update::write(header.stream, length as u32, out);
                        })?;
                    }
                }
                Kind::Goaway => return None,
                Kind::RstStream => self.waiting.retain(|waiting| *waiting != header.stream),
                _ => {}
            }
            if matches!(header.kind, Kind::Headers | Kind::Data) && header.has(headers::END_STREAM) {
                let place = open.iter().position(|request| request.stream == header.stream)?;
                let request = open.remove(place);
                self.waiting.push(request.stream);
                self.counts.most.fetch_max(self.waiting.len() as u64, Ordering::SeqCst);
                self.reply(reply(&request), request.stream)?;
            }
        }
    }

    fn reply(&mut self, reply: Reply, stream: u32) -> Option<()> {
        match reply {
            Reply::Later => Some(()),
            Reply::Answer(content) => {
                for stream in std::mem::take(&mut self.waiting) {
                    self.counts.served.fetch_add(1, Ordering::SeqCst);
                    let length = content.len().to_string();
                    self.answer(stream, &[(":status", "200"), ("content-length", &length)], content)?;
                }
                Some(())
            }
            Reply::Redirect(to) => {
                self.waiting.clear();
                self.answer(stream, &[(":status", "302"), ("location", to)], "")
            }
            Reply::Reset(code) => {
                self.waiting.retain(|waiting| *waiting != stream);
                self.write(|out| rst_stream::write(stream, code.number(), out))
            }
            Reply::Leave(last) => {
                self.write(|out| goaway::write(last, 0, "", out))?;
                self.waiting.retain(|waiting| *waiting <= last);
                self.reply(Reply::Answer("hello\n"), stream)
            }
            Reply::Close => None,
        }
    }

    fn answer(&mut self, stream: u32, fields: &[(&str, &str)], content: &str) -> Option<()> {
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        for (name, value) in fields {
            self.encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        self.write(|out| {
            headers::write(stream, &block, content.is_empty(), out);
            if !content.is_empty() {
                data::write(stream, content.as_bytes(), true, out);
            }
        })
    }

    fn frame(&mut self) -> Option<(FrameHeader, Vec<u8>)> {
        let mut header = [0; HEADER_BYTES];
        self.stream.read_exact(&mut header).ok()?;
        let header = FrameHeader::parse(&header);
        let mut payload = vec![0; header.length];
        self.stream.read_exact(&mut payload).ok()?;
        Some((header, payload))
    }

    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
        let mut out = Vec::new();
        write(&mut out);
        self.stream.write_all(&out).ok()
    }
}

fn plan(port: u16, model: &str, bounds: &str, more: &str) -> String {
    let target = format!("{{\"address\": {{\"tcp\": [\"127.0.0.1\", {port}]}}, \"host\": \"here\", \"path\": \"/\"}}");
    format!("{{\"targets\": [{target}], \"model\": {model}, \"bounds\": {bounds}{more}}}")
}

fn streams(count: usize) -> String {
    format!(", \"http2\": {{\"streams\": {count}}}")
}

fn closed(connections: usize) -> String {
    format!("{{\"closed\": {{\"connections\": {connections}}}}}")
}

fn hello(_: &Request) -> Reply {
    Reply::Answer("hello\n")
}

#[test]
fn every_request_is_sent_once_and_counted() {
    let server = Server::start(&[], hello);
    let outcome = server.run(&closed(7), "{\"requests\": 1000}", &streams(3));
    assert_eq!((outcome.sent, outcome.answered, server.served()), (1000, 1000, 1000));
    assert_eq!((outcome.statuses["200"], outcome.bytes.body, outcome.errors.len()), (1000, 6000, 0));
    assert_eq!((outcome.rest.opened, server.connections()), (7, 7));
}

#[test]
fn threads_share_the_requests_and_the_connections() {
    let server = Server::start(&[], hello);
    let outcome =
        server.run(&closed(7), "{\"requests\": 1001}", &format!("{}, \"threads\": {{\"count\": 3}}", streams(2)));
    assert_eq!((outcome.answered, server.served(), server.connections()), (1001, 1001, 7));
}

#[test]
fn requests_are_under_way_at_once_on_a_connection() {
    let server = Server::start(&[], |request| match request.number % 5 {
        0 => Reply::Answer("hello\n"),
        _ => Reply::Later,
    });
    let outcome = server.run(&closed(2), "{\"requests\": 100}", &streams(5));
    assert_eq!((outcome.answered, outcome.errors.len()), (100, 0));
    assert_eq!(server.counts.most.load(Ordering::SeqCst), 5);
}

#[test]
fn no_more_streams_than_the_server_allows() {
    let server = Server::start(&[(settings::MAX_CONCURRENT_STREAMS, 2)], |request| match request.number {
        // The server's SETTINGS may still be on their way to the client.
        1..=8 => Reply::Answer("hello\n"),
        number if number % 2 == 0 => Reply::Answer("hello\n"),
        _ => Reply::Later,
    });
    let outcome = server.run(&closed(1), "{\"requests\": 200}", &streams(8));
    assert_eq!((outcome.answered, outcome.errors.len()), (200, 0));
    assert_eq!(server.counts.most.load(Ordering::SeqCst), 2);
}

#[test]
fn bodies_keep_to_the_windows() {
    const LENGTH: usize = 300_000;
    let server = Server::start(&[(settings::INITIAL_WINDOW_SIZE, 30_000)], |request| {
        assert_eq!((request.content, request.field("content-length")), (LENGTH, "300000"));
        Reply::Answer("hello\n")
    });
    // "AAAA" is three bytes in base64.
    let more =
        format!("{}, \"request\": {{\"method\": \"POST\", \"body\": \"{}\"}}", streams(4), "AAAA".repeat(LENGTH / 3));
    let outcome = server.run(&closed(2), "{\"requests\": 50}", &more);
    assert_eq!((outcome.answered, outcome.errors.len(), server.served()), (50, 0, 50));
    assert!(outcome.bytes.sent > 50 * LENGTH as u64);
}

#[test]
fn requests_that_a_leaving_server_does_not_process_are_sent_again() {
    // Each connection answers ten requests; what came after them is refused.
    let server = Server::start(&[], |request| match request.number {
        1..=9 => Reply::Answer("hello\n"),
        10 => Reply::Leave(request.stream),
        _ => Reply::Later,
    });
    // POST: whatever the method is (RFC 9113 section 8.7).
    let more = format!("{}, \"request\": {{\"method\": \"POST\"}}", streams(4));
    let outcome = server.run(&closed(1), "{\"requests\": 95}", &more);
    assert_eq!((outcome.sent, outcome.answered, outcome.errors.len()), (95, 95, 0));
    assert!(outcome.rest.retried > 0 && server.served() == 95, "{:?}", outcome.rest);
    assert_eq!((outcome.rest.opened, server.connections()), (10, 10));
}

#[test]
fn a_refused_stream_is_sent_again_once() {
    let server = Server::start(&[], |request| match request.number {
        3 => Reply::Reset(ErrorCode::RefusedStream),
        _ => Reply::Answer("hello\n"),
    });
    let outcome = server.run(&closed(1), "{\"requests\": 10}", &streams(1));
    assert_eq!((outcome.answered, outcome.rest.retried, outcome.rest.opened), (10, 1, 1));
    let refusing = Server::start(&[], |_| Reply::Reset(ErrorCode::RefusedStream));
    let outcome = refusing.run(&closed(1), "{\"requests\": 10}", &streams(1));
    assert_eq!((outcome.answered, outcome.errors["refused"], outcome.rest.retried), (0, 10, 10));
}

#[test]
fn failures_have_names() {
    let reset = Server::start(&[], |_| Reply::Reset(ErrorCode::InternalError));
    let outcome = reset.run(&closed(1), "{\"requests\": 10}", &streams(2));
    assert_eq!((outcome.errors["reset"], outcome.errors.len(), outcome.rest.opened), (10, 1, 1));
    assert_eq!(outcome.rest.http2_errors.get("RST_STREAM: INTERNAL_ERROR"), 10);
    let closing = Server::start(&[], |_| Reply::Close);
    let outcome = closing.run(&closed(1), "{\"requests\": 10}", &streams(1));
    assert_eq!((outcome.errors["closed"], outcome.errors.len(), outcome.rest.opened), (10, 1, 10));
    let silent = Server::start(&[], |request| if request.connection < 2 { Reply::Later } else { hello(request) });
    let more = format!("{}, \"connection\": {{\"timeout\": 0.3}}", streams(2));
    let outcome = silent.run(&closed(1), "{\"requests\": 10}", &more);
    assert_eq!((outcome.errors["timeout"], outcome.answered), (2, 8), "the next connection is sound");
}

#[test]
fn a_connection_that_closes_between_requests_is_replaced() {
    let server = Server::start(&[], |request| if request.number == 4 { Reply::Close } else { hello(request) });
    let outcome = server.run(&closed(1), "{\"requests\": 30}", &streams(1));
    assert_eq!((outcome.answered, outcome.errors.len(), outcome.rest.retried), (30, 0, 9));
    let more = format!("{}, \"request\": {{\"method\": \"POST\"}}", streams(1));
    let outcome = server.run(&closed(1), "{\"requests\": 30}", &more);
    assert_eq!((outcome.errors["closed"], outcome.rest.retried), (7, 0), "it may have been processed");
}

#[test]
fn a_connection_for_each_request() {
    let server = Server::start(&[], |request| {
        assert_eq!((request.number, request.field("connection")), (1, ""));
        Reply::Answer("hello\n")
    });
    let more = format!("{}, \"connection\": {{\"keep_alive\": false}}", streams(1));
    let outcome = server.run(&closed(5), "{\"requests\": 50}", &more);
    assert_eq!((outcome.answered, outcome.errors.len(), server.connections()), (50, 0, 50));
}

#[test]
fn redirects_are_followed() {
    let server = Server::start(&[], |request| match request.field(":path") {
        "/" => Reply::Redirect("/b"),
        path => {
            assert_eq!((path, request.field(":authority"), request.field(":scheme")), ("/b", "here", "http"));
            Reply::Answer("hello\n")
        }
    });
    let more = format!("{}, \"connection\": {{\"follows_redirects\": true}}", streams(1));
    let outcome = server.run(&closed(1), "{\"requests\": 10}", &more);
    assert_eq!((outcome.statuses["200"], outcome.rest.redirected), (10, 10));
}

#[test]
fn in_the_open_model_requests_wait_for_streams_and_latency_counts_from_when_they_were_due() {
    const STALL: f64 = 0.4;
    let server = Server::start(&[], |request| {
        if request.number == 20 {
            thread::sleep(Duration::from_secs_f64(STALL));
        }
        Reply::Answer("hello\n")
    });
    let model = "{\"open\": {\"connections\": 1, \"arrivals\": {\"rate\": {\"rate\": 200}}}}";
    let outcome = server.run(model, "{\"seconds\": 1}", &streams(4));
    assert_eq!((outcome.sent, outcome.answered, outcome.unsent), (200, 200, 0));
    assert_eq!(server.counts.most.load(Ordering::SeqCst).max(1), 1, "the server answers one after the other");
    // The stall concerns STALL × 200 requests, the last ones of which hardly.
    assert!(outcome.latency["max"] >= 0.9 * STALL && outcome.latency["p90"] >= 0.5 * STALL, "{:?}", outcome.latency);
    assert!(outcome.latency["p50"] < 0.1, "{:?}", outcome.latency);
}

#[test]
fn single_requests_are_recorded() {
    let server = Server::start(&[], hello);
    let more = format!("{}, \"samples\": 100", streams(2));
    let outcome = server.run(&closed(2), "{\"requests\": 20}", &more);
    let samples = outcome.samples.unwrap();
    assert_eq!((samples.done.len(), &samples.ended[0], &*samples.body[0]), (20, &Ended::Answered(200), "hello\n"));
    for row in 0..20 {
        let moments = [samples.due[row], samples.connected[row], samples.first[row], samples.done[row]];
        assert!(moments.is_sorted() && samples.written[row] >= samples.begun[row], "{samples:?}");
    }
    assert!(samples.connected[0] > samples.begun[0], "it waited for the connection");
}

#[test]
fn a_server_of_http1_is_told_from_one_of_http2() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map(Result::unwrap) {
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    let started = Instant::now();
    let server = Server { port, counts: Arc::default() };
    let error = server.try_run(&closed(1), "{\"requests\": 10}", &streams(1)).unwrap_err();
    let expected =
        "http://here does not speak HTTP/2 without TLS (prior knowledge): it answered \"HTTP/1.1 400 Bad Request\". ";
    assert!(error.starts_with(expected), "{error}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn plans_that_do_not_fit_together_are_refused() {
    for (more, expected) in [
        (streams(0), "streams: expected 1 to 100000, got 0"),
        (
            format!("{}, \"connection\": {{\"keep_alive\": false}}", streams(2)),
            "streams: a connection for each request has one stream",
        ),
        (
            format!("{}, \"websocket\": {{\"size\": 1, \"binary\": false, \"deflate\": false}}", streams(1)),
            "WebSockets over HTTP/2 (RFC 8441) are not in this version",
        ),
    ] {
        let text = plan(1, &closed(1), "{\"requests\": 1}", &more);
        assert_eq!(Plan::from_json(text.as_bytes()).unwrap_err(), expected);
    }
}
