//! Content of requests: DATA frames, taken piece by piece.
use super::connection::{Connection, Inbound, Receiving};
use super::context::Context;
use super::frame::{FrameHeader, HEADER_BYTES, data};
use super::state::{Event, Transition};
use super::step::{Progress, Step};
use super::streams::{Past, Whereabouts};
use super::violation::{Scope, Violation};

impl Connection {
    /// A DATA frame begins. All of it is counted now, against both windows and the Content-Length.
    pub(super) fn data(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        context: &Context<'_>,
    ) -> Result<Progress, Violation> {
        let Some(parts) = data::read(header, payload)? else {
            return Ok(Progress { consumed: 0, step: Step::NeedMore });
        };
        // RFC 9113 section 6.9: flow control counts "the entire DATA frame payload … including the Pad Length and Padding".
        if !self.receive.receive(header.length) {
            return Err(Violation::ConnectionFlow);
        }
        // CVE-2019-9518. A frame of a few bytes is no flood: gRPC has one for each message.
        if !parts.end && parts.content == 0 {
            self.budgets.spend_control(context.now)?;
        }
        let stream = header.stream;
        let step = match self.accept(stream, header.length, &parts) {
            Ok(true) => {
                let prefix = parts.prefix + parts.padding;
                self.budgets.payload(parts.content);
                // No caller takes padding, so its windows are given back at once.
                self.took(stream, prefix);
                self.inbound =
                    Inbound::Data(Receiving { stream, content: parts.content, padding: parts.padding, end: parts.end });
                return Ok(Progress { consumed: HEADER_BYTES + parts.prefix, step: Step::Control });
            }
            Ok(false) => Step::Control,
            Err(violation) if violation.scope() == Scope::Stream => {
                self.reset_for(stream, violation, context.now)?;
                Step::Violated { stream, violation }
            }
            Err(violation) => return Err(violation),
        };
        // Thrown away; but the connection's window is shared, and would leak.
        self.credit(header.length);
        let padding = header.length - parts.prefix;
        self.inbound = Inbound::Data(Receiving { stream, content: 0, padding, end: false });
        Ok(Progress { consumed: HEADER_BYTES + parts.prefix, step })
    }

    /// Whether the content is wanted.
    fn accept(&mut self, id: u32, length: usize, parts: &data::Data) -> Result<bool, Violation> {
        let Some(stream) = self.streams.get_mut(id) else {
            return match self.streams.whereabouts(id) {
                Whereabouts::Idle => Err(Violation::IdleStream),
                Whereabouts::Past(Past::ResetByServer) => Ok(false),
                Whereabouts::Past(Past::ResetByPeer) => Err(Violation::StreamClosed),
                _ => Err(Violation::AfterEnd),
            };
        };
        match stream.advance(if parts.end { Event::ReceiveEnd } else { Event::Receive }) {
            Transition::To(_) => {}
            Transition::Refuse(violation) => return Err(violation),
            Transition::Ignore | Transition::Closed => return Ok(false),
        }
        if !stream.receive.receive(length) {
            return Err(Violation::StreamFlow);
        }
        if !stream.count_content(parts.content, parts.end) {
            return Err(Violation::ContentLength);
        }
        Ok(true)
    }

    /// More of a DATA frame's content has come, or of its padding.
    pub(super) fn content(&mut self, mut rest: Receiving, input: &[u8]) -> Progress {
        let length = rest.content.min(input.len());
        let padding = if length == rest.content { rest.padding.min(input.len() - length) } else { 0 };
        let is_last = length == rest.content;
        rest.content -= length;
        rest.padding -= padding;
        let end = rest.end && is_last;
        rest.end &= !end;
        let is_over = rest.content == 0 && rest.padding == 0;
        if !is_over && length + padding == 0 && !end {
            return Progress { consumed: 0, step: Step::NeedMore };
        }
        self.inbound = if is_over { Inbound::Frame } else { Inbound::Data(rest) };
        // Meanwhile the stream may have been reset, or released: its windows were given back then.
        let is_wanted = self.streams.get(rest.stream).is_some_and(|stream| !stream.is_reset());
        let step = match is_wanted && (length > 0 || end) {
            true => Step::Body { stream: rest.stream, range: 0..length, end },
            false => Step::Control,
        };
        Progress { consumed: length + padding, step }
    }
}
