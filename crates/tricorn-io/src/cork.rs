//! A cork for streams: pieces that follow one another within microseconds travel together.
//!
//! PEP 3333 asks that every block the application yields is transmitted, or that its transmission goes on "even while the
//! application is producing its next block". The first piece is sent at once, and so is each that comes after a pause. A
//! piece right after another waits in the cork; the next one, the end of the reply or the monitor's next tick sends it. An
//! application that yields a hundred lines in a row costs a few system calls, not a hundred, and none of its lines is
//! more than two ticks late.
//!
//! The cork has a descriptor of its own for the socket, so that the monitor never depends on the exchange's; its lock
//! keeps the bytes in order.
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io;
use rustix::net::{SendFlags, send};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes gathered before they are sent anyway.
pub const FULL: usize = 16 * 1024;
/// Pieces that come closer to one another than this (nanoseconds) are gathered.
pub const RAPID: u64 = 50_000;

#[derive(Debug, Default)]
pub struct Cork {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    socket: Option<OwnedFd>,
    bytes: Vec<u8>,
    /// Bytes the monitor sent.
    sent: u64,
}

impl Cork {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the cork ready for a stream on this socket.
    pub fn open(&self, socket: BorrowedFd<'_>) -> io::Result<()> {
        let socket = io::fcntl_dupfd_cloexec(socket, 3)?;
        self.held().socket = Some(socket);
        Ok(())
    }

    /// Adds a piece; whether the cork is full.
    pub fn add(&self, parts: [&[u8]; 3]) -> bool {
        let mut held = self.held();
        for part in parts {
            held.bytes.extend_from_slice(part);
        }
        held.bytes.len() >= FULL
    }

    /// Moves what is held to the end of `out`.
    pub fn take(&self, out: &mut Vec<u8>) {
        let mut held = self.held();
        out.extend_from_slice(&held.bytes);
        held.bytes.clear();
    }

    /// The stream is over; returns how much of it the monitor sent.
    pub fn close(&self) -> u64 {
        let mut held = self.held();
        held.socket = None;
        held.bytes.clear();
        std::mem::take(&mut held.sent)
    }

    /// Sends what the kernel takes; for the monitor. A broken connection is for the exchange to notice.
    pub fn send_some(&self) {
        let mut held = self.held();
        let Held { socket: Some(socket), bytes, sent } = &mut *held else { return };
        if bytes.is_empty() {
            return;
        }
        if let Ok(count) = send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            bytes.drain(..count);
            *sent += count as u64;
        }
    }

    /// Whether a stream is under way.
    pub fn is_open(&self) -> bool {
        self.held().socket.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_gathered_goes_out_with_the_tick_and_only_once() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let cork = Cork::default();
        cork.open(ours.as_fd()).expect("socket");
        assert!(!cork.add([b"a", b"bc", b"d"]));
        cork.send_some();
        cork.send_some();
        let mut rest = b"next ".to_vec();
        cork.take(&mut rest);
        assert_eq!(rest, b"next ");
        assert_eq!(cork.close(), 4);
        drop(ours);
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "abcd");
    }

    #[test]
    fn a_full_cork_says_so() {
        let cork = Cork::default();
        assert!(cork.add([b"", &[0; FULL], b""]));
    }
}
