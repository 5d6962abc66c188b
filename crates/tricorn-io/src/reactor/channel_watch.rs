//! The channel of the group and its wake-up, as events of the poller.
use super::tokens::{CHANNEL, GROUP_WAKEUP, MAILBOX};
use crate::sys::poll::Poller;
use crate::waiting::entrance::Entrance;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct ChannelWatch {
    poller: Arc<Poller>,
    entrance: Arc<Entrance>,
    channel: bool,
    wakeup: bool,
    /// There was a message in the channel.
    offered: bool,
}

impl ChannelWatch {
    pub fn new(poller: Arc<Poller>, entrance: Arc<Entrance>) -> ChannelWatch {
        ChannelWatch { poller, entrance, channel: false, wakeup: false, offered: false }
    }

    /// Has the poller watch the channel, or leaves it to workers that can serve what comes. What fails is to be tried again.
    pub fn set(&mut self, channel: BorrowedFd<'_>, watch: bool) -> Result<(), Errno> {
        if watch == self.channel {
            return Ok(());
        }
        if watch {
            self.entrance.add(channel, CHANNEL)?
        } else {
            self.entrance.remove(channel)?
        }
        self.channel = watch;
        Ok(())
    }

    /// Has the poller watch the worker's own mailbox from now on.
    pub fn watch_mailbox(&self, receive: BorrowedFd<'_>) -> Result<(), Errno> {
        self.poller.add_edge(receive, MAILBOX)
    }

    /// Listens for the group's wake-up, or no longer. Without it waiting requests are looked at a tick later.
    pub fn listen(&mut self, wakeup: BorrowedFd<'_>, watch: bool) {
        if watch == self.wakeup {
            return;
        }
        let result = if watch { self.poller.add_edge(wakeup, GROUP_WAKEUP) } else { self.poller.remove(wakeup) };
        self.wakeup = watch && result.is_ok();
    }

    pub fn came(&mut self) {
        self.offered = true;
    }

    #[inline]
    pub fn is_offered(&self) -> bool {
        self.offered
    }

    /// Whether there was a message since this was asked last.
    #[inline]
    pub fn take_offered(&mut self) -> bool {
        std::mem::take(&mut self.offered)
    }
}
