//! What became of connections that concerns those who take new ones.
use crate::config;
use crate::sys::poll::Token;

#[derive(Debug, Default)]
pub struct Updates {
    /// Handshakes that are under way no more.
    handshakes_over: Vec<Token>,
    /// A descriptor was closed.
    is_freed: bool,
    /// A connection is waited for, and may stay for long.
    stays: bool,
    /// Since when a connection is in the poller whose request may be over soon; 0: there is none.
    newcomer: u64,
}

impl Updates {
    pub(super) fn handshake_is_over(&mut self, token: Token) {
        self.handshakes_over.push(token);
    }

    #[inline]
    pub(super) fn descriptor_is_free(&mut self) {
        self.is_freed = true;
    }

    /// A connection is waited for, and may stay for long: other workers come first for the next ones, if they have fewer.
    #[inline]
    pub(super) fn connection_stays(&mut self) {
        self.stays = true;
    }

    /// A request of a connection waits. Whether other workers come first for the next one is seen when the connection is kept, or
    /// has waited for longer than a short request does: workers that took turns at these would each find their memory gone from
    /// the processor's caches.
    pub(super) fn connection_may_stay(&mut self, now: u64) {
        if self.newcomer == 0 {
            self.newcomer = now;
        }
    }

    /// A connection that was waited for already is kept.
    #[inline]
    pub(super) fn connection_is_kept(&mut self) {
        self.stays |= std::mem::take(&mut self.newcomer) != 0;
    }

    /// A hub comes. A connection whose request waits for longer than a short one is there for long.
    #[inline]
    pub fn sort_newcomer(&mut self, now: impl FnOnce() -> u64) {
        if self.newcomer != 0 && now() >= self.newcomer + config::TICK {
            self.newcomer = 0;
            self.stays = true;
        }
    }

    #[inline]
    pub fn are_there(&self) -> bool {
        self.is_freed || self.stays || !self.handshakes_over.is_empty()
    }

    pub fn take_handshakes_over(&mut self) -> Vec<Token> {
        std::mem::take(&mut self.handshakes_over)
    }

    /// Whether a descriptor was closed since this was asked last.
    pub fn take_freed(&mut self) -> bool {
        std::mem::take(&mut self.is_freed)
    }

    /// Whether a connection came to stay since this was asked last.
    pub fn take_stays(&mut self) -> bool {
        std::mem::take(&mut self.stays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_counts_when_it_has_stayed_or_is_kept() {
        let mut updates = Updates::default();
        updates.sort_newcomer(|| u64::MAX);
        updates.connection_is_kept();
        assert!(!updates.are_there());
        updates.connection_may_stay(1_000);
        updates.connection_may_stay(2_000);
        updates.sort_newcomer(|| 1_000 + config::TICK - 1);
        assert!(!updates.take_stays());
        updates.sort_newcomer(|| 1_000 + config::TICK);
        assert!(updates.take_stays() && !updates.take_stays());
        updates.connection_may_stay(3_000);
        updates.connection_is_kept();
        assert!(updates.take_stays());
        updates.connection_is_kept();
        assert!(!updates.take_stays());
    }
}
