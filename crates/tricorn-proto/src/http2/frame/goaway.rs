//! GOAWAY (RFC 9113 section 6.8).
use super::{FrameHeader, Kind};

/// The last stream that is processed, and the error code.
pub fn read(payload: &[u8]) -> (u32, u32) {
    match payload.as_chunks::<4>().0 {
        [last, code, ..] => (u32::from_be_bytes(*last) & (u32::MAX >> 1), u32::from_be_bytes(*code)),
        _ => (0, 0),
    }
}

pub fn write(last: u32, code: u32, debug: &str, out: &mut Vec<u8>) {
    FrameHeader { length: 8 + debug.len(), kind: Kind::Goaway, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}
