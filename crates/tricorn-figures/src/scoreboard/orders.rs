//! What the arbiter has ordered, as the core reads it.
use super::{DRAIN, NOT_READY, RECONNECT, REPLACED, Scoreboard, Word, YIELD};

impl Scoreboard {
    /// Whether this worker should be sent no requests, though it serves those that come.
    pub fn orders_not_ready(&self) -> bool {
        self.get(Word::Orders) & NOT_READY != 0
    }

    /// Whether clients are to connect anew, since there are workers that have no connections yet.
    pub fn orders_reconnect(&self) -> bool {
        self.get(Word::Orders) & RECONNECT != 0
    }

    /// Whether each reply is to be the last of its connection.
    pub fn orders_close(&self) -> bool {
        self.get(Word::Orders) & (NOT_READY | RECONNECT) != 0
    }

    /// Whether the arbiter wants the core to drain.
    pub fn orders_drain(&self) -> bool {
        self.get(Word::Orders) & DRAIN != 0
    }

    /// Whether others serve on when this worker has left.
    pub fn orders_replaced(&self) -> bool {
        self.get(Word::Orders) & REPLACED != 0
    }

    /// Whether others serve the clients that connect from now on.
    pub fn orders_yield(&self) -> bool {
        self.get(Word::Orders) & YIELD != 0
    }
}
