//! epoll, level-triggered: an idle writer has nothing to wait for but bytes.
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{self, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;

const MILLISECOND: Duration = Duration::from_millis(1);

pub struct Poller {
    epoll: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Reading,
    /// Some of what is to be sent is left, too.
    Both,
}

/// What happened, reused from wait to wait.
pub struct Events(Vec<Event>);

impl Default for Events {
    fn default() -> Events {
        Events(Vec::with_capacity(BATCH))
    }
}

impl Events {
    /// The tokens of the descriptors that something happened to.
    pub fn tokens(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|event| event.data.u64() as usize)
    }
}

impl Poller {
    pub fn new() -> Result<Poller, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        Ok(Poller { epoll })
    }

    pub fn add(&self, fd: impl AsFd, token: usize, interest: Interest) -> Result<(), String> {
        let added = epoll::add(&self.epoll, fd, EventData::new_u64(token as u64), flags(interest));
        added.map_err(|error| format!("epoll: {error}"))
    }

    pub fn change(&self, fd: impl AsFd, token: usize, interest: Interest) -> Result<(), String> {
        let changed = epoll::modify(&self.epoll, fd, EventData::new_u64(token as u64), flags(interest));
        changed.map_err(|error| format!("epoll: {error}"))
    }

    pub fn remove(&self, fd: impl AsFd) {
        // It may be closed.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits for something to happen. `None`: without end. Else it may return up to a millisecond before that time, to be called again.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> Result<(), String> {
        events.0.clear();
        let timeout = match timeout {
            Some(timeout) if timeout < MILLISECOND => self.wait_precisely(timeout)?,
            Some(timeout) => Some(Timespec {
                tv_sec: timeout.as_secs() as i64,
                tv_nsec: i64::from(timeout.subsec_millis()) * 1_000_000,
            }),
            None => None,
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut events.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(format!("epoll: {error}")),
        }
    }

    /// epoll_wait(2) counts milliseconds, and requests are due in between: ppoll(2) counts nanoseconds. How long is left to wait.
    fn wait_precisely(&self, timeout: Duration) -> Result<Option<Timespec>, String> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(timeout.subsec_nanos()) };
        if timeout.tv_nsec > 0 {
            match event::poll(&mut [PollFd::new(&self.epoll, PollFlags::IN)], Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(format!("poll: {error}")),
            }
        }
        Ok(Some(Timespec { tv_sec: 0, tv_nsec: 0 }))
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Reading => EventFlags::IN,
        Interest::Both => EventFlags::IN | EventFlags::OUT,
    }
}

const BATCH: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_may_be_shorter_than_a_millisecond() {
        let (poller, mut events) = (Poller::new().expect("epoll"), Events::default());
        let mut wait = |timeout: Duration| {
            let begin = Instant::now();
            poller.wait(&mut events, Some(timeout)).expect("epoll");
            begin.elapsed()
        };
        let shortest = (0..50).map(|_| wait(Duration::from_micros(200))).min();
        assert!(shortest.is_some_and(|time| (Duration::from_micros(200)..MILLISECOND).contains(&time)), "{shortest:?}");
        assert!(wait(Duration::from_micros(2_900)) >= 2 * MILLISECOND, "the rest is another wait");
    }
}
