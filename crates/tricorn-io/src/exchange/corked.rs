//! The exchange's side of its cork (`cork.rs`): pieces that follow one another closely gather there.
use super::cork::{self, Cork};
use super::{Exchange, Sent};
use crate::clock;
use rustix::fd::AsFd;
use std::sync::Arc;

impl Exchange {
    /// The head is out and there is no cork yet: another piece makes the reply a stream.
    pub(crate) fn wants_cork(&self) -> bool {
        self.cork.is_none() && self.request.reply.head_sent()
    }

    /// The client has not taken all that was written.
    pub(crate) fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub(crate) fn open_cork(&mut self, cork: &Arc<Cork>) {
        if cork.open(self.socket.as_fd()).is_ok() {
            self.cork = Some(cork.clone());
            self.recork();
        }
    }

    /// Whether this piece came right after the last one, and there is a cork to gather them.
    pub(super) fn is_rapid(&mut self, piece: &[u8]) -> bool {
        let last = std::mem::replace(&mut self.last_piece, clock::now());
        self.cork.is_some() && self.last_piece - last < cork::RAPID && piece.len() < cork::FULL
    }

    /// When the application last wrote a piece of which more were to come.
    pub(crate) fn last_piece(&self) -> u64 {
        self.last_piece
    }

    /// Puts a piece behind those that wait, and sends them all if they are enough.
    pub(super) fn gather(&mut self, piece: &[u8], after: &[u8]) -> Sent {
        for part in [&self.request.out, piece, after] {
            self.outbox.push(part);
        }
        if self.outbox.in_memory() >= cork::FULL { self.flush() } else { Sent::Accepted }
    }

    /// Leaves what waits to the monitor, until the next piece comes.
    pub(crate) fn recork(&mut self) {
        if let Some(cork) = &self.cork
            && !self.outbox.is_empty()
        {
            cork.put(&mut self.outbox);
            self.corked = true;
        }
    }

    /// Takes back what was left to the monitor.
    pub(crate) fn uncork(&mut self) {
        if let Some(cork) = self.cork.as_ref().filter(|_| self.corked) {
            cork.take(&mut self.outbox, &mut self.spent);
            self.corked = false;
        }
    }

    pub(super) fn close_cork(&mut self) {
        self.uncork();
        if let Some(cork) = self.cork.take() {
            cork.close();
        }
    }
}
