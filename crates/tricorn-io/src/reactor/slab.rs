//! A table whose entries have tokens: an index and a generation, so that a late event of an entry that is gone meets no other one.
use crate::sys::poll::Token;

/// Generations stay below this, so that the two highest bits of a token can mark what it names (`tokens.rs`).
const GENERATIONS: u32 = 0x3fff_ffff;

#[derive(Debug)]
pub(super) struct Slab<T> {
    entries: Vec<Entry<T>>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Entry<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { entries: Vec::new(), free: Vec::new() }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub fn insert(&mut self, value: T) -> Token {
        match self.free.pop() {
            Some(index) => {
                let entry = &mut self.entries[index as usize];
                entry.value = Some(value);
                token(index, entry.generation)
            }
            None => {
                let index = self.entries.len() as u32;
                self.entries.push(Entry { generation: 1, value: Some(value) });
                token(index, 1)
            }
        }
    }

    #[inline]
    pub fn get(&self, token: Token) -> Option<&T> {
        let entry = self.entries.get(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.value.as_ref() } else { None }
    }

    #[inline]
    pub fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let entry = self.entries.get_mut(token as u32 as usize)?;
        if entry.generation == (token >> 32) as u32 { entry.value.as_mut() } else { None }
    }

    pub fn remove(&mut self, token: Token) -> Option<T> {
        let index = token as u32;
        let entry = self.entries.get_mut(index as usize)?;
        if entry.generation != (token >> 32) as u32 {
            return None;
        }
        let value = entry.value.take()?;
        entry.generation = if entry.generation + 1 >= GENERATIONS { 1 } else { entry.generation + 1 };
        self.free.push(index);
        Some(value)
    }

    /// The entry at a position, for sweeps.
    pub fn at(&self, position: usize) -> Option<(Token, &T)> {
        let entry = self.entries.get(position)?;
        entry.value.as_ref().map(|value| (token(position as u32, entry.generation), value))
    }

    /// Positions that have, or had, an entry.
    pub fn positions(&self) -> usize {
        self.entries.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        (0..self.entries.len()).filter_map(|position| self.at(position))
    }
}

fn token(index: u32, generation: u32) -> Token {
    u64::from(generation) << 32 | u64::from(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_token_does_not_reach_the_next_entry() {
        let mut slab = Slab::new();
        let first = slab.insert("first");
        assert_eq!(slab.get(first), Some(&"first"));
        assert_eq!(slab.remove(first), Some("first"));
        let second = slab.insert("second");
        assert_eq!(first as u32, second as u32, "the position is used again");
        assert!(slab.get(first).is_none() && slab.get_mut(first).is_none() && slab.remove(first).is_none());
        assert_eq!((slab.get(second), slab.len()), (Some(&"second"), 1));
    }

    #[test]
    fn generations_leave_the_highest_bits_alone_and_begin_again() {
        let mut slab = Slab::new();
        let last = slab.insert(());
        slab.entries[0].generation = GENERATIONS - 1;
        let last = token(last as u32, GENERATIONS - 1);
        assert_eq!((last >> 62, slab.remove(last)), (0, Some(())));
        assert_eq!(slab.insert(()), token(0, 1));
    }
}
