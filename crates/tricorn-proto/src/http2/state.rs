//! The states of a stream (RFC 9113 section 5.1), from the server's side.
//!
//! ```text
//!                HEADERS            HEADERS+ES, DATA+ES
//!   (idle) ────────────────> Open ─────────────────────> HalfClosedRemote ──our ES──> Closed
//!      │                      │ our ES                                                  ^
//!      │ HEADERS+ES           └──────────> HalfClosedLocal ──their ES───────────────────┘
//!      └──────> HalfClosedRemote
//!   Open, HalfClosed… ──RST_STREAM of the peer──> ResetByPeer
//!   Open, HalfClosed… ──RST_STREAM of ours──────> ResetByServer
//! ```
//!
//! A stream is kept until its request's call is over. One that was reset takes no more bytes, but counts as one of the
//! concurrent streams: that, and not a rate, is what ends a rapid reset (CVE-2023-44487). One that is closed counts no longer.
use super::violation::Violation;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    /// The request is complete.
    HalfClosedRemote,
    /// The response is complete.
    HalfClosedLocal,
    Closed,
    ResetByPeer,
    ResetByServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// HEADERS or DATA of the peer, without and with END_STREAM.
    Receive,
    ReceiveEnd,
    /// HEADERS or DATA of ours, without and with END_STREAM.
    Send,
    SendEnd,
    ReceiveReset,
    SendReset,
}

/// What a frame does to its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    To(State),
    /// The frame crossed one of ours, or changes nothing.
    Ignore,
    /// The peer must not send it.
    Refuse(Violation),
    /// The caller must not send it.
    Closed,
}

pub(super) fn next(state: State, event: Event) -> Transition {
    use {Event::*, State::*, Transition::*};
    match (state, event) {
        (Open | HalfClosedLocal, Receive) => To(state),
        (Open, ReceiveEnd) => To(HalfClosedRemote),
        (HalfClosedLocal, ReceiveEnd) => To(State::Closed),
        (Open | HalfClosedRemote, Send) => To(state),
        (Open, SendEnd) => To(HalfClosedLocal),
        (HalfClosedRemote, SendEnd) => To(State::Closed),
        (Open | HalfClosedRemote | HalfClosedLocal, ReceiveReset) => To(ResetByPeer),
        (Open | HalfClosedRemote | HalfClosedLocal, SendReset) => To(ResetByServer),
        // Frames that still come on a stream that the peer has reset are told to be wrong, once.
        (ResetByPeer, SendReset) => To(ResetByServer),
        // "If an endpoint receives additional frames, other than WINDOW_UPDATE, PRIORITY, or RST_STREAM, for a stream
        // that is in this state, it MUST respond with a stream error (Section 5.4.2) of type STREAM_CLOSED."
        (HalfClosedRemote | ResetByPeer, Receive | ReceiveEnd) => Refuse(Violation::StreamClosed),
        // "An endpoint MUST ignore frames that it receives on closed streams after it has sent a RST_STREAM frame."
        (ResetByServer, Receive | ReceiveEnd | ReceiveReset) => Ignore,
        (State::Closed, Receive | ReceiveEnd) => Refuse(Violation::AfterEnd),
        (State::Closed | ResetByPeer, ReceiveReset) => Ignore,
        // Everything else would be a frame of ours on a stream that takes none.
        (_, Send | SendEnd | SendReset) => Transition::Closed,
    }
}

impl State {
    /// Whether DATA may be sent.
    pub(super) fn is_sending(self) -> bool {
        matches!(self, State::Open | State::HalfClosedRemote)
    }

    /// Whether more of the request may come.
    pub(super) fn is_receiving(self) -> bool {
        matches!(self, State::Open | State::HalfClosedLocal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::*;

    const STATES: [State; 6] = [Open, HalfClosedRemote, HalfClosedLocal, Closed, ResetByPeer, ResetByServer];

    #[test]
    fn after_the_end_of_either_side_that_side_sends_nothing() {
        for state in STATES {
            let received = [Event::Receive, Event::ReceiveEnd].map(|event| next(state, event));
            let sent = [Event::Send, Event::SendEnd].map(|event| next(state, event));
            assert_eq!(received.iter().all(|to| matches!(to, Transition::To(_))), state.is_receiving(), "{state:?}");
            assert_eq!(sent.iter().all(|to| matches!(to, Transition::To(_))), state.is_sending(), "{state:?}");
        }
    }

    #[test]
    fn a_reset_is_final() {
        for state in [ResetByPeer, ResetByServer, Closed] {
            for event in [Event::Receive, Event::ReceiveEnd, Event::Send, Event::SendEnd] {
                assert!(!matches!(next(state, event), Transition::To(_)), "{state:?} {event:?}");
            }
        }
    }

    #[test]
    fn both_ends_close_a_stream_in_either_order() {
        let step = |state, event| match next(state, event) {
            Transition::To(state) => state,
            other => panic!("{other:?}"),
        };
        assert_eq!(step(step(Open, Event::ReceiveEnd), Event::SendEnd), Closed);
        assert_eq!(step(step(Open, Event::SendEnd), Event::ReceiveEnd), Closed);
    }
}
