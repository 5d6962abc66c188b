//! Reads `str` and `bytes` objects of another process. Rejects impossible lengths, since the object may have been freed.
use super::layout::Text;
use crate::memory::Memory;

pub fn string(memory: &Memory, layout: &Text, object: u64) -> Option<String> {
    let length =
        usize::try_from(memory.word(object + layout.length)?).ok().filter(|&length| length <= MOST_CHARACTERS)?;
    let state = u32::from_ne_bytes(memory.bytes(object + layout.state)?);
    let (kind, is_ascii) = form(state)?;
    let mut bytes = vec![0; length * usize::from(kind)];
    memory.read(object + if is_ascii { layout.ascii } else { layout.compact }, &mut bytes)?;
    Some(match kind {
        1 => bytes.into_iter().map(char::from).collect(),
        2 => bytes.chunks_exact(2).map(|two| legible(u32::from(u16::from_ne_bytes([two[0], two[1]])))).collect(),
        _ => bytes
            .chunks_exact(4)
            .map(|four| legible(u32::from_ne_bytes([four[0], four[1], four[2], four[3]])))
            .collect(),
    })
}

/// Bytes a character has, and whether they are ASCII. `interned` stands before them, of 2, 8 or 16 bits by version.
fn form(state: u32) -> Option<(u8, bool)> {
    [2, 8, 16].into_iter().find_map(|width| {
        let bits = state >> width;
        let (kind, is_compact, is_ascii) = (bits & 7, bits >> 3 & 1 == 1, bits >> 4 & 1 == 1);
        (is_compact && matches!(kind, 1 | 2 | 4)).then_some((kind as u8, is_ascii))
    })
}

/// Names of files that are no text have lone surrogates.
fn legible(code: u32) -> char {
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

pub fn bytes(memory: &Memory, layout: &Text, object: u64) -> Option<Vec<u8>> {
    let length =
        usize::try_from(memory.word(object + layout.bytes_length)?).ok().filter(|&length| length <= MOST_BYTES)?;
    let mut bytes = vec![0; length];
    memory.read(object + layout.bytes_start, &mut bytes)?;
    Some(bytes)
}

const MOST_CHARACTERS: usize = 4096;

/// The table of lines of a very long function.
const MOST_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_string_is_known_in_each_of_its_forms() {
        let bits = |kind: u32, is_ascii: bool| kind | 1 << 3 | u32::from(is_ascii) << 4;
        for width in [2, 8, 16] {
            assert_eq!(form(1 | bits(1, true) << width), Some((1, true)));
            assert_eq!(form(bits(2, false) << width), Some((2, false)));
            assert_eq!(form(3 | bits(4, false) << width), Some((4, false)), "{width}");
        }
        assert_eq!(form(0), None);
    }
}
