//! The baton: the right to run the reactor, and who waits for what.
//!
//! Held for microseconds: never across a wait, never across Python, never across disk I/O, never while waiting for the GIL. A
//! thread may take it while it holds the GIL; a thread that holds it never asks for the GIL. Builds with the feature
//! `baton-tracking` complain of a hold that works for more than a millisecond (`holds.rs`).
#[cfg(feature = "baton-tracking")]
use super::holds::Hold;
use super::pace::Calls;
use crate::Exchange;
use crate::clock::{self, MILLI};
use crate::config;
use crate::exchange::lost::Leases;
use crate::reactor::Reactor;
use crate::sys::poll::Events;
use crate::waiting::slots::FreeSlots;
use std::ops::{Deref, DerefMut};
#[cfg(feature = "baton-tracking")]
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tricorn_proto::peer::request_id;

/// What the baton protects.
pub struct Core {
    pub reactor: Reactor,
    /// App threads parked, the last to park last: it is woken first, its caches are warm.
    pub followers: Vec<usize>,
    /// The app thread that waits for events.
    pub polling: Option<usize>,
    /// The poller watches the signal pipe: the main thread is an app thread.
    pub watches_signals: bool,
    /// App threads inside `serve`.
    pub joined: usize,
    /// Times that app threads came for requests.
    pub rounds: u64,
    /// Under a hub: it waits in its event loop, and has seen that there was nothing to do.
    pub hub_rests: bool,
    /// Under a hub: which slots are free.
    pub free_slots: FreeSlots,
    /// When the share of the concurrency limit is to be looked up again, and of which limit it is one.
    pub share_due: u64,
    pub share_of: Option<u64>,
    /// The batch to be filled by the next wait.
    pub spare: Events,
    pub calls: Calls,
    pub leases: Leases,
    /// With `request_id`: makes those that no client gave.
    pub ids: Option<request_id::Maker>,
}

impl Core {
    pub fn new(reactor: Reactor, leases: Leases, ids: Option<request_id::Maker>) -> Core {
        Core {
            reactor,
            followers: Vec::new(),
            polling: None,
            watches_signals: false,
            joined: 0,
            rounds: 0,
            hub_rests: false,
            free_slots: FreeSlots::default(),
            share_due: 0,
            share_of: None,
            spare: Events::default(),
            calls: Calls::default(),
            leases,
            ids,
        }
    }

    /// Remembers how long a call took that has ended now.
    pub fn observe_call(&mut self, nanos: u64, now: u64) {
        self.calls.pace.observe(nanos, self.rounds, now, clock::process_cpu);
    }

    /// Calls block for so long that the next leader should be up before one begins, not a tick later.
    pub fn is_blocking(&self) -> bool {
        self.calls.pace.usual() > MILLI
    }

    /// The answer to this request should be sent with others: requests wait, and calls are neither so short that no client sleeps
    /// meanwhile nor so long that a client should wait for the next one. Those to streams of one trunk are one send, however short.
    pub fn gathers_answers(&self, exchange: &Exchange) -> bool {
        let usual = self.calls.pace.usual();
        let is_worth_it = usual >= config::GATHER_ANSWERS.start || exchange.lane.stream().channel().is_some();
        is_worth_it && usual < config::GATHER_ANSWERS.end && self.reactor.is_pressed()
    }
}

/// The baton, as its holder has it.
pub struct BatonGuard<'b> {
    core: MutexGuard<'b, Core>,
    /// Measured until the lock is open again: what is said of a hold delays no other thread.
    #[cfg(feature = "baton-tracking")]
    _hold: Option<Hold>,
}

impl Deref for BatonGuard<'_> {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        &self.core
    }
}

impl DerefMut for BatonGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Core {
        &mut self.core
    }
}

pub struct Baton {
    core: Mutex<Core>,
    /// Threads that wait for it.
    wanted: AtomicUsize,
    /// Something panicked while it held the baton: the tables may lie, the worker must go.
    broken: AtomicBool,
}

impl Baton {
    pub fn new(core: Core) -> Baton {
        Baton { core: Mutex::new(core), wanted: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    #[inline]
    #[cfg_attr(feature = "baton-tracking", track_caller)]
    pub fn take(&self) -> BatonGuard<'_> {
        let mut core = self.lock();
        core.reactor.begin_hold();
        BatonGuard {
            core,
            #[cfg(feature = "baton-tracking")]
            _hold: Some(Hold::begin(Location::caller())),
        }
    }

    /// For as long as a fork(2) takes, which is the longer the larger the process is.
    pub fn take_for_fork(&self) -> BatonGuard<'_> {
        BatonGuard {
            core: self.lock(),
            #[cfg(feature = "baton-tracking")]
            _hold: None,
        }
    }

    #[inline(always)]
    fn lock(&self) -> MutexGuard<'_, Core> {
        match self.core.try_lock() {
            Ok(core) => core,
            Err(_) => self.wait(),
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, Core> {
        self.wanted.fetch_add(1, Ordering::Relaxed);
        let core = self.core.lock().unwrap_or_else(|poison| {
            self.broken.store(true, Ordering::Relaxed);
            PoisonError::into_inner(poison)
        });
        self.wanted.fetch_sub(1, Ordering::Relaxed);
        core
    }

    /// Another thread waits for it. A holder that has more to do lets it have its turn: a Mutex that is unlocked for a moment
    /// only is locked again before a thread that waits for it has woken.
    pub fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// As if something had panicked while it held the baton.
    pub fn is_to_break(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.core.is_poisoned()
    }
}
