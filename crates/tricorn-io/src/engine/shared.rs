//! What the app threads and the monitor share.
use super::baton::{Baton, Core};
use super::lifecycle::{Lifecycle, Stage};
use crate::access_log::AccessLog;
use crate::config::Config;
use crate::exchange::lost::Lost;
use crate::exchange::responses::Responses;
use crate::one_queue::siblings::Siblings;
use crate::scoreboard::Scoreboard;
use crate::sys::poll::Poller;
use crate::sys::wake::{Alarm, WakePipe};
use crate::waiting::hub::Hub;
use crate::waiting::sleeper::Sleeper;
use crate::waiting::slots::Slots;
use crate::waiting::streams::Streams;
use crate::waiting::watch::Watch;
use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use tricorn_proto::peer::request_id;

pub(crate) struct Shared {
    pub config: Arc<Config>,
    pub board: Scoreboard,
    pub baton: Baton,
    pub poller: Arc<Poller>,
    pub access: Option<Arc<AccessLog>>,
    /// With `request_id`: makes those that no client gave.
    pub ids: Option<Mutex<request_id::Maker>>,
    pub slots: Slots,
    /// The corks that are open.
    pub streams: Arc<Streams>,
    /// What responses hold that their clients have not taken.
    pub responses: Responses,
    /// Exchanges that were dropped.
    pub lost: Arc<Lost>,
    /// One thread has all the calls, and waits elsewhere.
    pub hub: Option<Hub>,
    /// Ends the wait of the polling thread.
    pub kick: Arc<Alarm>,
    /// Ends the wait of the monitor.
    pub alarm: Arc<Alarm>,
    /// The one of them that keeps the deadlines.
    pub sleeper: Arc<Sleeper>,
    pub signals: WakePipe,
    pub watch: Watch,
    /// There are admin listeners.
    pub has_admin: AtomicBool,
    pub siblings: OnceLock<Siblings>,
    pub queued: AtomicUsize,
    pub life: Lifecycle,
    /// The place of the main thread, if it is an app thread.
    pub main_slot: AtomicUsize,
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

    /// Wakes up to `count` parked app threads.
    pub fn wake_followers(&self, core: &mut Core, count: usize) {
        for _ in 0..count {
            let Some(slot) = core.followers.pop() else { return };
            self.slots[slot].unpark();
        }
    }

    #[inline]
    pub fn wake_monitor(&self) {
        if self.watch.wake() {
            self.alarm.ring();
        }
    }

    /// Makes the descriptors quiet that ended a wait. The signal pipe is left to `wait_for_signal` where that reads it.
    pub fn take_wakeups(&self, core: &Core) {
        self.kick.clear();
        if core.watches_signals {
            self.signals.drain();
        }
    }

    /// An app thread is back: the monitor goes back to ticking.
    #[inline]
    pub fn stop_covering(&self, core: &mut Core) {
        if self.watch.app_thread_came() {
            core.reactor.set_stuck(false);
            self.alarm.ring();
        }
    }

    pub fn has_queued(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
    }

    pub fn note_queued(&self, core: &Core) {
        self.queued.store(core.reactor.queued(), Ordering::Relaxed);
    }
}
