//! A worker that leaves, and its end.
use super::Connections;
use crate::config;
use crate::exchange::outbox::SharedBytes;
use crate::reactor::chores::Chores;

impl Connections {
    /// Shortens, from now on, what clients may wait.
    pub fn drain(&mut self) {
        self.deadlines.drain();
    }

    /// Closes connections that no exchange holds, from this place of the table on; where to go on.
    pub fn close_from(&mut self, start: usize) -> Option<usize> {
        let positions = self.conns.positions();
        for position in start..positions.min(start + config::SWEEP) {
            if self.work.is_hold_over() {
                return Some(position);
            }
            let found = self.conns.at(position).filter(|(_, conn)| !conn.phase.get().is_busy());
            if let Some((token, conn)) = found {
                let is_bridged = conn.phase.get().is_bridged();
                self.work.takes_step();
                if is_bridged { self.abandon_bridge(token) } else { self.close(token) }
            }
        }
        (start + config::SWEEP < positions).then_some(start + config::SWEEP)
    }

    /// Takes what jobs have brought back. They have ended.
    pub fn take_all_returned(&mut self) {
        while self.take_returned().is_some() {}
    }

    /// Owners of bytes that are sent.
    pub fn take_owners(&mut self, mut owners: Vec<SharedBytes>) {
        self.chores.spent.append(&mut owners);
    }

    pub fn take_chores(&mut self) -> Chores {
        std::mem::take(&mut self.chores)
    }
}
