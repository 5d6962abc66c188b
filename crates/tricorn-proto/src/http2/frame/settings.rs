//! SETTINGS (RFC 9113 section 6.5).
use super::{FrameHeader, Kind};
use crate::http2::violation::Violation;

pub const ACK: u8 = 0x1;

pub const HEADER_TABLE_SIZE: u16 = 0x1;
pub const ENABLE_PUSH: u16 = 0x2;
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub const MAX_FRAME_SIZE: u16 = 0x5;
pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
/// RFC 8441 section 3.
pub const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
/// RFC 9218 section 2.1.
pub const NO_RFC7540_PRIORITIES: u16 = 0x9;

/// Identifiers and values, in their order.
///
/// Section 6.5: "A SETTINGS frame with a length other than a multiple of 6 octets MUST be treated as a connection error
/// of type FRAME_SIZE_ERROR", one with ACK and a payload likewise.
pub fn read<'a>(
    header: &FrameHeader,
    payload: &'a [u8],
) -> Result<impl Iterator<Item = (u16, u32)> + use<'a>, Violation> {
    let (pairs, rest) = payload.as_chunks::<6>();
    if !rest.is_empty() || header.has(ACK) && !payload.is_empty() {
        return Err(Violation::FrameLength);
    }
    let pair = |&[high, low, value @ ..]: &[u8; 6]| (u16::from_be_bytes([high, low]), u32::from_be_bytes(value));
    Ok(pairs.iter().map(pair))
}

pub fn write(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    FrameHeader { length: settings.len() * 6, kind: Kind::Settings, flags: 0, stream: 0 }.write(out);
    for (identifier, value) in settings {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

pub fn write_ack(out: &mut Vec<u8>) {
    FrameHeader { length: 0, kind: Kind::Settings, flags: ACK, stream: 0 }.write(out);
}
