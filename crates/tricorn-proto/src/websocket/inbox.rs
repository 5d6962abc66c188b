//! Messages that wait for the application, up to a mark.
use std::collections::VecDeque;

/// Bounded by who fills it: `is_full` says when to stop. An empty one holds no memory.
#[derive(Debug)]
pub(super) struct Inbox<M> {
    /// Most of the time there is one message or none, which takes no allocation.
    first: Option<(M, usize)>,
    more: VecDeque<(M, usize)>,
    /// Of all messages, with `OVERHEAD` for each.
    bytes: usize,
    mark: usize,
}

impl<M> Inbox<M> {
    pub fn new(mark: usize) -> Inbox<M> {
        Inbox { first: None, more: VecDeque::new(), bytes: 0, mark }
    }

    #[inline]
    pub fn push(&mut self, message: M, length: usize) {
        let weight = length + OVERHEAD;
        self.bytes += weight;
        match self.first {
            None => self.first = Some((message, weight)),
            Some(_) => self.more.push_back((message, weight)),
        }
    }

    #[inline]
    pub fn pop(&mut self) -> Option<M> {
        let (message, weight) = self.first.take()?;
        self.bytes -= weight;
        if self.more.capacity() > 0 {
            self.first = self.more.pop_front();
            if self.more.is_empty() && self.first.is_none() {
                self.more = VecDeque::new();
            }
        }
        Some(message)
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.bytes >= self.mark
    }

    /// After it was full: there is room for more than a message or two.
    pub fn has_room(&self) -> bool {
        self.bytes <= self.mark / 2
    }

    pub fn clear(&mut self) {
        *self = Inbox::new(self.mark);
    }
}

/// What a message takes besides its bytes, about: ten thousand empty ones are not nothing.
const OVERHEAD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out_and_nothing_is_held_when_it_is_empty() {
        let mut inbox = Inbox::new(1000);
        for round in 0..3 {
            for number in 0..10 {
                inbox.push(number, round);
            }
            assert_eq!(std::iter::from_fn(|| inbox.pop()).collect::<Vec<_>>(), (0..10).collect::<Vec<_>>());
            assert_eq!((inbox.bytes, inbox.more.capacity()), (0, 0));
        }
    }

    #[test]
    fn it_is_full_at_the_mark_and_has_room_at_half() {
        let mut inbox = Inbox::new(1000);
        inbox.push("a", 744 - OVERHEAD);
        assert!(!inbox.is_full() && !inbox.has_room());
        inbox.push("", 0);
        assert!(inbox.is_full());
        inbox.pop();
        assert!(!inbox.is_full() && inbox.has_room());
        inbox.clear();
        assert!(inbox.is_empty() && inbox.pop().is_none());
    }
}
