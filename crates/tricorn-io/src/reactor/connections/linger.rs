//! The last moments of a connection: our side is closed, and what still comes is thrown away.
use super::Connections;
use super::phase::Change;
use crate::clock;
use crate::config;
use crate::sys::poll::Token;
use rustix::io::Errno;

/// Input thrown away per turn of a lingering connection.
const DISCARD: usize = 64 * 1024;

impl Connections {
    /// Closes our side and reads on for a moment: a close with unread input would reset the connection, and the client
    /// would lose the answer it has not read yet (RFC 9112 section 9.6).
    pub(super) fn linger(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.is_stream() {
            self.close(token);
            return;
        }
        let Some(stream) = conn.stream() else { return };
        if stream.end_sending().is_err() {
            self.close(token);
            return;
        }
        conn.edges.may_be_readable();
        self.deadlines.enter(token, &mut conn.phase, Change::Shut, clock::now());
        if let Some(request) = conn.serial.end() {
            self.recycle(request);
        }
        self.register(token);
        self.discard(token);
    }

    pub(super) fn discard(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(stream) = conn.stream() else { return };
        let scratch = self.buffers.scratch(DISCARD);
        let mut taken = 0;
        loop {
            match stream.discard(scratch) {
                Ok(0) => break,
                Ok(count) => {
                    taken += count;
                    self.work.spend(count);
                }
                Err(Errno::AGAIN) => return,
                Err(_) => break,
            }
            if taken >= config::READ_BURST || self.work.is_turn_over() {
                self.later(token);
                return;
            }
        }
        self.close(token);
    }
}
