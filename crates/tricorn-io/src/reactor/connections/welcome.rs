//! A connection that has just been accepted.
use super::Connections;
use super::conn::{Conn, Origin};
use super::phase::Change;
use super::stage::Stage;
use crate::peer::Peer;
use crate::scoreboard::Word;
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::fd::OwnedFd;

/// A connection as a listener brings it.
pub struct Newcomer {
    pub socket: OwnedFd,
    pub peer: Peer,
    /// The listener that it came by.
    pub listener: u16,
}

impl Connections {
    /// Takes it in. Its token.
    pub fn welcome(&mut self, newcomer: Newcomer, now: u64) -> Token {
        let Newcomer { socket, peer, listener } = newcomer;
        let origin = Origin { peer, listener, trusted: self.config.policy.trust.allows(peer.ip()) };
        let mut conn = Conn::new(Stream::new(socket), origin);
        conn.stage = Stage::first(listener, &self.config);
        let token = self.conns.insert(conn);
        self.board.add(Word::Accepted, 1);
        self.board.set(Word::Connections, self.len() as u64);
        if let Some(conn) = self.conns.get_mut(token) {
            let serial = &mut conn.serial;
            serial.resume_at(0, self.deadlines.lifetime().draw(now));
            self.deadlines.enter(token, &mut conn.phase, Change::Accepted, now);
            if self.config.is_tls_at(listener) {
                self.deadlines.enter(token, &mut conn.phase, Change::HandshakeBegun, now);
            }
        }
        token
    }
}
