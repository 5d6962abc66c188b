//! Whole answers that are held back, to be sent together: the first wakes the client, the rest find it awake.
use crate::config;
use crate::sys::poll::Token;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct HeldAnswers {
    tokens: VecDeque<Token>,
    /// When the first of them was held.
    since: u64,
}

impl HeldAnswers {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Holds one more. Whether they are to be sent now: there are enough of them, or the first waits for long enough.
    pub fn hold(&mut self, token: Token, now: u64) -> bool {
        if self.tokens.is_empty() {
            self.since = now;
        }
        self.tokens.push_back(token);
        self.tokens.len() >= config::HELD || now - self.since >= config::HOLD
    }

    /// Gives up the one that is held for longest.
    #[inline]
    pub fn next(&mut self) -> Option<Token> {
        self.tokens.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_of_them_are_sent() {
        let mut held = HeldAnswers::default();
        let most = config::HELD as Token;
        assert!((1..most).all(|token| !held.hold(token, 0)) && held.hold(most, 0));
        assert!((1..=most).all(|token| held.next() == Some(token)), "the first one first");
        assert!(held.is_empty() && !held.hold(1, 0));
    }

    #[test]
    fn the_first_does_not_wait_for_long() {
        let mut held = HeldAnswers::default();
        assert!(!held.hold(1, 10) && !held.hold(2, 9 + config::HOLD) && held.hold(3, 10 + config::HOLD));
    }
}
