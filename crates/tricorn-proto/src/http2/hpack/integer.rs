//! Integers with a prefix of some bits of their first octet (RFC 7541 section 5.1).

/// An integer that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IntegerError {
    /// The block ends inside it.
    Truncated,
    /// It is larger than a `u32`, or written in more octets than one needs.
    TooLarge,
}

/// Reads an integer whose prefix has `bits` bits, and takes it off the front of `input`.
pub(super) fn read(input: &mut &[u8], bits: u32) -> Result<u32, IntegerError> {
    let (&first, mut rest) = input.split_first().ok_or(IntegerError::Truncated)?;
    let mask = (1u32 << bits) - 1;
    let mut value = u32::from(first) & mask;
    if value < mask {
        *input = rest;
        return Ok(value);
    }
    for shift in (0..MAX_CONTINUATION).map(|index| index * 7) {
        let (&octet, after) = rest.split_first().ok_or(IntegerError::Truncated)?;
        rest = after;
        let addend = u64::from(octet & 0x7f) << shift;
        value = u32::try_from(addend + u64::from(value)).map_err(|_| IntegerError::TooLarge)?;
        if octet & 0x80 == 0 {
            *input = rest;
            return Ok(value);
        }
    }
    // "Integer encodings that exceed implementation limits -- in value or octet length -- MUST be treated as decoding errors."
    Err(IntegerError::TooLarge)
}

/// Appends `value` with a prefix of `bits` bits; `flags` are the other bits of its first octet.
pub(super) fn write(value: usize, bits: u32, flags: u8, out: &mut Vec<u8>) {
    let mask = (1usize << bits) - 1;
    if value < mask {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Octets after the first one. Four hold 28 bits, and no index, length or size of ours is larger.
const MAX_CONTINUATION: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 sections C.1.1 to C.1.3.
    #[test]
    fn the_examples_of_the_rfc() {
        for (value, bits, octets) in [(10, 5, &[10][..]), (1337, 5, &[31, 154, 10]), (42, 8, &[42])] {
            let mut out = Vec::new();
            write(value, bits, 0, &mut out);
            assert_eq!(out, octets);
            assert_eq!(read(&mut &out[..], bits), Ok(value as u32));
        }
    }

    #[test]
    fn the_bits_before_the_prefix_are_not_part_of_the_value() {
        assert_eq!(read(&mut &[0xe0 | 10][..], 5), Ok(10));
        let mut rest = &[0xff, 0x00, 7][..];
        assert_eq!((read(&mut rest, 7), rest), (Ok(127), &[7][..]));
    }

    #[test]
    fn long_and_truncated_integers_are_errors() {
        assert_eq!(read(&mut &[0x7f, 0x80, 0x80, 0x80, 0x80, 0x00][..], 7), Err(IntegerError::TooLarge));
        assert_eq!(read(&mut &[0x7f, 0xff, 0xff, 0xff, 0x7f][..], 7), Ok(127 + (1 << 28) - 1));
        for truncated in [&[][..], &[0x7f], &[0x7f, 0x80]] {
            assert_eq!(read(&mut &truncated[..], 7), Err(IntegerError::Truncated));
        }
    }
}
