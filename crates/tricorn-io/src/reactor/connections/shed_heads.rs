//! Which unfinished heads are given up when all of them together take too much memory (`head_memory.rs`).
//!
//! The longest heads are answered 503, of equal ones the oldest. A head that came with one read is complete before it is
//! counted.
use super::Connections;
use super::reject::{After, Rejection, Unbegun};
use crate::clock;
use crate::config;
use crate::exchange::buffers::INPUT;
use crate::exchange::id::RequestId;
use crate::reactor::warnings::Incident;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use std::cmp::Reverse;
use tricorn_proto::access_log::Outcome;

const TOO_MANY: Rejection<'_> = Rejection::for_now(
    "This server is receiving too many request heads at once; the request was not begun.",
    Unbegun::Capacity,
    After::Linger,
    Outcome::HeadMemory,
);

/// Most heads that are given up at a time.
const MOST: usize = (config::STEPS / config::REJECTION_STEPS) as usize;

impl Connections {
    /// More of this head is still to come: counts what there is so far.
    pub(super) fn count_head(&mut self, id: RequestId) {
        if let Some(request) = self.conns.request_mut(id)
            && self.buffers.count_head(request)
        {
            self.shed_heads();
        }
    }

    /// The same of the head that is being read, if one is.
    pub(super) fn count_reading(&mut self, token: Token) {
        let Some(conn) = self.conns.get(token).filter(|conn| conn.phase.get().is_before_body()) else { return };
        let serial = &conn.serial;
        self.count_head(serial.current(token));
    }

    #[cold]
    fn shed_heads(&mut self) {
        let conns = &self.conns;
        let mut found: Vec<_> = conns
            .iter()
            .filter_map(|(token, conn)| {
                let serial = &conn.serial;
                let id = serial.current(token);
                let request = serial.request(id).filter(|request| request.counted.head > 0)?;
                // What was sent counts, not how large a buffer of the pool it got.
                Some((Reverse(request.input.len() / INPUT), conn.phase.deadline(), id))
            })
            .collect();
        if found.len() > MOST {
            found.select_nth_unstable(MOST);
            found.truncate(MOST);
        }
        found.sort_unstable();
        // The longest of them takes no less than what is too much: the limit holds however few are given up.
        for (nr, (_, _, id)) in found.into_iter().enumerate() {
            if self.buffers.are_heads_relieved() || nr > 0 && self.work.is_hold_over() {
                break;
            }
            self.log.warn(Incident::HeadRefused);
            self.reject(id, &TOO_MANY, Word::HeadsShed);
        }
        self.tell_shortage(clock::now());
    }
}
