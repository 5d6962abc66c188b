//! A connection that the application has taken for itself, to speak another protocol over its socket.
use super::Engine;
use crate::exchange::Exchange;
use crate::exchange::lane::Descriptor;
use crate::exchange::timers::Timers;
use crate::scoreboard::Phase;

impl Engine {
    /// From now on the socket is the application's: nothing happens to it until the exchange is over, and then it is closed.
    /// Returns what was read behind the request.
    ///
    /// What `request_timeout` does to the call it does from now on without an answer of ours: a 504 in the midst of another
    /// protocol would be taken for a part of that. If the monitor has answered already, the socket is closed for writing.
    pub fn let_go(&self, exchange: &mut Exchange) -> Vec<u8> {
        if !exchange.lane.take() {
            return Vec::new();
        }
        exchange.lane.output().may_write();
        let slot = &self.shared.waiting.slots[exchange.slot];
        slot.progress.exempt(slot.calls());
        self.note_phase(exchange, Phase::Upgraded);
        exchange.timers = Timers::default();
        let Descriptor::Own(socket) = exchange.lane.descriptor();
        self.shared.baton.take().reactor.let_go(exchange.lane.id(), socket)
    }
}

impl Exchange {
    /// The application has the socket, and has not answered by way of us.
    pub fn is_elsewhere(&self) -> bool {
        self.lane.is_taken() && !self.request.reply.has_status()
    }
}
