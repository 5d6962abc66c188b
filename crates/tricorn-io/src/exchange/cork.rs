//! A cork for streams: pieces that follow one another within microseconds travel together, and what the client has not
//! taken yet goes on while the application is busy.
//!
//! PEP 3333 asks that every block the application yields is transmitted, or that its transmission goes on "even while the
//! application is producing its next block". The first piece is sent at once, and so is each that comes after a pause. A
//! piece right after another waits in the cork, as does what the socket did not take; the next piece, the end of the reply
//! or the monitor's next tick sends it. An application that yields a hundred lines in a row costs a few system calls, not a
//! hundred, and none of its lines is more than two ticks late.
//!
//! The cork has a handle of its own ([`Stream::second`]), so that the monitor never depends on the exchange's; its lock keeps
//! the bytes in order. Between two pieces the exchange's outbox lies here, while one is written the exchange has it.
use super::outbox::{Outbox, SharedBytes};
use crate::stream::Stream;
use rustix::fd::{AsRawFd, RawFd};
use rustix::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes gathered before they are sent anyway.
pub const FULL: usize = 16 * 1024;
/// Pieces that come closer to one another than this (nanoseconds) are gathered.
pub const RAPID: u64 = 50_000;

#[derive(Default)]
pub struct Cork {
    held: Mutex<Corked>,
}

#[derive(Default)]
struct Corked {
    stream: Option<Stream>,
    outbox: Outbox,
    /// Owners of bytes that the monitor sent, to be dropped by the app thread.
    spent: Vec<SharedBytes>,
}

impl Corked {
    /// Owners of bytes stay with `spent`, for a thread that may drop them.
    fn forget(&mut self) {
        if !self.outbox.is_empty() {
            self.outbox.clear(&mut self.spent);
        }
    }
}

impl Cork {
    fn held(&self) -> MutexGuard<'_, Corked> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the cork ready for this stream. What an exchange before has left here is not this one's to send.
    pub fn open(&self, stream: &Stream) -> io::Result<()> {
        let stream = stream.second()?;
        let mut held = self.held();
        held.forget();
        held.stream = Some(stream);
        Ok(())
    }

    /// The exchange was dropped: nothing of it is sent any more.
    pub fn abandon(&self) {
        let mut held = self.held();
        held.forget();
        held.stream = None;
    }

    /// Leaves an outbox to the monitor until the next piece.
    pub fn put(&self, outbox: &mut Outbox) {
        std::mem::swap(&mut self.held().outbox, outbox);
    }

    /// Takes the outbox back, and what became of the owners of its bytes.
    pub fn take(&self, outbox: &mut Outbox, spent: &mut Vec<SharedBytes>) {
        let mut held = self.held();
        std::mem::swap(&mut held.outbox, outbox);
        spent.append(&mut held.spent);
    }

    /// The stream is over.
    pub fn close(&self) {
        self.held().stream = None;
    }

    /// Sends what the kernel takes; for the monitor. A broken connection is for the exchange to notice.
    pub fn send_some(&self) {
        let mut held = self.held();
        let Corked { stream: Some(stream), outbox, spent } = &mut *held else { return };
        if !outbox.is_empty() {
            outbox.flush(stream, spent);
        }
    }

    /// Its own descriptor; for a moment in which the monitor is not at it.
    pub fn socket(&self) -> Option<RawFd> {
        self.held().stream.as_ref().map(|stream| stream.socket().as_raw_fd())
    }

    /// Whether a stream is under way.
    pub fn is_open(&self) -> bool {
        self.held().stream.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn stream(socket: UnixStream) -> Stream {
        Stream::new(socket.into())
    }

    #[test]
    fn what_a_dropped_exchange_has_left_does_not_go_to_the_next_client() {
        let (first, _first_client) = UnixStream::pair().expect("sockets");
        let (second, mut client) = UnixStream::pair().expect("sockets");
        let (first, second) = (stream(first), stream(second));
        let cork = Cork::default();
        for is_told in [false, true] {
            cork.open(&first).expect("socket");
            let mut outbox = Outbox::default();
            outbox.push(b"for the first");
            cork.put(&mut outbox);
            if is_told {
                cork.abandon();
            }
            cork.open(&second).expect("socket");
            cork.send_some();
            cork.close();
        }
        drop(second);
        let mut got = String::new();
        client.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "");
    }

    #[test]
    fn what_is_left_to_the_monitor_goes_out_with_the_tick_and_only_once() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let ours = stream(ours);
        let cork = Cork::default();
        cork.open(&ours).expect("socket");
        let mut outbox = Outbox::default();
        outbox.push(b"ab");
        outbox.push_shared(Box::new(b"cd".to_vec()), 0, 2);
        cork.put(&mut outbox);
        cork.send_some();
        cork.send_some();
        let mut spent = Vec::new();
        cork.take(&mut outbox, &mut spent);
        assert!(outbox.is_empty());
        assert_eq!((outbox.sent(), spent.len()), (4, 1));
        cork.close();
        drop(ours);
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("socket");
        assert_eq!(got, "abcd");
    }
}
