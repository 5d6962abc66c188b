//! PRIORITY_UPDATE (RFC 9218 section 7.1).

/// The stream and its Priority field value.
pub(crate) fn read(payload: &[u8]) -> (u32, &[u8]) {
    match payload.split_first_chunk() {
        Some((stream, value)) => (u32::from_be_bytes(*stream) & (u32::MAX >> 1), value),
        None => (0, &[]),
    }
}
