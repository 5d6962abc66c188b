//! Parts of the states of a request and of a WebSocket.
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tricorn_io::clock;

/// Awaits of the application that have not ended. `F` is what they wait for: a future, or one that is used again.
pub struct Waits<F> {
    /// In `receive`.
    pub receivers: Vec<Py<F>>,
    /// In `send`.
    pub senders: Vec<Py<F>>,
}

impl<F> Default for Waits<F> {
    fn default() -> Waits<F> {
        Waits { receivers: Vec::new(), senders: Vec::new() }
    }
}

impl<F> Waits<F> {
    /// Takes all of both kinds: there is an end to be told.
    #[inline]
    pub fn take_all(&mut self) -> Vec<Py<F>> {
        let mut all = std::mem::take(&mut self.receivers);
        all.append(&mut self.senders);
        all
    }
}

/// The task of a call, and what ends it.
#[derive(Default)]
pub struct Run {
    pub task: Option<Py<PyAny>>,
    /// Cancels the task some time after the client has left.
    pub timer: Option<Py<PyAny>>,
    /// The task was cancelled since the request took too long.
    pub is_late: bool,
    /// The scope, for the log: it outlives the exchange, as a task may go on after its response.
    pub scope: Option<Py<PyDict>>,
}

/// What the application has heard of its client's departure.
///
/// An application that was told and turned to something else (background work, clean-up) is left alone. One that was never told
/// waits for a client that is gone, and one that asks again pays no attention: these are cancelled when the grace is over.
#[derive(Debug, Clone, Copy, Default)]
pub struct Departed {
    /// `receive()` has handed out the disconnect, or `send()` has raised it.
    pub is_told: bool,
    /// The grace period is over.
    pub is_overdue: bool,
    /// It has sent a piece of its body since the client left, or since the last look.
    pub is_sending: bool,
    /// When the client left (monotonic nanoseconds).
    pub since: Option<u64>,
    /// Pieces of its body that were dropped since the loop's last turn.
    pub dropped: u32,
}

impl Departed {
    /// Whether tasks that wait in `receive` have had the time to hear of the departure, and to end what sends: behind middlewares the
    /// message passes through several tasks, each in a turn of its own.
    pub fn is_heard(&self) -> bool {
        self.since.is_some_and(|since| clock::now() >= since.saturating_add(HEARING))
    }
}

/// Nanoseconds for [`Departed::is_heard`]: hundreds of turns of a loop that is not blocked.
const HEARING: u64 = 100 * clock::MILLI;

impl Run {
    /// The task, for a call that is made without the lock.
    pub fn task(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.task.as_ref().map(|task| task.clone_ref(py))
    }

    /// Whether a timer that ends the task is of use.
    pub fn may_be_timed(&self) -> bool {
        self.timer.is_none() && self.task.is_some()
    }
}
