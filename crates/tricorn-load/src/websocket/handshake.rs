//! The opening handshake (RFC 6455 section 4.1), client side.
use rustix::io::{Errno, ioctl_fionbio};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tricorn_proto::websocket::deflate::{Agreed, Policy};
use tricorn_proto::websocket::handshake::{Key, Wanted, accept};

use crate::failure::Broken;
use crate::websocket::options::Options;
use crate::wire::Wire;

/// A WebSocket that is open, what was agreed on, and what the server sent after its answer.
pub struct Opened {
    pub wire: Wire,
    pub deflate: Option<Agreed>,
    pub rest: Vec<u8>,
}

pub fn open(options: &Options) -> Result<Opened, String> {
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let stream = TcpStream::connect(options.address).map_err(|error| failed("connecting", error))?;
    stream.set_nodelay(true).map_err(|error| failed("TCP_NODELAY", error))?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| failed("SO_RCVTIMEO", error))?;
    let wire = Wire::new(stream.into(), options.tls.as_ref()).map_err(|_| "no session of TLS can be made")?;
    let mut asking = Asking { wire, end: Instant::now() + PATIENCE, input: Vec::new(), buffer: vec![0; ROOM] };
    asking.secure()?;
    asking.send(request(options).as_bytes())?;
    let end = loop {
        if let Some(at) = asking.input.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if asking.read("the answer to the handshake", |_| false)? == 0 {
            return Err("closed instead of answering the handshake".into());
        }
    };
    let Asking { wire, mut input, .. } = asking;
    let deflate = read(&input[..end], options)?;
    ioctl_fionbio(&wire, true).map_err(|error| format!("O_NONBLOCK: {error}"))?;
    Ok(Opened { wire, deflate, rest: input.split_off(end) })
}

/// A request over a socket that still blocks, and what was answered so far.
struct Asking {
    wire: Wire,
    end: Instant,
    input: Vec<u8>,
    buffer: Vec<u8>,
}

impl Asking {
    /// The handshake of TLS, where there is to be one.
    fn secure(&mut self) -> Result<(), String> {
        loop {
            self.wire.flush().map_err(|broken| self.words("the handshake of TLS", broken))?;
            if !self.wire.is_shaking() {
                return Ok(());
            }
            if self.read("the handshake of TLS", Wire::is_secured)? == 0 && !self.wire.is_secured() {
                return Err("closed during the handshake of TLS".into());
            }
        }
    }

    fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            match self.wire.send(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Broken::System(Errno::INTR)) => {}
                Err(broken) => return Err(self.words("asking for a WebSocket", broken)),
            }
        }
        Ok(())
    }

    /// How many bytes came; 0 at the end of them, and when it is done otherwise.
    fn read(&mut self, what: &str, is_done: impl Fn(&Wire) -> bool) -> Result<usize, String> {
        loop {
            match self.wire.recv(&mut self.buffer) {
                Ok(count) => {
                    self.input.extend_from_slice(&self.buffer[..count]);
                    return Ok(count);
                }
                Err(Broken::System(Errno::AGAIN)) if is_done(&self.wire) => return Ok(0),
                // It may be that something of TLS' own came.
                Err(Broken::System(Errno::AGAIN | Errno::INTR)) if Instant::now() < self.end => {}
                Err(broken) => return Err(self.words(what, broken)),
            }
        }
    }

    fn words(&mut self, what: &str, broken: Broken) -> String {
        match broken {
            Broken::System(Errno::AGAIN) => format!("{what}: not complete within {} s", PATIENCE.as_secs()),
            Broken::System(error) => format!("{what}: {error}"),
            Broken::Tls(failure) => {
                let reason = self.wire.take_reason().unwrap_or_else(|| failure.name().into());
                format!("{what}: {reason}")
            }
        }
    }
}

/// The key is always the same: this is no browser that needs to be sure.
fn request(options: &Options) -> String {
    let extension = if options.deflate { OFFER } else { "" };
    format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{extension}\r\n",
        options.path, options.host,
    )
}

/// A 101 that proves to have read our key; with what it says of permessage-deflate.
fn read(head: &[u8], options: &Options) -> Result<Option<Agreed>, String> {
    let head = std::str::from_utf8(head).map_err(|_| "an answer to the handshake that is not text")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 101 ") {
        return Err(format!("answered the handshake with {status:?}"));
    }
    let key = Key::read(KEY.as_bytes()).ok_or("a key that is none")?;
    let (mut is_proven, mut wanted) = (false, Wanted::default());
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        let value = value.trim();
        is_proven |= name.eq_ignore_ascii_case("sec-websocket-accept") && value.as_bytes() == accept(&key);
        // Offers and answers are written alike.
        let understood = wanted.note(name.as_bytes(), value.as_bytes());
        understood.map_err(|_| format!("the handshake was answered with {name}: {value}"))?;
    }
    if !is_proven {
        return Err("answered the handshake without having read the key".into());
    }
    if !wanted.offers.is_empty() && !options.deflate {
        return Err("agreed to permessage-deflate, which was not offered".into());
    }
    let policy = Policy { threshold: 1, ..Policy::default() };
    Ok(policy.choose(wanted.offers))
}

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
/// As browsers do it.
const OFFER: &str = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
const ROOM: usize = 64 * 1024;
pub const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_proto::websocket::Kind;

    fn options(deflate: bool) -> Options {
        Options {
            address: ([127, 0, 0, 1], 80).into(),
            host: "127.0.0.1".into(),
            tls: None,
            path: "/".into(),
            connections: 1,
            size: 125,
            duration: PATIENCE,
            kind: Kind::Text,
            deflate,
        }
    }

    fn answered(extra: &str, offers_deflate: bool) -> Result<Option<Agreed>, String> {
        let proof = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
        read(format!("HTTP/1.1 101 Switching Protocols\r\n{proof}\r\n{extra}\r\n").as_bytes(), &options(offers_deflate))
    }

    #[test]
    fn what_was_agreed_on() {
        assert_eq!(answered("", true), Ok(None));
        let extension = "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n";
        let agreed = answered(extension, true).unwrap().unwrap();
        assert!(!agreed.server_context_takeover && agreed.client_context_takeover);
        answered(extension, false).unwrap_err();
    }

    #[test]
    fn another_status_and_no_proof() {
        let options = options(false);
        assert_eq!(
            read(b"HTTP/1.1 403 Forbidden\r\n\r\n", &options).unwrap_err(),
            "answered the handshake with \"HTTP/1.1 403 Forbidden\""
        );
        read(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", &options).unwrap_err();
    }
}
