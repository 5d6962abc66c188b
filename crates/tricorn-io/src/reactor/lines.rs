//! Requests of one HTTP/2 connection that wait: one of them stands in the queue, the others behind it.
//!
//! ```text
//!   queue:  A1 ── b ── c ── D1        A2 takes its place at the end of the queue when A1 has left it and another request is to begin
//!           └ A2, A3, A4    └ D2
//! ```
//!
//! A client with a hundred streams has one turn among the others, and not a hundred: connections are served in rounds. Nothing is held
//! back by that: when nobody else waits, the end of the queue is its front.
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub id: RequestId,
    /// The HTTP/2 connection that it came by.
    pub trunk: Option<Token>,
    /// When it was complete, or a later time that gives it its place in the queue.
    pub complete: u64,
    /// Until when it may wait; `u64::MAX`: as long as it likes.
    pub due: u64,
}

/// By connections that have a request in the queue: those behind it, by the time at which they were complete.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: BTreeMap<Token, VecDeque<Waiting>>,
    /// Requests in all lines.
    count: usize,
}

impl Lines {
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// A request of this connection is served now: the next ones wait behind it. False: one of it stands in the queue already.
    pub fn begin(&mut self, trunk: Token) -> bool {
        match self.lines.entry(trunk) {
            Entry::Vacant(line) => {
                line.insert(VecDeque::new());
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// The request, if none of its connection stands in the queue: it does from now on. Else it waits behind that one.
    pub fn join(&mut self, waiting: Waiting) -> Option<Waiting> {
        let Some(trunk) = waiting.trunk else { return Some(waiting) };
        match self.lines.entry(trunk) {
            Entry::Vacant(line) => {
                line.insert(VecDeque::new());
                Some(waiting)
            }
            Entry::Occupied(mut line) => {
                let line = line.get_mut();
                let at = line.partition_point(|other| other.complete <= waiting.complete);
                line.insert(at, waiting);
                self.count += 1;
                None
            }
        }
    }

    /// A request of this connection has left the queue. The one that takes its turn: the oldest, or the newest.
    #[inline]
    pub fn follow(&mut self, trunk: Token, newest: bool) -> Option<Waiting> {
        let line = self.lines.get_mut(&trunk)?;
        let next = if newest { line.pop_back() } else { line.pop_front() };
        match next {
            Some(_) => self.count -= 1,
            None => {
                self.lines.remove(&trunk);
            }
        }
        next
    }

    /// Takes the newest request of the longest line.
    pub fn take_last(&mut self) -> Option<Waiting> {
        if self.count == 0 {
            return None;
        }
        let line = self.lines.values_mut().max_by_key(|line| line.len())?;
        let last = line.pop_back()?;
        self.count -= 1;
        Some(last)
    }

    /// Takes this request out; whether it was here.
    pub fn remove(&mut self, id: RequestId) -> bool {
        if self.count == 0 {
            return false;
        }
        for line in self.lines.values_mut() {
            if let Some(position) = line.iter().position(|waiting| waiting.id == id) {
                line.remove(position);
                self.count -= 1;
                return true;
            }
        }
        false
    }

    /// Keeps the requests for which `stays` says so.
    pub fn retain(&mut self, mut stays: impl FnMut(&Waiting) -> bool) {
        if self.count == 0 {
            return;
        }
        self.lines.values_mut().for_each(|line| line.retain(&mut stays));
        self.count = self.lines.values().map(VecDeque::len).sum();
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.lines.values().flatten()
    }
}
