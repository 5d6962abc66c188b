//! HEADERS (RFC 9113 section 6.2).
use super::priority::{self, DEPENDENCY};
use super::{FrameHeader, Kind, MAX_PAYLOAD, continuation, padding};
use crate::http2::violation::Violation;

pub const END_STREAM: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
const PRIORITY: u8 = 0x20;

/// A payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    pub fragment: &'a [u8],
    /// The deprecated priority names the stream itself (RFC 7540 section 5.3.1).
    pub depends_on_itself: bool,
    pub end_stream: bool,
    pub end_headers: bool,
}

pub fn read<'a>(header: &FrameHeader, payload: &'a [u8]) -> Result<Headers<'a>, Violation> {
    let (prefix, padding) = padding::read(header, payload)?.ok_or(Violation::Padding)?;
    let content = &payload[prefix..payload.len() - padding];
    let (fragment, depends_on_itself) = match content.split_first_chunk::<DEPENDENCY>() {
        _ if !header.has(PRIORITY) => (content, false),
        Some((dependency, fragment)) => (fragment, priority::depends_on(dependency) == header.stream),
        None => return Err(Violation::FrameLength),
    };
    Ok(Headers {
        fragment,
        depends_on_itself,
        end_stream: header.has(END_STREAM),
        end_headers: header.has(END_HEADERS),
    })
}

/// Writes a block, in as many frames as it takes.
pub fn write(stream: u32, block: &[u8], end: bool, out: &mut Vec<u8>) {
    let (first, mut rest) = block.split_at(block.len().min(MAX_PAYLOAD));
    let last = |rest: &[u8]| if rest.is_empty() { END_HEADERS } else { 0 };
    let flags = last(rest) | if end { END_STREAM } else { 0 };
    FrameHeader { length: first.len(), kind: Kind::Headers, flags, stream }.write(out);
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (fragment, after) = rest.split_at(rest.len().min(MAX_PAYLOAD));
        rest = after;
        continuation::write(stream, fragment, last(rest), out);
    }
}
