//! A file of prometheus_client's multiprocess mode: values by key, as its `mmap_dict.py` writes them.
//!
//! ```text
//!   bytes in use (i32), 4 bytes unused, then for each value:
//!   length of the key (i32), key (JSON in UTF-8), blanks up to a multiple of 8, value (f64), timestamp (f64)
//! ```
//!
//! Native byte order. A worker writes into it while it is read, and may write anything: each length is checked.

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry<'f> {
    pub key: &'f str,
    pub value: f64,
    pub timestamp: f64,
}

/// What is not in this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// The values of a file, up to the first one that is none.
#[derive(Debug)]
pub struct Entries<'f> {
    /// The bytes in use.
    used: &'f [u8],
    at: usize,
    is_broken: bool,
}

/// How many bytes of a file are in use, by its first ones. A file that is being made is empty.
pub fn in_use(start: &[u8]) -> Result<usize, Broken> {
    match start {
        [] => Ok(0),
        _ => match usize::try_from(length_at(start, 0).ok_or(Broken)?) {
            Ok(0) => Ok(0),
            Ok(used) if used >= HEADER => Ok(used),
            _ => Err(Broken),
        },
    }
}

/// Whether the library opens a file of this content again.
pub fn is_whole(bytes: &[u8]) -> bool {
    let mut entries = Entries::of(bytes);
    entries.by_ref().for_each(drop);
    !entries.is_broken
}

impl<'f> Entries<'f> {
    pub fn of(bytes: &'f [u8]) -> Entries<'f> {
        let used = in_use(bytes);
        let is_broken = !matches!(used, Ok(used) if used <= bytes.len());
        let used = used.map_or(0, |used| used.min(bytes.len()));
        Entries { used: &bytes[..used], at: HEADER, is_broken }
    }

    /// Whether something was no value. Known when there are no more.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn next_entry(&mut self) -> Option<Entry<'f>> {
        let length = usize::try_from(length_at(self.used, self.at)?).ok()?;
        let key = self.at + 4;
        let value = key.checked_add(length)?.checked_add(ALIGNMENT - (length + 4) % ALIGNMENT)?;
        let end = value.checked_add(16)?;
        let number = |at: usize| Some(f64::from_ne_bytes(*self.used.get(at..)?.first_chunk()?));
        let entry = Entry {
            key: std::str::from_utf8(self.used.get(key..key.checked_add(length)?)?).ok()?,
            value: number(value)?,
            timestamp: number(value + 8)?,
        };
        self.at = end;
        Some(entry)
    }
}

impl<'f> Iterator for Entries<'f> {
    type Item = Entry<'f>;

    fn next(&mut self) -> Option<Entry<'f>> {
        if self.at >= self.used.len() {
            return None;
        }
        let entry = self.next_entry();
        if entry.is_none() {
            self.is_broken = true;
            self.at = self.used.len();
        }
        entry
    }
}

fn length_at(bytes: &[u8], at: usize) -> Option<i32> {
    Some(i32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Before the first value.
const HEADER: usize = 8;
const ALIGNMENT: usize = 8;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with these values.
    pub fn file(values: &[(&str, f64, f64)]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        for (key, value, timestamp) in values {
            bytes.extend((key.len() as i32).to_ne_bytes());
            bytes.extend(key.as_bytes());
            bytes.resize(bytes.len() + ALIGNMENT - (key.len() + 4) % ALIGNMENT, b' ');
            bytes.extend(value.to_ne_bytes());
            bytes.extend(timestamp.to_ne_bytes());
        }
        let used = (bytes.len() as i32).to_ne_bytes();
        bytes[..4].copy_from_slice(&used);
        bytes.resize(bytes.len().next_multiple_of(1 << 12), 0);
        bytes
    }

    #[test]
    fn values_are_read_as_they_were_written() {
        let keys: Vec<String> = (0..20).map(|length| "k".repeat(length)).collect();
        let values: Vec<_> = keys.iter().enumerate().map(|(at, key)| (key.as_str(), at as f64, 0.5)).collect();
        let bytes = file(&values);
        let read = Entries::of(&bytes).map(|entry| (entry.key, entry.value, entry.timestamp));
        assert!(read.eq(values.iter().copied()));
        assert!(is_whole(&bytes) && is_whole(&[]) && is_whole(&[0; 4096]), "new files have no values");
    }

    #[test]
    fn what_is_no_value_ends_the_file() {
        let whole = file(&[("first", 1.0, 0.0), ("second", 2.0, 0.0)]);
        let after = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = whole.clone();
            change(&mut bytes);
            let mut entries = Entries::of(&bytes);
            let count = entries.by_ref().count();
            (count, entries.is_broken())
        };
        assert_eq!(after(&|_| ()), (2, false));
        assert_eq!(after(&|bytes| bytes[8..12].copy_from_slice(&i32::MAX.to_ne_bytes())), (0, true));
        assert_eq!(after(&|bytes| bytes[8..12].copy_from_slice(&(-1i32).to_ne_bytes())), (0, true));
        assert_eq!(after(&|bytes| bytes[..4].copy_from_slice(&i32::MIN.to_ne_bytes())), (0, true));
        assert_eq!(after(&|bytes| bytes[..4].copy_from_slice(&5i32.to_ne_bytes())), (0, true));
        assert!(after(&|bytes| bytes[..4].copy_from_slice(&i32::MAX.to_ne_bytes())).1);
        assert_eq!(after(&|bytes| bytes[..4].copy_from_slice(&70i32.to_ne_bytes())), (1, true));
        assert_eq!(after(&|bytes| bytes[12] = 0xff), (0, true));
        assert_eq!(after(&|bytes| bytes.truncate(50)), (1, true));
        assert_eq!(after(&|bytes| bytes.truncate(3)), (0, true));
    }
}
