//! An epoll that another library has filled: with each descriptor as the data of its events, as CPython's `select.epoll`.

use super::poll::{BATCH, timespec};
use rustix::event::epoll::{self, EventFlags};
use rustix::fd::{BorrowedFd, RawFd};
use rustix::io;
use std::mem::MaybeUninit;

/// What has happened to one descriptor. An error is both: to read or to write tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyDescriptor {
    pub fd: RawFd,
    pub readable: bool,
    pub writable: bool,
}

/// Waits for events, `None` without end. More of them than one wait may bring come with the next.
///
/// # Errors
/// What the system says, and `EINTR` if a signal came first.
pub fn wait_at(epoll: BorrowedFd<'_>, nanos: Option<u64>) -> io::Result<Vec<ReadyDescriptor>> {
    let mut buffer = [const { MaybeUninit::<epoll::Event>::uninit() }; BATCH];
    let timespec = nanos.map(timespec);
    let (events, _) = epoll::wait(epoll, &mut buffer, timespec.as_ref())?;
    Ok(events.iter().map(ready).collect())
}

fn ready(event: &epoll::Event) -> ReadyDescriptor {
    let (flags, data) = (event.flags, event.data.u64().to_ne_bytes());
    ReadyDescriptor {
        fd: RawFd::from_ne_bytes([data[0], data[1], data[2], data[3]]), // the rest of the data is not written
        readable: !(flags - EventFlags::OUT).is_empty(),
        writable: !(flags - EventFlags::IN).is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::epoll::{CreateFlags, EventData};
    use rustix::fd::{AsFd, AsRawFd};
    use rustix::pipe::pipe;

    #[test]
    fn descriptors_are_told_with_what_they_are_ready_for() {
        let (reader, writer) = pipe().unwrap();
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        for (end, flags) in [(&reader, EventFlags::IN), (&writer, EventFlags::OUT)] {
            let [a, b, c, d] = end.as_raw_fd().to_ne_bytes();
            let data = EventData::new_u64(u64::from_ne_bytes([a, b, c, d, 1, 2, 3, 4]));
            epoll::add(&epoll, end, data, flags).unwrap();
        }
        let writable = ReadyDescriptor { fd: writer.as_raw_fd(), readable: false, writable: true };
        assert_eq!(wait_at(epoll.as_fd(), Some(0)).unwrap(), [writable]);
        io::write(&writer, b"x").unwrap();
        let readable = ReadyDescriptor { fd: reader.as_raw_fd(), readable: true, writable: false };
        assert!(wait_at(epoll.as_fd(), None).unwrap().contains(&readable));
        drop(reader);
        let broken = wait_at(epoll.as_fd(), None).unwrap();
        assert_eq!(broken, [ReadyDescriptor { fd: writer.as_raw_fd(), readable: true, writable: true }]);
    }

    #[test]
    fn a_wait_ends_with_its_time() {
        let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
        assert_eq!(wait_at(epoll.as_fd(), Some(1_000_000)).unwrap(), []);
    }
}
