//! A reply is with the kernel: the next request, or the end.
use super::Connections;
use crate::reactor::outgoing::Then;
use crate::sys::poll::Token;

impl Connections {
    /// All of a response is with the kernel.
    pub(super) fn go_on(&mut self, token: Token, then: Then, now: u64) {
        match then {
            Then::Next => self.finish_reply(token, true, now),
            Then::End => self.finish_reply(token, false, now),
            Then::Linger => self.linger(token),
        }
    }

    /// `now`: the time, or that of a moment ago.
    #[inline]
    pub(super) fn finish_reply(&mut self, token: Token, reuse: bool, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.has_one_request() {
            self.close(token);
            return;
        }
        if !reuse {
            if conn.has_unread_input() {
                self.linger(token);
            } else {
                self.close_gracefully(token);
            }
            return;
        }
        conn.served = true;
        let serial = &mut conn.serial;
        serial.next_request();
        if self.deadlines.timeouts().ends_idle() && conn.is_done_with() {
            self.end_idle(token);
            return;
        }
        let serial = &mut conn.serial;
        self.deadlines.keep(token, &mut conn.phase, serial.last_from(), now);
        if conn.edges.is_readable() || conn.serial.holds_input() {
            self.later(token);
        } else if !conn.edges.is_registered() {
            self.register(token);
        } else {
            self.updates.connection_is_kept();
        }
    }
}
