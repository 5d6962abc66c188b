//! Fields as names and values, whatever bytes they come from or go to.

/// Names and values in their order. Reused from message to message, so that it allocates once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldList {
    /// Name, value, name, value, and so on.
    bytes: Vec<u8>,
    ends: Vec<Ends>,
}

/// Where a name and its value end in the bytes. The name begins where the field before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends {
    name: usize,
    value: usize,
}

impl FieldList {
    pub const fn new() -> FieldList {
        FieldList { bytes: Vec::new(), ends: Vec::new() }
    }

    /// Forgets the fields, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    #[inline]
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push(Ends { name, value: self.bytes.len() });
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all names and values together.
    #[inline]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Name and value of each field.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |ends| {
            let (name, value) = (&self.bytes[start..ends.name], &self.bytes[ends.name..ends.value]);
            start = ends.value;
            (name, value)
        })
    }

    /// The value of the last field with this name (any case).
    pub fn last(&self, name: &[u8]) -> Option<&[u8]> {
        let named = self.iter().filter(|(found, _)| found.len() == name.len() && found.eq_ignore_ascii_case(name));
        named.last().map(|(_, value)| value)
    }
}

impl<'f> FromIterator<(&'f [u8], &'f [u8])> for FieldList {
    fn from_iter<I: IntoIterator<Item = (&'f [u8], &'f [u8])>>(fields: I) -> FieldList {
        let mut list = FieldList::default();
        fields.into_iter().for_each(|(name, value)| list.push(name, value));
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_their_bytes() {
        let fields: [(&[u8], &[u8]); 4] = [(b"A", b"1"), (b"Empty", b""), (b"a", b" 2: \xff\r\n"), (b"", b"nameless")];
        let mut list = FieldList::from_iter(fields);
        assert!(list.iter().eq(fields));
        assert_eq!((list.len(), list.size(), list.is_empty()), (4, 23, false));
        list.clear();
        assert_eq!((list.iter().count(), list.size(), list.is_empty()), (0, 0, true));
        list.push(b"B", b"3");
        assert!(list.iter().eq([(&b"B"[..], &b"3"[..])]));
    }

    #[test]
    fn of_fields_with_the_same_name_the_last_is_found() {
        let fields: [(&[u8], &[u8]); 3] = [(b"X-A", b"1"), (b"x-a", b"2"), (b"X-AB", b"3")];
        let list = FieldList::from_iter(fields);
        assert_eq!(list.last(b"x-A"), Some(&b"2"[..]));
        assert_eq!((list.last(b"x"), list.last(b"x-abc")), (None, None));
    }
}
