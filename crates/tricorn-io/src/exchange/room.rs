//! A producer that is too far ahead of its client waits: its thread does, or whoever asks waits in a way of its own.
use super::patience::Patience;
use super::{Exchange, Sent};
use crate::clock;
use crate::config::Config;

/// Whether there is room for the next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// The socket should take bytes within so many nanoseconds.
    Wanted(u64),
    Over(Sent),
}

impl Exchange {
    /// How long the client may take from now on. Whoever does not block asks [`Exchange::room`] with it, and waits until
    /// the socket takes bytes, until that is over.
    pub fn patience(&mut self, config: &Config) -> Patience {
        self.uncork();
        // As for the rest of a reply (`flush_expired`): progress is the minimum rate, not a byte.
        Patience {
            wanted: config.progress(),
            mark: self.outbox.sent(),
            deadline: clock::now() + config.write_timeout,
            late: if config.request_timeout > 0 { self.timing.started + config.request_timeout } else { u64::MAX },
        }
    }

    /// Sends what the socket takes; then there is room, or no hope, or so long to be waited.
    pub fn room(&mut self, config: &Config, patience: &mut Patience) -> Room {
        self.room_at(self.low, config, patience)
    }

    /// The same; there is room when no more than `level` bytes are left.
    pub(crate) fn room_at(&mut self, level: usize, config: &Config, patience: &mut Patience) -> Room {
        if self.flush() == Sent::Gone {
            return Room::Over(Sent::Gone);
        }
        if self.outbox.in_memory() <= level {
            self.recork();
            return Room::Over(Sent::Accepted);
        }
        let now = clock::now();
        if self.outbox.sent() - patience.mark >= patience.wanted {
            patience.mark = self.outbox.sent();
            patience.deadline = now + config.write_timeout;
        }
        let end = patience.deadline.min(patience.late);
        if now >= end {
            self.timing.timed_out = true;
            return Room::Over(self.lost());
        }
        Room::Wanted(end - now)
    }
}
