//! The sending side: heads, content and trailers become frames within the windows.
use super::connection::Connection;
use super::encode;
use super::frame::{MAX_PAYLOAD, data, headers};
use super::priority::{Priority, choose};
use super::state::Event;
use super::streams::Stream;
use super::unsendable::Unsendable;
use crate::message::FieldList;
use crate::response::{Interim, ResponseHead};

/// Whether the response is complete with this frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndStream {
    No,
    Yes,
}

impl Connection {
    /// Sends an interim response: 103, or 100 for `Expect: 100-continue`.
    pub fn send_interim(&mut self, stream: u32, interim: &Interim) -> Result<(), Unsendable> {
        self.send_interim_fields(stream, interim.status, interim.fields.iter())
    }

    pub(super) fn send_interim_fields<'f>(
        &mut self,
        stream: u32,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Unsendable> {
        self.sending(stream, false)?;
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        self.encoder.status(status, &mut block);
        fields.for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(stream, &block, false, self.output.bytes());
        Ok(())
    }

    /// Sends the head of the final response. A head without content ends the stream.
    pub fn send_head(&mut self, stream: u32, head: &ResponseHead<'_>) -> Result<(), Unsendable> {
        let mut part = Vec::new();
        encode::head(&mut part, head);
        let (status, end, fields) = encode::read_head(&part[encode::MARK..]).ok_or(Unsendable::Order)?;
        self.send_head_fields(stream, status, fields, end)
    }

    pub(super) fn send_head_fields<'f>(
        &mut self,
        stream: u32,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])> + Clone,
        end: bool,
    ) -> Result<(), Unsendable> {
        let found = self.sending(stream, false)?;
        found.has_head = true;
        // RFC 9218 section 8: the server may let the application's Priority field override the client's.
        if let Some((_, value)) = fields.clone().find(|(name, _)| name.eq_ignore_ascii_case(b"priority")) {
            found.priority = Priority::parse(value);
        }
        found.advance(if end { Event::SendEnd } else { Event::Send });
        let mut block = Vec::with_capacity(HEAD_BLOCK);
        self.encoder.begin(&mut block);
        self.encoder.status(status, &mut block);
        fields.for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(stream, &block, end, self.output.bytes());
        Ok(())
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
        self.send_trailer_fields(stream, trailers.iter())
    }

    pub(super) fn send_trailer_fields<'f>(
        &mut self,
        stream: u32,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Unsendable> {
        self.sending(stream, true)?.advance(Event::SendEnd);
        let mut block = Vec::new();
        self.encoder.begin(&mut block);
        fields.for_each(|(name, value)| self.encoder.field(name, value, &mut block));
        headers::write(stream, &block, true, self.output.bytes());
        Ok(())
    }

    /// Ends a response, unless its last frame has done that.
    pub(super) fn send_end(&mut self, stream: u32) -> Result<(), Unsendable> {
        if self.streams.get(stream).is_some_and(|found| found.has_ended()) {
            return Ok(());
        }
        self.sending(stream, true)?.advance(Event::SendEnd);
        data::write(stream, b"", true, self.output.bytes());
        Ok(())
    }

    /// Whether a byte of content could be sent now, or none ever will.
    pub fn has_room(&self, stream: u32) -> bool {
        match self.streams.get(stream) {
            Some(found) if found.state.is_sending() && self.shutdown.failed().is_none() => {
                self.send.room() > 0 && found.send.room() > 0 && self.output.has_room()
            }
            _ => true,
        }
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

    /// The same, once: the stream is named again after it was offered again.
    pub fn take_next_to_send(&mut self) -> Option<u32> {
        let stream = self.next_to_send()?;
        self.streams.get_mut(stream)?.wants = false;
        Some(stream)
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
