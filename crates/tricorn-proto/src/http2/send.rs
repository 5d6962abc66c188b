//! The sending side: heads, content and trailers become frames within the windows.
use super::connection::Connection;
use super::frame::{MAX_PAYLOAD, data, headers};
use super::priority::{Priority, choose};
use super::state::Event;
use super::streams::Stream;
use super::unsendable::Unsendable;
use crate::message::FieldList;
use crate::response::{Framing, Interim, ResponseHead};

/// Whether the response is complete with this frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndStream {
    No,
    Yes,
}

impl Connection {
    /// Sends an interim response: 103, or 100 for `Expect: 100-continue`.
    pub fn send_interim(&mut self, stream: u32, interim: &Interim) -> Result<(), Unsendable> {
        self.sending(stream, false)?;
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        self.encoder.status(interim.status, &mut block);
        interim.fields.iter().for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(stream, &block, false, self.output.bytes());
        Ok(())
    }

    /// Sends the head of the final response. A head without content ends the stream.
    pub fn send_head(&mut self, stream: u32, head: &ResponseHead<'_>) -> Result<(), Unsendable> {
        let end = matches!(head.framing, Framing::None | Framing::Length(0));
        let found = self.sending(stream, false)?;
        found.has_head = true;
        // RFC 9218 section 8: the server may let the application's Priority field override the client's.
        if let Some((_, value)) = head.fields().find(|(name, _)| name.eq_ignore_ascii_case(b"priority")) {
            found.priority = Priority::parse(value);
        }
        found.advance(if end { Event::SendEnd } else { Event::Send });
        let mut block = Vec::with_capacity(HEAD_BLOCK);
        self.encode_head(head, &mut block);
        headers::write(stream, &block, end, self.output.bytes());
        Ok(())
    }

    /// Each thing that a head says, but for the connection, which has no fields here (RFC 9113 section 8.2.2).
    fn encode_head(&mut self, head: &ResponseHead<'_>, block: &mut Vec<u8>) {
        let encoder = &mut self.encoder;
        encoder.begin(block);
        encoder.status(head.status, block);
        let own: [(&[u8], &[u8]); 3] =
            [(b"server", head.server), (b"date", head.date), (b"x-request-id", head.request_id)];
        for (name, value) in own.into_iter().filter(|(_, value)| !value.is_empty()) {
            encoder.field(name, value, block);
        }
        if let Some(length) = head.length {
            encoder.field(b"content-length", itoa::Buffer::new().format(length).as_bytes(), block);
        }
        for (name, value) in head.standing().chain(head.fields()) {
            if !name.eq_ignore_ascii_case(b"upgrade") {
                encoder.field(name, value, block);
            }
        }
    }

    /// Sends at most one frame of content, as much as the windows and the output take. Returns how much that was.
    ///
    /// END_STREAM goes with the last byte, so the caller presents all that it has.
    pub fn send_data(&mut self, stream: u32, content: &[u8], end: EndStream) -> Result<usize, Unsendable> {
        let room = self.send.room();
        let has_room = self.output.has_room();
        let found = self.sending(stream, true)?;
        let length = content.len().min(room).min(found.send.room()).min(MAX_PAYLOAD);
        let is_all = length == content.len();
        let end = end == EndStream::Yes && is_all;
        // Else a stream with nothing to send would have its turn for ever.
        found.wants &= !content.is_empty();
        if !has_room || length == 0 && !end {
            return Ok(0);
        }
        found.send.spend(length);
        found.wants &= !is_all;
        found.advance(if end { Event::SendEnd } else { Event::Send });
        self.send.spend(length);
        self.last_sent = stream;
        self.budgets.data_sent(length);
        data::write(stream, &content[..length], end, self.output.bytes());
        Ok(length)
    }

    /// Ends a response with trailers.
    pub fn send_trailers(&mut self, stream: u32, trailers: &FieldList) -> Result<(), Unsendable> {
        self.sending(stream, true)?.advance(Event::SendEnd);
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        trailers.iter().for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(stream, &block, true, self.output.bytes());
        Ok(())
    }

    /// Notes that there is content to send; `next_to_send` then names the stream when it is its turn.
    pub fn offer(&mut self, stream: u32) {
        if let Some(found) = self.streams.get_mut(stream) {
            found.wants = true;
        }
    }

    /// The stream whose frame comes next, if a frame of DATA can be sent at all.
    pub fn next_to_send(&self) -> Option<u32> {
        if self.send.room() == 0 || !self.output.has_room() {
            return None;
        }
        choose(self.streams.candidates(), self.last_sent)
    }

    /// The stream, if a frame of the response may be sent on it; `has_head`: whether its head must have been.
    fn sending(&mut self, stream: u32, has_head: bool) -> Result<&mut Stream, Unsendable> {
        let found = self.streams.get_mut(stream).ok_or(Unsendable::Closed)?;
        match () {
            () if self.shutdown.failed().is_some() || !found.state.is_sending() => Err(Unsendable::Closed),
            () if found.has_head != has_head => Err(Unsendable::Order),
            () => Ok(found),
        }
    }
}

/// Most heads of responses are shorter.
const HEAD_BLOCK: usize = 256;
