//! One session: records in, plaintext out, and back. It moves no bytes of sockets: `secured.rs` does.
//!
//! ```text
//!   socket ──▶ [ held ][ fresh ] ──absorb──▶ sink: plaintext          what is no whole record yet is held
//!                                   └──────▶ owed: what TLS itself answers
//!   plaintext ──seal──▶ out ──▶ socket       what the socket does not take is owed
//! ```
//!
//! Written for the unbuffered API of rustls 0.23: an idle session has no buffers. Two of its traps are met here. Every call sees
//! the bytes that are held, for its deframer remembers where in them a message of the handshake lies. After an error it may still
//! have an alert to be sent.
use super::certificates::{Asked, take_asked};
use super::facts::Facts;
use super::failure::{Failure, NO_CERTIFICATE};
use super::records::{HEADER, NO_TYPE, RECORD, TOGETHER, TOO_LONG, Tally, encode, is_alert, leading, seal_all};
use super::tickets::allow_tickets;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{AlertDescription, Error, InvalidMessage, ProtocolVersion, ServerConfig};
use std::io::IoSlice;
use std::sync::Arc;

/// What sealing adds to a record: header, kind, tag, and the nonce of TLS 1.2; rounded up.
const SEAL: usize = 64;
/// Most plaintext that is sealed ahead of the socket.
pub const AHEAD: usize = 4 * RECORD;
/// Room for records: a message of a handshake that is not complete is held with its records, up to 64 KiB of it (rustls' limit), and
/// more is read behind it. What is sealed at a time is less.
const WIRE: usize = 2 * AHEAD;

/// Memory of a thread for one call.
pub struct Scratch {
    /// Records, as they come and go.
    pub wire: Vec<u8>,
    /// Plaintext of one record, gathered.
    record: Vec<u8>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { wire: vec![0; WIRE], record: Vec::with_capacity(RECORD) }
    }
}

pub struct Link {
    session: UnbufferedServerConnection,
    /// The beginning of a record; while [`Link::is_cut`] whole records as well, behind the first `seen` bytes.
    held: Vec<u8>,
    /// Bytes of these that rustls has looked at.
    seen: usize,
    tally: Tally,
    /// Records that the socket has not taken, from `owed_from` on.
    owed: Vec<u8>,
    owed_from: usize,
    /// Plaintext that was not asked for yet, from `surplus_from` on.
    surplus: Vec<u8>,
    surplus_from: usize,
    /// Plaintext whose records are sealed, and not all with the socket.
    pledged: usize,
    /// Bytes of these records that the socket has taken since progress was told.
    progress: usize,
    /// While the handshake lasts: bytes of it, and what the resolver was asked.
    shaking: Option<Box<Shaking>>,
    /// The peer sends no more.
    has_ended: bool,
    /// We have said that we send no more.
    has_said_goodbye: bool,
    failure: Option<Failure>,
}

#[derive(Debug, Default)]
struct Shaking {
    heard: usize,
    asked: Asked,
}

/// What a session is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    Yes,
    NotYet,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({} held, {} owed, {:?})", self.held.len(), self.owed().len(), self.failure)
    }
}

impl Link {
    pub fn new(config: Arc<ServerConfig>) -> Result<Link, Failure> {
        let session = UnbufferedServerConnection::new(config).map_err(|error| Failure::of(&error))?;
        Ok(Link {
            session,
            held: Vec::new(),
            seen: 0,
            tally: Tally::default(),
            owed: Vec::new(),
            owed_from: 0,
            surplus: Vec::new(),
            surplus_from: 0,
            pledged: 0,
            progress: 0,
            shaking: Some(Box::default()),
            has_ended: false,
            has_said_goodbye: false,
            failure: None,
        })
    }

    /// Memory that it holds for the socket: records that are not complete or not sent, and plaintext that was not asked for.
    #[inline]
    pub fn memory(&self) -> usize {
        self.held.capacity() + self.owed.capacity() + self.surplus.capacity()
    }

    /// Whether the handshake is over.
    pub fn opened(&self) -> Opened {
        if self.session.is_handshaking() { Opened::NotYet } else { Opened::Yes }
    }

    /// Bytes that came so far, while the handshake lasts.
    pub fn heard(&self) -> usize {
        self.shaking.as_ref().map_or(0, |shaking| shaking.heard)
    }

    /// What is known by the handshake, which is over.
    pub fn facts(&mut self) -> Facts {
        let Asked { name, own } = self.shaking.take().map(|shaking| shaking.asked).unwrap_or_default();
        Facts {
            version: self.session.protocol_version().map_or(0, u16::from),
            suite: self.session.negotiated_cipher_suite().map_or(0, |suite| suite.suite().into()),
            name,
            alpn: self.session.alpn_protocol().map(Into::into),
            own,
            chain: self.session.peer_certificates().unwrap_or_default().iter().map(|der| der.as_ref().into()).collect(),
            is_resumed: Facts::is_resumption(self.session.handshake_kind()),
        }
    }
}

/// Receiving.
impl Link {
    /// Puts what is held to the beginning of memory to which more is read behind it. How much that is.
    pub fn begin_reading(&self, wire: &mut [u8]) -> usize {
        let length = self.held.len().min(wire.len());
        wire[..length].copy_from_slice(&self.held[..length]);
        length
    }

    /// Takes the records in `incoming`, which begins with what was held: all of a handshake's, and then up to [`TOGETHER`] of them.
    /// Plaintext goes to the sink.
    pub fn absorb(&mut self, incoming: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), Failure> {
        let fresh = incoming.len() - self.held.len().min(incoming.len());
        let end = if self.shaking.is_some() { incoming.len() } else { leading(incoming, TOGETHER).1 };
        let (incoming, uncut) = incoming.split_at_mut(end);
        if self.shaking.is_some() {
            take_asked(); // of another session
            allow_tickets(Facts::is_resumption(self.session.handshake_kind()));
        }
        let (at, result) = self.process(incoming, sink);
        if let Some(shaking) = &mut self.shaking {
            shaking.heard += fresh;
            let asked = take_asked();
            if asked.own.is_some() {
                shaking.asked = asked;
            }
        }
        let rest = incoming.get(at..).unwrap_or_default();
        match result {
            Ok(()) => {
                // What comes behind a close_notify is ignored (RFC 8446 section 6.1).
                if self.has_ended {
                    self.hold(b"", b"");
                } else {
                    self.hold(rest, uncut);
                }
                Ok(())
            }
            Err(error) => {
                let mut rest = rest.to_vec();
                self.last_words(&error, &mut rest);
                self.hold(b"", b"");
                let failure = Failure::of(&error);
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// Takes records until nothing more can be done. How many bytes were used up.
    fn process(&mut self, incoming: &mut [u8], sink: &mut dyn FnMut(&[u8])) -> (usize, Result<(), Error>) {
        let mut at = 0;
        loop {
            let rest = incoming.get_mut(at..).unwrap_or_default();
            let UnbufferedStatus { mut discard, state } = self.session.process_tls_records(rest);
            let mut content = 0;
            let goes_on = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    let mut error = None;
                    while let Some(record) = traffic.next_record() {
                        match record {
                            Ok(record) => {
                                discard += record.discard;
                                content += record.payload.len();
                                sink(record.payload);
                            }
                            Err(found) => error = Some(found),
                        }
                    }
                    error.map_or(Ok(true), Err)
                }
                Ok(ConnectionState::EncodeTlsData(encoder)) => {
                    encode(encoder, &mut self.owed);
                    Ok(true)
                }
                Ok(ConnectionState::TransmitTlsData(transmit)) => {
                    transmit.done();
                    Ok(true)
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.has_ended = true;
                    Ok(true)
                }
                Ok(_) => Ok(false),
                Err(error) => Err(error),
            };
            let opened = incoming.get(at..at + discard).unwrap_or_default();
            let counted = if self.shaking.is_some() { Ok(()) } else { self.tally.note(opened, content) };
            at += discard;
            match counted.and(goes_on) {
                Ok(true) => {}
                Ok(false) => return (at, Ok(())),
                Err(error) => return (at, Err(error)),
            }
        }
    }

    /// `seen`: what rustls wants to see again, with more behind it. `uncut`: what it is to see then.
    fn hold(&mut self, seen: &[u8], uncut: &[u8]) {
        self.seen = seen.len();
        if seen.is_empty() && uncut.is_empty() {
            self.held = Vec::new();
        } else {
            self.held.clear();
            self.held.extend_from_slice(seen);
            self.held.extend_from_slice(uncut);
        }
    }

    /// Whether records are held that were left for another turn.
    #[inline]
    pub fn is_cut(&self) -> bool {
        self.held.len() > self.seen
    }

    /// How many records were opened since this was asked the last time, by the work that they are.
    #[inline]
    pub fn take_opened(&mut self) -> u32 {
        self.tally.take()
    }

    /// After an error: what the peer is told of it.
    fn last_words(&mut self, error: &Error, rest: &mut Vec<u8>) {
        let before = self.owed.len();
        if matches!(error, Error::PeerMisbehaved(_)) && self.opened() == Opened::Yes {
            // rustls counts some of what a peer does wrong, and ends the session without an alert. No call makes one: it is given bytes
            // that cannot be a record, wherever in them it goes on. An alert that there is comes first.
            rest.fill(NO_TYPE);
            rest.resize(rest.len() + HEADER, NO_TYPE);
        }
        let has_alert = self.encode_to_alert(rest);
        // rustls ends a session without an alert when a message is too long. While nothing is encrypted there can be one.
        if !has_alert
            && matches!(error, Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge))
            && self.speaks_plainly()
        {
            self.owed.extend_from_slice(&TOO_LONG);
        }
        // A client without a name that is known gets another alert than rustls' (RFC 6066 section 3). It is not encrypted yet.
        if matches!(error, Error::General(text) if text == NO_CERTIFICATE)
            && let [.., 2, alert] = &mut self.owed[before..]
            && *alert == u8::from(AlertDescription::AccessDenied)
        {
            *alert = AlertDescription::UnrecognisedName.into();
        }
    }

    /// Has what is to be sent encoded, up to the first alert. Whether there was one.
    fn encode_to_alert(&mut self, rest: &mut [u8]) -> bool {
        let mut has_failed = false;
        loop {
            let start = self.owed.len();
            match self.session.process_tls_records(rest).state {
                Ok(ConnectionState::EncodeTlsData(encoder)) => encode(encoder, &mut self.owed),
                Ok(ConnectionState::TransmitTlsData(transmit)) => transmit.done(),
                Ok(ConnectionState::ReadTraffic(mut traffic)) => while traffic.next_record().is_some() {},
                Err(_) if !has_failed => has_failed = true, // there may be an alert by that
                _ => return false,
            }
            // The alert is the last of it. Asked once more, rustls would look at the same bytes again, and make another.
            if is_alert(&self.owed[start..]) {
                return true;
            }
        }
    }

    /// Whether what is sent now is not encrypted: before the answer to a hello, and until the keys change in a full handshake of TLS 1.2.
    fn speaks_plainly(&self) -> bool {
        self.session.is_handshaking()
            && self.session.protocol_version() != Some(ProtocolVersion::TLSv1_3)
            && !Facts::is_resumption(self.session.handshake_kind())
    }

    /// The socket has come to its end, or is broken.
    pub fn ends(&mut self) {
        self.has_ended = true;
        self.hold(b"", b"");
    }

    #[inline]
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    pub fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Keeps plaintext that was not asked for.
    pub fn keep(&mut self, plain: &[u8]) {
        self.surplus.extend_from_slice(plain);
    }

    /// Takes up to `most` bytes of it. How many.
    pub fn take(&mut self, most: usize, sink: &mut dyn FnMut(&[u8])) -> usize {
        let plain = &self.surplus[self.surplus_from..];
        let count = plain.len().min(most);
        if count > 0 {
            sink(&plain[..count]);
            self.surplus_from += count;
        }
        if self.surplus_from == self.surplus.len() && self.surplus_from > 0 {
            (self.surplus, self.surplus_from) = (Vec::new(), 0);
        }
        count
    }

    /// Bytes that wait to be taken.
    #[inline]
    pub fn surplus(&self) -> usize {
        self.surplus.len() - self.surplus_from
    }
}

/// Sending.
impl Link {
    /// Seals plaintext of these slices, at most `most` bytes of it and [`AHEAD`], into records: how long these are, in `scratch`. The
    /// plaintext is pledged by that.
    ///
    /// They come behind what is owed, now or by this call: TLS itself may have something to say first.
    pub fn seal(&mut self, parts: &[IoSlice<'_>], most: usize, scratch: &mut Scratch) -> Result<usize, Failure> {
        let Scratch { wire, record } = scratch;
        let mut held = std::mem::take(&mut self.held);
        let sealed = loop {
            let UnbufferedStatus { discard, state } = self.session.process_tls_records(&mut held[..self.seen]);
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    break seal_all(parts, most.min(AHEAD), record, wire, |plain, out| {
                        traffic.encrypt(plain, out).map_err(|error| error.to_string())
                    });
                }
                Ok(ConnectionState::EncodeTlsData(encoder)) => encode(encoder, &mut self.owed),
                Ok(ConnectionState::TransmitTlsData(transmit)) => transmit.done(),
                Ok(ConnectionState::PeerClosed) => self.has_ended = true,
                Ok(_) => break Err("the session is closed".to_owned()),
                Err(error) => break Err(error.to_string()),
            }
            held.drain(..discard);
            self.seen -= discard;
        };
        self.held = held;
        match sealed {
            Ok((plain, sealed)) => {
                self.pledged += plain;
                Ok(sealed)
            }
            Err(detail) => {
                let failure = Failure::new(super::Reason::Internal, detail);
                self.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// Adds the end of what we send to what is owed, once.
    pub fn queue_close_notify(&mut self) {
        if std::mem::replace(&mut self.has_said_goodbye, true) || self.failure.is_some() {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        loop {
            let UnbufferedStatus { discard, state } = self.session.process_tls_records(&mut held[..self.seen]);
            match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let mut alert = [0; 2 * SEAL];
                    let length = traffic.queue_close_notify(&mut alert).unwrap_or(0);
                    self.owed.extend_from_slice(&alert[..length]);
                    break;
                }
                Ok(ConnectionState::EncodeTlsData(encoder)) => encode(encoder, &mut self.owed),
                Ok(ConnectionState::TransmitTlsData(transmit)) => transmit.done(),
                Ok(ConnectionState::PeerClosed) => self.has_ended = true,
                _ => break,
            }
            held.drain(..discard);
            self.seen -= discard;
        }
        self.held = held;
    }

    /// What is owed can wait for what is sent next: the client has all that it needs of the handshake, and these are tickets.
    pub fn can_owe(&self) -> bool {
        self.session.protocol_version() == Some(ProtocolVersion::TLSv1_3) && self.opened() == Opened::Yes
    }

    /// Records that the socket has not taken.
    pub fn owed(&self) -> &[u8] {
        &self.owed[self.owed_from..]
    }

    /// The socket has not taken these.
    pub fn owe(&mut self, records: &[u8]) {
        self.owed.extend_from_slice(records);
    }

    /// It has taken so many bytes of those that are owed.
    pub fn paid(&mut self, count: usize) {
        self.owed_from += count;
        if self.owed_from >= self.owed.len() {
            (self.owed, self.owed_from) = (Vec::new(), 0);
        }
        self.progress += count;
    }

    /// It has taken so many bytes of records that were sealed just now.
    pub fn went_out(&mut self, count: usize) {
        self.progress += count;
    }

    /// How much plaintext may be called sent by now, of `most` bytes that are presented; it is called so by that. The last byte of
    /// what is pledged waits until nothing is owed: its sender does not take all for sent before.
    pub fn redeem(&mut self, most: usize) -> usize {
        let is_all_out = self.owed_from >= self.owed.len();
        let count = if is_all_out { self.pledged } else { self.progress.min(self.pledged.saturating_sub(1)) };
        let count = count.min(most);
        self.pledged -= count;
        self.progress = if is_all_out { 0 } else { self.progress - count };
        count
    }

    /// Bytes of records that the socket has taken while their plaintext does not count as sent.
    pub fn progress(&self) -> usize {
        if self.pledged > 0 { self.progress } else { 0 }
    }

    #[inline]
    pub fn pledged(&self) -> usize {
        self.pledged
    }

    /// What is pledged will not be presented again.
    pub fn forget_pledge(&mut self) {
        self.pledged = 0;
    }
}
