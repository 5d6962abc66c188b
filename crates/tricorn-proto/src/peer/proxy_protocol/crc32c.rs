//! The checksum of iSCSI (RFC 3720, appendix B.4), as version 2 has it in a value of its own.

/// Of these pieces, one behind the other. Bit by bit: a header has a few hundred bytes, and a connection has one header.
pub fn of(pieces: &[&[u8]]) -> u32 {
    let mut crc = !0;
    for byte in pieces.iter().copied().flatten() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    #[test]
    fn examples_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        let of = |bytes: &[u8]| super::of(&[bytes]).to_le_bytes();
        assert_eq!(of(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(of(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        assert_eq!(of(&ascending), [0x4e, 0x79, 0xdd, 0x46]);
        assert_eq!(super::of(&[&ascending[..5], &ascending[5..]]), super::of(&[&ascending]));
    }
}
