//! A client of HTTP/2 that may break any rule, and the events of the server's side.
#![allow(dead_code, clippy::unwrap_used)] // A test may panic, and need not use all of this.
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind};
use tricorn_proto::http2::hpack::Decoder;
use tricorn_proto::http2::{Connection, Context, EndStream, ErrorCode, PREFACE, Request, Settings, Step, Violation};
use tricorn_proto::message::FieldList;
use tricorn_proto::response::{Connection as Reuse, Framing, ResponseHead};

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
pub const PRIORITY: u8 = 0x20;

/// A step, without what depends on where its bytes stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Request { stream: u32, end: bool, head: Head },
    Refused { stream: u32, status: u16 },
    Body { stream: u32, bytes: Vec<u8>, end: bool },
    Trailers { stream: u32, fields: Vec<(String, String)> },
    Reset { stream: u32, code: u32 },
    Violated { stream: u32, violation: Violation },
    Room { stream: u32 },
    Goodbye { code: u32 },
    Choked,
    Failed(Violation),
}

/// What a request says, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    pub target: String,
    pub path: String,
    pub query: String,
    pub protocol: String,
    pub fields: Vec<(String, String)>,
    pub rest: String,
}

/// A frame of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHeader { length: payload.len(), kind, flags, stream }.write(&mut out);
    out.extend_from_slice(payload);
    out
}

pub fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(identifier, value): &(u16, u32)| [&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(Kind::Settings, 0, 0, &pairs.iter().flat_map(pair).collect::<Vec<_>>())
}

pub fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(Kind::WindowUpdate, 0, stream, &increment.to_be_bytes())
}

pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(Kind::RstStream, 0, stream, &code.to_be_bytes())
}

pub fn data(stream: u32, content: &[u8], end: bool) -> Vec<u8> {
    frame(Kind::Data, if end { END_STREAM } else { 0 }, stream, content)
}

/// A literal without indexing for each field: no rule of HPACK's is at stake.
pub fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            match text.len() {
                length @ ..127 => out.push(length as u8),
                length => {
                    let rest = length - 127;
                    out.extend([127, rest as u8 | 0x80, (rest >> 7) as u8 | 0x80, (rest >> 14) as u8]);
                }
            }
            out.extend(text.bytes());
        }
    }
    out
}

pub const GET: [(&str, &str); 4] = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
pub const POST: [(&str, &str); 4] = [(":method", "POST"), (":scheme", "http"), (":path", "/"), (":authority", "a")];

pub fn headers(stream: u32, fields: &[(&str, &str)], end: bool) -> Vec<u8> {
    frame(Kind::Headers, END_HEADERS | if end { END_STREAM } else { 0 }, stream, &block(fields))
}

pub fn get(stream: u32) -> Vec<u8> {
    headers(stream, &GET, true)
}

/// The server's side and its time.
pub struct Server {
    pub connection: Connection,
    pub policy: HeadPolicy,
    pub trusted: bool,
    pub now: u64,
    pub request: Request,
    pub input: Vec<u8>,
    pub decoder: Decoder,
}

impl Server {
    /// Before the preface.
    pub fn raw(settings: Settings) -> Server {
        Server {
            connection: Connection::new(settings, 0),
            policy: HeadPolicy::default(),
            trusted: false,
            now: 0,
            request: Request::default(),
            input: Vec::new(),
            decoder: Decoder::default(),
        }
    }

    /// After an exchange of settings.
    pub fn with(settings_of_server: Settings) -> Server {
        let mut server = Server::raw(settings_of_server);
        let opening = [&PREFACE[..], &settings(&[]), &frame(Kind::Settings, ACK, 0, &[])].concat();
        assert_eq!(server.receive(&opening), []);
        server.frames();
        server
    }

    pub fn new() -> Server {
        Server::with(Settings::default())
    }

    /// Feeds bytes, and returns what came of them.
    pub fn receive(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.input.extend_from_slice(bytes);
        let mut events = Vec::new();
        loop {
            let context = Context { now: self.now, policy: &self.policy, trusted: self.trusted };
            let progress = self.connection.receive(&self.input, &context, &mut self.request);
            let event = match progress.step {
                Step::NeedMore => return events,
                Step::Control => None,
                Step::Choked => Some(Event::Choked),
                Step::Request { stream, end } => Some(Event::Request { stream, end, head: head(&self.request) }),
                Step::Refused { stream, refusal } => Some(Event::Refused { stream, status: refusal.status() }),
                Step::Body { stream, range, end } => {
                    Some(Event::Body { stream, bytes: self.input[range].to_vec(), end })
                }
                Step::Trailers { stream } => {
                    let pair = |(name, value): &(Vec<u8>, Vec<u8>)| (text(name), text(value));
                    let fields = self.request.head.trailers.iter().map(pair).collect();
                    Some(Event::Trailers { stream, fields })
                }
                Step::Reset { stream, code } => Some(Event::Reset { stream, code }),
                Step::Violated { stream, violation } => Some(Event::Violated { stream, violation }),
                Step::Room { stream } => Some(Event::Room { stream }),
                Step::Goodbye { code } => Some(Event::Goodbye { code }),
                Step::Failed(violation) => Some(Event::Failed(violation)),
            };
            self.input.drain(..progress.consumed);
            let is_over = matches!(event, Some(Event::Choked | Event::Failed(_)));
            join(&mut events, event);
            if is_over {
                return events;
            }
        }
    }

    /// Takes off what the server has to send.
    pub fn frames(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let output = self.connection.output().to_vec();
        self.connection.sent(output.len());
        let mut rest = &output[..];
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let header = FrameHeader::parse(header);
            let (payload, after) = after.split_at(header.length);
            let FrameHeader { kind, flags, stream, .. } = header;
            frames.push(Frame { kind, flags, stream, payload: payload.to_vec() });
            rest = after;
        }
        assert_eq!(rest, b"", "whole frames");
        frames
    }

    /// Fields of a frame of HEADERS; each must be decoded, in order.
    pub fn decode(&mut self, frame: &Frame) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        self.decoder.decode(&frame.payload, |name, value| fields.push((text(name), text(value)))).unwrap();
        fields
    }

    /// Answers with a head, and content whose end is marked.
    pub fn answer(&mut self, stream: u32, content: &[u8]) -> usize {
        self.head(stream, Framing::Delimited);
        self.connection.send_data(stream, content, EndStream::Yes).unwrap()
    }

    pub fn head(&mut self, stream: u32, framing: Framing) {
        self.connection.send_head(stream, &response(200, framing, &FieldList::new())).unwrap();
    }
}

pub fn response(status: u16, framing: Framing, list: &FieldList) -> ResponseHead<'_> {
    static STANDING: FieldList = FieldList::new();
    ResponseHead {
        version: tricorn_proto::message::Version::Http11,
        status,
        reason: b"OK",
        server: b"",
        date: b"",
        request_id: b"",
        standing: &STANDING,
        length: None,
        framing,
        connection: Reuse { reuse: true, upgrade: false },
        list,
        without: None,
    }
}

/// Adjacent pieces of content are one: how they were split depends on the reads.
fn join(events: &mut Vec<Event>, event: Option<Event>) {
    match (events.last_mut(), event) {
        (Some(Event::Body { stream, bytes, end }), Some(Event::Body { stream: same, bytes: more, end: last }))
            if *stream == same =>
        {
            bytes.extend_from_slice(&more);
            *end |= last;
        }
        (_, event) => events.extend(event),
    }
}

fn head(request: &Request) -> Head {
    let (head, bytes) = (&request.head, &request.bytes);
    let field = |field: &tricorn_proto::message::Field| (text(field.name.of(bytes)), text(field.value.of(bytes)));
    Head {
        method: text(head.method.of(bytes)),
        target: text(head.target.of(bytes)),
        path: text(head.path.of(bytes)),
        query: text(head.query.of(bytes)),
        protocol: text(head.protocol.of(bytes)),
        fields: head.fields.iter().map(field).collect(),
        rest: format!(
            "{:?} {:?} {:?} {} {}",
            head.kind, head.framing, head.scheme, head.keep_alive, head.expect_continue
        ),
    }
}

pub fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte as char).collect()
}

/// The codes of RST_STREAM and GOAWAY frames among these, with their streams.
pub fn errors(frames: &[Frame]) -> Vec<(u32, u32)> {
    let code = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
    let error = |frame: &Frame| match frame.kind {
        Kind::RstStream => Some((frame.stream, code(&frame.payload))),
        Kind::Goaway => Some((0, code(&frame.payload[4..8]))),
        _ => None,
    };
    frames.iter().filter_map(error).collect()
}

pub fn number(code: ErrorCode) -> u32 {
    code.number()
}
