//! Connections in the poller.
use super::Connections;
use super::conn::Conn;
use crate::sys::poll::Token;

impl Connections {
    /// Puts a connection into the poller, once; an edge that came before is reported by the first wait.
    pub fn register(&mut self, token: Token) {
        match self.conns.watch(token) {
            Ok(true) if self.conns.get(token).is_some_and(Conn::is_stream) => {}
            Ok(true) => self.updates.connection_stays(),
            Ok(false) => {}
            Err(_) => self.close(token),
        }
    }
}
