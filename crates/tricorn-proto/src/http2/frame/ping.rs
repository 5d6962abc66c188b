//! PING (RFC 9113 section 6.7).
use super::{FrameHeader, Kind};

pub const ACK: u8 = 0x1;

pub fn read(payload: &[u8]) -> [u8; 8] {
    payload.first_chunk().copied().unwrap_or_default()
}

pub fn write(payload: [u8; 8], flags: u8, out: &mut Vec<u8>) {
    FrameHeader { length: 8, kind: Kind::Ping, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}
