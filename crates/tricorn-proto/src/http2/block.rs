//! A header block that comes in several frames (RFC 9113 section 4.3).
use super::violation::Violation;

/// The block that is being collected, if there is one.
#[derive(Debug, Default)]
pub struct Block {
    open: Option<Opening>,
    bytes: Vec<u8>,
    continuations: u32,
}

/// What the HEADERS frame said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    pub stream: u32,
    pub end_stream: bool,
    pub depends_on_itself: bool,
}

impl Block {
    /// The stream whose CONTINUATION must come next.
    pub fn stream(&self) -> Option<u32> {
        self.open.map(|open| open.stream)
    }

    pub fn begin(&mut self, opening: Opening, fragment: &[u8]) {
        self.open = Some(opening);
        self.bytes.extend_from_slice(fragment);
    }

    /// Adds a CONTINUATION. Their number is limited as well as their bytes, since empty ones cost time, too.
    pub fn add(&mut self, fragment: &[u8], max_bytes: usize) -> Result<(), Violation> {
        self.continuations += 1;
        if self.continuations > MAX_CONTINUATIONS {
            return Err(Violation::Continuations);
        }
        if self.bytes.len() + fragment.len() > max_bytes {
            return Err(Violation::HeaderBlock);
        }
        self.bytes.extend_from_slice(fragment);
        Ok(())
    }

    /// The complete block. Nothing is held afterwards.
    pub fn take(&mut self) -> Option<(Opening, Vec<u8>)> {
        self.continuations = 0;
        self.open.take().map(|open| (open, std::mem::take(&mut self.bytes)))
    }
}

/// nghttp2's number.
const MAX_CONTINUATIONS: u32 = 8;
