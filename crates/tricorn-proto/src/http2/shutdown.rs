//! How a connection leaves (RFC 9113 section 6.8).
//!
//! ```text
//!   Serving ──drain: GOAWAY(2^31−1), PING──> Warned ──its ack, or the last call is over: GOAWAY(last)──> Leaving
//!   any ──violation: GOAWAY(last, code)──> Failed
//! ```
//!
//! Requests that were under way when the first GOAWAY was sent are served: only the second one names a last stream.
use super::error_code::ErrorCode;
use super::frame::{goaway, ping};
use super::output::Output;
use super::violation::Violation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Shutdown {
    #[default]
    Serving,
    Warned {
        /// Milliseconds.
        deadline: u64,
    },
    Leaving {
        last: u32,
    },
    Failed(Violation),
}

impl Shutdown {
    pub fn begin(&mut self, deadline: u64, output: &mut Output) {
        if *self == Shutdown::Serving {
            *self = Shutdown::Warned { deadline };
            goaway::write(MAX_STREAM, ErrorCode::NoError.number(), "", output.bytes());
            ping::write(PAYLOAD, 0, output.bytes());
        }
    }

    /// Whether this acknowledges our PING.
    pub fn is_acknowledged(&self, payload: [u8; 8]) -> bool {
        matches!(self, Shutdown::Warned { .. }) && payload == PAYLOAD
    }

    /// From here on streams after `last` are ignored.
    pub fn leave(&mut self, last: u32, output: &mut Output) {
        if matches!(self, Shutdown::Serving | Shutdown::Warned { .. }) {
            *self = Shutdown::Leaving { last };
            goaway::write(last, ErrorCode::NoError.number(), "", output.bytes());
        }
    }

    pub fn fail(&mut self, last: u32, violation: Violation, output: &mut Output) {
        if !matches!(self, Shutdown::Failed(_)) {
            *self = Shutdown::Failed(violation);
            goaway::write(last, violation.code().number(), violation.reason(), output.bytes());
        }
    }

    /// Whether a new stream is ignored.
    pub fn ignores(&self, stream: u32) -> bool {
        matches!(self, Shutdown::Leaving { last } if stream > *last)
    }

    pub fn failed(&self) -> Option<Violation> {
        match self {
            Shutdown::Failed(violation) => Some(*violation),
            _ => None,
        }
    }

    pub fn deadline(&self) -> Option<u64> {
        match self {
            Shutdown::Warned { deadline } => Some(*deadline),
            _ => None,
        }
    }
}

const MAX_STREAM: u32 = u32::MAX >> 1;
const PAYLOAD: [u8; 8] = *b"shutdown";
