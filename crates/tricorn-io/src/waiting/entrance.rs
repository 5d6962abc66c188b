//! Where listeners and the channel are watched: a new connection wakes one worker.
//!
//! ```text
//!   threads   listeners ──▶ poller ◀── epoll_wait ── an app thread
//!
//!   hub       Nested  listeners ──▶ poller ──▶ the loop's epoll ◀── epoll_wait ── the hub
//!               │ ▲
//!        attach ▼ │ detach
//!             Direct  listeners ─┬─▶ accepts ◀── poll ── the monitor
//!                                └─▶ the loop's epoll ◀── epoll_wait ── the hub
//! ```
//!
//! For a connection the kernel walks along the listener's wait queue and stops at the first epoll in which a thread waits by
//! epoll_wait(2) (EPOLLEXCLUSIVE, epoll_ctl(2)). In a nested epoll no thread waits, so that the kernel walks on, and all workers
//! are woken. Therefore each hub has two entries in the queue, one right behind the other:
//! * `accepts`, an epoll for these descriptors only. The monitor waits for it by poll(2), at which the kernel does not stop: it
//!   is woken beside its hub, and sees whether that comes. The hub asks `accepts` which listener has a connection.
//! * the loop's epoll. The event bears the poller's name there (`sys/loop_poller.rs`), so that the loop calls what it calls for the
//!   poller. The kernel stops here if the hub waits, and passes by if it runs.
//!
//! The loop's epoll tells of a listener once more than there is to say (it is level-triggered), `accepts` only what it was woken
//! for: a loop that was late for one connection is called for the next, which another worker was woken for. It takes it
//! (`Reactor::look_at_listeners`).
//!
//! A worker that is woken and does not accept keeps the connection from all others: `Reactor::take_missed`, and the monitor that
//! covers, accept in its place.
//!
//! Nested is the way where the loop's epoll cannot be found: the loop waits by poll(2) or io_uring(7), or /proc is missing.
//! A loop may exchange its epoll. Its hub is no longer woken then, but its monitor is, and covers and rings; the hub finds out by `is_unsettled`.
use crate::config::TICK;
use crate::sys::loop_poller::LoopPoller;
use crate::sys::poll::{Events, Poller, Token};
use rustix::fd::BorrowedFd;
use rustix::io;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How often the loop's epoll is looked for before the hub is left as it is.
const TRIES: u8 = 3;
/// How long `accepts` is left out while the poller has events at each look: a loop that gets two events of one name calls once.
const NEGLECTED: u64 = TICK;

#[derive(Debug)]
pub struct Entrance {
    poller: Arc<Poller>,
    /// Of a hub.
    own: Option<Own>,
}

/// Changed under the baton. The monitor knows `accepts` only.
#[derive(Debug)]
struct Own {
    accepts: Poller,
    /// `None`: nested.
    direct: Mutex<Option<LoopPoller>>,
    tries: AtomicU8,
    /// When `accepts` was asked last.
    asked: AtomicU64,
}

impl Own {
    fn direct(&self) -> MutexGuard<'_, Option<LoopPoller>> {
        self.direct.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entrance {
    pub fn of_threads(poller: Arc<Poller>) -> Entrance {
        Entrance { poller, own: None }
    }

    pub fn of_hub(poller: Arc<Poller>) -> io::Result<Entrance> {
        let own = Own {
            accepts: Poller::new()?,
            direct: Mutex::default(),
            tries: AtomicU8::new(0),
            asked: AtomicU64::new(0),
        };
        Ok(Entrance { poller, own: Some(own) })
    }

    fn direct(&self) -> Option<(&Own, LoopPoller)> {
        let own = self.own.as_ref()?;
        let direct = *own.direct();
        Some((own, direct?))
    }

    /// The kernel wakes one worker for a connection, and this one only if it waits.
    pub fn wakes_one(&self) -> bool {
        self.own.is_none() || self.is_direct()
    }

    /// The listeners are in the loop's epoll.
    pub fn is_direct(&self) -> bool {
        self.direct().is_some()
    }

    /// Watches a listener, or the channel. Its worker is the last in the wait queue then.
    pub fn add(&self, fd: BorrowedFd<'_>, token: Token) -> io::Result<()> {
        let Some((own, epoll)) = self.direct() else { return self.poller.add_listener(fd, token) };
        own.accepts.add_listener(fd, token)?;
        epoll.add(fd).inspect_err(|_| {
            let _ = own.accepts.remove(fd);
        })
    }

    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let Some((own, epoll)) = self.direct() else { return self.poller.remove(fd) };
        let _ = epoll.remove(fd); // not there if the loop has exchanged its epoll
        own.accepts.remove(fd)
    }

    /// Whether the loop's epoll is to be looked for. `watched` is a listener that is watched, if any is.
    pub fn is_unsettled(&self, watched: Option<BorrowedFd<'_>>) -> bool {
        let Some(own) = &self.own else { return false };
        match *own.direct() {
            None => own.tries.load(Ordering::Relaxed) < TRIES,
            Some(epoll) => watched.is_some_and(|fd| !epoll.has(fd)),
        }
    }

    /// Looks for the loop's epoll. To be called while nothing is watched.
    pub fn attach(&self) {
        let Some(own) = &self.own else { return };
        let found = LoopPoller::of(self.poller.as_fd());
        let tries = if found.is_some() { 0 } else { own.tries.load(Ordering::Relaxed).saturating_add(1) };
        own.tries.store(tries, Ordering::Relaxed);
        *own.direct() = found;
    }

    /// The hub does not wait any more. To be called while nothing is watched.
    pub fn detach(&self) {
        if let Some(own) = &self.own {
            own.tries.store(TRIES, Ordering::Relaxed);
            *own.direct() = None;
        }
    }

    /// Readable when a listener has a connection: for the monitor.
    pub fn accepts(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(|own| own.accepts.as_fd())
    }

    /// Adds the events of the listeners to those of the poller, if there are none of these, or not to leave them out for long.
    pub fn see(&self, events: &mut Events, now: u64) -> io::Result<()> {
        let Some((own, _)) = self.direct() else { return Ok(()) };
        if !events.is_empty() && now.saturating_sub(own.asked.load(Ordering::Relaxed)) < NEGLECTED {
            return Ok(());
        }
        own.asked.store(now, Ordering::Relaxed);
        own.accepts.add_events(events)
    }
}
