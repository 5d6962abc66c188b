//! The epoll in which an event loop of another library waits.
//!
//! The kernel wakes one of the threads that wait for a shared listener (EPOLLEXCLUSIVE) only where the listener is in the very epoll
//! that the thread waits in: one that is nested in another has no waiter of its own, and wakes everything above it. A loop's
//! epoll is found by what the kernel tells of it (proc_pid_fdinfo(5)): it is the one that watches a descriptor of ours.
//!
//! What is added here bears the data of that descriptor's registration. So the loop takes an event for one of the descriptor that it
//! knows, and calls what it calls for that, whatever it keeps in the data (a number, or a number and a generation as libev
//! does).
use super::fds;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io::{Errno, Result};
use std::fs;

const DESCRIPTORS: &str = "/proc/self/fdinfo";

/// Not owned: the loop closes it when it ends, and may exchange it for another one (libev does after a fork, and after
/// events of descriptors that were closed while another process had them open).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPoller {
    epoll: RawFd,
    data: u64,
}

impl LoopPoller {
    /// The epoll that watches this descriptor. `None` if it is not known, or not the only one.
    pub fn of(watched: BorrowedFd<'_>) -> Option<LoopPoller> {
        let mut found = None;
        for entry in fs::read_dir(DESCRIPTORS).ok()?.flatten() {
            let Some(epoll) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let Some(data) = data_of(&text, watched.as_raw_fd()) else { continue };
            if found.replace(LoopPoller { epoll, data }).is_some() {
                return None;
            }
        }
        found
    }

    /// Has one of all threads that wait for this descriptor come for an event, and the loop with it if it waits.
    pub fn add(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
        fds::with_borrowed(self.epoll, |epoll| epoll::add(epoll, fd, EventData::new_u64(self.data), flags))
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> Result<()> {
        fds::with_borrowed(self.epoll, |epoll| epoll::delete(epoll, fd))
    }

    /// Whether the descriptor is there that was added.
    pub fn has(&self, fd: BorrowedFd<'_>) -> bool {
        match self.add(fd) {
            Err(Errno::EXIST) => true,
            Ok(()) => {
                let _ = self.remove(fd);
                false
            }
            Err(_) => false,
        }
    }
}

/// What an epoll keeps with a descriptor, in the kernel's words: `tfd:       5 events:       19 data:      5 ...`.
fn data_of(text: &str, watched: RawFd) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        if words.next()?.parse() != Ok(watched) {
            return None;
        }
        words.skip_while(|word| *word != "data:").nth(1).and_then(|data| u64::from_str_radix(data, 16).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Events, Poller};
    use crate::wake::Alarm;

    #[test]
    fn the_data_of_a_descriptor_is_read() {
        let text = "pos:\t0\nflags:\t02\ntfd:       14 events:       19 data:                e  pos:0 ino:1 sdev:f\n\
                    tfd:        4 events: 2019 data: ffffffff00000004  pos:0 ino:1 sdev:f\n";
        assert_eq!(data_of(text, 4), Some(0xffff_ffff_0000_0004));
        assert_eq!(data_of(text, 14), Some(14));
        assert_eq!(data_of(text, 1), None);
        assert_eq!(data_of("pos:\t0\n", 4), None);
    }

    #[test]
    fn an_event_bears_the_data_of_what_the_loop_watches() {
        let (epoll, watched, added) =
            (Poller::new().expect("a poller"), Poller::new().expect("a poller"), Alarm::new().expect("an eventfd"));
        assert_eq!(LoopPoller::of(watched.as_fd()), None);
        epoll.add_wake(watched.as_fd(), 0x1_2345_6789_0abc).expect("room");
        let found = LoopPoller::of(watched.as_fd()).expect("it is watched");
        assert!(!found.has(added.as_fd()));
        found.add(added.as_fd()).expect("room");
        assert!(found.has(added.as_fd()));
        added.ring();
        let mut events = Events::default();
        epoll.wait(&mut events, Some(0)).expect("events");
        assert_eq!(events.pop().map(|event| event.token), Some(0x1_2345_6789_0abc));
        found.remove(added.as_fd()).expect("it is there");
        assert!(!found.has(added.as_fd()));
        epoll.wait(&mut events, Some(0)).expect("events");
        assert!(events.is_empty());
    }

    #[test]
    fn one_of_several_epolls_is_not_known_to_be_the_loops() {
        let (one, other, watched) =
            (Poller::new().expect("a poller"), Poller::new().expect("a poller"), Poller::new().expect("a poller"));
        one.add_wake(watched.as_fd(), 1).expect("room");
        other.add_wake(watched.as_fd(), 1).expect("room");
        assert_eq!(LoopPoller::of(watched.as_fd()), None);
        drop(other);
        assert!(LoopPoller::of(watched.as_fd()).is_some());
    }
}
