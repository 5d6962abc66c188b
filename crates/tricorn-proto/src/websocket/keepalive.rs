//! When a silent peer is asked whether it is there, and when it is given up.
//!
//! ```text
//!             interval without a byte             timeout without a byte
//!   Listening ───────────────────────> Pinged ──────────────────────────> Dead
//!       ^            (Ping)               │                       (close, 1011)
//!       └────── any byte, the pong ───────┘
//! ```
//!
//! Any byte is a sign of life: a peer in the midst of a long message cannot answer in between. While the session does not read (the
//! application is behind) nothing can be heard, so the clock stands still. Times are nanoseconds of one clock that never
//! goes back.

/// What time has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Nothing,
    /// Send a Ping with this payload.
    Ping([u8; 8]),
    /// The peer did not answer in time. Told once.
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Listening,
    /// Since when there is no answer.
    Pinged(u64),
    Paused,
    Dead,
}

/// One connection's policy and state.
#[derive(Debug, Clone, Copy)]
pub struct Keepalive {
    /// 0: no pings.
    interval: u64,
    /// 0: no peer is given up.
    timeout: u64,
    /// When the last byte came.
    heard: u64,
    /// How many pings were sent; the payload of the last one.
    pings: u64,
    /// When that was, until it is answered.
    unanswered: Option<u64>,
    state: State,
}

impl Keepalive {
    /// A ping after `interval` without a byte (0: never), given up after another `timeout` (0: never).
    pub fn new(interval: u64, timeout: u64, now: u64) -> Keepalive {
        Keepalive { interval, timeout, heard: now, pings: 0, unanswered: None, state: State::Listening }
    }

    /// Bytes came.
    #[inline]
    pub fn heard(&mut self, now: u64) {
        self.heard = now;
        if let State::Pinged(_) = self.state {
            self.state = State::Listening;
        }
    }

    /// A Pong came: how long it took, if it is the answer to the last Ping. Others are ignored (RFC 6455 section 5.5.3:
    /// "A Pong frame MAY be sent unsolicited").
    pub fn pong(&mut self, payload: &[u8], now: u64) -> Option<u64> {
        self.heard(now);
        if payload != self.pings.to_be_bytes() {
            return None;
        }
        self.unanswered.take().map(|sent| now.saturating_sub(sent))
    }

    /// What comes is not read until `resume`.
    pub fn pause(&mut self) {
        if self.state != State::Dead {
            self.state = State::Paused;
        }
    }

    pub fn resume(&mut self, now: u64) {
        if self.state == State::Paused {
            self.heard = now;
            self.state = State::Listening;
        }
    }

    /// When `tick` has something to do, if nothing comes until then; `None`: never.
    #[inline]
    pub fn due_at(&self) -> Option<u64> {
        match self.state {
            State::Listening if self.interval > 0 => Some(self.heard.saturating_add(self.interval)),
            State::Pinged(since) if self.timeout > 0 => Some(since.saturating_add(self.timeout)),
            _ => None,
        }
    }

    /// May be called at any time, also too early.
    pub fn tick(&mut self, now: u64) -> Due {
        if self.due_at().is_none_or(|due| now < due) {
            return Due::Nothing;
        }
        match self.state {
            State::Listening => {
                self.pings += 1;
                self.unanswered = Some(now);
                self.state = State::Pinged(now);
                Due::Ping(self.pings.to_be_bytes())
            }
            State::Pinged(_) => {
                self.state = State::Dead;
                Due::Dead
            }
            // Unreachable by `due_at`; everything else waits.
            State::Paused | State::Dead => Due::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ping(number: u64) -> Due {
        Due::Ping(number.to_be_bytes())
    }

    #[test]
    fn a_silent_peer_is_asked_and_given_up() {
        let mut alive = Keepalive::new(20, 5, 100);
        assert_eq!(alive.due_at(), Some(120));
        assert_eq!(alive.tick(119), Due::Nothing);
        assert_eq!(alive.tick(121), ping(1));
        assert_eq!(alive.due_at(), Some(126));
        assert_eq!(alive.tick(125), Due::Nothing);
        assert_eq!(alive.tick(126), Due::Dead);
        assert_eq!((alive.tick(200), alive.due_at()), (Due::Nothing, None), "told once");
    }

    #[test]
    fn an_answer_is_measured_and_any_byte_is_life() {
        let mut alive = Keepalive::new(20, 5, 0);
        assert_eq!(alive.tick(20), ping(1));
        assert_eq!(alive.pong(&1u64.to_be_bytes(), 23), Some(3));
        assert_eq!(alive.pong(&1u64.to_be_bytes(), 24), None, "answered already");
        assert_eq!(alive.due_at(), Some(44));
        assert_eq!(alive.tick(44), ping(2));
        alive.heard(48);
        assert_eq!((alive.tick(49), alive.due_at()), (Due::Nothing, Some(68)));
        assert_eq!(alive.pong(b"not asked for", 50), None);
        assert_eq!(alive.pong(&2u64.to_be_bytes(), 51), Some(7), "late, while the peer was heard");
        assert_eq!(alive.pong(b"", 52), None);
    }

    #[test]
    fn while_nobody_reads_the_clock_stands_still() {
        let mut alive = Keepalive::new(20, 5, 0);
        assert_eq!(alive.tick(20), ping(1));
        alive.pause();
        assert_eq!((alive.tick(1000), alive.due_at()), (Due::Nothing, None));
        alive.resume(1000);
        assert_eq!(alive.due_at(), Some(1020));
        alive.resume(2000);
        assert_eq!(alive.due_at(), Some(1020), "it was not paused");
    }

    #[test]
    fn zero_means_never() {
        let mut never = Keepalive::new(0, 5, 0);
        assert_eq!((never.tick(u64::MAX), never.due_at()), (Due::Nothing, None));
        let mut patient = Keepalive::new(20, 0, 0);
        assert_eq!(patient.tick(20), ping(1));
        assert_eq!((patient.tick(u64::MAX), patient.due_at()), (Due::Nothing, None));
    }
}
