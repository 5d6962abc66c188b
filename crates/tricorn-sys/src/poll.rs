//! epoll, with the two flags the reactor lives on: edge-triggered connections and exclusive listeners.
//!
//! Connections are registered once, for reading and writing, edge-triggered: nothing is re-armed per request, and a
//! connection that was read dry costs the next `epoll_wait` nothing. A reader must therefore read until a short
//! read (no more bytes at that moment: the next ones make an edge) and read once more when the peer hung up
//! (`RDHUP` arrives with the edge of the last bytes; no second edge follows).
//!
//! Listeners are level-triggered and EXCLUSIVE: of the workers that sleep on a shared listener one is woken, and a
//! worker that is not in `epoll_wait` (busy) is passed over by the kernel.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use std::mem::MaybeUninit;

/// How many events one wait may bring.
pub const BATCH: usize = 256;

/// Names what is watched: a connection for as long as it lives, or something else (`reactor/tokens.rs`).
pub type Token = u64;

#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
}

/// What happened to one registered descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    pub token: Token,
    pub readable: bool,
    /// The peer closed its sending side.
    pub hangup: bool,
    /// The connection is broken both ways.
    pub error: bool,
}

/// The events of one wait. Filled outside the baton, then swapped into the reactor.
///
/// Empty ones hold no memory: they stand in for those that a thread has taken along, and are made with every wait.
#[derive(Debug, Default)]
pub struct Events {
    batch: Vec<Event>,
    next: usize,
}

impl Events {
    pub fn is_empty(&self) -> bool {
        self.next == self.batch.len()
    }

    #[inline]
    pub fn pop(&mut self) -> Option<Event> {
        let event = *self.batch.get(self.next)?;
        self.next += 1;
        Some(event)
    }

    /// Whether the last wait brought more than one event: a sign of load.
    pub fn was_batch(&self) -> bool {
        self.batch.len() > 1
    }
}

impl Poller {
    pub fn new() -> io::Result<Poller> {
        Ok(Poller { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    pub fn add_connection(&self, socket: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    pub fn add_listener(&self, socket: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        epoll::add(&self.epoll, socket, EventData::new_u64(token), EventFlags::IN | EventFlags::EXCLUSIVE)
    }

    pub fn add_wake(&self, fd: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN)
    }

    /// Reports every change to readable, and nothing while it stays so.
    pub fn add_edge(&self, fd: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        epoll::add(&self.epoll, fd, EventData::new_u64(token), EventFlags::IN | EventFlags::ET)
    }

    /// Reports once that a socket takes bytes again. A name that it had here before gives way.
    pub fn await_room(&self, socket: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        let (data, flags) = (EventData::new_u64(token), EventFlags::OUT | EventFlags::ONESHOT);
        match epoll::add(&self.epoll, socket, data, flags) {
            Err(io::Errno::EXIST) => epoll::modify(&self.epoll, socket, data, flags),
            result => result,
        }
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        epoll::delete(&self.epoll, fd)
    }

    /// Waits for events; `None` waits without end. An interrupted wait is an empty one.
    pub fn wait(&self, events: &mut Events, timeout: Option<u64>) -> io::Result<()> {
        events.next = 0;
        events.batch.clear();
        self.append(events, timeout)
    }

    /// Adds the events that there are to those of another poller.
    pub fn add_events(&self, events: &mut Events) -> io::Result<()> {
        self.append(events, Some(0))
    }

    fn append(&self, events: &mut Events, timeout: Option<u64>) -> io::Result<()> {
        let mut buffer = [const { MaybeUninit::<epoll::Event>::uninit() }; BATCH];
        let timespec = timeout.map(timespec);
        let raw = match epoll::wait(&self.epoll, &mut buffer, timespec.as_ref()) {
            Ok((raw, _)) => raw,
            Err(io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error),
        };
        events.batch.extend(raw.iter().map(|event| {
            let flags = event.flags;
            Event {
                token: event.data.u64(),
                readable: flags.contains(EventFlags::IN),
                hangup: flags.contains(EventFlags::RDHUP),
                error: flags.intersects(EventFlags::ERR | EventFlags::HUP),
            }
        }));
        Ok(())
    }
}

/// Which of `events`, and of what is always told (poll(2): HUP, ERR), a descriptor has or comes to have within `nanos`; none
/// if the system does not tell.
pub fn ready(fd: BorrowedFd<'_>, events: PollFlags, nanos: u64) -> PollFlags {
    let mut fds = [PollFd::from_borrowed_fd(fd, events)];
    match poll(&mut fds, Some(&timespec(nanos))) {
        Ok(_) => fds[0].revents(),
        Err(_) => PollFlags::empty(),
    }
}

/// Nanoseconds as the kernel wants them.
pub fn timespec(nanos: u64) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
