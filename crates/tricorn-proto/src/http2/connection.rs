//! One connection: its windows, streams, compression and budgets. `receive` and `send` move it.
use super::block::Block;
use super::budget::Budgets;
use super::deadlines::Deadlines;
use super::error_code::ErrorCode;
use super::flow::{DEFAULT_WINDOW, ReceiveWindow, SendWindow};
use super::frame::{rst_stream, window_update};
use super::hpack::{Decoder, Encoder};
use super::output::Output;
use super::priority::Early;
use super::settings::{PeerSettings, Settings};
use super::shutdown::Shutdown;
use super::state::{Event, State, Transition};
use super::streams::{Past, Streams};
use super::violation::Violation;

/// The server's side of an HTTP/2 connection. Holds at most one header block, and 144 KiB to be sent.
#[derive(Debug)]
pub struct Connection {
    pub(super) settings: Settings,
    pub(super) inbound: Inbound,
    pub(super) block: Block,
    pub(super) decoder: Decoder,
    pub(super) encoder: Encoder,
    pub(super) streams: Streams,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    pub(super) peer: PeerSettings,
    pub(super) budgets: Budgets,
    pub(super) early: Early,
    pub(super) shutdown: Shutdown,
    pub(super) deadlines: Deadlines,
    pub(super) output: Output,
    /// The stream that had the last frame of DATA.
    pub(super) last_sent: u32,
}

/// What comes next from the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inbound {
    Preface,
    /// Section 3.4: the first frame "MUST be a SETTINGS frame".
    Settings,
    Frame,
    Data(Receiving),
}

/// The rest of a DATA frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receiving {
    pub stream: u32,
    pub content: usize,
    pub padding: usize,
    pub end: bool,
}

impl Connection {
    /// Begins with our SETTINGS, which need not wait for the peer's. `now` counts milliseconds, from wherever.
    pub fn new(settings: Settings, now: u64) -> Connection {
        let mut output = Output::default();
        let mut receive = ReceiveWindow::new(DEFAULT_WINDOW, DEFAULT_WINDOW);
        settings.write(output.bytes());
        let increment = receive.widen(settings.connection_window);
        if increment > 0 {
            window_update::write(0, increment, output.bytes());
        }
        Connection {
            settings,
            inbound: Inbound::Preface,
            block: Block::default(),
            decoder: Decoder::default(),
            encoder: Encoder::default(),
            streams: Streams::default(),
            send: SendWindow::new(DEFAULT_WINDOW),
            receive,
            peer: PeerSettings::default(),
            budgets: Budgets::new(settings.resets, settings.control_frames, now),
            early: Early::default(),
            shutdown: Shutdown::default(),
            deadlines: Deadlines::new(now + settings.header_timeout),
            output,
            last_sent: 0,
        }
    }

    /// Bytes for the peer.
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Notes that so many bytes of the output were sent.
    pub fn sent(&mut self, length: usize) {
        self.output.advance(length);
    }

    /// Streams whose calls run.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Begins to leave: the peer is told to begin no more streams, and those under way are served.
    pub fn drain(&mut self, now: u64) {
        self.shutdown.begin(now + self.settings.last_call, &mut self.output);
    }

    /// Whether the connection may be closed as soon as its output is sent.
    pub fn is_finished(&self) -> bool {
        match self.shutdown {
            Shutdown::Failed(_) => true,
            Shutdown::Leaving { .. } => self.streams.len() == 0,
            Shutdown::Serving | Shutdown::Warned { .. } => false,
        }
    }

    /// Whether it has ended because of a violation.
    pub fn has_failed(&self) -> bool {
        self.shutdown.failed().is_some()
    }

    /// When `tick` is to be called, in milliseconds.
    pub fn deadline(&self) -> Option<u64> {
        match self.shutdown {
            Shutdown::Failed(_) => None,
            _ => [self.deadlines.earliest(), self.shutdown.deadline()].into_iter().flatten().min(),
        }
    }

    /// Does what is due. A violation ends the connection.
    pub fn tick(&mut self, now: u64) -> Result<(), Violation> {
        if self.shutdown.failed().is_some() {
            return Ok(());
        }
        if let Some(violation) = self.deadlines.missed(now) {
            self.fail(violation);
            return Err(violation);
        }
        if self.shutdown.deadline().is_some_and(|deadline| now >= deadline) {
            self.shutdown.leave(self.streams.highest(), &mut self.output);
        }
        Ok(())
    }

    /// Gives back windows for content that the application has taken.
    pub fn took(&mut self, stream: u32, length: usize) {
        let Some(found) = self.streams.get_mut(stream) else { return };
        let length = length.min(found.receive.unread());
        let increment = found.receive.take(length);
        if let Some(increment) = increment.filter(|_| found.state.is_receiving()) {
            window_update::write(stream, increment, self.output.bytes());
        }
        self.credit(length);
    }

    /// Ends a stream with a code, unless it has ended.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.streams.get(stream).is_some_and(|found| !found.is_reset()) {
            self.write_reset(stream, code);
        }
    }

    fn write_reset(&mut self, stream: u32, code: ErrorCode) {
        let Some(found) = self.streams.get_mut(stream) else { return };
        if let Transition::To(_) = found.advance(Event::SendReset) {
            rst_stream::write(stream, code.number(), self.output.bytes());
        }
    }

    /// The call for a request is over: its stream is forgotten, and reset if something is missing.
    pub fn release(&mut self, stream: u32) {
        let Some(found) = self.streams.get(stream) else { return };
        match found.state {
            // RFC 9113 section 8.1: a server that has sent a complete response "MAY request that the client abort
            // transmission of a request without error by sending a RST_STREAM with an error code of NO_ERROR".
            State::HalfClosedLocal => self.reset(stream, ErrorCode::NoError),
            _ => self.reset(stream, ErrorCode::InternalError),
        }
        if let Some(found) = self.streams.remove(stream) {
            self.credit(found.receive.unread());
        }
    }

    /// Gives back some of the connection's window.
    pub(super) fn credit(&mut self, length: usize) {
        if let Some(increment) = self.receive.take(length) {
            window_update::write(0, increment, self.output.bytes());
        }
    }

    /// Resets the stream on which the peer has broken a rule. Too many such resets end the connection.
    pub(super) fn reset_for(&mut self, stream: u32, violation: Violation, now: u64) -> Result<(), Violation> {
        self.budgets.spend_reset(now)?;
        match self.streams.get_mut(stream) {
            Some(_) => self.write_reset(stream, violation.code()),
            None => {
                self.streams.remember(stream, Past::ResetByServer);
                rst_stream::write(stream, violation.code().number(), self.output.bytes());
            }
        }
        Ok(())
    }

    pub(super) fn fail(&mut self, violation: Violation) {
        self.shutdown.fail(self.streams.highest(), violation, &mut self.output);
    }
}
