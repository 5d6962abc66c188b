//! Who sends on a connection besides its owner: one state, under the lock of the output.
//!
//! ```text
//!                       expect                          answered
//!            ┌──────────────────────▶ Unanswered ───────────────────▶ Answered     (the monitor has sent a 504)
//!            │ ◀───────begin──────────                                    │ restart
//!   Owner ◀──┤                                                            ▼
//!    │ ▲     │ hold                                                     Owner
//!    │ │     └─────▶ Held                   (a whole answer, which the reactor sends with others)
//!    │ │
//!    │ └─────────────────── looked: nothing new, all sent ──────────────┐
//!    │                                                                  │
//!    │ restart                      leave                               │
//!    │         ┌───────────────────────────────▶ Left { fresh } ────────┤
//!    │         │                                     │ looked: full     │
//!    └─────────┘                                     ▼                  │
//!                                                 Blocked ──────────────┘
//! ```
//!
//! The owner is the exchange, or the reactor between two of them. It sends in every state but *Answered*. In *Left* and *Blocked* the
//! monitor sends as well: the lock puts the bytes in order. `restart` leads from any state to *Owner*: the reply is over, or another
//! one begins. What lies in a file is sent by a job in any of these states (`output/files.rs`), and the others stop in front of it.
//!
//! The monitor has a list of outputs in *Left*, and looks at them with each tick. It is told of one once: a stream of many pieces
//! stays *Left* for as long as bytes come, and for one tick more. A monitor that looks with each tick is not woken (`waiting/attention.rs`). Of a *Blocked* one the kernel tells, or the reactor if it is a stream of HTTP/2. So a stream that says nothing,
//! and one whose client does not read, costs nothing.
use tricorn_proto::message::{Method, Version};

#[derive(Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Only the owner sends.
    #[default]
    Owner,
    /// Nothing was sent of a reply that has a time limit: the monitor may answer in the owner's place.
    Unanswered(Asked),
    /// The monitor has answered. The owner sends nothing more.
    Answered,
    /// A whole answer waits to be sent with others.
    Held,
    /// The monitor sends what waits, at its next tick. `fresh`: bytes were left since it looked last.
    Left { fresh: bool },
    /// The monitor sends what waits when the socket has room.
    Blocked,
}

/// The parts of a request that the monitor's answer depends on.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: Method,
    pub version: Version,
    /// The value of X-Request-ID; empty: none is sent.
    pub request_id: Box<[u8]>,
}

/// The outcome of a look by the monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    AllSent,
    /// The socket takes no more, and the kernel will tell when it does.
    Full,
    /// The socket takes no more, and cannot be watched.
    Unwatched,
    /// A job is at what is next.
    Away,
    /// The connection is broken, which the owner will find.
    Broken,
}

impl Turn {
    /// The owner is about to send. Whether it may.
    #[inline]
    pub fn begin(&mut self) -> bool {
        match self {
            Turn::Owner | Turn::Left { .. } | Turn::Blocked => true,
            Turn::Unanswered(_) | Turn::Held => {
                *self = Turn::Owner;
                true
            }
            Turn::Answered => false,
        }
    }

    /// The monitor may answer from now on, if the owner has not.
    pub fn expect(&mut self, asked: Asked) {
        if *self == Turn::Owner {
            *self = Turn::Unanswered(asked);
        }
    }

    /// Leaves the bytes that wait to the monitor. Whether it is to be told.
    pub fn leave(&mut self) -> bool {
        match self {
            Turn::Owner => {
                *self = Turn::Left { fresh: true };
                true
            }
            Turn::Left { fresh } => {
                *fresh = true;
                false
            }
            Turn::Blocked => false,
            other => {
                debug_assert!(false, "bytes are left in {other:?}");
                false
            }
        }
    }

    /// The monitor has bytes to send.
    pub fn is_left(&self) -> bool {
        matches!(self, Turn::Left { .. } | Turn::Blocked)
    }

    /// The monitor has looked. Whether it is to look again at the next tick.
    pub fn looked(&mut self, looked: Looked) -> bool {
        let was_fresh = *self == Turn::Left { fresh: true };
        *self = match looked {
            _ if !self.is_left() => return false,
            Looked::AllSent if was_fresh => Turn::Left { fresh: false },
            Looked::Unwatched | Looked::Away => Turn::Left { fresh: false },
            Looked::Full => Turn::Blocked,
            Looked::AllSent | Looked::Broken => Turn::Owner,
        };
        matches!(self, Turn::Left { .. })
    }

    /// The reply is over, or another one begins. The state that ends.
    #[inline]
    pub fn restart(&mut self) -> Turn {
        std::mem::take(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        Asked { method: Method::Get, version: Version::Http11, request_id: Box::default() }
    }

    #[test]
    fn the_first_answer_is_the_only_one() {
        let mut turn = Turn::default();
        turn.expect(asked());
        assert!(turn.begin() && turn == Turn::Owner, "the monitor finds nothing to answer");
        turn.expect(asked());
        turn = Turn::Answered;
        assert!(!turn.begin() && !turn.begin(), "nor does the owner, ever");
        turn.expect(asked());
        assert_eq!(turn.restart(), Turn::Answered);
        assert!(turn.begin(), "the next reply is its own");
    }

    #[test]
    fn the_monitor_is_told_once_of_a_stream_and_forgets_one_that_says_nothing() {
        let mut turn = Turn::default();
        assert!(turn.leave() && !turn.leave());
        assert!(turn.looked(Looked::AllSent), "more may follow");
        assert!(!turn.leave());
        assert!(turn.looked(Looked::AllSent) && !turn.looked(Looked::AllSent));
        assert_eq!(turn, Turn::Owner);
        assert!(turn.leave(), "it is new again");
    }

    #[test]
    fn the_kernel_tells_of_a_full_socket_unless_it_cannot_be_watched() {
        let mut turn = Turn::default();
        turn.leave();
        assert!(turn.looked(Looked::Unwatched) && turn.looked(Looked::Away), "it is asked again");
        assert!(!turn.looked(Looked::Full) && turn == Turn::Blocked);
        assert!(!turn.leave() && turn.begin(), "the owner adds to what waits");
        assert!(!turn.looked(Looked::Full) && !turn.looked(Looked::AllSent));
        assert_eq!(turn, Turn::Owner);
    }

    #[test]
    fn a_look_that_comes_late_changes_nothing() {
        let mut turn = Turn::default();
        turn.leave();
        turn.restart();
        assert!(!turn.looked(Looked::AllSent) && turn == Turn::Owner);
        turn.expect(asked());
        assert!(!turn.looked(Looked::Broken) && turn == Turn::Unanswered(asked()));
    }
}
