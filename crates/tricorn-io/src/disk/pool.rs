//! The pool: a few native threads for all disks of a worker.
//!
//! ```text
//!   disk A   job job job ──▶ 2 at work, and as many more as those of them that hang      ┐
//!   disk B   job         ──▶ 1 at work                                                   ├─ at most THREADS in all
//!   disk C   job job job job ──▶ PER_DISK at work, all of which hang: the others wait    ┘
//! ```
//!
//! A disk has `AT_WORK` threads, which keep it busy. A job that has run for `STALLED` counts no longer: a file that hangs leaves its
//! disk to others. `PER_DISK` bounds what a disk that hangs as a whole takes from other disks.
use crate::clock::{self, MILLI};
use crate::sys::fork::is_child;
use crate::sys::signals;
use crate::sys::wake::Alarm;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};
use std::cell::Cell;
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Threads that one disk keeps busy.
const AT_WORK: usize = 2;
/// Most threads of one disk.
const PER_DISK: usize = 6;
/// Most threads in all.
const THREADS: usize = 16;
/// A job that takes longer (nanoseconds) hangs, as far as others are concerned: even a disk that spins up has answered by then, or
/// gets one more job.
const STALLED: u64 = 250 * MILLI;
/// A thread without work ends after this time, but for the last one.
const IDLE: Duration = Duration::from_secs(10);
/// For how long the end of the worker waits for jobs that have begun. Then their threads are left to themselves: they own all that
/// they touch.
const PATIENCE: Duration = Duration::from_secs(1);
/// Such a thread needs no more than this, and address space may be short.
const STACK: usize = 128 * 1024;

/// Work that may wait for a disk. It owns all that it touches.
pub trait Job: Send {
    /// Does it. Whether there is an outcome that the reactor is to look at.
    fn run(self: Box<Self>) -> bool;

    /// It will not be done, since the worker ends. By a thread without the GIL.
    fn give_up(self: Box<Self>);
}

/// A file system, as far as one can hang while others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disk {
    /// With the directory for temporary files.
    Temporary,
    /// With the metrics of the application.
    Metrics,
    /// With this number of stat(2).
    Device(u32, u32),
    /// The kernel does not tell.
    Unknown,
}

/// Where a job has to do: a disk, and the number of a file there, if it has one yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub disk: Disk,
    pub inode: u64,
}

impl Place {
    pub const TEMPORARY: Place = Place { disk: Disk::Temporary, inode: 0 };
    pub const METRICS: Place = Place { disk: Disk::Metrics, inode: 0 };
    pub const UNKNOWN: Place = Place { disk: Disk::Unknown, inode: 0 };

    /// Where the file of this path is, as far as the kernel knows without asking a disk. The directories of a mount point are in its
    /// caches for as long as it is there.
    pub fn of_path(path: &Path) -> Place {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let known = |path: &Path| openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED).ok();
        path.ancestors().skip(1).find_map(known).map_or(Place::UNKNOWN, |directory| Place::of(directory.as_fd()))
    }

    /// Where an open file is. A server of a network file system is not asked (`AT_STATX_DONT_SYNC`).
    pub fn of(file: BorrowedFd<'_>) -> Place {
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        statx(file, c"", flags, StatxFlags::INO).map_or(Place::UNKNOWN, |found| Place {
            disk: Disk::Device(found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        })
    }
}

/// The threads, and the jobs that wait for them. Dropping the last handle lets them end; [`Pool::end`] waits for that.
#[derive(Clone)]
pub struct Pool(Arc<Handle>);

struct Handle(Arc<Inner>);

struct Inner {
    state: Mutex<State>,
    /// There may be a job for a thread, or an end.
    work: Condvar,
    /// A thread has ended.
    ended: Condvar,
    news: Alarm,
    /// For tests: the directory whose files may hang ([`stall`]).
    stalls: Option<PathBuf>,
}

#[derive(Default)]
struct State {
    lines: Vec<Line>,
    /// The line that is looked at first.
    turn: usize,
    threads: usize,
    /// Threads that wait for a job.
    idle: usize,
    handles: Vec<JoinHandle<()>>,
    is_closed: bool,
}

/// The jobs of one disk.
struct Line {
    disk: Disk,
    waiting: VecDeque<(u64, Box<dyn Job>)>,
    /// When those that run have begun.
    running: Vec<u64>,
}

impl Line {
    /// Whether another job may begin; else from when on, if time alone can bring that.
    fn admits(&self, now: u64) -> Result<(), Option<u64>> {
        if self.running.len() >= PER_DISK {
            return Err(None);
        }
        let ends = self.running.iter().map(|since| since + STALLED).filter(|end| *end > now);
        if ends.clone().count() < AT_WORK { Ok(()) } else { Err(ends.min()) }
    }
}

/// The step that a thread takes next.
enum Step {
    Run {
        disk: Disk,
        inode: u64,
        job: Box<dyn Job>,
        since: u64,
    },
    /// Nothing may begin before this time; `None`: before something changes.
    Wait(Option<u64>),
}

impl State {
    fn line(&mut self, disk: Disk) -> &mut Line {
        let found = self.lines.iter().position(|line| line.disk == disk);
        let place = found.unwrap_or_else(|| {
            self.lines.push(Line { disk, waiting: VecDeque::new(), running: Vec::new() });
            self.lines.len() - 1
        });
        &mut self.lines[place]
    }

    fn has_waiting(&self) -> bool {
        self.lines.iter().any(|line| !line.waiting.is_empty())
    }

    /// Takes the next job that may begin: of one disk after another.
    fn next(&mut self, now: u64) -> Step {
        let (count, turn) = (self.lines.len(), self.turn);
        let mut soonest: Option<u64> = None;
        for place in (0..count).map(|step| (turn + step) % count) {
            let line = &mut self.lines[place];
            if line.waiting.is_empty() {
                continue;
            }
            match line.admits(now) {
                Ok(()) => {
                    if let Some((inode, job)) = line.waiting.pop_front() {
                        line.running.push(now);
                        self.turn = place + 1;
                        return Step::Run { disk: line.disk, inode, job, since: now };
                    }
                }
                Err(until) => soonest = soonest.into_iter().chain(until).min(),
            }
        }
        Step::Wait(soonest)
    }

    fn finish(&mut self, disk: Disk, since: u64) {
        let Some(place) = self.lines.iter().position(|line| line.disk == disk) else { return };
        let line = &mut self.lines[place];
        if let Some(at) = line.running.iter().position(|other| *other == since) {
            line.running.swap_remove(at);
        }
        if line.running.is_empty() && line.waiting.is_empty() {
            self.lines.swap_remove(place);
        }
    }
}

thread_local! {
    static IS_OURS: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool without threads: the first job makes one, in a process that forks no more. `stalls` is for tests.
    pub fn new(stalls: Option<PathBuf>) -> rustix::io::Result<Pool> {
        let news = Alarm::new()?;
        let state = Mutex::default();
        let inner = Inner { state, work: Condvar::new(), ended: Condvar::new(), news, stalls };
        Ok(Pool(Arc::new(Handle(Arc::new(inner)))))
    }

    /// Readable after jobs that had an outcome: for a poller that tells of edges.
    pub fn news(&self) -> BorrowedFd<'_> {
        self.0.0.news.as_fd()
    }

    /// Whether the calling thread is one of a pool, which may wait for a disk.
    pub fn is_here() -> bool {
        IS_OURS.get()
    }

    /// Has a job done. It comes back if there is no thread for it, and none can be made, or if the pool has ended.
    pub fn submit(&self, place: Place, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        if is_child() {
            return Err(job); // the threads are the parent's, and so may be the lock
        }
        let inner = &self.0.0;
        let mut state = inner.state();
        if state.is_closed {
            return Err(job);
        }
        let line = state.line(place.disk);
        line.waiting.push_back((place.inode, job));
        let may_begin = line.admits(clock::now()).is_ok();
        if state.idle > 0 {
            if may_begin {
                inner.work.notify_one();
            }
            return Ok(());
        }
        if !inner.add_thread(&mut state) && state.threads == 0 {
            let returned = state.line(place.disk).waiting.pop_back();
            state.finish(place.disk, 0);
            return returned.map_or(Ok(()), |(_, job)| Err(job));
        }
        Ok(())
    }

    /// The same for a job that has to be done, in which case the caller does it.
    pub fn submit_or_run(&self, place: Place, job: Box<dyn Job>) {
        let Err(job) = self.submit(place, job) else { return };
        if !is_child() && self.0.0.state().is_closed {
            job.give_up();
        } else if job.run() {
            self.0.0.news.ring();
        }
    }

    /// Ends the threads. Jobs that have not begun are given up. Neither with the baton nor with the GIL.
    pub fn end(&self) {
        let inner = &self.0.0;
        let mut waiting = Vec::new();
        {
            let mut state = inner.state();
            state.is_closed = true;
            for line in &mut state.lines {
                waiting.extend(line.waiting.drain(..));
            }
        }
        inner.work.notify_all();
        waiting.into_iter().for_each(|(_, job)| job.give_up());
        let end = Instant::now() + PATIENCE;
        let mut state = inner.state();
        while state.threads > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = inner.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        for handle in handles {
            let _ = handle.join(); // a panic there has been told by the hook
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !is_child() {
            self.0.state().is_closed = true;
            self.0.work.notify_all();
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there is one more.
    fn add_thread(self: &Arc<Inner>, state: &mut State) -> bool {
        if state.threads >= THREADS || state.is_closed {
            return false;
        }
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("tricorn-disk".into()).stack_size(STACK);
        let Ok(handle) = thread.spawn(move || inner.work()) else { return false };
        state.threads += 1;
        state.handles.retain(|handle| !handle.is_finished());
        state.handles.push(handle);
        true
    }

    fn work(self: Arc<Inner>) {
        signals::block_others();
        IS_OURS.set(true);
        let left = Leaving(&self);
        let mut state = self.state();
        loop {
            match state.next(clock::now()) {
                Step::Run { disk, inode, job, since } => {
                    // While jobs wait a thread does too, for what hangs and for the next ones.
                    if state.idle == 0 && state.has_waiting() {
                        self.add_thread(&mut state);
                    }
                    drop(state);
                    let finished = Finished { inner: &self, disk, since };
                    self.stalls.iter().for_each(|directory| stall(directory, inode));
                    if job.run() {
                        self.news.ring();
                    }
                    drop(finished);
                    state = self.state();
                }
                Step::Wait(until) => {
                    if state.is_closed {
                        drop(state);
                        break;
                    }
                    let Some(waited) = self.rest(state, until) else { break };
                    state = waited;
                }
            }
        }
        drop(left);
    }

    /// Waits for a job. `None`: none came for long, and other threads are there.
    fn rest<'s>(&'s self, mut state: MutexGuard<'s, State>, until: Option<u64>) -> Option<MutexGuard<'s, State>> {
        state.idle += 1;
        let is_last = state.idle == state.threads && until.is_none();
        let mut is_over = false;
        state = if is_last && state.threads == 1 {
            self.work.wait(state).unwrap_or_else(PoisonError::into_inner)
        } else {
            let left = until.map_or(IDLE, |until| Duration::from_nanos(until.saturating_sub(clock::now())));
            let (state, timeout) = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            is_over = timeout.timed_out() && until.is_none() && state.threads > 1 && !state.has_waiting();
            state
        };
        state.idle -= 1;
        (!is_over).then_some(state)
    }
}

/// A thread's end, whatever brings it.
struct Leaving<'p>(&'p Inner);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.state().threads -= 1;
        self.0.ended.notify_all();
    }
}

/// A job's end, whatever brings it.
struct Finished<'p> {
    inner: &'p Inner,
    disk: Disk,
    since: u64,
}

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.inner.state().finish(self.disk, self.since);
    }
}

/// For tests: a disk that hangs, or one file. Opening a FIFO waits in the kernel until the other end is opened (fifo(7)).
pub fn stall(directory: &Path, inode: u64) {
    let _ = File::open(directory.join("stall"));
    let _ = File::open(directory.join(format!("stall-{inode}")));
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.0.0.state();
        write!(f, "Pool({} threads, {} disks)", state.threads, state.lines.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// Says that it runs, and goes on when it is told to.
    struct Hanging {
        name: &'static str,
        begun: Sender<&'static str>,
        go_on: Receiver<()>,
    }

    impl Job for Hanging {
        fn run(self: Box<Self>) -> bool {
            let _ = self.begun.send(self.name);
            let _ = self.go_on.recv();
            true
        }

        fn give_up(self: Box<Self>) {
            let _ = self.begun.send("given up");
        }
    }

    struct Bench {
        pool: Pool,
        begun: (Sender<&'static str>, Receiver<&'static str>),
        ends: Vec<Sender<()>>,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { pool: Pool::new(None).expect("a pool"), begun: channel(), ends: Vec::new() }
        }

        fn submit(&mut self, disk: Disk, name: &'static str) {
            let (end, go_on) = channel();
            self.ends.push(end);
            let job = Hanging { name, begun: self.begun.0.clone(), go_on };
            assert!(self.pool.submit(Place { disk, inode: 0 }, Box::new(job)).is_ok());
        }

        fn next(&self) -> Option<&'static str> {
            self.begun.1.recv_timeout(Duration::from_secs(20)).ok()
        }
    }

    const A: Disk = Disk::Device(8, 1);
    const B: Disk = Disk::Device(8, 2);

    #[test]
    fn a_disk_that_hangs_leaves_threads_to_others() {
        let mut bench = Bench::new();
        (0..2 * THREADS).for_each(|_| bench.submit(A, "hangs"));
        bench.submit(B, "goes on");
        // Once some are known to hang others of the disk are tried, but not with all threads.
        let mut begun: Vec<_> = (0..=PER_DISK).map(|_| bench.next().expect("a job")).collect();
        begun.retain(|name| *name == "hangs");
        assert_eq!(begun.len(), PER_DISK);
        assert!(bench.begun.1.recv_timeout(Duration::from_nanos(2 * STALLED)).is_err());
        bench.submit(B, "goes on");
        assert_eq!(bench.next(), Some("goes on"));
        drop(std::mem::take(&mut bench.ends));
        bench.pool.end();
    }

    #[test]
    fn a_file_that_hangs_leaves_its_disk_to_others() {
        let mut bench = Bench::new();
        (0..AT_WORK).for_each(|_| bench.submit(A, "hangs"));
        bench.submit(A, "goes on");
        let begun: Vec<_> = (0..=AT_WORK).filter_map(|_| bench.next()).collect();
        assert_eq!(begun, ["hangs", "hangs", "goes on"]);
        drop(std::mem::take(&mut bench.ends));
        bench.pool.end();
    }

    #[test]
    fn jobs_of_a_disk_begin_in_their_order() {
        let mut bench = Bench::new();
        let names = ["one", "two", "three", "four", "five", "six", "seven"];
        names.iter().for_each(|name| bench.submit(A, name));
        let mut got = Vec::new();
        for _ in names {
            got.push(bench.next().expect("a job"));
            if got.len() >= AT_WORK {
                drop(bench.ends.remove(0));
            }
        }
        got[..AT_WORK].sort_unstable(); // these began at the same time
        assert_eq!(got, ["one", "two", "three", "four", "five", "six", "seven"]);
        drop(std::mem::take(&mut bench.ends));
        bench.pool.end();
    }

    #[test]
    fn jobs_that_have_not_begun_are_given_up_at_the_end() {
        let mut bench = Bench::new();
        (0..4).for_each(|_| bench.submit(A, "runs"));
        (0..AT_WORK).for_each(|_| assert_eq!(bench.next(), Some("runs")));
        let ends = std::mem::take(&mut bench.ends);
        let pool = bench.pool.clone();
        let ending = std::thread::spawn(move || pool.end());
        (0..2).for_each(|_| assert_eq!(bench.next(), Some("given up")));
        drop(ends);
        ending.join().expect("a thread");
        let (end, go_on) = channel();
        let late = Hanging { name: "late", begun: bench.begun.0.clone(), go_on };
        assert!(bench.pool.submit(Place::UNKNOWN, Box::new(late)).is_err(), "it has ended");
        drop(end);
    }

    #[test]
    fn an_outcome_is_news() {
        let mut bench = Bench::new();
        bench.submit(B, "runs");
        drop(std::mem::take(&mut bench.ends));
        let events = crate::sys::poll::ready(bench.pool.news(), rustix::event::PollFlags::IN, 20_000 * MILLI);
        assert!(!events.is_empty());
        bench.pool.end();
    }
}
