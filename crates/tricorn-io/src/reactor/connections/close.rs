//! The end of a connection, and of what requests have.
use super::Connections;
use super::conn::{Conn, Role};
use super::phase::Phase;
use super::trunk_reader::Released;
use crate::clock;
use crate::scoreboard::Word;
use crate::sys::poll::Token;

impl Connections {
    /// Ends a connection whose client has all that it was to have.
    pub(super) fn close_gracefully(&mut self, token: Token) {
        if let Some(stream) = self.conns.get(token).and_then(|conn| conn.stream()) {
            stream.send_close_notify();
        }
        self.close(token);
    }

    /// Ends a connection on which nothing is asked.
    pub(super) fn end_idle(&mut self, token: Token) {
        self.board.add(Word::IdleCloses, 1);
        self.close_gracefully(token);
    }

    /// The entry of a stream is no more.
    fn stream_is_over(&mut self, trunk: Token, id: u32) {
        let Some(Role::Trunk(reader)) = self.conns.get_mut(trunk).map(|conn| &mut conn.role) else { return };
        let now = clock::now();
        match reader.release(id, now) {
            Released::Last => self.later(trunk),
            Released::Unsent if self.work.hold(trunk, now) => self.later(trunk),
            Released::Unsent | Released::Sent => {}
        }
    }

    /// Ends a connection. What Python owns goes to the chores: this may be the monitor's thread.
    pub fn close(&mut self, token: Token) {
        let Some(conn) = self.conns.remove(token) else { return };
        let Conn { output, mut phase, mut serial, attachment, role, .. } = conn;
        if let Some(output) = output {
            self.chores.end(output);
        }
        if matches!(phase.get(), Phase::Handshaking) {
            self.updates.handshake_is_over(token);
        }
        if let Some(request) = serial.end() {
            self.recycle(request);
        }
        match phase.get_mut() {
            Phase::Flushing(outgoing) => self.extra.closed(outgoing.release_file()),
            Phase::Bridged(bridge) => {
                if bridge.part() {
                    self.extra.bridge_ends();
                }
                bridge.clear(&mut self.chores.spent);
            }
            Phase::OnLoan(loan) => {
                self.extra.loan_ends();
                loan.clear(&mut self.chores.spent);
            }
            _ => {}
        }
        self.chores.attachments.extend(attachment);
        match role {
            Role::Connection | Role::Borrowed => {}
            Role::Trunk(reader) => {
                let mut entries = Vec::new();
                reader.trunk().break_off(|entry| entries.push(entry));
                entries.into_iter().for_each(|entry| self.later(entry));
            }
            Role::Stream { trunk, id } => {
                self.stream_is_over(trunk, id);
                return;
            }
        }
        self.board.set(Word::Connections, self.len() as u64);
        self.updates.descriptor_is_free();
    }
}
