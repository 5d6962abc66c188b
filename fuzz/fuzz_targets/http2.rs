//! A connection of HTTP/2: whatever frames come, and however they are cut, they mean the same; what the server sends is
//! whole frames, memory stays within its bounds, and calls for streams that are over change nothing.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_fuzz::Choices;
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES};
use tricorn_proto::http2::{Connection, Context, EndStream, ErrorCode, PREFACE, Request, Settings, Step};
use tricorn_proto::message::{FieldList, Version};
use tricorn_proto::response::{Connection as Reuse, Framing, ResponseHead};

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let (size, policy) = (usize::from(choices.byte()) + 1, choices.policy());
    let stream = frames(choices);
    let (mut whole, mut cut) = (Server::new(), Server::new());
    whole.receive(&stream, &policy);
    stream.chunks(size).for_each(|piece| cut.receive(piece, &policy));
    assert_eq!(whole.events, cut.events, "in pieces of {size}");
});

/// The preface and a SETTINGS frame, then frames whose headers are mostly sound.
fn frames(mut choices: Choices<'_>) -> Vec<u8> {
    let mut out = PREFACE.to_vec();
    out.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    while !choices.0.is_empty() {
        let (kind, flags, stream) = (choices.byte() % 18, choices.byte(), choices.byte());
        let payload = choices.bytes();
        out.extend_from_slice(&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream % 16]);
        out.extend_from_slice(payload);
    }
    out
}

struct Server {
    connection: Connection,
    request: Request,
    input: Vec<u8>,
    events: Vec<String>,
    body: Vec<u8>,
}

impl Server {
    fn new() -> Server {
        let settings = Settings { max_concurrent_streams: 4, connect_protocol: true, ..Settings::default() };
        Server {
            connection: Connection::new(settings, 0),
            request: Request::default(),
            input: Vec::new(),
            events: Vec::new(),
            body: Vec::new(),
        }
    }

    fn receive(&mut self, piece: &[u8], policy: &HeadPolicy) {
        // After a failure each piece only gets the same answer again.
        if self.connection.is_finished() {
            return;
        }
        self.input.extend_from_slice(piece);
        loop {
            let context = Context { now: 0, policy, trusted: false };
            let progress = self.connection.receive(&self.input, &context, &mut self.request);
            assert!(progress.consumed <= self.input.len());
            self.output();
            match &progress.step {
                Step::NeedMore => {
                    assert!(self.input.len() < 16_393, "one frame at most is held");
                    self.input.drain(..progress.consumed);
                    return;
                }
                Step::Control => {}
                Step::Body { stream, range, end } => {
                    self.body.extend_from_slice(&self.input[range.clone()]);
                    self.connection.took(*stream, range.len());
                    if *end {
                        let body = std::mem::take(&mut self.body);
                        self.events.push(format!("body {stream} {body:?}"));
                        self.answer(*stream);
                    }
                }
                step => {
                    self.events.push(format!("{step:?}"));
                    match *step {
                        Step::Request { stream, end } => {
                            self.check_head();
                            if end {
                                self.answer(stream);
                            }
                        }
                        Step::Refused { stream, .. } | Step::Trailers { stream } => self.answer(stream),
                        Step::Reset { stream, .. } | Step::Violated { stream, .. } => {
                            self.body.clear();
                            self.connection.release(stream);
                        }
                        _ => {}
                    }
                }
            }
            assert!(self.connection.streams() <= 4);
            let is_over = matches!(progress.step, Step::Failed(_));
            self.input.drain(..progress.consumed);
            if is_over {
                self.input.clear();
                return;
            }
        }
    }

    /// What the rest of the server relies upon.
    fn check_head(&self) {
        let (head, bytes) = (&self.request.head, &self.request.bytes);
        assert_eq!(head.protocol.of(bytes), b"HTTP/2.0");
        assert!(!head.method.is_empty());
        for field in &head.fields {
            let (name, value) = (field.name.of(bytes), field.value.of(bytes));
            assert!(!name.is_empty() && !name.iter().any(|byte| byte.is_ascii_uppercase() || *byte == b':'));
            assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
        }
        let named = |name: &[u8]| head.fields.iter().filter(|field| field.name.of(bytes) == name).count();
        assert!(named(b"host") == 1 && named(b"content-length") <= 1 && named(b"cookie") <= 1);
        assert_eq!(named(b"transfer-encoding") + named(b"connection") + named(b"upgrade"), 0);
    }

    fn answer(&mut self, stream: u32) {
        let (list, standing) = (FieldList::new(), FieldList::new());
        let head = ResponseHead {
            version: Version::Http11,
            status: 200,
            reason: b"OK",
            server: b"",
            date: b"",
            request_id: b"",
            standing: &standing,
            length: None,
            framing: Framing::Delimited,
            connection: Reuse { reuse: true, upgrade: false },
            list: &list,
            without: None,
        };
        let is_sent = self.connection.send_head(stream, &head).is_ok();
        let content = self.connection.send_data(stream, b"hello", EndStream::Yes);
        assert!(is_sent || content.is_err());
        self.connection.release(stream);
        assert!(self.connection.send_data(stream, b"x", EndStream::No).is_err());
        self.connection.reset(stream, ErrorCode::Cancel);
        self.connection.took(stream, usize::MAX);
        self.output();
    }

    fn output(&mut self) {
        let output = self.connection.output();
        assert!(output.len() <= 160 * 1024);
        let mut rest = output;
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            rest = &after[FrameHeader::parse(header).length..];
        }
        assert!(rest.is_empty(), "whole frames");
        self.connection.sent(usize::MAX);
    }
}
