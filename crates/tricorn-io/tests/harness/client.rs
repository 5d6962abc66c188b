//! A client on the loopback.
use super::DEADLINE;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// A client that knows as much of HTTP as these tests need.
pub struct Client<S = TcpStream> {
    pub stream: S,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn closes(&self) -> bool {
        self.head.contains("\r\nConnection: close\r\n")
    }
}

impl Client {
    pub fn new(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, buffer: Vec::new() }
    }

    /// Whether there is something to be read; does not wait.
    pub fn has_something(&self) -> bool {
        self.stream.set_nonblocking(true).expect("a socket");
        let some = self.stream.peek(&mut [0]).is_ok();
        self.stream.set_nonblocking(false).expect("a socket");
        some
    }
}

impl<S: Read + Write> Client<S> {
    /// Over a stream that has timeouts.
    pub fn over(stream: S) -> Client<S> {
        Client { stream, buffer: Vec::new() }
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a server that reads");
    }

    #[track_caller]
    pub fn ask(&mut self, path: &str) {
        self.send(request(path).as_bytes());
    }

    #[track_caller]
    pub fn post(&mut self, path: &str, body: &[u8]) {
        self.send(post(path, body.len()).as_bytes());
        self.send(body);
    }

    /// Asks and reads the answer.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.ask(path);
        self.response()
    }

    /// More bytes; whether there were any.
    fn more(&mut self) -> bool {
        let mut piece = vec![0u8; 1 << 16];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) if error.kind() == ErrorKind::Interrupted => self.more(),
            Err(error) => panic!("nothing to read: {error}; so far {:?}", String::from_utf8_lossy(&self.buffer)),
        }
    }

    /// The next `count` bytes.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(self.more(), "closed after {} of {count} bytes", self.buffer.len());
        }
        self.buffer.drain(..count).collect()
    }

    /// What comes next, however much it is.
    pub fn take_some(&mut self) -> Vec<u8> {
        assert!(!self.buffer.is_empty() || self.more(), "closed");
        std::mem::take(&mut self.buffer)
    }

    /// What comes before `mark`, and the mark.
    #[track_caller]
    pub fn take_until(&mut self, mark: &[u8]) -> Vec<u8> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..].windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                return self.buffer.drain(..from + at + mark.len()).collect();
            }
            from = self.buffer.len().saturating_sub(mark.len());
            assert!(self.more(), "closed: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    #[track_caller]
    pub fn head(&mut self) -> (u16, String) {
        let head = String::from_utf8(self.take_until(b"\r\n\r\n")).expect("an ASCII head");
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status");
        (status, head)
    }

    /// One chunk; empty for the last.
    #[track_caller]
    pub fn chunk(&mut self) -> Vec<u8> {
        let line = String::from_utf8(self.take_until(b"\r\n")).expect("a chunk size");
        let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
        let mut chunk = self.take(size + 2);
        chunk.truncate(size);
        chunk
    }

    /// The response that begins with these bytes.
    #[track_caller]
    pub fn response_after(&mut self, first: &[u8]) -> Response {
        self.buffer.extend_from_slice(first);
        self.response()
    }

    #[track_caller]
    pub fn response(&mut self) -> Response {
        let (status, head) = self.head();
        let body = if let Some((_, rest)) = head.split_once("\r\nContent-Length: ") {
            let digits = rest.split("\r\n").next().and_then(|digits| digits.parse().ok());
            self.take(digits.expect("a length"))
        } else if head.contains("\r\nTransfer-Encoding: chunked\r\n") {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    break body;
                }
                body.extend_from_slice(&chunk);
            }
        } else {
            self.rest()
        };
        Response { status, head, body }
    }

    /// Everything until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.buffer)
    }

    /// The server closes without another word.
    #[track_caller]
    pub fn is_closed(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "closed, but not before {:?}", String::from_utf8_lossy(&rest));
    }
}

pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

pub fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
}
