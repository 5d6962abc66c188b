//! A client of HTTP/2 that says each frame itself.
#![allow(clippy::expect_used)] // A test may panic, in its helpers too.
use super::DEADLINE;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use tricorn_proto::http2::PREFACE;
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind};
use tricorn_proto::http2::hpack::{Decoder, Encoder};

pub const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// What has come of a stream.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub fields: BTreeMap<String, String>,
    pub body: Vec<u8>,
    pub trailers: BTreeMap<String, String>,
    pub is_over: bool,
    pub reset: Option<u32>,
}

pub struct Client2 {
    pub stream: TcpStream,
    encoder: Encoder,
    decoder: Decoder,
    pub streams: BTreeMap<u32, Response>,
    /// Last stream and code of each GOAWAY.
    pub goaways: Vec<(u32, u32)>,
    /// What the server has given back of each window.
    pub updates: BTreeMap<u32, u64>,
    next: u32,
    /// Content is acknowledged as it comes.
    pub reads: bool,
}

impl Client2 {
    /// With the preface and SETTINGS: `window` for each stream.
    pub fn connect(address: SocketAddr, window: u32) -> Client2 {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        let mut client = Client2 {
            stream,
            encoder: Encoder::default(),
            decoder: Decoder::default(),
            streams: BTreeMap::new(),
            goaways: Vec::new(),
            updates: BTreeMap::new(),
            next: 1,
            reads: true,
        };
        let pair = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &window.to_be_bytes()].concat();
        client.stream.write_all(PREFACE).expect("a server that reads");
        client.frame(Kind::Settings, 0, 0, &pair);
        client
    }

    pub fn frame(&mut self, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
        let mut out = Vec::new();
        FrameHeader { length: payload.len(), kind, flags, stream }.write(&mut out);
        out.extend_from_slice(payload);
        // A connection that the server has ended can still be read.
        let _ = self.stream.write_all(&out);
    }

    /// Begins a request; its stream.
    pub fn ask(&mut self, method: &str, path: &str, fields: &[(&str, &str)], end: bool) -> u32 {
        let (stream, mut block) = (self.next, Vec::new());
        self.next += 2;
        let pseudo = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "h")];
        for (name, value) in pseudo.iter().chain(fields) {
            self.encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        self.streams.insert(stream, Response::default());
        self.frame(Kind::Headers, END_HEADERS | if end { END_STREAM } else { 0 }, stream, &block);
        stream
    }

    pub fn get(&mut self, path: &str) -> u32 {
        self.ask("GET", path, &[], true)
    }

    pub fn data(&mut self, stream: u32, content: &[u8], end: bool) {
        self.frame(Kind::Data, u8::from(end), stream, content);
    }

    pub fn open_window(&mut self, stream: u32, bytes: u32) {
        self.frame(Kind::WindowUpdate, 0, stream, &bytes.to_be_bytes());
    }

    pub fn reset(&mut self, stream: u32) {
        self.frame(Kind::RstStream, 0, stream, &8_u32.to_be_bytes());
    }

    /// Takes the next frame; false: the connection has ended.
    pub fn step(&mut self) -> bool {
        let mut header = [0; HEADER_BYTES];
        if self.stream.read_exact(&mut header).is_err() {
            return false;
        }
        let header = FrameHeader::parse(&header);
        let mut payload = vec![0; header.length];
        if self.stream.read_exact(&mut payload).is_err() {
            return false;
        }
        self.take(&header, &payload);
        true
    }

    fn take(&mut self, header: &FrameHeader, payload: &[u8]) {
        let number = |at: usize| u32::from_be_bytes(payload[at..at + 4].try_into().expect("four bytes"));
        match header.kind {
            Kind::Settings if header.flags & ACK == 0 => self.frame(Kind::Settings, ACK, 0, &[]),
            Kind::Ping if header.flags & ACK == 0 => self.frame(Kind::Ping, ACK, 0, payload),
            Kind::Goaway => self.goaways.push((number(0), number(4))),
            Kind::WindowUpdate => *self.updates.entry(header.stream).or_default() += u64::from(number(0)),
            Kind::Headers => {
                let mut fields = BTreeMap::new();
                let take = |name: &[u8], value: &[u8]| {
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
                    fields.insert(text(name), text(value));
                };
                self.decoder.decode(payload, take).expect("a block");
                let response = self.streams.entry(header.stream).or_default();
                match fields.remove(":status").map(|status| status.parse().expect("a number")) {
                    Some(status) => (response.status, response.fields) = (status, fields),
                    None => response.trailers = fields,
                }
                response.is_over |= header.flags & END_STREAM != 0;
            }
            Kind::Data => {
                let response = self.streams.entry(header.stream).or_default();
                response.body.extend_from_slice(payload);
                response.is_over |= header.flags & END_STREAM != 0;
                if self.reads && !payload.is_empty() {
                    self.open_window(header.stream, payload.len() as u32);
                    self.open_window(0, payload.len() as u32);
                }
            }
            Kind::RstStream => self.streams.entry(header.stream).or_default().reset = Some(number(0)),
            _ => {}
        }
    }

    /// Until something is so.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&Client2) -> bool) {
        while !is_so(self) {
            assert!(self.step(), "the connection ended before {what}");
        }
    }

    /// The whole response to a request.
    #[track_caller]
    pub fn response(&mut self, stream: u32) -> Response {
        self.until("the response", |client| client.streams[&stream].is_over || client.streams[&stream].reset.is_some());
        self.streams[&stream].clone()
    }

    /// Until the server has closed the connection.
    pub fn until_closed(&mut self) {
        while self.step() {}
    }
}
