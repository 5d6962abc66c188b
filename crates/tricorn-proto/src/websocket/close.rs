//! Close frames and the closing handshake (RFC 6455 sections 5.5.1, 7.1 and 7.4).
//!
//! ```text
//!   Open ──send──> Sent ──────receive──────────────> Done
//!    └──receive──> Received ──send (the answer)────> Done
//!   any but Done ──lost──> Lost
//! ```
//!
//! | In     | Messages of ours        | What comes in                                |
//! |--------|-------------------------|----------------------------------------------|
//! | Open   | are sent                | is given to the application                  |
//! | Sent   | are refused             | is given to it too, until the peer's Close   |
//! | others | are refused             | is dropped unread                            |
use super::Violation;
use super::frame::MAX_CONTROL;

/// What a Close frame says. `code` is `None` if it was empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Close<'a> {
    pub code: Option<u16>,
    pub reason: &'a str,
}

impl<'a> Close<'a> {
    /// Reads the payload of a Close frame.
    pub fn read(payload: &'a [u8]) -> Result<Close<'a>, Violation> {
        let (code, reason) = match payload {
            [] => return Ok(Close { code: None, reason: "" }),
            [_] => return Err(Violation::ShortClose),
            [high, low, reason @ ..] => (u16::from_be_bytes([*high, *low]), reason),
        };
        if !may_be_sent(code) {
            return Err(Violation::CloseCode);
        }
        let reason = std::str::from_utf8(reason).map_err(|_| Violation::CloseReason)?;
        Ok(Close { code: Some(code), reason })
    }

    /// Writes the payload; a reason that is too long is cut between two characters.
    pub(super) fn payload(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        if let Some(code) = self.code {
            let end = boundary_before(self.reason, MAX_REASON);
            payload.extend_from_slice(&code.to_be_bytes());
            payload.extend_from_slice(&self.reason.as_bytes()[..end]);
        }
        payload
    }
}

/// Whether a Close frame may hold this code: those IANA has registered but 1004 (reserved) and 1005, 1006, 1015, which
/// "MUST NOT be set as a status code in a Close control frame", and those of libraries and applications.
pub fn may_be_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Where the closing handshake stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Open,
    Sent,
    Received,
    Done,
    /// The connection ended before the handshake did.
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Send,
    Receive,
    Lose,
}

/// Rule: no other file decides how closing goes on. `None`: not in this phase.
pub(super) fn next(phase: Phase, event: Event) -> Option<Phase> {
    use Phase::*;
    Some(match (phase, event) {
        (Open, Event::Send) => Sent,
        (Open, Event::Receive) => Received,
        (Sent, Event::Receive) | (Received, Event::Send) => Done,
        (Open | Sent | Received, Event::Lose) => Lost,
        // A second Close frame, either way, would come after the end.
        (_, _) => return None,
    })
}

/// One connection's closing handshake.
#[derive(Debug, Clone, Copy, Default)]
pub struct Closing {
    phase: Phase,
    /// What the peer's Close frame said.
    received: Option<u16>,
    sent: Option<u16>,
}

impl Closing {
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether messages, pings and pongs may still be sent.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.phase == Phase::Open
    }

    /// "The WebSocket Connection Close Code" of section 7.1.5, for the application and the log: what the peer's Close
    /// frame said, 1005 if it said nothing, 1006 if there was none.
    pub fn code(&self) -> u16 {
        match (self.phase, self.received) {
            (_, Some(code)) => code,
            (Phase::Received | Phase::Done, None) => NO_STATUS,
            _ => ABNORMAL,
        }
    }

    /// The code of our own Close frame, if one with a code was sent.
    pub fn sent(&self) -> Option<u16> {
        self.sent
    }

    /// The peer's Close frame came. Afterwards `Phase::Received` means that it wants an answer.
    pub fn receive(&mut self, close: &Close<'_>) {
        if let Some(phase) = next(self.phase, Event::Receive) {
            self.phase = phase;
            self.received = close.code;
        }
    }

    /// The connection is gone.
    pub fn lose(&mut self) {
        if let Some(phase) = next(self.phase, Event::Lose) {
            self.phase = phase;
        }
    }

    /// Notes that a Close frame is sent; `false`: it may not be.
    pub(super) fn send(&mut self, code: Option<u16>) -> bool {
        let Some(phase) = next(self.phase, Event::Send) else { return false };
        self.phase = phase;
        self.sent = code;
        true
    }
}

/// `str::floor_char_boundary`, which our oldest compiler lacks.
fn boundary_before(text: &str, most: usize) -> usize {
    (0..=most.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0)
}

/// Without its code.
const MAX_REASON: usize = MAX_CONTROL - 2;
/// What the application is told of a Close frame without a code.
pub const NO_STATUS: u16 = 1005;
/// What the application is told when there was no Close frame.
pub const ABNORMAL: u16 = 1006;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_handshake_ends_once_whoever_begins() {
        let close = Close { code: Some(1001), reason: "" };
        let mut ours = Closing::default();
        assert!(ours.may_send() && ours.send(Some(1000)) && !ours.may_send());
        assert!(!ours.send(Some(1000)), "once");
        assert_eq!((ours.phase(), ours.code()), (Phase::Sent, 1006));
        ours.receive(&close);
        assert_eq!((ours.phase(), ours.code(), ours.sent()), (Phase::Done, 1001, Some(1000)));
        ours.lose();
        assert_eq!(ours.phase(), Phase::Done, "nothing is lost any more");

        let mut theirs = Closing::default();
        theirs.receive(&Close { code: None, reason: "" });
        assert_eq!((theirs.phase(), theirs.code(), theirs.may_send()), (Phase::Received, 1005, false));
        theirs.receive(&close);
        assert_eq!(theirs.code(), 1005, "the first one counts");
        assert!(theirs.send(None));
        assert_eq!(theirs.phase(), Phase::Done);
        assert!(!theirs.send(None));
    }

    #[test]
    fn a_connection_without_an_end_is_abnormal() {
        let mut closing = Closing::default();
        closing.lose();
        assert_eq!((closing.phase(), closing.code()), (Phase::Lost, 1006));
        assert!(!closing.send(Some(1000)));
    }

    #[test]
    fn a_long_reason_is_cut_between_two_characters() {
        let reason = "x".repeat(122) + "\u{20ac}";
        let payload = Close { code: Some(1000), reason: &reason }.payload();
        assert_eq!(payload.len(), 124);
        assert_eq!(Close::read(&payload), Ok(Close { code: Some(1000), reason: &reason[..122] }));
    }
}
