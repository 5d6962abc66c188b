//! GOAWAY (RFC 9113 section 6.8).
use super::{FrameHeader, Kind};

/// The error code.
pub(crate) fn read(payload: &[u8]) -> u32 {
    payload.get(4..).and_then(|rest| rest.first_chunk()).map_or(0, |code| u32::from_be_bytes(*code))
}

pub(crate) fn write(last: u32, code: u32, debug: &str, out: &mut Vec<u8>) {
    FrameHeader { length: 8 + debug.len(), kind: Kind::Goaway, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}
