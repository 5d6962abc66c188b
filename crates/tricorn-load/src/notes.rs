//! What a client notes of its request, for samples.

/// What a client notes of its request while there are samples.
#[derive(Debug, Clone, Default)]
pub struct Notes {
    /// Nanoseconds; 0: it did not happen.
    pub connected: u64,
    pub written: u64,
    pub first: u64,
    body: Vec<u8>,
}

impl Notes {
    pub fn begin(&mut self) {
        (self.connected, self.written, self.first) = (0, 0, 0);
        self.body.clear();
    }

    /// A piece of the body came.
    pub fn take(&mut self, piece: &[u8]) {
        let room = BODY.saturating_sub(self.body.len());
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// The beginning of the body, as text.
    pub fn beginning(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Bytes of a body that are kept.
const BODY: usize = 32;
