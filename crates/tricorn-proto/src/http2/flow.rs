//! Flow-control windows (RFC 9113 section 5.2).
//!
//! ```text
//!   ReceiveWindow   size ≥ available + unread + owed
//!     received n: available −n, unread +n      taken n: unread −n, owed +n
//!     owed ≥ size / 8: WINDOW_UPDATE(owed)
//!     taken since the size is what it is ≥ size / 2: it doubles up to its limit, and WINDOW_UPDATE says so
//! ```
//!
//! What is owed is no window for the peer, which is a round trip away: with halves it has between a half and all of the window, with
//! eighths seven of them at least. An update of 13 bytes for an eighth of 1 MiB costs nothing.
//!
//! The size grows by being consumed: an application that does not read never has more than the first window in memory,
//! one that does is not bound to 64 KiB per round trip.

/// Section 6.9.1: "A sender MUST NOT allow a flow-control window to exceed 2^31-1 octets."
pub const MAX_WINDOW: i64 = (1 << 31) - 1;
/// Section 6.9.2: the first window of streams and connections.
pub const DEFAULT_WINDOW: u32 = 65_535;

/// How much the peer lets us send. Below zero after it has made its initial window smaller.
#[derive(Debug, Clone, Copy)]
pub struct SendWindow(i64);

impl SendWindow {
    pub fn new(size: u32) -> SendWindow {
        SendWindow(i64::from(size))
    }

    pub fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// `false`: the window would be too large.
    pub fn add(&mut self, increment: i64) -> bool {
        self.0 += increment;
        self.0 <= MAX_WINDOW
    }

    pub fn spend(&mut self, length: usize) {
        self.0 -= length as i64;
    }
}

/// How much the peer may send.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveWindow {
    size: u32,
    limit: u32,
    /// What the peer may still send.
    available: u32,
    /// Received, not yet taken.
    unread: u32,
    /// Taken, not yet announced to the peer.
    owed: u32,
    /// Taken since the size is what it is.
    taken: u32,
}

/// A window is given back by such parts.
const PART: u32 = 8;

impl ReceiveWindow {
    pub fn new(size: u32, limit: u32) -> ReceiveWindow {
        ReceiveWindow { size, limit: limit.max(size), available: size, unread: 0, owed: 0, taken: 0 }
    }

    /// `false`: the peer may not send as much.
    pub fn receive(&mut self, length: usize) -> bool {
        let Ok(length) = u32::try_from(length) else { return false };
        let Some(available) = self.available.checked_sub(length) else { return false };
        self.available = available;
        self.unread += length;
        true
    }

    /// Gives back what was taken. Returns the increment to announce, if it is time.
    ///
    /// More than is unread is never given back: the window could grow over what memory was planned for.
    pub fn take(&mut self, length: usize) -> Option<u32> {
        let length = u32::try_from(length).unwrap_or(u32::MAX).min(self.unread);
        self.unread -= length;
        self.owed += length;
        self.taken = self.taken.saturating_add(length);
        let growth = if self.taken >= self.size / 2 { self.size.min(self.limit - self.size) } else { 0 };
        if self.owed == 0 || growth == 0 && self.owed < self.size / PART {
            return None;
        }
        if growth > 0 {
            self.size += growth;
            self.taken = 0;
        }
        let increment = std::mem::take(&mut self.owed) + growth;
        self.available += increment;
        Some(increment)
    }

    /// Makes the window larger at once. Returns the increment.
    pub fn widen(&mut self, size: u32) -> u32 {
        let increment = size.saturating_sub(self.size);
        self.size += increment;
        self.limit = self.limit.max(self.size);
        self.available += increment;
        increment
    }

    pub fn unread(&self) -> usize {
        self.unread as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_is_consumed_grows_to_its_limit() {
        let mut window = ReceiveWindow::new(1000, 4000);
        let mut sizes = Vec::new();
        for _ in 0..100 {
            assert!(window.receive(500));
            if window.take(500).is_some() {
                sizes.push(window.size);
            }
        }
        sizes.dedup();
        assert_eq!(sizes, [2000, 4000]);
        assert!(window.available + window.unread + window.owed <= 4000);
    }

    #[test]
    fn a_window_grows_when_half_of_it_was_consumed() {
        let mut window = ReceiveWindow::new(1000, 4000);
        assert!(window.receive(1000) && !window.receive(1));
        assert_eq!((window.take(499), window.take(1)), (Some(499), Some(1 + 1000)));
        assert_eq!((window.take(500), window.size), (Some(500), 2000), "half of what it is now");
    }

    #[test]
    fn a_window_is_given_back_by_eighths() {
        let mut window = ReceiveWindow::new(8000, 8000);
        assert!(window.receive(8000));
        assert_eq!(
            (window.take(999), window.take(1), window.take(999), window.available),
            (None, Some(1000), None, 1000)
        );
        assert!(window.receive(1000));
        assert_eq!((window.take(8000), window.available), (Some(8000), 8000), "all of it, and no more");
    }

    #[test]
    fn more_than_was_received_is_never_given_back() {
        let mut window = ReceiveWindow::new(1000, 1000);
        assert!(window.receive(600));
        assert_eq!((window.take(usize::MAX), window.take(600)), (Some(600), None));
        assert_eq!(window.available, 1000);
    }

    #[test]
    fn a_send_window_may_be_negative_but_never_too_large() {
        let mut window = SendWindow::new(10);
        window.spend(10);
        assert!(window.add(-5) && window.room() == 0);
        assert!(window.add(MAX_WINDOW + 5) && !window.add(1));
    }
}
