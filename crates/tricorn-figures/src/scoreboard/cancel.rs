//! The order to end one call: the arbiter writes it, the monitor answers in the same words.
//!
//! `CancelSlot`, then `Cancel`: a monitor that sees the start of the call sees its slot. The monitor writes what became of it where
//! the slot was, and takes the start away. There is one order at a time; the arbiter sees to that.
use super::{Scoreboard, Word};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The call to be cancelled. Its start makes sure that it is still that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelOrder {
    pub slot: usize,
    pub started: u64,
}

/// What became of an order. No slot has these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Cancelled {
    /// The exception is raised in it as soon as its Python runs.
    Told = u64::MAX,
    /// It has ended: this slot is at no call that began then.
    Ended = u64::MAX - 1,
    /// The application has returned already, or was told before.
    Over = u64::MAX - 2,
}

impl Cancelled {
    const ALL: [Cancelled; 3] = [Cancelled::Told, Cancelled::Ended, Cancelled::Over];

    pub fn name(self) -> &'static str {
        match self {
            Cancelled::Told => "told",
            Cancelled::Ended => "ended",
            Cancelled::Over => "over",
        }
    }
}

impl Scoreboard {
    /// The arbiter's.
    pub fn order_cancel(&self, order: CancelOrder) {
        self.words[Word::CancelSlot as usize].store(order.slot as u64, Relaxed);
        self.words[Word::Cancel as usize].store(order.started, Release);
    }

    /// What became of the order, for the arbiter. `None`: the monitor has not taken it, and will not do so any more.
    pub fn take_cancelled(&self) -> Option<Cancelled> {
        let order = self.words[Word::Cancel as usize].load(Acquire);
        if order != 0 && self.words[Word::Cancel as usize].compare_exchange(order, 0, AcqRel, Acquire).is_ok() {
            return None;
        }
        let told = self.get(Word::CancelSlot);
        Cancelled::ALL.into_iter().find(|known| *known as u64 == told)
    }

    /// The order that was not answered yet, for the monitor.
    pub fn cancel_order(&self) -> Option<CancelOrder> {
        let started = self.words[Word::Cancel as usize].load(Acquire);
        (started != 0).then(|| CancelOrder { slot: self.get(Word::CancelSlot) as usize, started })
    }

    /// The monitor's answer.
    pub fn answer_cancel(&self, order: CancelOrder, answer: Cancelled) {
        self.set(Word::CancelSlot, answer as u64);
        // It fails when the arbiter has taken the order back: then no answer is waited for.
        let _ = self.words[Word::Cancel as usize].compare_exchange(order.started, 0, Release, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_answered_in_its_place() {
        let board = Scoreboard::private(1);
        assert_eq!((board.cancel_order(), board.take_cancelled()), (None, None));
        let order = CancelOrder { slot: 3, started: 77 };
        for answer in Cancelled::ALL {
            board.order_cancel(order);
            assert_eq!(board.cancel_order(), Some(order));
            board.answer_cancel(order, answer);
            assert_eq!((board.cancel_order(), board.take_cancelled()), (None, Some(answer)));
        }
    }

    #[test]
    fn an_order_that_was_not_taken_in_time_is_taken_back() {
        let board = Scoreboard::private(1);
        let (first, second) = (CancelOrder { slot: 0, started: 77 }, CancelOrder { slot: 0, started: 78 });
        board.order_cancel(first);
        assert_eq!(board.take_cancelled(), None);
        assert_eq!(board.cancel_order(), None);
        board.order_cancel(second);
        board.answer_cancel(first, Cancelled::Told);
        assert_eq!(board.cancel_order().map(|order| order.started), Some(78), "the late answer is to another order");
    }
}
