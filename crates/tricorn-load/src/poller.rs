//! epoll, level-triggered: an idle writer has nothing to wait for but bytes.
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;

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

    /// Waits for something to happen. `None`: without end.
    pub fn wait(&self, events: &mut Events, timeout: Option<Duration>) -> Result<(), String> {
        let timeout = timeout
            .map(|timeout| Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) });
        events.0.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut events.0), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(format!("epoll: {error}")),
        }
    }
}

fn flags(interest: Interest) -> EventFlags {
    match interest {
        Interest::Reading => EventFlags::IN,
        Interest::Both => EventFlags::IN | EventFlags::OUT,
    }
}

const BATCH: usize = 256;
