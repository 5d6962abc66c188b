//! CONTINUATION (RFC 9113 section 6.10): its whole payload belongs to the header block.
use super::{FrameHeader, Kind};

pub(crate) fn write(stream: u32, fragment: &[u8], flags: u8, out: &mut Vec<u8>) {
    FrameHeader { length: fragment.len(), kind: Kind::Continuation, flags, stream }.write(out);
    out.extend_from_slice(fragment);
}
