//! The baton: the right to run the reactor, and who waits for what.
//!
//! Held for microseconds: never across a wait, never across Python, never while waiting for the GIL. A thread may take it
//! while it holds the GIL; nobody who holds it asks for the GIL.
use crate::clock::MILLI;
use crate::config;
use crate::exchange::claim::Claim;
use crate::exchange::cork::Cork;
use crate::reactor::Reactor;
use crate::sys::poll::Events;
use crate::sys::signals::{self, AtomicThreadId, ThreadId};
use crate::waiting::hub::Places;
use crate::waiting::lateness::Lateness;
use crate::waiting::progress::Progress;
use std::ops::Index;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

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
    /// Under a hub: which places are free.
    pub places: Places,
    /// When the share of the concurrency limit is to be looked up again, and of which limit it is one.
    pub share_due: u64,
    pub share_of: Option<u64>,
    /// The batch to be filled by the next wait.
    pub spare: Events,
    /// How long application calls take of late (exponentially weighted mean, nanoseconds).
    pub usual: u64,
}

impl Core {
    /// Remembers how long a call took.
    pub fn learn(&mut self, nanos: u64) {
        self.usual = self.usual - self.usual / 8 + nanos / 8;
    }

    /// Calls take so long that the next leader should be up before one begins, not a tick later.
    pub fn is_blocking(&self) -> bool {
        self.usual > MILLI
    }

    /// Answers should be sent together: requests wait, and calls are neither so short that nobody sleeps meanwhile nor so
    /// long that a client should wait for the next one.
    pub fn gathers_answers(&self) -> bool {
        config::GATHER_ANSWERS.contains(&self.usual) && self.reactor.is_pressed()
    }
}

pub struct Baton {
    core: Mutex<Core>,
    /// Something panicked while it held the baton: the tables may lie, the worker must go.
    broken: AtomicBool,
}

impl Baton {
    pub fn new(core: Core) -> Baton {
        Baton { core: Mutex::new(core), broken: AtomicBool::new(false) }
    }

    #[inline]
    pub fn take(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(|poison| {
            self.broken.store(true, Ordering::Relaxed);
            PoisonError::into_inner(poison)
        })
    }

    /// As if something had panicked while it held the baton.
    pub fn is_to_break(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed) || self.core.is_poisoned()
    }
}

/// The places of calls. A thread has its own; under a hub a call has one while it lasts, and as few are made as calls were
/// ever under way at once.
pub struct Slots {
    places: Box<[OnceLock<Box<Slot>>]>,
    /// No place from here on was ever taken.
    used: AtomicUsize,
}

impl Slots {
    pub fn new(most: usize) -> Slots {
        Slots { places: (0..most.max(1)).map(|_| OnceLock::new()).collect(), used: AtomicUsize::new(0) }
    }

    /// Makes all of them, so that a position of `iter` is that of a place.
    pub fn all(most: usize) -> Slots {
        let slots = Slots::new(most);
        for place in 0..slots.len() {
            slots.get(place);
        }
        slots
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn get(&self, place: usize) -> Option<&Slot> {
        Some(self.places.get(place)?.get_or_init(|| self.make(place)))
    }

    fn make(&self, place: usize) -> Box<Slot> {
        self.used.fetch_max(place + 1, Ordering::Release);
        Box::default()
    }

    /// Those that were made.
    pub fn iter(&self) -> impl Iterator<Item = &Slot> {
        let used = self.used.load(Ordering::Acquire);
        self.places[..used].iter().filter_map(|place| place.get().map(Box::as_ref))
    }
}

impl Index<usize> for Slots {
    type Output = Slot;

    #[inline]
    fn index(&self, place: usize) -> &Slot {
        self.places[place].get_or_init(|| self.make(place))
    }
}

/// One call's place as the others see it.
#[derive(Default)]
pub struct Slot {
    /// Odd while the thread is inside the application; the same odd number twice a tick apart: it is stuck there.
    calls: AtomicU32,
    unparked: Mutex<bool>,
    bell: Condvar,
    /// Where this thread's streams gather.
    pub cork: Arc<Cork>,
    /// The thread that has this place; 0: nobody.
    thread: AtomicThreadId,
    /// Who answers this thread's exchange.
    pub claim: Arc<Claim>,
    pub lateness: Lateness,
    pub progress: Progress,
}

impl Slot {
    /// A full barrier: the monitor's "may I sleep?" and this must not pass each other.
    #[inline]
    pub fn enter(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    #[inline]
    pub fn leave(&self) {
        self.calls.fetch_add(1, Ordering::Release);
    }

    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    /// The calling thread takes this place. Places are taken and left under the baton.
    pub fn occupy(&self) {
        self.thread.store(signals::this_thread(), Ordering::Relaxed);
    }

    pub fn vacate(&self) {
        self.thread.store(0, Ordering::Relaxed);
    }

    pub fn is_taken(&self) -> bool {
        self.thread() != 0
    }

    pub fn thread(&self) -> ThreadId {
        self.thread.load(Ordering::Relaxed)
    }

    pub fn park(&self) {
        let mut unparked = self.unparked.lock().unwrap_or_else(PoisonError::into_inner);
        while !*unparked {
            unparked = self.bell.wait(unparked).unwrap_or_else(PoisonError::into_inner);
        }
        *unparked = false;
    }

    pub fn unpark(&self) {
        *self.unparked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_one();
    }
}
