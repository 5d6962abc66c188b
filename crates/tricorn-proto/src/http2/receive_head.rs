//! Heads and trailers of requests: HEADERS and CONTINUATION frames.
use super::block::Opening;
use super::connection::Connection;
use super::context::Context;
use super::flow::{DEFAULT_WINDOW, ReceiveWindow, SendWindow};
use super::frame::{FrameHeader, headers};
use super::reading::Reading;
use super::request::{Flawed, HeadReader, Request, Rules};
use super::state::{Event, State, Transition};
use super::step::Step;
use super::streams::{Past, Stream, Whereabouts};
use super::trailers::TrailerReader;
use super::violation::{Scope, Violation};
use crate::message::Framing;

impl Connection {
    pub(super) fn headers(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        let frame = headers::read(header, payload)?;
        let opening =
            Opening { stream: header.stream, end_stream: frame.end_stream, depends_on_itself: frame.depends_on_itself };
        if frame.end_headers {
            return self.section(opening, frame.fragment, context, request);
        }
        self.block.begin(opening, frame.fragment);
        self.deadlines.block_begun(context.now + self.settings.header_timeout);
        Ok(Step::Control)
    }

    pub(super) fn continuation(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        self.block.add(payload, self.settings.max_block())?;
        if !header.has(headers::END_HEADERS) {
            return Ok(Step::Control);
        }
        self.deadlines.block_complete();
        match self.block.take() {
            Some((opening, block)) => self.section(opening, &block, context, request),
            None => Err(Violation::NothingToContinue),
        }
    }

    /// A field section is complete. Whatever becomes of it, it is decoded: the tables of both sides must stay equal.
    fn section(
        &mut self,
        opening: Opening,
        block: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        let id = opening.stream;
        let step = match self.streams.whereabouts(id) {
            Whereabouts::Live => self.trailers(opening, block, context, request),
            Whereabouts::Idle if id.is_multiple_of(2) => return Err(Violation::EvenStream),
            Whereabouts::Idle => return self.begin(opening, block, context, request),
            Whereabouts::Past(Past::ResetByServer) => self.discard(block).map(|()| Step::Control),
            Whereabouts::Past(Past::ResetByPeer) => self.discard(block).and(Err(Violation::StreamClosed)),
            Whereabouts::Past(Past::Ended) => return Err(Violation::AfterEnd),
            Whereabouts::Forgotten => return Err(Violation::StreamOrder),
        };
        match step {
            Err(violation) if violation.scope() == Scope::Stream => {
                self.reset_for(id, violation, context.now)?;
                Ok(Step::Violated { stream: id, violation })
            }
            step => step,
        }
    }

    fn discard(&mut self, block: &[u8]) -> Result<(), Violation> {
        self.decoder.decode(block, |_, _| {}).map_err(|_| Violation::Compression)
    }

    /// A stream that has not been seen before.
    fn begin(
        &mut self,
        opening: Opening,
        block: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        let id = opening.stream;
        self.streams.begin_at(id);
        // Section 6.8: after GOAWAY, "frames … on streams with identifiers higher than the last" are ignored; the peer
        // begins them again elsewhere.
        if self.shutdown.ignores(id) {
            self.streams.remember(id, Past::ResetByServer);
            return self.discard(block).map(|()| Step::Control);
        }
        let is_full = self.streams.is_full(self.settings.max_concurrent_streams as usize);
        let read = if is_full || opening.depends_on_itself {
            self.discard(block)?;
            let violation = if is_full { Violation::TooManyStreams } else { Violation::SelfDependency };
            Err(Flawed::Malformed(violation))
        } else {
            self.read_head(opening, block, context, request)?
        };
        self.budgets.payload(block.len());
        match read {
            Err(Flawed::Malformed(violation)) => {
                self.reset_for(id, violation, context.now)?;
                Ok(Step::Violated { stream: id, violation })
            }
            Err(Flawed::Refused(refusal)) => {
                // Its content is never read: the answer is followed by a RST_STREAM of ours, as for a broken rule.
                if !opening.end_stream {
                    self.budgets.spend_reset(context.now)?;
                }
                self.open(opening, None, request);
                Ok(Step::Refused { stream: id, refusal })
            }
            Ok(()) => {
                let promised = match request.head.framing {
                    Framing::Length(length) => Some(length),
                    _ => None,
                };
                self.open(opening, promised, request);
                Ok(Step::Request { stream: id, end: opening.end_stream })
            }
        }
    }

    fn read_head(
        &mut self,
        opening: Opening,
        block: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Result<(), Flawed>, Violation> {
        let rules = Rules {
            policy: context.policy,
            trusted: context.trusted,
            max_list: self.settings.max_header_list_size as usize,
            connect_protocol: self.settings.connect_protocol,
        };
        let mut reader = HeadReader::new(request, rules);
        let decoded = self.decoder.decode(block, |name, value| reader.take(name, value));
        decoded.map_err(|_| Violation::Compression)?;
        Ok(reader.finish(opening.end_stream))
    }

    fn open(&mut self, opening: Opening, promised: Option<u64>, request: &Request) {
        // Section 6.5.3: our settings hold from their acknowledgement on. Until then the peer may use the default.
        let initial = match self.deadlines.is_acknowledged() {
            true => self.settings.initial_window,
            false => self.settings.initial_window.max(DEFAULT_WINDOW),
        };
        // RFC 9218 section 8: a PRIORITY_UPDATE that came before its request is newer than what the request says.
        let priority = self.early.take(opening.stream).or(request.priority).unwrap_or_default();
        self.streams.insert(Stream {
            id: opening.stream,
            state: if opening.end_stream { State::HalfClosedRemote } else { State::Open },
            send: SendWindow::new(self.peer.initial_window),
            receive: ReceiveWindow::new(initial, self.settings.max_window),
            promised,
            priority,
            has_head: false,
            wants: false,
            reading: Reading::default(),
        });
    }

    fn trailers(
        &mut self,
        opening: Opening,
        block: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        let id = opening.stream;
        let max_list = self.settings.max_header_list_size as usize;
        let mut reader = TrailerReader::new(&mut request.head.trailers, context.policy, max_list);
        let decoded = self.decoder.decode(block, |name, value| reader.take(name, value));
        decoded.map_err(|_| Violation::Compression)?;
        let read = reader.finish();
        self.budgets.payload(block.len());
        let Some(stream) = self.streams.get_mut(id) else { return Ok(Step::Control) };
        if stream.state.is_receiving() && !opening.end_stream {
            return Err(Violation::TrailersOpen);
        }
        match stream.advance(Event::ReceiveEnd) {
            Transition::To(_) => {}
            Transition::Refuse(violation) => return Err(violation),
            Transition::Ignore | Transition::Closed => return Ok(Step::Control),
        }
        read?;
        if opening.depends_on_itself {
            return Err(Violation::SelfDependency);
        }
        if !stream.count_content(0, true) {
            return Err(Violation::ContentLength);
        }
        Ok(Step::Trailers { stream: id })
    }
}
