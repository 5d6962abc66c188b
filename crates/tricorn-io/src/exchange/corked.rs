//! The exchange's side of its cork (`cork.rs`): pieces that follow one another closely gather there.
use super::cork::{self, Cork};
use super::outbox::{Outbox, SharedBytes};
use crate::clock;
use crate::stream::Stream;
use std::sync::Arc;

#[derive(Default)]
pub struct Corked {
    /// Open once the reply turned out to come in many pieces.
    cork: Option<Arc<Cork>>,
    /// The outbox is in the cork.
    is_inside: bool,
    /// The monitor does not know of that yet.
    is_news: bool,
    /// When the last piece came.
    last_piece: u64,
}

impl Corked {
    #[inline]
    pub fn is_open(&self) -> bool {
        self.cork.is_some()
    }

    /// Opens the cork for this stream, which is kept for as long.
    pub fn open(&mut self, cork: &Arc<Cork>, stream: &Stream) {
        cork.open(stream);
        self.cork = Some(cork.clone());
    }

    /// Whether this piece came right after the last one.
    ///
    /// False without a cork to gather them.
    #[inline]
    pub fn is_rapid(&mut self, piece: &[u8]) -> bool {
        let last = std::mem::replace(&mut self.last_piece, clock::now());
        self.is_open() && self.last_piece - last < cork::RAPID && piece.len() < cork::FULL
    }

    #[inline]
    pub fn last_piece(&self) -> u64 {
        self.last_piece
    }

    /// Leaves what waits to the monitor.
    #[inline]
    pub fn put(&mut self, outbox: &mut Outbox) {
        if let Some(cork) = &self.cork
            && !outbox.is_empty()
        {
            self.is_news |= cork.put(outbox);
            self.is_inside = true;
        }
    }

    /// Whether the monitor is to be told that bytes wait, once.
    #[inline]
    pub fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }

    /// Takes back what was left to the monitor.
    #[inline]
    pub fn take(&mut self, outbox: &mut Outbox, spent: &mut Vec<SharedBytes>) {
        if let Some(cork) = self.cork.as_ref().filter(|_| self.is_inside) {
            cork.take(outbox, spent);
            self.is_inside = false;
        }
    }

    /// Takes back what was left, and closes the cork.
    #[inline]
    pub fn close(&mut self, outbox: &mut Outbox, spent: &mut Vec<SharedBytes>) {
        self.take(outbox, spent);
        if let Some(cork) = self.cork.take() {
            cork.close();
        }
    }
}

impl Drop for Corked {
    /// The exchange is dropped, and its socket closed behind this: nothing more is sent by the cork.
    #[inline]
    fn drop(&mut self) {
        if let Some(cork) = self.cork.take() {
            cork.close();
        }
    }
}
