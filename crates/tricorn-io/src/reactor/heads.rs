//! Memory of request heads that are not complete: all of them together have a limit, `head_buffer_total`.
//!
//! `limits` bounds each head, and `header_timeout` its time; many connections with long heads would still hold any amount.
//! Beyond the limit the longest heads are answered 503, of equal ones the oldest. A head that came with one read is complete
//! before it is counted.
use super::Reactor;
use super::reject::{After, Rejection};
use crate::clock;
use crate::exchange::buffers::{INPUT, Request};
use crate::scoreboard::{Scoreboard, Word};
use crate::sys::poll::Token;
use std::cmp::Reverse;

/// When there are too many, a 16th of the limit is freed, so that the table is not searched for each of them.
const SHARE: usize = 16;

const TOO_MANY: Rejection<'_> = Rejection::for_now(
    "This server is receiving too many request heads at once; the request was not begun.",
    After::Linger,
);

impl Reactor {
    /// More of this connection's head is still to come: counts what there is so far.
    pub(super) fn count_head(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token).filter(|conn| conn.phase.get().is_before_body()) else {
            return;
        };
        let Some(request) = conn.request.as_deref_mut() else { return };
        let before = std::mem::replace(&mut request.head_held, request.input.capacity());
        self.head_bytes = self.head_bytes - before + request.head_held;
        self.board.set(Word::HeadBytes, self.head_bytes as u64);
        if self.head_bytes > self.config.head_buffer_total {
            self.shed_heads();
        }
    }

    #[cold]
    fn shed_heads(&mut self) {
        let total = self.config.head_buffer_total;
        let conns = &self.conns;
        let mut found: Vec<_> = (0..conns.positions())
            .filter_map(|position| conns.at(position))
            .filter(|(_, conn)| !conn.is_admin())
            .filter_map(|(token, conn)| {
                let request = conn.request.as_deref().filter(|request| request.head_held > 0)?;
                // What was sent counts, not how large a buffer of the pool it got.
                Some((Reverse(request.input.len() / INPUT), conn.phase.deadline(), token))
            })
            .collect();
        found.sort_unstable();
        for (_, _, token) in found {
            if self.head_bytes <= total - total / SHARE {
                break;
            }
            self.shortage.memory += 1;
            self.reject(token, &TOO_MANY, Word::HeadsShed);
        }
        self.tell_shortage(clock::now());
    }
}

/// The head of this request is complete, or given up.
#[inline]
pub(super) fn uncount(held: &mut usize, board: &Scoreboard, request: &mut Request) {
    if request.head_held > 0 {
        *held -= std::mem::take(&mut request.head_held);
        board.set(Word::HeadBytes, *held as u64);
    }
}
