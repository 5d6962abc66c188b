//! A session of TLS over a socket, the only file that names rustls' connection.
//!
//! ```text
//!   Shaking ──the server's Finished──> Open ──close_notify──> Over
//! ```
//!
//! Nothing is taken to be sent before the handshake is complete. Then its last message and the first bytes go out together.
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::client::ClientConnection;
use rustls::{ClientConfig, Error, HandshakeKind};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Instant;

use crate::failure::{Broken, Failure};
use crate::tls::Tls;
use crate::tls::config::{HTTP2, suite_name};
use crate::tls::handshake::{Agreed, Handshake};

pub struct Session {
    tls: ClientConnection,
    offered: Arc<ClientConfig>,
    /// When the first bytes went out.
    begun: Option<Instant>,
    /// Complete, and not yet asked for.
    handshake: Option<Handshake>,
    is_over: bool,
    /// What is wrong with it.
    reason: Option<String>,
}

impl Session {
    pub fn new(given: &Tls) -> Result<Session, Broken> {
        let made = ClientConnection::new(Arc::clone(&given.config), given.name.clone());
        let tls = made.map_err(|_| Broken::Tls(Failure::Tls))?;
        Ok(Session {
            tls,
            offered: Arc::clone(&given.config),
            begun: None,
            handshake: None,
            is_over: false,
            reason: None,
        })
    }

    /// The handshake has begun, and is not complete.
    pub fn is_shaking(&self) -> bool {
        self.begun.is_some() && self.tls.is_handshaking()
    }

    pub fn is_open(&self) -> bool {
        !self.tls.is_handshaking()
    }

    /// The server selected the protocol that was offered by ALPN (RFC 7301). HTTP/1.1 needs no agreement.
    pub fn has_agreed(&self) -> bool {
        let has_http2 = self.offered.alpn_protocols.iter().any(|protocol| protocol == HTTP2);
        !has_http2 || self.tls.alpn_protocol() == Some(HTTP2)
    }

    /// The protocol that the server selected by ALPN, if any.
    pub fn protocol(&self) -> Option<String> {
        self.tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// There is something to be sent that the socket has not taken.
    pub fn owes(&self) -> bool {
        self.tls.wants_write()
    }

    /// The server sends nothing more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn take_handshake(&mut self) -> Option<Handshake> {
        self.handshake.take()
    }

    pub fn take_reason(&mut self) -> Option<String> {
        self.reason.take()
    }

    /// How many of the bytes were taken.
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Broken> {
        if self.tls.is_handshaking() || self.owes() && self.handshake.is_none() {
            self.flush(socket)?;
            if self.tls.is_handshaking() || self.owes() {
                return Err(Broken::System(Errno::AGAIN));
            }
        }
        let taken = self.tls.writer().write(bytes).map_err(|_| Broken::Tls(Failure::Tls))?;
        self.flush(socket)?;
        Ok(taken)
    }

    /// Sends what is owed, as far as the socket takes it.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) -> Result<(), Broken> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut Socket(socket)) {
                Ok(_) => {
                    self.begun.get_or_insert_with(Instant::now);
                }
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::AGAIN => break,
                    Errno::INTR => {}
                    error => return Err(Broken::System(error)),
                },
            }
        }
        Ok(())
    }

    /// Reads from the socket once; how many bytes of plaintext came. AGAIN: there were none. 0: there will be none.
    ///
    /// The buffer's end is where records are read to.
    pub fn recv(&mut self, socket: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Broken> {
        if self.is_over {
            return Ok(0);
        }
        let room = buffer.len().saturating_sub(HELD) / 2;
        let (plain, records) = buffer.split_at_mut(buffer.len() - room);
        let (_, length) = recv(socket, &mut *records, RecvFlags::empty()).map_err(Broken::System)?;
        if length == 0 {
            self.is_over = true;
            return Ok(0);
        }
        let was_shaking = self.tls.is_handshaking();
        let taken = self.take(&records[..length], plain);
        if was_shaking && self.is_open() {
            self.handshake = Some(self.agreed());
        }
        // What completes the handshake waits for what is to be sent; an alert says why it failed.
        if taken.is_err() || !(was_shaking && self.is_open()) {
            let flushed = self.flush(socket);
            if taken.is_ok() {
                flushed?;
            }
        }
        match taken? {
            0 if !self.is_over => Err(Broken::System(Errno::AGAIN)),
            count => Ok(count),
        }
    }

    fn take(&mut self, mut records: &[u8], plain: &mut [u8]) -> Result<usize, Broken> {
        let mut filled = 0;
        while !records.is_empty() {
            self.tls.read_tls(&mut records).map_err(|_| Broken::Tls(Failure::Tls))?;
            let state = self.tls.process_new_packets().map_err(|error| self.fail(&error))?;
            let ready = state.plaintext_bytes_to_read();
            if ready > 0 {
                let into = &mut plain[filled..filled + ready];
                self.tls.reader().read_exact(into).map_err(|_| Broken::Tls(Failure::Tls))?;
                filled += ready;
            }
            if state.peer_has_closed() {
                self.is_over = true;
                break;
            }
        }
        Ok(filled)
    }

    /// The last words of a client that has what it wanted; it waits for no answer.
    pub fn leave(&mut self, socket: BorrowedFd<'_>) {
        self.tls.send_close_notify();
        let _ = self.flush(socket);
    }

    fn fail(&mut self, error: &Error) -> Broken {
        let (failure, reason) = match error {
            Error::InvalidCertificate(reason) => (Failure::Certificate, reason.to_string()),
            Error::AlertReceived(alert) => (Failure::Alert, format!("the alert {alert:?}")),
            Error::InvalidMessage(_) => (Failure::Tls, format!("no TLS: {error}")),
            error => (Failure::Tls, error.to_string()),
        };
        self.reason = Some(reason);
        Broken::Tls(failure)
    }

    fn agreed(&self) -> Handshake {
        let version = self.tls.protocol_version().and_then(|version| version.as_str()).unwrap_or_default();
        let suite = self.tls.negotiated_cipher_suite().map(suite_name).unwrap_or_default();
        let group = self.tls.negotiated_key_exchange_group();
        Handshake {
            nanoseconds: self.begun.map_or(0, |begun| begun.elapsed().as_nanos() as u64),
            is_resumed: self.tls.handshake_kind() == Some(HandshakeKind::Resumed),
            agreed: Agreed {
                version: version.replace("TLSv1_", "TLSv1."),
                suite,
                group: group.and_then(|group| group.name().as_str()).unwrap_or_default().into(),
            },
        }
    }
}

/// For rustls, which writes several records at once.
struct Socket<'a>(BorrowedFd<'a>);

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn write_vectored(&mut self, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let mut none = rustix::net::SendAncillaryBuffer::default();
        Ok(rustix::net::sendmsg(self.0, parts, &mut none, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes of a record that rustls may hold: with what is read, its plaintext has to have room.
const HELD: usize = 20 * 1024;
