//! Reads header blocks (RFC 7541 section 6).
use super::integer::{self, IntegerError};
use super::static_table::STATIC;
use super::table::Table;
use super::{MAX_TABLE, huffman};

/// Why a block cannot be read. Each is a connection error of type COMPRESSION_ERROR (RFC 9113 section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The block ends inside a field.
    Truncated,
    /// An integer is too large, or written in too many octets.
    Integer,
    /// An index names no field.
    Index,
    /// A string is not in the Huffman code.
    Huffman,
    /// A table size is above the limit, does not come first, or comes a third time.
    TableSize,
}

/// The peer's compression state. Holds one table and one decoded string.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// A name and a value in the Huffman code, decoded.
    scratch: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder { table: Table::new(), scratch: Vec::new() }
    }
}

impl Decoder {
    /// Reads a complete block and hands over its fields, in order.
    pub fn decode(&mut self, block: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<(), DecodeError> {
        let mut rest = block;
        self.read_sizes(&mut rest)?;
        while let Some(&first) = rest.first() {
            match first {
                // Section 6.1: "The index value of 0 is not used. It MUST be treated as a decoding error".
                0x80.. => {
                    let index = read_integer(&mut rest, 7)?;
                    let (name, value) = self.field(index)?;
                    each(name, value);
                }
                0x40.. => self.literal(&mut rest, 6, true, &mut each)?,
                // Section 4.2: "This dynamic table size update MUST occur at the beginning of the first header block".
                0x20.. => return Err(DecodeError::TableSize),
                // Without indexing, and never indexed: nothing is forwarded here, so they are the same.
                _ => self.literal(&mut rest, 4, false, &mut each)?,
            }
        }
        // One string of 64 KiB must not stay with each idle connection.
        if self.scratch.capacity() > KEPT_SCRATCH {
            self.scratch = Vec::new();
        }
        Ok(())
    }

    /// Section 4.2: the smallest size since the last block, then the final one.
    fn read_sizes(&mut self, rest: &mut &[u8]) -> Result<(), DecodeError> {
        for _ in 0..MAX_SIZE_UPDATES {
            if !matches!(rest.first(), Some(0x20..0x40)) {
                break;
            }
            let size = read_integer(rest, 5)?;
            // Section 6.3: "The new maximum size MUST be lower than or equal to the limit determined by the protocol".
            if size > MAX_TABLE {
                return Err(DecodeError::TableSize);
            }
            self.table.resize(size);
        }
        Ok(())
    }

    /// Section 6.2: a literal whose name is indexed or not.
    fn literal(
        &mut self,
        rest: &mut &[u8],
        bits: u32,
        indexed: bool,
        each: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), DecodeError> {
        // Copied, since the name may stand in an entry that the new one evicts (section 4.4).
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        match read_integer(rest, bits)? {
            0 => read_string(rest, &mut scratch)?,
            index => scratch.extend_from_slice(self.field(index)?.0),
        }
        let name_length = scratch.len();
        read_string(rest, &mut scratch)?;
        let (name, value) = scratch.split_at(name_length);
        each(name, value);
        if indexed {
            self.table.insert(name, value);
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Section 2.3.3: the static table first, then the dynamic one.
    fn field(&self, index: usize) -> Result<(&[u8], &[u8]), DecodeError> {
        let index = index.checked_sub(1).ok_or(DecodeError::Index)?;
        match STATIC.get(index) {
            Some(&field) => Ok(field),
            None => self.table.get(index - STATIC.len()).ok_or(DecodeError::Index),
        }
    }
}

fn read_integer(rest: &mut &[u8], bits: u32) -> Result<usize, DecodeError> {
    match integer::read(rest, bits) {
        Ok(value) => Ok(value as usize),
        Err(IntegerError::Truncated) => Err(DecodeError::Truncated),
        Err(IntegerError::TooLarge) => Err(DecodeError::Integer),
    }
}

/// Section 5.2: appends a string.
fn read_string(rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let is_coded = rest.first().is_some_and(|octet| octet & 0x80 != 0);
    let length = read_integer(rest, 7)?;
    let (text, after) = rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
    *rest = after;
    if !is_coded {
        out.extend_from_slice(text);
    } else if !huffman::decode(text, out) {
        return Err(DecodeError::Huffman);
    }
    Ok(())
}

const MAX_SIZE_UPDATES: usize = 2;
const KEPT_SCRATCH: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(Vec<u8>, Vec<u8>)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, DecodeError> {
        let mut fields = Vec::new();
        decoder.decode(block, |name, value| fields.push((name.to_vec(), value.to_vec())))?;
        Ok(fields)
    }

    #[test]
    fn broken_blocks_are_errors() {
        use DecodeError::*;
        let blocks = [
            (&[0x80][..], Index),
            (&[0xbe], Index),
            (&[0x7f], Truncated),
            (&[0xff, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01], Integer),
            (&[0x40, 0x01], Truncated),
            (&[0x40, 0x01, b'a'], Truncated),
            (&[0x40, 0x81, 0xff, 0x00], Huffman),
            (&[0x3f, 0xe2, 0x1f], TableSize),
            (&[0x82, 0x20], TableSize),
            (&[0x20, 0x20, 0x20], TableSize),
        ];
        for (block, error) in blocks {
            assert_eq!(decode(&mut Decoder::default(), block), Err(error), "{block:x?}");
        }
    }

    #[test]
    fn a_name_may_stand_in_the_entry_that_its_field_evicts() {
        let mut decoder = Decoder::default();
        let mut block = vec![0x40, 4];
        block.extend_from_slice(b"name");
        integer::write(4000, 7, 0, &mut block);
        block.extend_from_slice(&[b'x'; 4000]);
        assert_eq!(decode(&mut decoder, &block).unwrap().len(), 1);
        let mut block = vec![0x7e];
        integer::write(2000, 7, 0, &mut block);
        block.extend_from_slice(&[b'y'; 2000]);
        assert_eq!(decode(&mut decoder, &block).unwrap(), [(b"name".to_vec(), vec![b'y'; 2000])]);
        assert_eq!(decode(&mut decoder, &[0xbe]).unwrap(), [(b"name".to_vec(), vec![b'y'; 2000])]);
        assert_eq!(decode(&mut decoder, &[0xbf]), Err(DecodeError::Index));
    }
}
