//! epoll, level-triggered: who does not write has nothing to wait for but bytes.
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::time::Duration;

pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    Reading,
    /// Some of what is to be sent is left, too.
    Both,
}

impl Poller {
    pub fn new() -> Result<Poller, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|error| format!("epoll: {error}"))?;
        Ok(Poller { epoll, events: Vec::with_capacity(BATCH) })
    }

    pub fn add(&self, fd: impl AsFd, token: usize) -> Result<(), String> {
        let added = epoll::add(&self.epoll, fd, EventData::new_u64(token as u64), EventFlags::IN);
        added.map_err(|error| format!("epoll: {error}"))
    }

    pub fn change(&self, fd: impl AsFd, token: usize, interest: Interest) -> Result<(), String> {
        let flags = match interest {
            Interest::Reading => EventFlags::IN,
            Interest::Both => EventFlags::IN | EventFlags::OUT,
        };
        let changed = epoll::modify(&self.epoll, fd, EventData::new_u64(token as u64), flags);
        changed.map_err(|error| format!("epoll: {error}"))
    }

    pub fn remove(&self, fd: impl AsFd) {
        // It may be closed.
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// The tokens of those that something happened to. `None`: waits without end.
    pub fn wait(&mut self, timeout: Option<Duration>) -> Result<Vec<usize>, String> {
        let timeout = timeout
            .map(|timeout| Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(format!("epoll: {error}")),
        }
        Ok(self.events.iter().map(|event| event.data.u64() as usize).collect())
    }
}

const BATCH: usize = 256;
