//! How a response leaves that no application gave (`exchange/responder.rs`), and what its connection does then.
//!
//! ```text
//!   respond ── the socket takes all of it ───────────────────────────▶ Then
//!      └────── the rest ──▶ Flushing, under `write_timeout` ── sent ──▶ Then
//! ```
use super::Connections;
use super::phase::Change;
use crate::exchange::output::Progress;
use crate::reactor::outgoing::{Outgoing, Then};
use crate::scoreboard::Word;
use crate::sys::poll::Token;

/// What became of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// All of it is with the kernel.
    Whole,
    /// The connection is flushing the rest.
    Begun,
    /// The client has left, and its connection is closed.
    Failed,
}

impl Connections {
    /// Sends a response on a connection that nothing is being sent on. What the socket does not take is sent as the client
    /// reads, and `then` done after it. After [`Delivery::Whole`] it is the caller's to do.
    pub(super) fn respond(&mut self, token: Token, response: &[u8], then: Then, now: u64) -> Delivery {
        let Some(conn) = self.conns.get_mut(token) else { return Delivery::Failed };
        let Some(output) = &mut conn.output else { return Delivery::Failed };
        let (sent, progress) = output.reply(response);
        self.board.add(Word::BytesOut, sent);
        match progress {
            Progress::Sent => return Delivery::Whole,
            Progress::Gone => {
                self.close(token);
                return Delivery::Failed;
            }
            Progress::Waits { .. } | Progress::Left { .. } | Progress::Held => {}
        }
        let outgoing = Outgoing::new(output, then);
        self.deadlines.enter(token, &mut conn.phase, Change::Answered(outgoing), now);
        self.register(token);
        // Room that came before the poller watched made no edge.
        self.later(token);
        Delivery::Begun
    }
}
