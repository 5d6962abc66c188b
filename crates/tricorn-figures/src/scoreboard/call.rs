//! What the table of requests says of a call, and how its phase is written.
//!
//! The phase stands beside the length of the request's text, in the same word. A call that begins writes that word in any case, so
//! that the first phase costs nothing; the others are written only by calls that come to them.
/// Where the phase stands in the word of the text's length.
const SHIFT: u32 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u64)]
pub enum Phase {
    /// The application was called, and has sent nothing.
    #[default]
    Call = 0,
    /// The response has begun, and more of it is to come.
    Sending = 1,
    /// The application waits for more of the request's body.
    Body = 2,
    /// A WebSocket is open.
    WebSocket = 3,
    /// The connection speaks another protocol, or the application has the socket for itself.
    Upgraded = 4,
}

impl Phase {
    const ALL: [Phase; 5] = [Phase::Call, Phase::Sending, Phase::Body, Phase::WebSocket, Phase::Upgraded];

    pub fn name(self) -> &'static str {
        match self {
            Phase::Call => "call",
            Phase::Sending => "sending",
            Phase::Body => "body",
            Phase::WebSocket => "websocket",
            Phase::Upgraded => "upgraded",
        }
    }

    /// Whether the call is at a socket that its client keeps open.
    pub fn is_open_socket(self) -> bool {
        matches!(self, Phase::WebSocket | Phase::Upgraded)
    }

    /// Of the word of the text's length; what is no phase counts as a call.
    pub(super) fn of(word: u64) -> Phase {
        Phase::ALL.into_iter().find(|known| *known as u64 == word >> SHIFT).unwrap_or_default()
    }
}

/// The word of a text of this length.
pub(super) fn joined(length: usize, phase: Phase) -> u64 {
    length as u64 | (phase as u64) << SHIFT
}

/// The length of the text in the same word.
pub(super) fn length(word: u64) -> usize {
    (word & ((1 << SHIFT) - 1)) as usize
}

/// What the table of requests says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub slot: usize,
    /// Monotonic nanoseconds.
    pub started: u64,
    pub phase: Phase,
    /// `METHOD target`, cut where it is too long.
    pub text: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_a_length_and_a_phase() {
        for phase in [Phase::Call, Phase::Sending, Phase::Body, Phase::WebSocket, Phase::Upgraded] {
            let word = joined(104, phase);
            assert_eq!((length(word), Phase::of(word)), (104, phase), "{}", phase.name());
        }
        assert_eq!((Phase::of(u64::MAX), length(u64::MAX)), (Phase::Call, u32::MAX as usize), "what is no phase");
    }
}
