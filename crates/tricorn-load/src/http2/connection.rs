//! The client's side of a connection, without a socket: bytes come in as arguments, and go out of `output`.
//!
//! ```text
//!   Settling ──SETTINGS──> Open ──GOAWAY, retire, the last identifier──> Leaving
//! ```
//!
//! Requests are sent from the beginning on, before the server's SETTINGS (RFC 9113 section 3.4), and none while leaving.
use tricorn_proto::http2::block::{Block, Opening};
use tricorn_proto::http2::flow::{DEFAULT_WINDOW, ReceiveWindow, SendWindow};
use tricorn_proto::http2::frame::{FrameHeader, HEADER_BYTES, Kind, MAX_PAYLOAD};
use tricorn_proto::http2::frame::{data, goaway, headers, ping, rst_stream, settings, window_update};
use tricorn_proto::http2::hpack::{Decoder, Encoder};
use tricorn_proto::http2::output::Output;
use tricorn_proto::http2::{ErrorCode, PREFACE, PeerSettings, Scope, Violation};

use crate::failure::Failure;
use crate::http2::response::{Head, Response};
use crate::http2::stream::{Stream, Streams};
use crate::prepared::Prepared;
use std::collections::VecDeque;
use std::sync::Arc;

pub struct Connection {
    phase: Phase,
    output: Output,
    encoder: Encoder,
    decoder: Decoder,
    /// A header block that comes in several frames.
    block: Block,
    /// A frame of which some bytes came.
    partial: Vec<u8>,
    send: SendWindow,
    receive: ReceiveWindow,
    peer: PeerSettings,
    streams: Streams,
    /// Streams whose request has content that is not yet written.
    sending: VecDeque<u32>,
    /// The identifier of the next stream.
    next: u32,
    /// What the server said of its errors, or which rule it broke on a stream.
    errors: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Settling,
    Open,
    Leaving,
}

/// What came for a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The first bytes of a response, which may be interim.
    Begun,
    Body(&'a [u8]),
    Answered(Response),
    Failed(Failure),
    /// The server has not begun to process the request, so it may be sent again (section 8.7).
    Unprocessed,
}

impl Connection {
    /// Begins with the preface and our SETTINGS.
    pub fn new() -> Connection {
        let mut output = Output::default();
        let mut receive = ReceiveWindow::new(DEFAULT_WINDOW, DEFAULT_WINDOW);
        output.bytes().extend_from_slice(PREFACE);
        settings::write(&[(settings::ENABLE_PUSH, 0), (settings::INITIAL_WINDOW_SIZE, WINDOW)], output.bytes());
        window_update::write(0, receive.widen(WINDOW), output.bytes());
        Connection {
            phase: Phase::Settling,
            output,
            encoder: Encoder::default(),
            decoder: Decoder::default(),
            block: Block::default(),
            partial: Vec::new(),
            send: SendWindow::new(DEFAULT_WINDOW),
            receive,
            peer: PeerSettings::default(),
            streams: Streams::default(),
            sending: VecDeque::new(),
            next: 1,
            errors: Vec::new(),
        }
    }

    /// Bytes for the server.
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Notes that so many bytes of the output were sent.
    pub fn sent(&mut self, length: usize) {
        self.output.advance(length);
    }

    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter()
    }

    /// Errors since the last call, in words.
    pub fn take_errors(&mut self) -> Vec<String> {
        std::mem::take(&mut self.errors)
    }

    pub fn is_idle(&self) -> bool {
        self.streams.len() == 0
    }

    /// No more requests can be sent here.
    pub fn is_leaving(&self) -> bool {
        self.phase == Phase::Leaving || self.next > LAST_STREAM
    }

    pub fn retire(&mut self) {
        self.phase = Phase::Leaving;
    }

    /// Whether the server allows another stream.
    pub fn may_begin(&self) -> bool {
        let most = if self.phase == Phase::Settling { FIRST_STREAMS } else { self.peer.max_concurrent_streams };
        !self.is_leaving() && self.streams.len() < most as usize
    }

    /// Writes a request. Returns its stream.
    pub fn begin(&mut self, client: u32, request: &Prepared) -> u32 {
        let id = self.next;
        self.next += 2;
        let mut block = Vec::with_capacity(BLOCK);
        self.encoder.begin(&mut block);
        request.fields.iter().for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(id, &block, request.body.is_empty(), self.output.bytes());
        let windows = (self.peer.initial_window, WINDOW);
        self.streams.push(Stream::new(id, client, windows, Arc::clone(&request.body), request.has_content()));
        if !request.body.is_empty() {
            self.sending.push_back(id);
        }
        id
    }

    /// Gives up a request.
    pub fn cancel(&mut self, id: u32) {
        if self.streams.remove(id).is_some() {
            rst_stream::write(id, ErrorCode::Cancel.number(), self.output.bytes());
        }
    }

    /// All streams end without an answer: the connection broke.
    pub fn abandon(&mut self) -> Vec<Stream> {
        self.streams.split_after(0)
    }

    /// Tells the server why the connection ends.
    pub fn say_goodbye(&mut self, code: ErrorCode) {
        self.phase = Phase::Leaving;
        goaway::write(0, code.number(), "", self.output.bytes());
    }

    /// Writes content of requests, in turns, as far as windows and output have room.
    pub fn write_bodies(&mut self) {
        let mut blocked = 0;
        while blocked < self.sending.len() && self.output.has_room() && self.send.room() > 0 {
            let Some(id) = self.sending.pop_front() else { return };
            let Some(stream) = self.streams.get_mut(id) else { continue };
            let (piece, is_last) = stream.next_piece(self.send.room().min(MAX_PAYLOAD));
            if piece.is_empty() {
                blocked += 1;
                self.sending.push_back(id);
                continue;
            }
            blocked = 0;
            self.send.spend(piece.len());
            data::write(id, piece, is_last, self.output.bytes());
            if !is_last {
                self.sending.push_back(id);
            }
        }
    }

    /// Takes what came from the server; `on` is told of each event and its client.
    ///
    /// # Errors
    /// The server broke a rule, so that the connection cannot be used any more.
    pub fn receive(&mut self, bytes: &[u8], mut on: impl FnMut(u32, Event<'_>)) -> Result<(), Violation> {
        if self.partial.is_empty() {
            let taken = self.frames(bytes, &mut on)?;
            self.partial.extend_from_slice(&bytes[taken..]);
            return Ok(());
        }
        let mut partial = std::mem::take(&mut self.partial);
        partial.extend_from_slice(bytes);
        let taken = self.frames(&partial, &mut on)?;
        partial.drain(..taken);
        self.partial = partial;
        Ok(())
    }

    /// Takes all frames that are complete. Returns their length.
    fn frames(&mut self, bytes: &[u8], on: &mut impl FnMut(u32, Event<'_>)) -> Result<usize, Violation> {
        let mut at = 0;
        while let Some((header, rest)) = bytes[at..].split_first_chunk::<HEADER_BYTES>() {
            let header = FrameHeader::parse(header);
            header.check()?;
            self.check_order(&header)?;
            let Some(payload) = rest.get(..header.length) else { break };
            at += HEADER_BYTES + header.length;
            match self.frame(&header, payload, on) {
                Err(violation) if violation.scope() == Scope::Stream => self.fail(header.stream, violation, on),
                done => done?,
            }
        }
        Ok(at)
    }

    fn check_order(&self, header: &FrameHeader) -> Result<(), Violation> {
        if self.phase == Phase::Settling && header.kind != Kind::Settings {
            return Err(Violation::SettingsExpected);
        }
        match self.block.stream() {
            Some(stream) if header.kind != Kind::Continuation || header.stream != stream => Err(Violation::Interleaved),
            None if header.kind == Kind::Continuation => Err(Violation::NothingToContinue),
            _ => Ok(()),
        }
    }

    fn frame(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        on: &mut impl FnMut(u32, Event<'_>),
    ) -> Result<(), Violation> {
        // Section 5.1.1: the client has begun none of these; and it has switched push off.
        if header.stream >= self.next || header.stream != 0 && header.stream.is_multiple_of(2) {
            return Err(Violation::IdleStream);
        }
        match header.kind {
            Kind::Headers => self.headers(header, payload, on),
            Kind::Continuation => self.continuation(header, payload, on),
            Kind::Data => self.data(header, payload, on),
            Kind::RstStream => {
                self.reset(header.stream, rst_stream::read(payload), on);
                Ok(())
            }
            Kind::WindowUpdate => self.window_update(header.stream, window_update::read(payload)),
            Kind::Settings => self.settings(header, payload),
            Kind::Ping => {
                if !header.has(ping::ACK) {
                    ping::write(ping::read(payload), ping::ACK, self.output.bytes());
                }
                Ok(())
            }
            Kind::Goaway => {
                let (last, code) = goaway::read(payload);
                self.phase = Phase::Leaving;
                if code != ErrorCode::NoError.number() {
                    self.errors.push(format!("GOAWAY: {}", named(code)));
                }
                let refused = self.streams.split_after(last);
                refused.iter().for_each(|stream| on(stream.client, Event::Unprocessed));
                Ok(())
            }
            // PUSH_PROMISE was refused by the check of its header.
            Kind::Priority | Kind::PriorityUpdate | Kind::PushPromise | Kind::Unknown => Ok(()),
        }
    }

    fn headers(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        on: &mut impl FnMut(u32, Event<'_>),
    ) -> Result<(), Violation> {
        let frame = headers::read(header, payload)?;
        let opening =
            Opening { stream: header.stream, end_stream: frame.end_stream, depends_on_itself: frame.depends_on_itself };
        if frame.end_headers {
            return self.section(opening, frame.fragment, on);
        }
        self.block.begin(opening, frame.fragment);
        Ok(())
    }

    fn continuation(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        on: &mut impl FnMut(u32, Event<'_>),
    ) -> Result<(), Violation> {
        self.block.add(payload, MAX_BLOCK)?;
        let complete = if header.has(headers::END_HEADERS) { self.block.take() } else { None };
        complete.map_or(Ok(()), |(opening, block)| self.section(opening, &block, on))
    }

    /// A head or trailers. They are decoded even if nobody waits for them: the tables of both sides must stay equal.
    fn section(
        &mut self,
        Opening { stream: id, end_stream, .. }: Opening,
        block: &[u8],
        on: &mut impl FnMut(u32, Event<'_>),
    ) -> Result<(), Violation> {
        let mut head = Head::default();
        self.decoder.decode(block, |name, value| head.field(name, value)).map_err(|_| Violation::Compression)?;
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        if !stream.is_begun {
            stream.is_begun = true;
            on(stream.client, Event::Begun);
        }
        match &stream.response {
            // Section 8.1: trailers end the stream.
            Some(_) if !end_stream => return Err(Violation::TrailersOpen),
            Some(_) => head.end()?,
            None => stream.response = head.begin(stream.has_content)?,
        }
        if end_stream { self.end(id, on) } else { Ok(()) }
    }

    fn data(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        on: &mut impl FnMut(u32, Event<'_>),
    ) -> Result<(), Violation> {
        let Some(frame) = data::read(header, payload)? else { return Ok(()) };
        // Windows count whole payloads, even of streams that were given up (section 6.9).
        if !self.receive.receive(header.length) {
            return Err(Violation::ConnectionFlow);
        }
        if let Some(increment) = self.receive.take(header.length) {
            window_update::write(0, increment, self.output.bytes());
        }
        let Some(stream) = self.streams.get_mut(header.stream) else { return Ok(()) };
        if !stream.receive.receive(header.length) {
            return Err(Violation::StreamFlow);
        }
        if let Some(increment) = stream.receive.take(header.length).filter(|_| !frame.end) {
            window_update::write(header.stream, increment, self.output.bytes());
        }
        let content = &payload[frame.prefix..frame.prefix + frame.content];
        let response = stream.response.as_mut().ok_or(Violation::PseudoMissing)?;
        response.take(content.len())?;
        on(stream.client, Event::Body(content));
        if frame.end { self.end(header.stream, on) } else { Ok(()) }
    }

    /// The response has ended.
    fn end(&mut self, id: u32, on: &mut impl FnMut(u32, Event<'_>)) -> Result<(), Violation> {
        match self.streams.get_mut(id).map(|stream| stream.response.as_ref().map(Response::is_complete)) {
            Some(Some(false)) => return Err(Violation::ContentLength),
            // Section 8.1: an interim response does not end the stream.
            Some(None) => return Err(Violation::PseudoMissing),
            _ => {}
        }
        let Some(stream) = self.streams.remove(id) else { return Ok(()) };
        // The server has answered without the rest of the request (section 8.1).
        if !stream.is_written() {
            rst_stream::write(id, ErrorCode::Cancel.number(), self.output.bytes());
        }
        if let Some(response) = stream.response {
            on(stream.client, Event::Answered(response));
        }
        Ok(())
    }

    fn reset(&mut self, id: u32, code: u32, on: &mut impl FnMut(u32, Event<'_>)) {
        if let Some(stream) = self.streams.remove(id) {
            self.errors.push(format!("RST_STREAM: {}", named(code)));
            let is_refused = code == ErrorCode::RefusedStream.number();
            on(stream.client, if is_refused { Event::Unprocessed } else { Event::Failed(Failure::Reset) });
        }
    }

    /// The server broke a rule on one stream.
    fn fail(&mut self, id: u32, violation: Violation, on: &mut impl FnMut(u32, Event<'_>)) {
        if let Some(stream) = self.streams.remove(id) {
            self.errors.push(violation.to_string());
            rst_stream::write(id, violation.code().number(), self.output.bytes());
            on(stream.client, Event::Failed(Failure::Malformed));
        }
    }

    fn window_update(&mut self, id: u32, increment: u32) -> Result<(), Violation> {
        let (window, zero, overflow) = match self.streams.get_mut(id) {
            _ if id == 0 => (&mut self.send, Violation::ConnectionIncrement, Violation::ConnectionWindow),
            Some(stream) => (&mut stream.send, Violation::StreamIncrement, Violation::StreamWindow),
            None => return Ok(()),
        };
        match increment {
            0 => Err(zero),
            _ if window.add(i64::from(increment)) => Ok(()),
            _ => Err(overflow),
        }
    }

    fn settings(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), Violation> {
        let pairs = settings::read(header, payload)?;
        if header.has(settings::ACK) {
            return if self.phase == Phase::Settling { Err(Violation::SettingsExpected) } else { Ok(()) };
        }
        let before = self.peer.initial_window;
        for (identifier, value) in pairs {
            self.peer.apply(identifier, value)?;
            if identifier == settings::HEADER_TABLE_SIZE {
                self.encoder.resize(value);
            }
        }
        if self.phase == Phase::Settling {
            self.phase = Phase::Open;
        }
        settings::write_ack(self.output.bytes());
        // Section 6.9.2: the windows of all streams change by the difference.
        let change = i64::from(self.peer.initial_window) - i64::from(before);
        let is_sound = self.streams.iter_mut().fold(true, |sound, stream| stream.send.add(change) & sound);
        if is_sound { Ok(()) } else { Err(Violation::SettingWindow) }
    }
}

/// The name of an error code.
fn named(code: u32) -> String {
    ErrorCode::from_number(code).map_or_else(|| format!("code {code}"), |code| code.name().to_string())
}

/// As large as h2load's (`-w 30 -W 30`): a generator reads at once, so that windows limit nothing.
const WINDOW: u32 = (1 << 30) - 1;
/// Streams before the server says how many it allows, as nghttp2 has it. Section 6.5.2 recommends to allow no fewer.
const FIRST_STREAMS: u32 = 100;
const LAST_STREAM: u32 = (1 << 31) - 1;
const MAX_BLOCK: usize = 256 * 1024;
/// A block of a usual request, whose fields are in the table.
const BLOCK: usize = 64;

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
