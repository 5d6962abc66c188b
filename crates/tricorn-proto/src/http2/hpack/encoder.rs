//! Writes header blocks (RFC 7541 section 6).
use super::static_table::STATIC;
use super::table::Table;
use super::{MAX_TABLE, huffman, integer};

/// Our compression state. The table never grows over 4,096 bytes, whatever the peer offers.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// Sizes to announce at the beginning of the next block: the smallest since the last one, and the final one.
    sizes: Option<Sizes>,
}

#[derive(Debug, Clone, Copy)]
struct Sizes {
    smallest: usize,
    last: usize,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder { table: Table::new(), sizes: None }
    }
}

impl Encoder {
    /// Takes the peer's SETTINGS_HEADER_TABLE_SIZE.
    pub fn resize(&mut self, offered: u32) {
        let size = MAX_TABLE.min(offered as usize);
        if size == self.sizes.map_or(self.table.limit(), |sizes| sizes.last) {
            return;
        }
        let smallest = self.sizes.map_or(size, |sizes| sizes.smallest.min(size));
        self.sizes = Some(Sizes { smallest, last: size });
    }

    /// Must be called before the first field of each block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some(Sizes { smallest, last }) = self.sizes.take() else { return };
        // RFC 7541 section 4.2: "the smallest maximum table size that occurs in that interval MUST be signaled".
        if smallest < last {
            self.announce(smallest, out);
        }
        self.announce(last, out);
    }

    fn announce(&mut self, size: usize, out: &mut Vec<u8>) {
        self.table.resize(size);
        integer::write(size, 5, 0x20, out);
    }

    /// Appends `:status`.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let digits = [status / 100 % 10, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8);
        self.add(b":status", &digits, out);
    }

    /// Appends a field; its name is written in lower case (RFC 9113 section 8.2).
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let mut lower = [0u8; SHORT_NAME];
        match lower.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                self.add(lower, value, out);
            }
            None => self.add(&name.to_ascii_lowercase(), value, out),
        }
    }

    fn add(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let storage = Storage::of(name, value);
        let (whole, named) = find_static(name, value);
        if let Some(index) = whole.filter(|_| storage != Storage::Never) {
            return integer::write(index, 7, 0x80, out);
        }
        let (held, held_name) = match storage {
            Storage::Table => self.table.find(name, value),
            _ => (None, None),
        };
        if let Some(index) = held {
            return integer::write(FIRST_DYNAMIC + index, 7, 0x80, out);
        }
        let (bits, flags) = match storage {
            Storage::Table => (6, 0x40),
            Storage::Without => (4, 0),
            Storage::Never => (4, 0x10),
        };
        match named.or(held_name.map(|index| FIRST_DYNAMIC + index)) {
            Some(index) => integer::write(index, bits, flags, out),
            None => {
                out.push(flags);
                write_string(name, out);
            }
        }
        write_string(value, out);
        if storage == Storage::Table {
            self.table.insert(name, value);
        }
    }
}

/// How a field is represented (RFC 7541 section 6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// Enters the table: its next occurrence takes one octet.
    Table,
    /// Differs from response to response.
    Without,
    /// Section 7.1.3: a secret, which compression could reveal.
    Never,
}

impl Storage {
    fn of(name: &[u8], value: &[u8]) -> Storage {
        match name {
            b"set-cookie" | b"authorization" | b"proxy-authorization" | b"cookie" => Storage::Never,
            b"date" | b"content-length" | b"etag" | b"last-modified" | b"location" | b"age" | b"expires"
            | b"content-range" | b"x-request-id" | b"traceparent" => Storage::Without,
            _ if value.len() > MAX_STORED => Storage::Without,
            _ => Storage::Table,
        }
    }
}

/// The indices of a field, and of any field with its name.
fn find_static(name: &[u8], value: &[u8]) -> (Option<usize>, Option<usize>) {
    let mut named = None;
    for (index, (own, held)) in STATIC.iter().enumerate() {
        if own.len() == name.len() && *own == name {
            if !held.is_empty() && *held == value {
                return (Some(index + 1), Some(index + 1));
            }
            named = named.or(Some(index + 1));
        }
    }
    (None, named)
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let coded = if text.len() > MAX_CODED { text.len() } else { huffman::encoded_length(text) };
    if coded < text.len() {
        integer::write(coded, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::write(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}

const FIRST_DYNAMIC: usize = STATIC.len() + 1;
/// Longer values are rarely repeated, and each would evict several others.
const MAX_STORED: usize = 256;
/// Longer values are sent as they are: coding them takes more time than their bytes do.
const MAX_CODED: usize = 256;
const SHORT_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::super::Decoder;
    use super::*;

    fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut out));
        out
    }

    #[test]
    fn repeated_fields_take_one_octet_and_secrets_never_enter_the_table() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let fields = [("Content-Type", "text/plain"), ("server", "tricorn"), ("Set-Cookie", "a=b")];
        let (first, second) = (block(&mut encoder, &fields), block(&mut encoder, &fields));
        assert_eq!(second[..2], [0xbf, 0xbe]);
        assert_eq!(second[2], 0x1f, "never indexed, with an indexed name");
        for block in [first, second] {
            let mut decoded = Vec::new();
            let take = |name: &[u8], value: &[u8]| {
                decoded.push((String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap()));
            };
            decoder.decode(&block, take).unwrap();
            let expected = fields.map(|(name, value)| (name.to_lowercase(), value.to_string()));
            assert_eq!(decoded, expected);
        }
    }

    /// h2 0.4.17: "Fix HPACK encoding table to cap the max size to 4kb."
    #[test]
    fn a_larger_table_than_ours_is_not_used() {
        let mut encoder = Encoder::default();
        encoder.resize(1 << 30);
        assert_eq!(block(&mut encoder, &[]), []);
        assert_eq!(encoder.table.limit(), MAX_TABLE);
    }

    #[test]
    fn of_several_sizes_the_smallest_and_the_last_are_announced() {
        let mut encoder = Encoder::default();
        block(&mut encoder, &[("a", "b")]);
        encoder.resize(0);
        encoder.resize(100);
        encoder.resize(50);
        assert_eq!(block(&mut encoder, &[]), [0x20, 0x3f, 19]);
        assert_eq!(block(&mut encoder, &[]), []);
        assert_eq!(block(&mut encoder, &[("a", "b")])[0], 0x40, "the entry was evicted");
    }
}
