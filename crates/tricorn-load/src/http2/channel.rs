//! A connection and its wire.
use rustix::io::Errno;
use tricorn_proto::http2::{ErrorCode, Violation};

use crate::failure::{Broken, Failure};
use crate::http2::connection::{Connection, Event};
use crate::http2::io::Io;
use crate::wire::Wire;

pub struct Channel {
    wire: Wire,
    pub connection: Connection,
    /// The link whose requests it carries.
    pub link: u32,
    /// When some of a response last came, nanoseconds; 0: none did.
    pub last_response: u64,
    /// Bytes came.
    pub is_heard: bool,
    /// A response was complete on this connection before.
    pub is_reused: bool,
    /// It is among those to be flushed.
    pub is_marked: bool,
    /// Bytes went out.
    is_connected: bool,
    /// The server takes nothing any more. What it sent before may still be read.
    is_mute: bool,
}

/// What a flush came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flushed {
    /// The first bytes went out.
    pub is_connected: bool,
    /// Nothing waits to be sent.
    pub is_empty: bool,
}

/// Why a channel is of no use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    Broken(Broken),
    Violated(Violation),
}

impl Channel {
    pub fn new(wire: Wire, link: u32) -> Channel {
        let connection = Connection::new();
        Channel {
            wire,
            connection,
            link,
            last_response: 0,
            is_heard: false,
            is_reused: false,
            is_marked: false,
            is_connected: false,
            is_mute: false,
        }
    }

    /// The handshake of TLS has begun, and is not complete.
    pub fn is_shaking(&self) -> bool {
        self.wire.is_shaking()
    }

    /// Sends what the socket takes.
    pub fn flush(&mut self, token: u32, io: &mut Io<'_>) -> Result<Flushed, Lost> {
        let was_connected = self.is_connected;
        match self.send(io) {
            // The server may have said why, so it is read first.
            Err(Broken::System(_)) if self.is_connected => self.is_mute = true,
            sent => sent.map_err(Lost::Broken)?,
        }
        let is_empty = self.connection.output().is_empty() && !self.wire.owes();
        let watched = self.wire.watch(io.poller, token as usize, is_empty || self.is_mute);
        watched.map_err(|_| Lost::Broken(Broken::System(Errno::NOMEM)))?;
        Ok(Flushed { is_connected: self.is_connected && !was_connected, is_empty })
    }

    fn send(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        if self.is_mute {
            return Ok(());
        }
        self.wire.flush()?;
        loop {
            self.connection.write_bodies();
            if self.connection.output().is_empty() {
                return Ok(());
            }
            match self.wire.send(self.connection.output()) {
                Ok(count) => {
                    if !self.is_connected {
                        self.connected(io)?;
                    }
                    self.connection.sent(count);
                    io.moved.sent += count as u64;
                }
                Err(Broken::System(Errno::AGAIN)) => return Ok(()),
                Err(Broken::System(Errno::INTR)) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn connected(&mut self, io: &mut Io<'_>) -> Result<(), Broken> {
        self.is_connected = true;
        io.moved.handshakes.extend(self.wire.take_handshake());
        // The server before the run agreed, so another one answers at this address.
        if self.wire.has_agreed() { Ok(()) } else { Err(Broken::Tls(Failure::Alpn)) }
    }

    /// Reads once: what is left brings another event.
    pub fn receive(&mut self, io: &mut Io<'_>, on: impl FnMut(u32, Event<'_>)) -> Result<(), Lost> {
        let length = match self.wire.recv(io.buffer) {
            Ok(0) => return Err(Lost::Broken(Broken::System(Errno::CONNRESET))),
            Ok(length) => length,
            Err(Broken::System(Errno::AGAIN | Errno::INTR)) => return Ok(()),
            Err(error) => return Err(Lost::Broken(error)),
        };
        self.is_heard = true;
        io.moved.received += length as u64;
        let received = self.connection.receive(&io.buffer[..length], on);
        io.moved.http2_errors.extend(self.connection.take_errors());
        if let Err(violation) = received {
            io.moved.http2_errors.push(violation.to_string());
            return Err(Lost::Violated(violation));
        }
        // TLS tells the end with the last bytes.
        if self.wire.is_over() { Err(Lost::Broken(Broken::System(Errno::CONNRESET))) } else { Ok(()) }
    }

    pub fn take_reason(&mut self) -> Option<String> {
        self.wire.take_reason()
    }

    /// Closes the connection with a last word, as far as the socket takes it.
    pub fn leave(mut self, code: ErrorCode) {
        if self.is_connected {
            self.connection.say_goodbye(code);
            let _ = self.wire.send(self.connection.output());
            self.wire.leave();
        }
    }
}
