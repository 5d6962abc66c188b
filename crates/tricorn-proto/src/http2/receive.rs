//! The receiving side: one step at a time, from whatever bytes have come.
use super::connection::{Connection, Inbound};
use super::context::Context;
use super::frame::{FrameHeader, HEADER_BYTES, Kind, priority, rst_stream, settings, window_update};
use super::frame::{goaway, ping, priority_update};
use super::priority::Priority;
use super::request::Request;
use super::state::Event;
use super::step::{Progress, Step};
use super::streams::Whereabouts;
use super::violation::{Scope, Violation};

impl Connection {
    /// Looks at `input` (all unconsumed bytes) and takes one step. After `Step::Failed` everything is thrown away.
    ///
    /// At most one frame that is not DATA must be held by the caller: 16,393 bytes.
    pub fn receive(&mut self, input: &[u8], context: &Context<'_>, request: &mut Request) -> Progress {
        if let Some(violation) = self.shutdown.failed() {
            return Progress { consumed: input.len(), step: Step::Failed(violation) };
        }
        if self.output.is_choked() {
            return Progress { consumed: 0, step: Step::Choked };
        }
        let progress = self.step(input, context, request).and_then(|progress| {
            self.budgets.received(progress.consumed)?;
            Ok(progress)
        });
        progress.unwrap_or_else(|violation| {
            self.fail(violation);
            Progress { consumed: input.len(), step: Step::Failed(violation) }
        })
    }

    fn step(&mut self, input: &[u8], context: &Context<'_>, request: &mut Request) -> Result<Progress, Violation> {
        match self.inbound {
            Inbound::Preface => self.preface(input),
            Inbound::Data(rest) => Ok(self.content(rest, input)),
            Inbound::Settings | Inbound::Frame => self.frame(input, context, request),
        }
    }

    fn preface(&mut self, input: &[u8]) -> Result<Progress, Violation> {
        let length = input.len().min(PREFACE.len());
        if input[..length] != PREFACE[..length] {
            return Err(Violation::Preface);
        }
        if length < PREFACE.len() {
            return Ok(Progress { consumed: 0, step: Step::NeedMore });
        }
        self.inbound = Inbound::Settings;
        Ok(Progress { consumed: length, step: Step::Control })
    }

    fn frame(&mut self, input: &[u8], context: &Context<'_>, request: &mut Request) -> Result<Progress, Violation> {
        let wait = Ok(Progress { consumed: 0, step: Step::NeedMore });
        let Some((header, rest)) = input.split_first_chunk::<HEADER_BYTES>() else { return wait };
        let header = FrameHeader::parse(header);
        let is_valid = header.check();
        if let Err(violation) = is_valid
            && violation.scope() == Scope::Connection
        {
            return Err(violation);
        }
        self.check_order(&header)?;
        if header.kind == Kind::Data {
            return self.data(&header, rest, context);
        }
        let Some(payload) = rest.get(..header.length) else { return wait };
        let step = match is_valid {
            Ok(()) => self.payload(&header, payload, context, request),
            Err(violation) => Err(violation),
        };
        let step = match step {
            Err(violation) if violation.scope() == Scope::Stream => {
                // RFC 9113 section 6.4: RST_STREAM "MUST NOT be sent for a stream in the "idle" state."
                if self.streams.whereabouts(header.stream) == Whereabouts::Idle {
                    return Err(violation);
                }
                self.reset_for(header.stream, violation, context.now)?;
                Step::Violated { stream: header.stream, violation }
            }
            step => step?,
        };
        Ok(Progress { consumed: HEADER_BYTES + header.length, step })
    }

    /// Which frames may come now.
    fn check_order(&mut self, header: &FrameHeader) -> Result<(), Violation> {
        if self.inbound == Inbound::Settings && (header.kind != Kind::Settings || header.has(settings::ACK)) {
            return Err(Violation::SettingsExpected);
        }
        match self.block.stream() {
            // Section 4.3: "with no interleaved frames of any other type or from any other stream".
            Some(stream) if header.kind != Kind::Continuation || header.stream != stream => Err(Violation::Interleaved),
            None if header.kind == Kind::Continuation => Err(Violation::NothingToContinue),
            _ => Ok(()),
        }
    }

    fn payload(
        &mut self,
        header: &FrameHeader,
        payload: &[u8],
        context: &Context<'_>,
        request: &mut Request,
    ) -> Result<Step, Violation> {
        let now = context.now;
        match header.kind {
            Kind::Headers => self.headers(header, payload, context, request),
            Kind::Continuation => self.continuation(header, payload, context, request),
            Kind::RstStream => self.reset_by_peer(header.stream, rst_stream::read(payload), now),
            Kind::WindowUpdate => self.window_update(header.stream, window_update::read(payload), now),
            Kind::Settings => self.settings(header, payload, now),
            Kind::Ping => self.ping(header, ping::read(payload), now),
            Kind::Priority => {
                self.budgets.spend_control(now)?;
                let itself = payload.first_chunk().is_some_and(|octets| priority::depends_on(octets) == header.stream);
                if itself { Err(Violation::SelfDependency) } else { Ok(Step::Control) }
            }
            Kind::PriorityUpdate => {
                self.budgets.spend_control(now)?;
                let (stream, value) = priority_update::read(payload);
                self.priority_update(stream, Priority::parse(value))
            }
            Kind::Goaway => {
                self.budgets.spend_control(now)?;
                Ok(Step::Goodbye { code: goaway::read(payload).1 })
            }
            // DATA is read piece by piece, PUSH_PROMISE was refused.
            Kind::Data | Kind::PushPromise | Kind::Unknown => {
                self.budgets.spend_control(now)?;
                Ok(Step::Control)
            }
        }
    }

    fn reset_by_peer(&mut self, stream: u32, code: u32, now: u64) -> Result<Step, Violation> {
        if self.streams.whereabouts(stream) == Whereabouts::Idle {
            return Err(Violation::IdleStream);
        }
        match self.streams.get_mut(stream).map(|found| found.advance(Event::ReceiveReset)) {
            Some(super::state::Transition::To(_)) => {
                self.budgets.spend_reset(now)?;
                Ok(Step::Reset { stream, code })
            }
            // One for a stream that is over. Some clients send one for each frame that was under way.
            _ => {
                self.budgets.spend_control(now)?;
                Ok(Step::Control)
            }
        }
    }

    fn window_update(&mut self, stream: u32, increment: u32, now: u64) -> Result<Step, Violation> {
        self.budgets.spend_update(now)?;
        if stream == 0 {
            return match increment {
                0 => Err(Violation::ConnectionIncrement),
                _ if self.send.add(i64::from(increment)) => Ok(Step::Room { stream: 0 }),
                _ => Err(Violation::ConnectionWindow),
            };
        }
        match (self.streams.whereabouts(stream), self.streams.get_mut(stream)) {
            (Whereabouts::Idle, _) => Err(Violation::IdleStream),
            (_, Some(found)) if found.state.is_sending() => match increment {
                0 => Err(Violation::StreamIncrement),
                _ if found.send.add(i64::from(increment)) => Ok(Step::Room { stream }),
                _ => Err(Violation::StreamWindow),
            },
            // "WINDOW_UPDATE … can be sent by a peer that has sent a frame with the END_STREAM flag set", and arrives late.
            _ => Ok(Step::Control),
        }
    }

    fn settings(&mut self, header: &FrameHeader, payload: &[u8], now: u64) -> Result<Step, Violation> {
        let pairs = settings::read(header, payload)?;
        if header.has(settings::ACK) {
            // An acknowledgement of nothing is a frame that carries nothing.
            if self.deadlines.is_acknowledged() {
                self.budgets.spend_control(now)?;
            }
            self.deadlines.acknowledged();
            return Ok(Step::Control);
        }
        self.budgets.spend_control(now)?;
        let before = self.peer.initial_window;
        // Section 6.5.3: "The values in the SETTINGS frame MUST be processed in the order they appear".
        for (identifier, value) in pairs {
            self.peer.apply(identifier, value)?;
            if identifier == settings::HEADER_TABLE_SIZE {
                self.encoder.resize(value);
            }
        }
        self.peer.complete();
        self.deadlines.opened();
        self.inbound = Inbound::Frame;
        settings::write_ack(self.output.bytes());
        let change = i64::from(self.peer.initial_window) - i64::from(before);
        // Section 6.9.2: "a receiver MUST adjust the size of all stream flow-control windows that it maintains by the
        // difference". All are adjusted before a window that is too large is told.
        let sound = self.streams.iter_mut().fold(true, |sound, stream| stream.send.add(change) & sound);
        match change {
            _ if !sound => Err(Violation::ConnectionWindow),
            1.. => Ok(Step::Room { stream: 0 }),
            _ => Ok(Step::Control),
        }
    }

    fn ping(&mut self, header: &FrameHeader, payload: [u8; 8], now: u64) -> Result<Step, Violation> {
        if !header.has(ping::ACK) {
            self.budgets.spend_control(now)?;
            ping::write(payload, ping::ACK, self.output.bytes());
        } else if self.shutdown.is_acknowledged(payload) {
            self.shutdown.leave(self.streams.highest(), &mut self.output);
        } else {
            self.budgets.spend_control(now)?;
        }
        Ok(Step::Control)
    }

    fn priority_update(&mut self, stream: u32, priority: Priority) -> Result<Step, Violation> {
        // RFC 9218 section 7.1: "a PRIORITY_UPDATE frame with a Prioritized Stream ID of 0x0" is a connection error, and
        // so is one that names a stream that only the server could begin.
        if stream.is_multiple_of(2) {
            return Err(Violation::PriorityTarget);
        }
        let is_idle = self.streams.whereabouts(stream) == Whereabouts::Idle;
        match self.streams.get_mut(stream) {
            Some(found) => found.priority = priority,
            None if is_idle => {
                self.early.put(stream, priority, self.settings.max_concurrent_streams as usize);
            }
            None => {}
        }
        Ok(Step::Control)
    }
}

/// Section 3.4.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
