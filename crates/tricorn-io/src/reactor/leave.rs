//! A worker that leaves, and its end.
use super::Reactor;
use super::chores::Chores;
use crate::exchange::outbox::SharedBytes;

impl Reactor {
    /// The listeners stay for a moment: a client that has connected already is still served. Idle connections get a moment too,
    /// in which a request already on its way is answered.
    pub fn drain(&mut self, now: u64) {
        self.connections.drain();
        self.dispatch.leave();
        if self.board.orders_yield() {
            self.leave_listeners();
        } else {
            self.accepting.call_last(now);
        }
        if self.board.orders_replaced() {
            self.leave_admin();
        }
        self.connections.shorten_idle(now);
        self.act_on_updates();
    }

    /// Whether clients that were idle when the worker began to leave are gone, but for newcomers; goes on with it.
    pub fn has_parted(&mut self, now: u64) -> bool {
        self.connections.has_parted(now)
    }

    /// Closes the listeners. To be followed by `close_from`.
    pub fn close_gate(&mut self) {
        self.connections.send_held();
        self.connections.drain();
        self.dispatch.leave();
        self.set_gate(false);
        self.accepting.close();
        self.admin.close_all();
    }

    /// Closes connections that no exchange holds, from this position of the table on; where to go on.
    pub fn close_from(&mut self, start: usize) -> Option<usize> {
        self.connections.close_from(start)
    }

    /// Takes what jobs have brought back. They have ended.
    pub fn take_all_returned(&mut self) {
        self.connections.take_all_returned();
    }

    /// Owners of bytes that are sent.
    pub fn take_owners(&mut self, owners: Vec<SharedBytes>) {
        self.connections.take_owners(owners);
    }

    pub fn take_chores(&mut self) -> Chores {
        self.connections.take_chores()
    }
}
