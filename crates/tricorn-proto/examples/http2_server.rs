//! Serves one HTTP/2 connection on stdin and stdout, for tests with clients that others have written.
//!
//! Each request is answered with its fields as text, then its content, then a trailer that says how long the content was.
use std::collections::BTreeMap;
use std::io::{Read, Write};
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::http2::{Connection, Context, EndStream, Request, Settings, Step};
use tricorn_proto::message::{FieldList, Version};
use tricorn_proto::response::{Connection as Reuse, Framing, ResponseHead};

/// What is left to send of each response.
#[derive(Default)]
struct Answer {
    content: Vec<u8>,
    sent: usize,
    received: u64,
    is_complete: bool,
}

struct Server {
    connection: Connection,
    answers: BTreeMap<u32, Answer>,
    request: Request,
    policy: HeadPolicy,
}

fn main() -> std::io::Result<()> {
    let settings = Settings { connect_protocol: true, ..Settings::default() };
    let mut server = Server {
        connection: Connection::new(settings, 0),
        answers: BTreeMap::new(),
        request: Request::default(),
        policy: HeadPolicy::default(),
    };
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut input, mut piece) = (Vec::new(), vec![0; 65_536]);
    loop {
        stdout.write_all(server.connection.output())?;
        stdout.flush()?;
        server.connection.sent(usize::MAX);
        if server.connection.is_finished() {
            return Ok(());
        }
        if server.send() {
            continue;
        }
        let length = stdin.read(&mut piece)?;
        if length == 0 {
            return Ok(());
        }
        input.extend_from_slice(&piece[..length]);
        server.receive(&mut input);
    }
}

impl Server {
    fn receive(&mut self, input: &mut Vec<u8>) {
        loop {
            let context = Context { now: 0, policy: &self.policy, trusted: false };
            let progress = self.connection.receive(input, &context, &mut self.request);
            let is_over = matches!(progress.step, Step::Failed(_));
            match progress.step {
                Step::NeedMore | Step::Choked => return,
                Step::Request { stream, end } => self.begin(stream, end),
                Step::Refused { stream, refusal } => {
                    let content = refusal.message().into_bytes();
                    self.answers.insert(stream, Answer { content, is_complete: true, ..Answer::default() });
                    self.head(stream, refusal.status());
                }
                Step::Body { stream, range, end } => {
                    let length = range.len();
                    if let Some(answer) = self.answers.get_mut(&stream) {
                        answer.content.extend_from_slice(&input[range]);
                        answer.received += length as u64;
                        answer.is_complete |= end;
                    }
                    self.connection.took(stream, length);
                    self.connection.offer(stream);
                }
                Step::Trailers { stream } => {
                    if let Some(answer) = self.answers.get_mut(&stream) {
                        for (name, value) in &self.request.head.trailers {
                            line(&mut answer.content, name, value);
                        }
                        answer.is_complete = true;
                    }
                    self.connection.offer(stream);
                }
                Step::Reset { stream, .. } | Step::Violated { stream, .. } => self.end(stream),
                Step::Goodbye { .. } => self.connection.drain(0),
                Step::Control | Step::Room { .. } | Step::Failed(_) => {}
            }
            input.drain(..progress.consumed);
            if is_over {
                return;
            }
        }
    }

    fn begin(&mut self, stream: u32, end: bool) {
        let Request { head, bytes, .. } = &self.request;
        let mut content = Vec::new();
        line(&mut content, b":method", head.method.of(bytes));
        line(&mut content, b":path", head.target.of(bytes));
        head.fields.iter().for_each(|field| line(&mut content, field.name.of(bytes), field.value.of(bytes)));
        content.push(b'\n');
        self.answers.insert(stream, Answer { content, is_complete: end, ..Answer::default() });
        self.head(stream, 200);
    }

    fn head(&mut self, stream: u32, status: u16) {
        let list = FieldList::from_iter([(&b"Content-Type"[..], &b"text/plain"[..]), (b"Set-Cookie", b"a=b")]);
        let head = ResponseHead {
            version: Version::Http11,
            status,
            reason: b"",
            server: b"tricorn",
            date: b"Sun, 06 Nov 1994 08:49:37 GMT",
            request_id: b"",
            standing: &FieldList::new(),
            length: None,
            framing: Framing::Delimited,
            connection: Reuse { reuse: true, upgrade: false },
            list: &list,
            without: None,
        };
        if self.connection.send_head(stream, &head).is_ok() {
            self.connection.offer(stream);
        }
    }

    /// Sends one frame, if one can be sent.
    fn send(&mut self) -> bool {
        let Some(stream) = self.connection.next_to_send() else { return false };
        let Some(answer) = self.answers.get_mut(&stream) else { return false };
        match self.connection.send_data(stream, &answer.content[answer.sent..], EndStream::No) {
            Ok(length) => answer.sent += length,
            Err(_) => return false,
        }
        let is_over = answer.is_complete && answer.sent == answer.content.len();
        if is_over {
            let length = answer.received.to_string();
            let trailers = FieldList::from_iter([(&b"X-Received"[..], length.as_bytes())]);
            if self.connection.send_trailers(stream, &trailers).is_ok() {
                self.end(stream);
            }
        }
        true
    }

    fn end(&mut self, stream: u32) {
        self.answers.remove(&stream);
        self.connection.release(stream);
    }
}

fn line(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}
