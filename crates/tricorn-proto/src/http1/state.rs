//! What a connection's receiving side does next.
//!
//! ```text
//!            Bytes          Head, no body
//!   Idle ──────────> Head ────────────────────────────> End
//!    ^                │ Head, length ──> Fixed ──EndOfBody──> │
//!    │                │ Head, chunked ─> Chunked ─EndOfBody─> │
//!    └────────────────────────── NextRequest ─────────────────┘
//!         Fixed, End ─Records─> Records ─EndOfBody─> End
//!   any ──Refuse──> Refused
//! ```
//!
//! Rule: no other file decides what comes next.
use crate::message::Framing;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing of a request has been seen.
    #[default]
    Idle,
    /// Some of a head has.
    Head,
    /// A body of known length is being read.
    Fixed,
    /// A chunked body or its trailers are being read.
    Chunked,
    /// What follows a head is being read out of records of FastCGI.
    Records,
    /// The request is complete.
    End,
    /// The peer broke a rule: where its next request would begin is not known any more.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Bytes,
    Head(Framing),
    /// Right behind a head: what follows is in records.
    Records,
    EndOfBody,
    NextRequest,
    Refuse,
}

pub(super) fn next(state: State, event: Event) -> State {
    use {Event::*, State::*};
    match (state, event) {
        (End | Fixed, Event::Records) => State::Records,
        (Idle | State::Head, Bytes) => State::Head,
        (Idle | State::Head, Event::Head(Framing::Length(0) | Framing::None)) => End,
        (Idle | State::Head, Event::Head(Framing::Length(_))) => Fixed,
        (Idle | State::Head, Event::Head(Framing::Chunked)) => Chunked,
        (Fixed | Chunked | State::Records, EndOfBody) => End,
        (End, NextRequest) => Idle,
        (_, Refuse) => Refused,
        // Everything else would read a request where none is known to begin, e.g. the next one while a body is still
        // to come: that is how requests are smuggled, so nothing is read any more.
        (_, _) => Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_a_body_goes_round() {
        for (framing, body) in [(Framing::Length(3), State::Fixed), (Framing::Chunked, State::Chunked)] {
            let mut state = next(State::Idle, Event::Bytes);
            assert_eq!(state, State::Head);
            state = next(state, Event::Head(framing));
            assert_eq!(state, body);
            state = next(state, Event::EndOfBody);
            assert_eq!(state, State::End);
            assert_eq!(next(state, Event::NextRequest), State::Idle);
        }
    }

    #[test]
    fn what_stands_in_records_ends_with_them() {
        for framing in [Framing::None, Framing::Length(3)] {
            let state = next(next(State::Idle, Event::Head(framing)), Event::Records);
            assert_eq!(state, State::Records);
            assert_eq!(next(state, Event::EndOfBody), State::End);
        }
    }

    #[test]
    fn whatever_is_not_in_the_table_ends_the_connection() {
        let illegal = [
            (State::Idle, Event::EndOfBody),
            (State::Idle, Event::NextRequest),
            (State::Head, Event::NextRequest),
            (State::Fixed, Event::NextRequest),
            (State::Chunked, Event::NextRequest),
            (State::Fixed, Event::Head(Framing::None)),
            (State::End, Event::Head(Framing::None)),
            (State::End, Event::Bytes),
            (State::Refused, Event::NextRequest),
            (State::Records, Event::NextRequest),
            (State::Records, Event::Head(Framing::None)),
            (State::Chunked, Event::Records),
            (State::Idle, Event::Records),
        ];
        for (state, event) in illegal {
            assert_eq!(next(state, event), State::Refused, "{state:?} {event:?}");
        }
    }
}
