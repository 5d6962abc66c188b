//! Processes that the application forks: they are no workers.
//!
//! A child of `fork` has copies of all descriptors, and of all memory as it was at that moment. It has one thread, the one
//! that forked; the monitor and the other app threads are gone, with the locks that they held.
//!
//! ```text
//!   prepare   the forking thread takes the locks of the monitor and the reactor: no table is half changed
//!   parent    it lets go of them
//!   child     it notes what it is, puts a dead descriptor in the place of each of the core's, and lets go of them
//! ```
//!
//! From then on nothing that the child does reaches a client, a listener or the parent's epoll, whichever way it comes. The
//! engine tells it that it has ended ([`sys::fork::is_child`] is asked at each entry), and it leaves the scoreboard alone, which is
//! shared memory. A child that execs, or that the application ends, never meets any of this.
//!
//! The handlers are the C library's (pthread_atfork(3)) and not Python's (`os.register_at_fork`): these run one after another
//! before the fork, and may wait for other threads while the first of them would hold the baton.
//!
//! A worker that has served may become the mold of other workers. Its engine is closed then and guarded no more: what the process
//! forks from then on may make an engine of its own.
use super::Engine;
use super::baton::BatonGuard;
use super::shared::Shared;
use crate::exchange::output::DiskLocks;
use crate::sys;
use crate::waiting::streams::StreamLocks;
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The engine of this worker, and what replaces its descriptors in a child. Made in advance: a child may have no descriptor
/// to spare. Locked while a process is forked.
static GUARDED: Mutex<Option<Guarded>> = Mutex::new(None);

/// Whether the handlers are there, which stay for good, in children as well.
static HANDLED: OnceLock<io::Result<()>> = OnceLock::new();

struct Guarded {
    shared: Arc<Shared>,
    dead: OwnedFd,
}

/// The monitor sends what streams have left under the first locks, and does everything else under the second. Jobs at disks note under
/// the last where they send.
type Locks<'s> = Option<(StreamLocks<'s>, BatonGuard<'s>, DiskLocks<'s>)>;

type Owner = MutexGuard<'static, Option<Guarded>>;

self_cell::self_cell!(
    /// Held while a process is forked: which engine is guarded, and its locks.
    struct Held {
        owner: Owner,
        #[not_covariant]
        dependent: Locks,
    }
);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

impl Engine {
    /// From now on a child that the application forks cannot use this engine. For the one engine of a worker's process.
    pub fn guard_forks(&self) -> io::Result<()> {
        let mut guarded = guarded();
        if guarded.is_some() {
            return Err(io::Errno::BUSY);
        }
        (*HANDLED.get_or_init(|| sys::fork::handle(prepare, parent, child)))?;
        *guarded = Some(Guarded { shared: self.shared.clone(), dead: sys::fork::dead()? });
        Ok(())
    }

    /// After `close`: children are no concern of this engine any more, and none of its descriptors leads anywhere, though something
    /// may still hold it.
    pub fn let_go_of_forks(&self) {
        let Some(Guarded { shared, dead }) = guarded().take() else { return };
        let replace = |fd: RawFd| sys::fork::replace(fd, dead.as_fd());
        shared.own_descriptors(replace);
        shared.baton.take().reactor.own_descriptors(replace);
    }
}

fn guarded() -> Owner {
    GUARDED.lock().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn prepare() {
    let held = Held::new(guarded(), |guarded| {
        let shared = &guarded.as_ref()?.shared;
        let (streams, core) = (shared.waiting.streams.hold_still(), shared.baton.take_for_fork());
        Some((streams, core, shared.responses.disks.hold_still()))
    });
    HELD.set(Some(held));
}

extern "C" fn parent() {
    HELD.set(None);
}

extern "C" fn child() {
    let Some(mut held) = HELD.take() else { return };
    held.with_dependent_mut(|guarded, locks| {
        let (Some(Guarded { shared, dead }), Some((_, core, disks))) = (&**guarded, locks) else { return };
        sys::fork::become_child();
        let replace = |fd: RawFd| sys::fork::replace(fd, dead.as_fd());
        shared.own_descriptors(replace);
        core.reactor.own_descriptors(replace);
        disks.descriptors().for_each(replace);
    });
    // The locks are let go of here, by the thread that took them.
}

impl Shared {
    fn own_descriptors(&self, mut each: impl FnMut(RawFd)) {
        let alarms = [
            self.waiting.kick.as_fd(),
            self.waiting.alarm.as_fd(),
            self.responses.disks.pool().news(),
            self.waiting.sampling.alarm().as_fd(),
            self.waiting.signals.reader(),
            self.waiting.signals.writer(),
        ];
        alarms.iter().for_each(|fd| each(fd.as_raw_fd()));
        self.events().into_iter().flatten().for_each(|fd| each(fd.as_raw_fd()));
        each(self.waiting.streams.room().as_raw_fd());
        self.waiting.wakeup().into_iter().for_each(|wakeup| each(wakeup.as_raw_fd()));
        if let Some(channel) = self.siblings.get().and_then(|siblings| siblings.channel.as_ref()) {
            [&channel.receive, &channel.send, &channel.wakeup].iter().for_each(|fd| each(fd.as_raw_fd()));
        }
        let config = &self.config;
        let pipes = [&config.life, &config.messages, &config.profile, &config.profile_bell];
        pipes.into_iter().flatten().for_each(|fd| each(fd.as_raw_fd()));
    }
}
