//! The streams of a worker that leaves, in the order in which they are told to end: the oldest first.
//!
//! ```text
//!   staying ──tell──▶ told ──its grace is over──▶ forced
//!                       └──ends by itself──▶ gone
//! ```
use crate::sync::lock;
use pyo3::prelude::*;
use std::collections::VecDeque;
use std::sync::Mutex;
use tricorn_io::Exchange;
use tricorn_io::clock::{self, SECOND};

/// A call whose response may be a stream.
pub trait Stream {
    /// Asks its exchange, while it has one.
    fn ask<T>(&self, question: impl FnOnce(&Exchange) -> T) -> Option<T>;
    /// Asks the application to end it. False: it is over, or knows.
    fn tell(&self, py: Python<'_>) -> PyResult<bool>;
    /// Ends it, since the application does not.
    fn force(&self, py: Python<'_>) -> PyResult<()>;

    fn is_over(&self) -> bool {
        self.ask(|_| ()).is_none()
    }
}

struct Told<T> {
    since: u64,
    stream: T,
}

struct State<T> {
    /// Those that are still to be told, the oldest last.
    staying: Vec<T>,
    told: VecDeque<Told<T>>,
    closed: usize,
    forced: usize,
}

/// Everything happens on the loop's thread; Python is never run while the state is locked.
pub struct Row<T> {
    state: Mutex<State<T>>,
}

impl<T> Default for Row<T> {
    fn default() -> Row<T> {
        let state = State { staying: Vec::new(), told: VecDeque::new(), closed: 0, forced: 0 };
        Row { state: Mutex::new(state) }
    }
}

impl<T: Stream> Row<T> {
    /// Lines up the streams whose clients come again when they end. How many there are.
    pub fn line_up(&self, streams: impl Iterator<Item = T>) -> usize {
        let since =
            |stream: &T| stream.ask(|exchange| exchange.is_resumable().then_some(exchange.timing.started)).flatten();
        let mut staying: Vec<_> = streams.filter_map(|stream| Some((since(&stream)?, stream))).collect();
        staying.sort_unstable_by_key(|(since, _)| std::cmp::Reverse(*since));
        let staying: Vec<_> = staying.into_iter().map(|(_, stream)| stream).collect();
        let count = staying.len();
        drop(std::mem::replace(&mut lock(&self.state).staying, staying));
        count
    }

    /// When the next of them began.
    pub fn oldest(&self) -> Option<u64> {
        lock(&self.state).staying.last().map(|stream| stream.ask(|exchange| exchange.timing.started).unwrap_or(0))
    }

    /// Tells the next of them.
    pub fn tell_next(&self, py: Python<'_>) -> PyResult<()> {
        let next = lock(&self.state).staying.pop();
        next.map_or(Ok(()), |stream| self.tell(py, stream))
    }

    /// Tells this one.
    pub fn tell(&self, py: Python<'_>, stream: T) -> PyResult<()> {
        if stream.tell(py)? {
            let mut state = lock(&self.state);
            state.closed += 1;
            state.told.push_back(Told { since: clock::now(), stream });
        }
        Ok(())
    }

    /// The last call: tells all whose end no length foretells.
    pub fn tell_rest(&self, py: Python<'_>, streams: impl Iterator<Item = T>) -> PyResult<()> {
        let open: Vec<T> = streams.filter(|stream| stream.ask(Exchange::is_open_ended).unwrap_or(false)).collect();
        open.into_iter().try_for_each(|stream| self.tell(py, stream))
    }

    /// Forces those to their end that were told more than `grace` nanoseconds ago.
    ///
    /// Of the `streams` under way, those are told that began behind the row.
    pub fn enforce<I: Iterator<Item = T>>(
        &self,
        py: Python<'_>,
        grace: u64,
        streams: impl FnOnce() -> I,
    ) -> PyResult<()> {
        let is_row_over = lock(&self.state).staying.is_empty();
        if is_row_over {
            let newcomers: Vec<T> =
                streams().filter(|stream| stream.ask(Exchange::is_resumable).unwrap_or(false)).collect();
            newcomers.into_iter().try_for_each(|stream| self.tell(py, stream))?;
        }
        let now = clock::now();
        loop {
            let due = {
                let mut state = lock(&self.state);
                let is_due = |told: &Told<T>| told.stream.is_over() || now >= told.since.saturating_add(grace);
                if !state.told.front().is_some_and(is_due) {
                    break;
                }
                let Some(Told { stream, .. }) = state.told.pop_front() else { break };
                state.forced += usize::from(grace > 0 && !stream.is_over());
                stream
            };
            if !due.is_over() {
                due.force(py)?;
            }
        }
        Ok(())
    }

    /// How many were told, and how many of them had to be forced.
    pub fn tally(&self) -> (usize, usize) {
        let state = lock(&self.state);
        (state.closed, state.forced)
    }
}

/// How long an application that was told may go on writing: it may end what it is at (nanoseconds).
pub const LAST_PIECES: u64 = SECOND;
