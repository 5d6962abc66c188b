//! The dynamic table (RFC 7541 section 2.3.2): the youngest field has the lowest index, the oldest one is evicted first.
use std::collections::VecDeque;

/// Largest size of a table, ours and the peer's: the default of RFC 9113 section 6.5.2.
pub const MAX_TABLE: usize = 4096;

/// Allocates when its first field comes, and never holds more than twice `MAX_TABLE`.
#[derive(Debug)]
pub(super) struct Table {
    /// The fields' names and values, oldest first; those before the oldest entry are evicted.
    bytes: Vec<u8>,
    /// Oldest first.
    entries: VecDeque<Entry>,
    size: usize,
    limit: usize,
}

/// A field begins in the bytes at `start`.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u16,
    name: u16,
    value: u16,
}

impl Table {
    pub fn new() -> Table {
        Table { bytes: Vec::new(), entries: VecDeque::new(), size: 0, limit: MAX_TABLE }
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Sets the largest size, at most `MAX_TABLE`, and evicts what does not fit.
    pub fn resize(&mut self, limit: usize) {
        self.limit = limit.min(MAX_TABLE);
        self.evict(0);
    }

    /// Adds a field. One larger than the table empties it (RFC 7541 section 4.4).
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = name.len() + value.len() + OVERHEAD;
        self.evict(size);
        if size > self.limit {
            return;
        }
        if self.bytes.len() + size > 2 * MAX_TABLE {
            self.compact();
        }
        // Offsets are below twice `MAX_TABLE`.
        let entry = Entry { start: self.bytes.len() as u16, name: name.len() as u16, value: value.len() as u16 };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.entries.push_back(entry);
        self.size += size;
    }

    /// The field with this index; 0 is the youngest.
    pub fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(index + 1)?;
        self.entries.get(place).map(|entry| self.field(entry))
    }

    /// The indices of a field, and of any field with its name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
        let mut named = None;
        for (index, entry) in self.entries.iter().rev().enumerate() {
            let (own, held) = self.field(entry);
            if own == name {
                if held == value {
                    return (Some(index), Some(index));
                }
                named = named.or(Some(index));
            }
        }
        (None, named)
    }

    fn field(&self, entry: &Entry) -> (&[u8], &[u8]) {
        let name = usize::from(entry.start)..usize::from(entry.start) + usize::from(entry.name);
        let value = name.end..name.end + usize::from(entry.value);
        (&self.bytes[name], &self.bytes[value])
    }

    /// Makes room for a field of this size.
    fn evict(&mut self, size: usize) {
        while self.size + size > self.limit {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.size -= usize::from(oldest.name) + usize::from(oldest.value) + OVERHEAD;
        }
        if self.entries.is_empty() {
            self.bytes.clear();
        }
    }

    fn compact(&mut self) {
        let start = self.entries.front().map_or(self.bytes.len(), |oldest| usize::from(oldest.start));
        self.bytes.drain(..start);
        for entry in &mut self.entries {
            entry.start -= start as u16;
        }
    }
}

/// RFC 7541 section 4.1: "The size of an entry is the sum of its name's length in octets, its value's length in octets,
/// and 32."
const OVERHEAD: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_fields_make_room_and_offsets_stay_true() {
        let mut table = Table::new();
        for number in 0..10_000u32 {
            let value = number.to_string().repeat(1 + number as usize % 90);
            table.insert(b"name", value.as_bytes());
            assert_eq!(table.get(0), Some((&b"name"[..], value.as_bytes())));
            let held: usize = (0..).map_while(|index| table.get(index)).map(|(n, v)| n.len() + v.len() + 32).sum();
            assert!(held == table.size && held <= MAX_TABLE && table.bytes.len() <= 2 * MAX_TABLE);
        }
        table.resize(0);
        assert_eq!((table.size, table.get(0)), (0, None));
    }

    #[test]
    fn a_field_larger_than_the_table_empties_it() {
        let mut table = Table::new();
        table.insert(b"a", b"b");
        table.insert(b"a", &[b'x'; MAX_TABLE - 32]);
        assert_eq!((table.get(0), table.size), (None, 0));
        table.insert(b"a", &[b'x'; MAX_TABLE - 33]);
        assert_eq!(table.size, MAX_TABLE);
    }
}
