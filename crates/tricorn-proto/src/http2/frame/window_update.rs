//! WINDOW_UPDATE (RFC 9113 section 6.9).
use super::{FrameHeader, Kind};

/// The increment.
pub fn read(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |increment| u32::from_be_bytes(*increment) & (u32::MAX >> 1))
}

pub fn write(stream: u32, increment: u32, out: &mut Vec<u8>) {
    FrameHeader { length: 4, kind: Kind::WindowUpdate, flags: 0, stream }.write(out);
    out.extend_from_slice(&increment.to_be_bytes());
}
