//! The thread `tricorn-log`: it writes the access log where that is a file.
//!
//! ```text
//!   app threads ── lines ──▶ AccessLog ── lines ──▶ this thread: write(2), open(2)
//!                                ▲                        ▲
//!   monitor ── looks for lines ──┘── "lines are due" ─────┘
//! ```
//!
//! A write to a file waits where the disk or the server of a network file system does not answer, whatever O_NONBLOCK says
//! (open(2)). The monitor keeps deadlines and the heartbeat, so it hands such a write over. It wakes this thread for the
//! first line only; while lines follow one another, the thread looks for them itself. The thread is made for the first line,
//! in a process that forks no more, and ends with the log.
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tricorn_sys::clock::{self, MILLI};
use tricorn_sys::signals;

/// `write` and `open` need no more, and address space may be short.
const STACK: usize = 128 * 1024;
/// Time between two writes: lines that come meanwhile are written together.
const PAUSE: u64 = 4 * MILLI;

#[derive(Debug)]
enum Order {
    Write,
    Reopen(SyncSender<io::Result<()>>),
    /// Writes what it can, and ends.
    End(SyncSender<()>),
}

/// What became of an order.
#[derive(Debug)]
pub enum Outcome<T> {
    Done(T),
    /// The thread is at it still, or waits in the order before.
    Late,
    /// The system has no thread to spare.
    NoThread(io::Error),
}

/// The log that has the thread.
pub trait Log: Send + Sync + 'static {
    fn thread(&self) -> &LogThread;
    /// In how many nanoseconds lines are to be written. `None`: there are none.
    fn due_in(&self, now: u64) -> Option<u64>;
    /// Writes what is taken. It waits for a disk, but for no reader.
    fn write_some(&self);
    /// Writes everything that is taken in time.
    fn flush_now(&self);
    /// Opens the file anew.
    fn reopen_now(&self) -> io::Result<()>;
}

/// What others hold of the thread.
#[derive(Debug, Default)]
pub struct LogThread {
    /// Locked for a moment only, and never by the thread itself.
    orders: Mutex<Option<Sender<Order>>>,
    /// It looks for lines by itself before it sleeps.
    awake: AtomicBool,
    /// When it began what it is doing to the file (monotonic nanoseconds); 0: nothing.
    since: AtomicU64,
}

impl LogThread {
    pub fn exists(&self) -> bool {
        self.orders().is_some()
    }

    /// Lines that are due are its business already.
    #[inline]
    pub fn is_awake(&self) -> bool {
        self.awake.load(SeqCst)
    }

    /// For how long it has waited for the file.
    pub fn stuck_for(&self, now: u64) -> Option<u64> {
        let since = self.since.load(Relaxed);
        (since != 0).then(|| now.saturating_sub(since))
    }

    /// Wakes it to write lines that are due.
    pub fn wake(&self, log: &Arc<impl Log>) -> io::Result<()> {
        if self.awake.swap(true, SeqCst) {
            return Ok(());
        }
        self.send(log, Order::Write).inspect_err(|_| self.awake.store(false, SeqCst))
    }

    /// Has the file opened anew.
    pub fn reopen(&self, log: &Arc<impl Log>, patience: u64) -> Outcome<io::Result<()>> {
        self.ask(log, Order::Reopen, patience)
    }

    /// Has all lines written, and ends it. A thread that is late is left to itself: it owns all that it touches.
    pub fn end(&self, log: &Arc<impl Log>, patience: u64) -> Outcome<()> {
        let outcome = self.ask(log, Order::End, patience);
        self.orders().take();
        outcome
    }

    fn ask<T>(&self, log: &Arc<impl Log>, order: impl FnOnce(SyncSender<T>) -> Order, patience: u64) -> Outcome<T> {
        let (answer, answered) = sync_channel(1);
        if let Err(error) = self.send(log, order(answer)) {
            return Outcome::NoThread(error);
        }
        answered.recv_timeout(Duration::from_nanos(patience)).map_or(Outcome::Late, Outcome::Done)
    }

    /// Gives the order to the thread, which is made where there is none.
    fn send(&self, log: &Arc<impl Log>, order: Order) -> io::Result<()> {
        let mut orders = self.orders();
        let order = match &*orders {
            Some(thread) => match thread.send(order) {
                Ok(()) => return Ok(()),
                Err(unsent) => unsent.0, // it has panicked
            },
            None => order,
        };
        let (sender, inbox) = channel();
        let log = log.clone();
        let thread = std::thread::Builder::new().name("tricorn-log".into()).stack_size(STACK);
        thread.spawn(move || {
            signals::block_others();
            let _asleep = Asleep(log.thread());
            run(&*log, &inbox);
        })?;
        let _ = sender.send(order); // without the thread the order is dropped, which answers it
        *orders = Some(sender);
        Ok(())
    }

    fn orders(&self) -> MutexGuard<'_, Option<Sender<Order>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        self.since.store(clock::now().max(1), Relaxed);
        let result = work();
        self.since.store(0, Relaxed);
        result
    }
}

/// Says, however the thread ends, that it does not look for lines any more.
struct Asleep<'t>(&'t LogThread);

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.since.store(0, Relaxed);
        self.0.awake.store(false, SeqCst);
    }
}

fn run(log: &impl Log, inbox: &Receiver<Order>) {
    let thread = log.thread();
    let mut pause = None;
    loop {
        let order = match pause {
            Some(nanos) => inbox.recv_timeout(Duration::from_nanos(nanos)),
            None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        thread.awake.store(true, SeqCst);
        match order {
            Ok(Order::Write) | Err(RecvTimeoutError::Timeout) => {}
            Ok(Order::Reopen(answer)) => {
                let _ = answer.send(thread.timed(|| log.reopen_now()));
            }
            Ok(Order::End(answer)) => {
                thread.timed(|| log.flush_now());
                let _ = answer.send(());
                return;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        pause = write(log);
    }
}

/// Writes lines that are due. When to look again; `None`: when it is woken.
fn write(log: &impl Log) -> Option<u64> {
    let thread = log.thread();
    match log.due_in(clock::now()) {
        Some(0) => {
            thread.timed(|| log.write_some());
            Some(PAUSE)
        }
        Some(nanos) => Some(nanos.max(PAUSE)),
        None => {
            thread.awake.store(false, SeqCst);
            // A line that was added before that has found this thread awake, and the monitor left it. Both sides are
            // sequentially consistent: it is seen here, or the monitor finds the thread asleep.
            let missed = log.due_in(clock::now()).is_some() && !thread.awake.swap(true, SeqCst);
            missed.then_some(0)
        }
    }
}
