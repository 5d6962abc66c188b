//! A native thread beside the reactor, for what waits for the disk.
//!
//! ```text
//!   reactor ── order ──▶ the thread works
//!      ▲                      │ outcome; the wake-up is an event of the poller
//!      └──────────────────────┘
//! ```
//!
//! Nothing that holds the baton or the GIL waits for a disk, so such work is done here. A thread is made for the first order, in
//! a process that forks no more, and ends with the engine.
use crate::sys::poll::{Poller, Token};
use crate::sys::signals;
use crate::sys::wake::Alarm;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Such a thread needs no more than this, and address space may be short.
const STACK: usize = 128 * 1024;
/// For how long the end of the worker waits for work that has begun. Then the thread is left to itself: it owns all that it
/// touches.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the reactor holds of the thread. `O`: an order, `D`: what came of one.
#[derive(Debug)]
pub struct DiskThread<O, D> {
    orders: Sender<O>,
    done: Receiver<D>,
    closed: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl<O: Send + 'static, D: Send + 'static> DiskThread<O, D> {
    /// Makes the thread. `token` names the event that says that something came of orders. `work` is told whether the thread is
    /// to end, which leaves it orders to give back or to drop.
    pub fn start(
        name: &str,
        poller: &Poller,
        token: Token,
        mut work: impl FnMut(O, bool) -> Option<D> + Send + 'static,
    ) -> io::Result<DiskThread<O, D>> {
        let (orders, inbox) = channel::<O>();
        let (outbox, done) = channel();
        let wakeup = Alarm::new()?;
        poller.add_edge(wakeup.as_fd(), token)?;
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = closed.clone();
        let run = move || {
            signals::block_others();
            for order in &inbox {
                if let Some(outcome) = work(order, is_closed.load(Ordering::Relaxed)) {
                    if outbox.send(outcome).is_err() {
                        return;
                    }
                    wakeup.ring();
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).stack_size(STACK).spawn(run)?;
        Ok(DiskThread { orders, done, closed, thread })
    }

    /// Gives the thread something to do. It comes back if the thread is gone.
    pub fn order(&self, order: O) -> Result<(), O> {
        self.orders.send(order).map_err(|returned| returned.0)
    }

    /// What came of the next order.
    pub fn take(&self) -> Option<D> {
        self.done.try_recv().ok()
    }

    /// Ends the thread. What still comes of orders goes to `left`. Not with the baton.
    pub fn end(self, mut left: impl FnMut(D)) {
        let DiskThread { orders, done, closed, thread } = self;
        closed.store(true, Ordering::Relaxed);
        drop(orders);
        let end = Instant::now() + PATIENCE;
        loop {
            match done.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(outcome) => left(outcome),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let _ = thread.join(); // a panic there has been told by the hook
    }
}

/// For tests: a disk that hangs. Opening a FIFO waits in the kernel until the other end is opened (fifo(7)).
pub fn stall(directory: &Path) {
    let _ = File::open(directory.join("stall"));
}
