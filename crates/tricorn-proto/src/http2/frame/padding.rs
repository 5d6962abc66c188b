//! Padding of DATA and HEADERS (RFC 9113 section 6.1).
use super::FrameHeader;
use crate::http2::violation::Violation;

/// PADDED.
const FLAG: u8 = 0x8;

/// Bytes that are not content: the length octet, and the padding at the end. `None`: the length octet is still to come.
///
/// Counted in `usize`: 255 bytes of padding and their length octet are 256 (h2 0.4.15).
pub(super) fn read(header: &FrameHeader, payload: &[u8]) -> Result<Option<(usize, usize)>, Violation> {
    if !header.has(FLAG) {
        return Ok(Some((0, 0)));
    }
    // "If the length of the padding is the length of the frame payload or greater, the recipient MUST treat this as a
    // connection error (Section 5.4.1) of type PROTOCOL_ERROR."
    match payload.first() {
        Some(&padding) if usize::from(padding) < header.length => Ok(Some((1, usize::from(padding)))),
        None if header.length > 0 => Ok(None),
        _ => Err(Violation::Padding),
    }
}
