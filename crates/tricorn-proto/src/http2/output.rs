//! Bytes for the peer, in order, and how many may wait.

/// Frames to send. Nothing is ever dropped, so producers must ask for room first.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    /// How many of them were sent.
    sent: usize,
}

impl Output {
    /// For a frame to be appended to.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    pub fn pending(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// Takes off what was sent.
    pub fn advance(&mut self, length: usize) {
        self.sent = self.bytes.len().min(self.sent + length);
        if self.sent < self.bytes.len() {
            return;
        }
        self.sent = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
    }

    /// Whether another frame of DATA may be added.
    pub fn has_room(&self) -> bool {
        self.pending().len() < DATA_MARK
    }

    /// Whether a peer that does not read has more answers to come than it may have: nothing more is read from it.
    pub fn is_choked(&self) -> bool {
        self.pending().len() >= CONTROL_MARK
    }
}

/// DATA waits with its producer beyond this.
const DATA_MARK: usize = 64 * 1024;
/// Acknowledgements, window updates and resets have 64 KiB besides (CVE-2019-9512, CVE-2019-9515).
const CONTROL_MARK: usize = 2 * DATA_MARK + super::frame::MAX_PAYLOAD;
/// Memory of an idle connection.
const KEPT: usize = 1024;
