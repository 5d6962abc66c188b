//! RST_STREAM (RFC 9113 section 6.4).
use super::{FrameHeader, Kind};

/// The error code.
pub fn read(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |code| u32::from_be_bytes(*code))
}

pub fn write(stream: u32, code: u32, out: &mut Vec<u8>) {
    FrameHeader { length: 4, kind: Kind::RstStream, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.to_be_bytes());
}
