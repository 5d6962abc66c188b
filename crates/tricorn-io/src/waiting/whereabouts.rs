//! Which call a hub's thread is at, for threads that look at it from outside.
//!
//! ```text
//!   a call begins ──▶ its slot is noted ──▶ it goes on later ──▶ what it is known by is noted (one store)
//!   a look ──▶ does one begin? else: which contexts is the thread in, and what do they name? ──▶ the call that is known by one of these
//! ```
//!
//! A call of a greenlet or a task has a context of its own (`contextvars`), or a variable of its context names it, which tasks copy. The
//! interpreter keeps the current context in a word of the thread's state. That word is read through the kernel, as everything of
//! Python's that is read from outside.
use crate::scoreboard::Scoreboard;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use tricorn_doctor::Marks;

/// A call by its slot and its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub slot: usize,
    pub started: u64,
}

/// Written by the hub's thread.
pub struct Whereabouts {
    /// The slot of the call that begins at this moment, and one; 0: none does.
    begins: AtomicUsize,
    /// By slot: the address of the context that the call runs in, or of what a variable of that context names; 0: not known.
    known_by: Box<[AtomicU64]>,
    marks: OnceLock<Marks>,
}

impl Whereabouts {
    pub fn new(slots: usize) -> Whereabouts {
        Whereabouts {
            begins: AtomicUsize::new(0),
            known_by: (0..slots).map(|_| AtomicU64::new(0)).collect(),
            marks: OnceLock::new(),
        }
    }

    /// How a call is told from another one by what the thread has in memory.
    pub fn mark_calls_with(&self, marks: Marks) {
        let _ = self.marks.set(marks);
    }

    /// The thread begins the call in this slot, or (`None`) has begun it.
    #[inline]
    pub fn begins(&self, slot: Option<usize>) {
        self.begins.store(slot.map_or(0, |slot| slot + 1), Relaxed);
    }

    /// The call in this slot is known by this address; 0: by none yet.
    #[inline]
    pub fn knows(&self, slot: usize, address: u64) {
        if let Some(word) = self.known_by.get(slot) {
            word.store(address, Relaxed);
        }
    }

    /// The call that the thread is at. `identities` reads what its contexts are and name.
    pub fn call(&self, board: Scoreboard, identities: impl FnOnce(Marks) -> Vec<u64>) -> Option<Owner> {
        let of = |slot| {
            Some(board.call_started(slot)).filter(|started| *started != 0).map(|started| Owner { slot, started })
        };
        if let Some(slot) = self.begins.load(Relaxed).checked_sub(1) {
            return of(slot);
        }
        let marks = *self.marks.get()?;
        let known: Vec<(u64, Owner)> = board
            .starts()
            .filter_map(|(slot, started)| Some((self.known_by.get(slot)?.load(Relaxed), Owner { slot, started })))
            .filter(|(address, _)| *address != 0)
            .collect();
        if known.is_empty() {
            return None;
        }
        let found = identities(marks).into_iter().find_map(|each| known.iter().find(|(address, _)| *address == each));
        found.map(|(_, owner)| *owner).filter(|owner| board.call_started(owner.slot) == owner.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots() -> (Whereabouts, Scoreboard) {
        let (it, board) = (Whereabouts::new(3), Scoreboard::private(3));
        board.begin(3);
        for slot in 0..2 {
            board.call_begins(slot, 7 + slot as u64, [b"GET /", b"", b""]);
            it.knows(slot, 0xa0 + slot as u64);
        }
        it.mark_calls_with(Marks { state: 1, context: 2, variable: 3 });
        (it, board)
    }

    #[test]
    fn a_call_is_found_by_the_innermost_context_that_one_is_known_by() {
        let (it, board) = slots();
        let at = |found: &[u64]| it.call(board, |_| found.to_vec());
        assert_eq!(at(&[0x99, 0xa1, 0xa0]), Some(Owner { slot: 1, started: 8 }));
        assert_eq!(at(&[0x99]), None);
        it.knows(1, 0);
        assert_eq!(at(&[0xa1]), None, "the slot has another call");
        board.call_ends(0);
        assert_eq!(at(&[0xa0]), None, "it is over");
    }

    #[test]
    fn a_call_that_begins_needs_no_context_and_one_that_ends_meanwhile_is_none() {
        let (it, board) = slots();
        it.begins(Some(1));
        assert_eq!(it.call(board, |_| vec![0xa0]), Some(Owner { slot: 1, started: 8 }));
        it.begins(None);
        let ends = |_| {
            board.call_ends(0);
            vec![0xa0]
        };
        assert_eq!(it.call(board, ends), None);
    }
}
