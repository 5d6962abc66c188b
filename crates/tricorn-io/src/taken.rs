//! A connection that the application has taken for itself, to speak another protocol over its socket.
use crate::engine::Engine;
use crate::exchange::Exchange;
use rustix::fd::AsFd;

impl Engine {
    /// From now on the socket is the application's: nothing happens to it until the exchange is over, and then it is closed.
    /// Returns what was read behind the request.
    pub fn let_go(&self, exchange: &mut Exchange) -> Vec<u8> {
        if std::mem::replace(&mut exchange.taken, true) {
            return Vec::new();
        }
        self.shared.baton.take().reactor.let_go(exchange.token, exchange.socket.as_fd())
    }
}

impl Exchange {
    /// The application has the socket, and has not answered by way of us.
    pub fn is_elsewhere(&self) -> bool {
        self.taken && !self.request.reply.has_status()
    }
}
