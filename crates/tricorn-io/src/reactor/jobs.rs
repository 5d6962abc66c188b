//! Work that takes too long for a holder of the baton: the handshakes of TLS, 0.1 to 3 ms each.
//!
//! ```text
//!   a flight of a client's has come ──▶ queue ──next──▶ Job: the connection's output is out
//!                                                        │ run, without the baton: an idle app thread or hub, or the monitor
//!   open, or one flight further, or failed  ◀──returned──┘
//! ```
//!
//! One job is out at a time, and requests that are ready come before the next one: a flood of handshakes takes the time that is left, and
//! slows new connections only. What is done with a job that is back: `connections/handshake.rs`.
use crate::clock;
use crate::config::Config;
use crate::exchange::output::Output;
use crate::scoreboard::Scoreboard;
use crate::secured::{HandshakeOutcome, SessionMemory, Sessions};
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::fd::{AsRawFd, RawFd};
use std::collections::VecDeque;

/// A handshake that goes on by as much as its client has sent.
#[derive(Debug)]
pub struct Job {
    pub(super) token: Token,
    pub(super) output: Output,
    /// Bytes that were read before.
    first: Vec<u8>,
    sessions: Sessions,
    pub(super) outcome: HandshakeOutcome,
    /// Nanoseconds that it took.
    pub(super) took: u64,
}

impl Job {
    pub(super) fn new(token: Token, output: Output, first: Vec<u8>, sessions: Sessions) -> Job {
        Job { token, output, first, sessions, outcome: HandshakeOutcome::NotYet, took: 0 }
    }

    /// Takes its time.
    pub fn run(&mut self) {
        let begun = clock::now();
        self.outcome = self.output.stream().handshake(&std::mem::take(&mut self.first), &self.sessions);
        self.took = clock::now().saturating_sub(begun);
    }

    pub(super) fn take_complaint(&self) -> Option<String> {
        self.sessions.source.take_complaint()
    }
}

/// After so many short jobs a long one is forgotten by half, about.
const FORGETS: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct Handshakes {
    sessions: Option<Sessions>,
    /// Most that may be under way.
    most: usize,
    under_way: usize,
    /// Connections that have sent something, and since when the first of them waits.
    queue: VecDeque<Token>,
    since: u64,
    /// Handshakes under way that were not looked at for one that has said nothing, the oldest first.
    newcomers: VecDeque<Token>,
    /// The socket of the job that is out.
    out: Option<RawFd>,
    /// Nanoseconds that the longest job took, of the last ones.
    longest: u64,
}

impl Handshakes {
    pub fn new(config: &Config, board: Scoreboard) -> Handshakes {
        Handshakes {
            sessions: config.tls.as_ref().map(|tls| Sessions {
                source: tls.source.clone(),
                memory: SessionMemory::new(board, tls.buffer_total),
            }),
            most: config.tls.as_ref().map_or(0, |tls| tls.pending_handshakes.max(1)),
            ..Handshakes::default()
        }
    }

    /// A connection came in by a listener with TLS.
    pub fn begins(&mut self, token: Token) {
        self.under_way += 1;
        self.newcomers.push_back(token);
    }

    /// A handshake is over, whatever came of it. Whether there is room again, after there was none.
    pub fn ends(&mut self, token: Token) -> bool {
        self.under_way = self.under_way.saturating_sub(1);
        // Most handshakes that are under way began before it: `most` bounds their number.
        if let Some(place) = self.newcomers.iter().rposition(|newcomer| *newcomer == token) {
            self.newcomers.remove(place);
        }
        self.under_way + 1 == self.most
    }

    pub fn under_way(&self) -> usize {
        self.under_way
    }

    #[inline]
    pub fn are_too_many(&self) -> bool {
        self.under_way >= self.most && self.sessions.is_some()
    }

    /// The oldest newcomer that was not asked for yet.
    pub fn next_newcomer(&mut self) -> Option<Token> {
        self.newcomers.pop_front()
    }

    /// The client has sent something. No connection is put in twice: it has no edge before it was read.
    pub fn queue(&mut self, token: Token) {
        if self.queue.is_empty() {
            self.since = clock::now();
        }
        self.queue.push_back(token);
    }

    /// Whether one can be taken out.
    #[inline]
    pub fn has_job(&self) -> bool {
        !self.queue.is_empty() && self.out.is_none()
    }

    /// For how many nanoseconds jobs have waited; 0: there are none.
    pub fn waited(&self, now: u64) -> u64 {
        if self.has_job() { now.saturating_sub(self.since).max(1) } else { 0 }
    }

    /// The connection whose turn it is.
    pub fn next(&mut self) -> Option<(Token, Sessions)> {
        let sessions = self.sessions.clone().filter(|_| self.out.is_none())?;
        let token = self.queue.pop_front()?;
        self.since = clock::now();
        Some((token, sessions))
    }

    pub fn check_out(&mut self, stream: &Stream) {
        self.out = Some(stream.socket().as_raw_fd());
    }

    /// It is back, after so many nanoseconds.
    pub fn check_in(&mut self, took: u64) {
        self.out = None;
        self.longest = took.max(self.longest - self.longest / FORGETS);
    }

    /// Whether the next one is likely to be done within so many nanoseconds.
    pub fn are_short(&self, most: u64) -> bool {
        self.longest <= most
    }

    /// The socket that is out.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::MILLI;

    #[test]
    fn nothing_is_left_of_a_handshake_that_is_over_while_another_goes_on() {
        let mut handshakes = Handshakes::default();
        handshakes.begins(1);
        for token in 2..10_000 {
            handshakes.begins(token);
            handshakes.ends(token);
        }
        assert_eq!(handshakes.newcomers, [1]);
        assert_eq!((handshakes.next_newcomer(), handshakes.next_newcomer()), (Some(1), None));
    }

    #[test]
    fn one_long_job_makes_the_next_ones_long_for_a_while() {
        let mut handshakes = Handshakes::default();
        assert!(handshakes.are_short(MILLI), "none was long");
        handshakes.check_in(3 * MILLI);
        assert!(!handshakes.are_short(MILLI));
        let shorts = (1..).find(|_| {
            handshakes.check_in(MILLI / 10);
            handshakes.are_short(MILLI)
        });
        assert!(shorts.is_some_and(|shorts| (10..50).contains(&shorts)), "{shorts:?}");
    }
}
