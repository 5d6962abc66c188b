//! DATA (RFC 9113 section 6.1). Its content is never collected: the caller takes it piece by piece.
use super::{FrameHeader, Kind, padding};
use crate::http2::violation::Violation;

pub const END_STREAM: u8 = 0x1;

/// How a payload is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// The octet that says how long the padding is: 0 or 1.
    pub prefix: usize,
    pub content: usize,
    pub padding: usize,
    pub end: bool,
}

/// `None`: the first octet of the payload is still to come.
pub fn read(header: &FrameHeader, payload: &[u8]) -> Result<Option<Data>, Violation> {
    let parts = padding::read(header, payload)?;
    Ok(parts.map(|(prefix, padding)| Data {
        prefix,
        content: header.length - prefix - padding,
        padding,
        end: header.has(END_STREAM),
    }))
}

pub fn write(stream: u32, content: &[u8], end: bool, out: &mut Vec<u8>) {
    let flags = if end { END_STREAM } else { 0 };
    FrameHeader { length: content.len(), kind: Kind::Data, flags, stream }.write(out);
    out.extend_from_slice(content);
}
