//! Memory of request heads that are not complete, which has a limit for all of them together (`head_buffer_total`).
//!
//! `limits` bounds each head, and `header_timeout` its time; many connections with long heads would still hold any amount.
//! What is done beyond the limit stands in `evict.rs`.
use crate::exchange::buffers::Request;
use crate::scoreboard::{Scoreboard, Word};

/// When there is too much, a 16th of the limit is freed, so that the table is not searched for each of them.
const SHARE: usize = 16;

#[derive(Debug)]
pub(super) struct HeadMemory {
    board: Scoreboard,
    limit: usize,
    held: usize,
}

impl HeadMemory {
    pub fn new(limit: usize, board: Scoreboard) -> HeadMemory {
        HeadMemory { board, limit, held: 0 }
    }

    /// More of this head is still to come: counts what there is so far. Whether all of them hold too much.
    pub fn count(&mut self, request: &mut Request) -> bool {
        let before = std::mem::replace(&mut request.counted.head, request.input.capacity());
        self.held = self.held - before + request.counted.head;
        self.tell();
        self.held > self.limit
    }

    /// The head of this request is complete, or given up.
    #[inline]
    pub fn uncount(&mut self, request: &mut Request) {
        if request.counted.head > 0 {
            self.held -= std::mem::take(&mut request.counted.head);
            self.tell();
        }
    }

    /// Enough was given up.
    pub fn is_relieved(&self) -> bool {
        self.held <= self.limit - self.limit / SHARE
    }

    /// A reader does not see more than the limit: the longest heads are refused before anything else happens.
    fn tell(&self) {
        if self.held <= self.limit {
            self.board.set(Word::HeadBytes, self.held as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(bytes: usize) -> Request {
        Request { input: Vec::with_capacity(bytes), ..Request::default() }
    }

    #[test]
    fn a_head_counts_once_and_only_while_it_is_unfinished() {
        let board = Scoreboard::private(1);
        let mut memory = HeadMemory::new(1_000, board);
        let mut request = head(300);
        assert!(!memory.count(&mut request) && !memory.count(&mut request));
        request.input.reserve_exact(500);
        memory.count(&mut request);
        assert_eq!(board.get(Word::HeadBytes), 500);
        memory.uncount(&mut request);
        memory.uncount(&mut request);
        assert_eq!(board.get(Word::HeadBytes), 0);
    }

    #[test]
    fn beyond_the_limit_a_share_of_it_is_freed() {
        let board = Scoreboard::private(1);
        let mut memory = HeadMemory::new(1_600, board);
        let mut heads = [head(1_500), head(60), head(60)];
        assert_eq!(heads.each_mut().map(|head| memory.count(head)), [false, false, true]);
        assert_eq!(board.get(Word::HeadBytes), 1_560, "a reader does not see what is about to be given up");
        memory.uncount(&mut heads[1]);
        assert!(!memory.is_relieved(), "1560 of 1600");
        memory.uncount(&mut heads[2]);
        assert!(memory.is_relieved());
    }
}
