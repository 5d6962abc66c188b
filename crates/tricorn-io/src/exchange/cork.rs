//! A cork for streams: pieces that follow one another within microseconds travel together, and what the client has not
//! taken yet goes on while the application is busy.
//!
//! PEP 3333 asks that every block the application yields is transmitted, or that its transmission goes on "even while the
//! application is producing its next block". The first piece is sent at once, and so is each that comes after a pause. A
//! piece right after another waits in the cork, as does what the socket did not take; the next piece, the end of the reply
//! or the monitor's next tick sends it. An application that yields a hundred lines in a row costs a few system calls, not a
//! hundred, and none of its lines is more than two ticks late.
//!
//! An open cork has no descriptor: what it has of the connection is a [`Loan`], good for as long as bytes lie here. Between two
//! pieces the exchange's outbox lies here, while one is written the exchange has it; the lock keeps the bytes in order. The
//! monitor is told of a cork that bytes are put into, and forgets it after a tick in which none were: it is not woken for each
//! piece of a stream. If the socket is full, the kernel tells it when there is room again. So a stream that says nothing, or
//! whose client does not read, costs nothing.
//!
//! ```text
//!             put                     look: the socket is full
//!   Unknown ──────▶ Listed ──────────────────────────────────▶ Blocked
//!      ▲              │ look: nothing was put since the last        │ look: there is room, and all is sent
//!      └──────────────┴──────────────────────────────────────────┘
//! ```
use super::outbox::{Flush, Outbox, SharedBytes};
use crate::stream::{Loan, Stream};
use rustix::fd::BorrowedFd;
use rustix::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes gathered before they are sent anyway.
pub const FULL: usize = 16 * 1024;
/// Pieces that come closer to one another than this (nanoseconds) are gathered.
pub const RAPID: u64 = 50_000;

#[derive(Default)]
pub struct Cork {
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// Of the stream that is under way.
    loan: Option<Loan>,
    outbox: Outbox,
    /// Owners of bytes that the monitor sent, to be dropped by the app thread.
    spent: Vec<SharedBytes>,
    known: Known,
}

/// What the monitor knows of a cork.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Known {
    #[default]
    Unknown,
    /// It looks at the cork at its next tick. `fresh`: bytes were put here since the last look.
    Listed { fresh: bool },
    /// It looks at the cork when the socket has room.
    Blocked,
}

/// What is left of a cork after the monitor's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing to look at, until bytes are put into it again.
    Nothing,
    /// It is to be looked at at the next tick, too.
    Again,
}

impl Cork {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the cork ready for this stream.
    pub fn open(&self, stream: &Stream) {
        self.held().loan = Some(stream.lend());
    }

    /// Leaves an outbox to the monitor until the next piece. Whether the monitor is to be told.
    pub fn put(&self, outbox: &mut Outbox) -> bool {
        let mut held = self.held();
        std::mem::swap(outbox, &mut held.outbox);
        let before = held.known;
        if before != Known::Blocked {
            held.known = Known::Listed { fresh: true };
        }
        before == Known::Unknown
    }

    /// Takes the outbox back, and what became of the owners of its bytes.
    pub fn take(&self, outbox: &mut Outbox, spent: &mut Vec<SharedBytes>) {
        let mut held = self.held();
        std::mem::swap(&mut held.outbox, outbox);
        spent.append(&mut held.spent);
    }

    /// The stream is over, or its exchange was dropped: nothing of it is sent any more, and its socket may be closed. Owners of
    /// bytes stay for a thread that may drop them.
    pub fn close(&self) {
        let mut held = self.held();
        let Held { loan, outbox, spent, known } = &mut *held;
        *loan = None;
        if *known == Known::Blocked {
            *known = Known::Unknown; // what the kernel may tell is of this stream
        }
        if !outbox.is_empty() {
            outbox.clear(spent);
        }
    }

    /// Sends what the kernel takes; for the monitor. `watch` is to tell when the socket has room. A broken connection is for the
    /// exchange to notice.
    pub fn send_some(&self, watch: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> Left {
        let mut held = self.held();
        let Held { loan, outbox, spent, known } = &mut *held;
        let once_more = Known::Listed { fresh: false };
        let all_sent = if *known == (Known::Listed { fresh: true }) { once_more } else { Known::Unknown };
        *known = match loan {
            None => Known::Unknown,
            Some(_) if outbox.is_empty() => all_sent,
            Some(loan) => match loan.handle().map(|mut stream| outbox.flush(&mut stream, spent)) {
                Ok(Flush::Empty) => all_sent,
                Ok(Flush::Gone | Flush::Truncated) => Known::Unknown,
                Ok(Flush::Blocked) if loan.with_socket(watch).is_ok() => Known::Blocked,
                // No memory, or no descriptor, for now.
                Ok(Flush::Blocked) | Err(_) => once_more,
            },
        };
        if *known == once_more { Left::Again } else { Left::Nothing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    fn stream(socket: UnixStream) -> Stream {
        Stream::new(socket.into())
    }

    fn unwatched(_: BorrowedFd<'_>) -> io::Result<()> {
        panic!("there is room")
    }

    #[test]
    fn what_a_dropped_exchange_has_left_does_not_go_to_the_next_client() {
        let (first, _first_client) = UnixStream::pair().expect("sockets");
        let (second, mut client) = UnixStream::pair().expect("sockets");
        let (first, second) = (stream(first), stream(second));
        let cork = Cork::default();
        cork.open(&first);
        let mut outbox = Outbox::default();
        outbox.push_shared(Box::new(b"for the first".to_vec()), 0, 13);
        cork.put(&mut outbox);
        cork.close();
        cork.open(&second);
        cork.send_some(unwatched);
        let mut spent = Vec::new();
        cork.take(&mut outbox, &mut spent);
        cork.close();
        drop(second);
        let mut got = String::new();
        client.read_to_string(&mut got).expect("socket");
        assert_eq!((got.as_str(), spent.len()), ("", 1));
    }

    #[test]
    fn what_is_left_to_the_monitor_goes_out_with_the_tick_and_only_once() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let ours = stream(ours);
        let cork = Cork::default();
        cork.open(&ours);
        let mut outbox = Outbox::default();
        outbox.push(b"ab");
        outbox.push_shared(Box::new(b"cd".to_vec()), 0, 2);
        cork.put(&mut outbox);
        cork.send_some(unwatched);
        cork.send_some(unwatched);
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

    #[test]
    fn the_monitor_is_told_of_bytes_once_and_waits_for_room_in_a_socket_that_is_full() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        ours.set_nonblocking(true).expect("socket");
        let ours = stream(ours);
        let cork = Cork::default();
        cork.open(&ours);
        let (mut outbox, mut spent) = (Outbox::default(), Vec::new());
        let length = 1 << 20;
        outbox.push(&vec![b'x'; length]);
        assert!(cork.put(&mut outbox));
        cork.take(&mut outbox, &mut spent);
        assert!(!cork.put(&mut outbox), "it is listed");
        let watched = Cell::new(0);
        let watch = |_: BorrowedFd<'_>| {
            watched.set(watched.get() + 1);
            Ok(())
        };
        assert_eq!(cork.send_some(|_| Err(io::Errno::NOMEM)), Left::Again, "it cannot be waited for");
        assert_eq!(cork.send_some(watch), Left::Nothing);
        cork.take(&mut outbox, &mut spent);
        assert!(!outbox.is_empty() && !cork.put(&mut outbox), "the kernel tells of it");
        let mut got = vec![0; length];
        let reader = std::thread::spawn(move || theirs.read_exact(&mut got).map(|()| theirs));
        while !reader.is_finished() {
            cork.send_some(watch);
        }
        let _theirs = reader.join().expect("a reader").expect("all of it");
        assert!(watched.get() > 0);
        while cork.send_some(watch) == Left::Again {}
        outbox.push(b"more");
        assert!(cork.put(&mut outbox), "all was sent: it is new again");
        assert_eq!(cork.send_some(watch), Left::Again, "more may follow");
        cork.take(&mut outbox, &mut spent);
        outbox.push(b"and more");
        assert!(!cork.put(&mut outbox));
        assert_eq!(cork.send_some(watch), Left::Again);
        assert_eq!(cork.send_some(watch), Left::Nothing);
    }

    #[test]
    fn a_stream_that_ends_in_front_of_a_full_socket_leaves_nothing_to_the_next() {
        let [(first, _first_client), (second, _second_client)] = [(); 2].map(|()| UnixStream::pair().expect("sockets"));
        first.set_nonblocking(true).expect("socket");
        let (first, second) = (stream(first), stream(second));
        let (cork, mut outbox) = (Cork::default(), Outbox::default());
        cork.open(&first);
        outbox.push(&vec![b'x'; 1 << 20]);
        cork.put(&mut outbox);
        assert_eq!(cork.send_some(|_| Ok(())), Left::Nothing);
        cork.close();
        cork.open(&second);
        let mut outbox = Outbox::default();
        outbox.push(b"more");
        assert!(cork.put(&mut outbox));
    }
}
