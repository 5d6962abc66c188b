//! Deadlines: a hashed wheel with lazy re-arming.
//!
//! A connection's deadline moves with every request, the wheel does not: an entry that fires early is put back at the
//! connection's real deadline by the reactor. Moving a deadline thus costs one store.

use crate::clock;
use std::collections::VecDeque;

/// log2 of a tick in nanoseconds: 2^26 ns = 67 ms.
const SHIFT: u32 = 26;
const SLOTS: usize = 512;
const WORDS: usize = SLOTS / 64;

/// A point of time in ticks, never 0 (0 stands for "none").
pub type Tick = u32;

#[inline]
pub fn tick_at(nanos: u64) -> Tick {
    ((nanos >> SHIFT) as u32).wrapping_add(1)
}

/// When what is put down for a tick comes out, in nanoseconds.
#[inline]
pub fn time_of(tick: Tick) -> u64 {
    u64::from(tick) << SHIFT
}

#[derive(Debug)]
pub struct Wheel {
    slots: Vec<Vec<u64>>,
    /// One bit per slot that has entries.
    occupied: [u64; WORDS],
    /// The next tick to be looked at.
    current: Tick,
    entries: usize,
}

impl Wheel {
    pub fn new(now: u64) -> Wheel {
        Wheel {
            slots: (0..SLOTS).map(|_| Vec::new()).collect(),
            occupied: [0; WORDS],
            current: tick_at(now),
            entries: 0,
        }
    }

    /// Puts `token` down for `due` and returns the tick at which it will come out: earlier if `due` is beyond the
    /// wheel's horizon.
    pub fn insert(&mut self, token: u64, due: Tick) -> Tick {
        let last = self.current.saturating_add(SLOTS as u32 - 1);
        let at = due.clamp(self.current, last);
        let slot = at as usize % SLOTS;
        self.slots[slot].push(token);
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.entries += 1;
        at
    }

    /// Moves all that is due at `now` to `fired`.
    pub fn advance(&mut self, now: u64, fired: &mut VecDeque<(Tick, u64)>) {
        let end = (now >> SHIFT) as u32;
        if self.entries == 0 {
            self.current = self.current.max(end.saturating_add(1));
            return;
        }
        while self.current <= end {
            let slot = self.current as usize % SLOTS;
            if self.occupied[slot / 64] & (1 << (slot % 64)) != 0 {
                let tick = self.current;
                // With its memory: what a burst of connections took is not kept.
                let entries = std::mem::take(&mut self.slots[slot]);
                self.entries -= entries.len();
                fired.extend(entries.into_iter().map(|token| (tick, token)));
                self.occupied[slot / 64] &= !(1 << (slot % 64));
            }
            self.current += 1;
        }
    }

    /// Nanoseconds from `now` to the first entry; `None` if there is none.
    pub fn until_next(&self, now: u64) -> Option<u64> {
        if self.entries == 0 {
            return None;
        }
        let due = time_of(self.current + self.distance()?);
        Some(due.saturating_sub(now).max(clock::MILLI))
    }

    /// Ticks from the current one to the first slot that has entries. Looks at a word at a time: each wait asks.
    fn distance(&self) -> Option<u32> {
        let start = self.current as usize % SLOTS;
        let (first, bit) = (start / 64, start % 64);
        // The first word comes twice: its upper part at the beginning, the lower one when the wheel has gone round.
        let mut parts = (0..=WORDS).map(|ahead| {
            let word = self.occupied[(first + ahead) % WORDS];
            let part = match ahead {
                0 => word & (u64::MAX << bit),
                WORDS => word & !(u64::MAX << bit),
                _ => word,
            };
            (ahead * 64, part)
        });
        let (ahead, word) = parts.find(|(_, part)| *part != 0)?;
        Some((ahead + word.trailing_zeros() as usize - bit) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(tick: u64) -> u64 {
        tick << SHIFT
    }

    fn fired(wheel: &mut Wheel, now: u64) -> Vec<u64> {
        let mut out = VecDeque::new();
        wheel.advance(now, &mut out);
        out.into_iter().map(|(_, token)| token).collect()
    }

    #[test]
    fn the_wait_for_an_entry_is_the_same_wherever_the_wheel_stands() {
        for current in (600..600 + SLOTS as u64).step_by(7) {
            let mut wheel = Wheel::new(at(current));
            assert_eq!(wheel.until_next(at(current)), None);
            for ahead in [SLOTS as u64, 449, 448, 64, 63, 1] {
                wheel.insert(ahead, tick_at(at(current + ahead)) - 1);
                assert_eq!(wheel.until_next(at(current)), Some(at(ahead)), "{ahead} from {current}");
            }
        }
    }

    #[test]
    fn an_entry_fires_once_and_not_before_its_time() {
        let mut wheel = Wheel::new(at(100));
        wheel.insert(7, tick_at(at(110)));
        assert!(fired(&mut wheel, at(110)).is_empty());
        assert_eq!(fired(&mut wheel, at(111)), [7]);
        assert!(fired(&mut wheel, at(2000)).is_empty());
    }

    #[test]
    fn what_a_crowd_took_is_given_back_when_it_has_left() {
        let mut wheel = Wheel::new(at(100));
        for token in 0..100_000 {
            wheel.insert(token, tick_at(at(110 + token % 100)));
        }
        assert_eq!(fired(&mut wheel, at(300)).len(), 100_000);
        assert!(wheel.slots.iter().all(|slot| slot.capacity() == 0));
    }

    #[test]
    fn a_far_deadline_comes_out_at_the_horizon_to_be_put_back() {
        let mut wheel = Wheel::new(at(0));
        let at_tick = wheel.insert(1, 5000);
        assert!(at_tick < 5000);
        assert_eq!(fired(&mut wheel, at(u64::from(at_tick))), [1]);
    }

    #[test]
    fn the_wait_ends_at_the_first_entry() {
        let mut wheel = Wheel::new(at(10));
        assert_eq!(wheel.until_next(at(10)), None);
        wheel.insert(1, tick_at(at(30)));
        wheel.insert(2, tick_at(at(20)));
        assert_eq!(wheel.until_next(at(10)), Some(at(21) - at(10)));
    }

    #[test]
    fn an_idle_wheel_does_not_walk_through_the_past() {
        let mut wheel = Wheel::new(at(0));
        assert!(fired(&mut wheel, at(1_000_000)).is_empty());
        wheel.insert(3, tick_at(at(1_000_000)));
        assert_eq!(fired(&mut wheel, at(1_000_002)), [3]);
    }
}
