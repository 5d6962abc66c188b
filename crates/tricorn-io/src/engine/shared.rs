//! What the app threads and the monitor share.
use super::baton::{Baton, Core};
use super::lifecycle::{Lifecycle, Stage};
use crate::clock;
use crate::config::Config;
use crate::exchange::lost::Lost;
use crate::exchange::responses::Responses;
use crate::logs::Logs;
use crate::one_queue::siblings::Siblings;
use crate::scoreboard::Scoreboard;
use crate::sys::poll::Poller;
use crate::waiting::Waiting;
use rustix::fd::BorrowedFd;
use rustix::io;
use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub board: Scoreboard,
    pub baton: Baton,
    pub poller: Arc<Poller>,
    pub logs: Arc<Logs>,
    /// What threads, hub and monitor show one another.
    pub waiting: Waiting,
    /// What responses hold that their clients have not taken.
    pub responses: Responses,
    /// Exchanges that were dropped.
    pub lost: Arc<Lost>,
    /// There are admin listeners.
    pub has_admin: AtomicBool,
    pub siblings: OnceLock<Siblings>,
    pub queued: AtomicUsize,
    /// Calls that are under way, as the baton's holder counts them; 0 where calls block.
    pub running: AtomicUsize,
    pub life: Lifecycle,
    pub listeners: Vec<Option<SocketAddr>>,
    /// The owner of the scoreboards' memory.
    pub memory: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Shared {
    /// Nothing can be waited for any more.
    #[cold]
    pub fn end_now(&self) {
        self.life.reach(Stage::Stopping);
    }

    /// What is readable when there are events: the poller, and the entrance if that is another one.
    pub fn events(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [Some(self.poller.as_fd()), self.waiting.entrance.accepts()]
    }

    /// Takes what events there are, without waiting.
    pub fn see_events(&self, core: &mut Core) -> io::Result<()> {
        self.poller.wait(&mut core.spare, Some(0))?;
        let now = clock::now();
        self.waiting.entrance.see(&mut core.spare, now)?;
        core.reactor.arrived(&mut core.spare, now);
        Ok(())
    }

    /// Wakes up to `count` parked app threads.
    pub fn wake_followers(&self, core: &mut Core, count: usize) {
        for _ in 0..count {
            let Some(slot) = core.followers.pop() else { return };
            self.waiting.slots[slot].unpark();
        }
    }

    pub fn is_draining(&self) -> bool {
        self.life.is_draining()
    }

    pub fn wake_all(&self, core: &mut Core) {
        let all = core.followers.len();
        self.wake_followers(core, all);
        self.waiting.kick.ring();
        self.waiting.ring_hub();
        self.waiting.signals.kick();
    }

    /// Makes the descriptors quiet that ended a wait. The signal pipe is left to `wait_for_signal` where that reads it.
    pub fn take_wakeups(&self, core: &Core) {
        self.waiting.kick.clear();
        if core.watches_signals {
            self.waiting.signals.drain();
        }
    }

    /// An app thread is back: the monitor goes back to ticking.
    #[inline]
    pub fn stop_covering(&self, core: &mut Core) {
        if self.waiting.watch.app_thread_came() {
            core.reactor.set_stuck(false);
            self.waiting.alarm.ring();
        }
    }

    pub fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    pub fn note_queued(&self, core: &Core) {
        self.queued.store(core.reactor.queued(), Ordering::Relaxed);
    }
}
