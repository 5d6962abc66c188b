//! The segments of an outbox, in their order. Most have one, and then none: the first needs no memory of its own.
use crate::disk::DiskFile;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes that belong to another owner (a Python `bytes` object) and must be given back to be freed.
pub type SharedBytes = Box<dyn AsRef<[u8]> + Send + Sync>;

pub(super) enum Segment {
    Owned {
        bytes: Vec<u8>,
        at: usize,
    },
    Shared {
        bytes: SharedBytes,
        at: usize,
        end: usize,
    },
    File {
        file: Arc<DiskFile>,
        at: u64,
        left: u64,
    },
    /// With the job that writes them to the outbox's own file: so many bytes, in memory until then.
    Storing {
        count: usize,
    },
}

impl Segment {
    /// What it holds in memory.
    #[inline]
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Segment::Owned { bytes, at } => Some(&bytes[*at..]),
            Segment::Shared { bytes, at, end } => Some(&(**bytes).as_ref()[*at..*end]),
            Segment::File { .. } | Segment::Storing { .. } => None,
        }
    }

    /// The owner of its bytes, if that is another one.
    #[inline]
    pub fn into_shared(self) -> Option<SharedBytes> {
        match self {
            Segment::Shared { bytes, .. } => Some(bytes),
            Segment::Owned { .. } | Segment::File { .. } | Segment::Storing { .. } => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Segments {
    /// Without it there are no others.
    first: Option<Segment>,
    others: VecDeque<Segment>,
}

impl Segments {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }

    #[inline]
    pub fn front(&self) -> Option<&Segment> {
        self.first.as_ref()
    }

    #[inline]
    pub fn front_mut(&mut self) -> Option<&mut Segment> {
        self.first.as_mut()
    }

    #[inline]
    pub fn back_mut(&mut self) -> Option<&mut Segment> {
        self.others.back_mut().or(self.first.as_mut())
    }

    #[inline]
    pub fn push_back(&mut self, segment: Segment) {
        if self.first.is_none() {
            self.first = Some(segment);
        } else {
            self.others.push_back(segment);
        }
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<Segment> {
        std::mem::replace(&mut self.first, self.others.pop_front())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Segment> {
        self.first.iter().chain(&self.others)
    }

    /// Takes out all behind the first `kept`.
    pub fn take_from(&mut self, kept: usize) -> impl Iterator<Item = Segment> {
        let first = if kept == 0 { self.first.take() } else { None };
        first.into_iter().chain(self.others.drain(kept.saturating_sub(1)..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(segment: &Segment) -> usize {
        let Segment::Storing { count } = segment else { panic!("another segment") };
        *count
    }

    fn of(count: usize) -> Segments {
        let mut segments = Segments::default();
        (0..count).for_each(|count| segments.push_back(Segment::Storing { count }));
        segments
    }

    #[test]
    fn they_leave_in_the_order_in_which_they_came() {
        let mut segments = of(3);
        assert!(segments.iter().map(left).eq(0..3));
        assert_eq!(segments.back_mut().as_deref().map(left), Some(2));
        assert_eq!(segments.pop_front().as_ref().map(left), Some(0));
        segments.push_back(Segment::Storing { count: 3 });
        let rest = std::iter::from_fn(|| segments.pop_front());
        assert!(rest.map(|segment| left(&segment)).eq(1..4));
        assert!(segments.is_empty() && segments.pop_front().is_none() && segments.back_mut().is_none());
    }

    #[test]
    fn the_end_can_be_taken_out() {
        for count in 0..4 {
            for kept in 0..=count {
                let mut segments = of(count);
                let taken = segments.take_from(kept);
                assert!(taken.map(|segment| left(&segment)).eq(kept..count));
                assert_eq!((segments.len(), segments.is_empty()), (kept, kept == 0));
            }
        }
    }
}
