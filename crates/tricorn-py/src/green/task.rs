//! A request greenlet: it answers requests until there are none, waits, and goes on.
//!
//! Greenlet copies the stack of a greenlet that waits, so each byte of each frame between its first and the application's is
//! paid by every request that waits. One small frame of ours is there (`GreenServer::run`): what a request needs is on the
//! heap, and what comes before and after the application's call is in functions that have returned by then.
use super::GreenServer;
use super::library::{Untouched, holders_of};
use crate::panics::{self, Panicked};
use crate::wsgi::Begun;
use pyo3::prelude::*;
use std::cell::RefCell;
use tricorn_io::{Exchange, Wake};
use tricorn_proto::response::End;

/// What a greenlet does next.
#[derive(PartialEq)]
enum Next {
    /// Call the application.
    Call,
    /// Look for the next request.
    Seek,
    End,
}

/// A greenlet that serves requests.
struct Task {
    me: Py<PyAny>,
    untouched: Untouched,
    /// The call that the application is about to get, or has.
    call: Option<Begun>,
    /// How many held the greenlet when its request began.
    holders: isize,
    /// What its request is known by among those that run.
    slot: Option<usize>,
    /// Answered: goes back when the next one is asked for.
    done: Option<Box<Exchange>>,
}

impl GreenServer {
    /// No panic leaves it: each function that it calls catches its own.
    pub(super) fn run(&self, py: Python<'_>) {
        let Some(mut task) = self.first(py) else { return };
        while self.has_next(py, &mut task) {
            let Some(call) = &task.call else { return };
            let result = self.server.call(py, call);
            if !self.has_answered(py, &mut task, result) {
                return;
            }
        }
    }

    /// Parks a new greenlet, which is there to be counted the first time.
    #[inline(never)]
    fn first(&self, py: Python<'_>) -> Option<Box<Task>> {
        let task = self.guarded(py, || {
            let me = self.library.current(py)?;
            let untouched = self.library.look_at(&me)?;
            Ok(Box::new(Task { me: me.unbind(), untouched, call: None, holders: 0, slot: None, done: None }))
        })?;
        (self.park(py, &task.me, &self.parked) == Next::Seek).then_some(task)
    }

    /// Waits for a request that needs the application. `false`: the greenlet ends.
    #[inline(never)]
    fn has_next(&self, py: Python<'_>, task: &mut Task) -> bool {
        let next = self.guarded(py, || self.seek(py, task));
        self.goes_on(task, next, Next::Call)
    }

    /// What follows the application's call. `false`: the greenlet ends.
    #[inline(never)]
    fn has_answered(&self, py: Python<'_>, task: &mut Task, result: Option<Bound<'_, PyAny>>) -> bool {
        let Some(call) = task.call.take() else { return false };
        let next = self.guarded(py, || {
            let outcome = match result {
                Some(result) => self.server.respond(py, &call, &result),
                None => Err(PyErr::fetch(py)),
            };
            self.end(py, task, call, outcome)
        });
        self.goes_on(task, next, Next::Seek)
    }

    fn goes_on(&self, task: &mut Task, next: Option<Next>, wanted: Next) -> bool {
        let goes_on = next == Some(wanted);
        if !goes_on {
            self.forget(task);
        }
        goes_on
    }

    /// Its request does not run any more.
    fn forget(&self, task: &mut Task) {
        if let Some(slot) = task.slot.take() {
            let ended = self.running.borrow_mut().remove(slot);
            drop(ended); // after the borrow: its end may be code of the application
        }
    }

    /// An error is a defect of ours, and ends the service; a panic ends the greenlet, and its request.
    #[inline]
    fn guarded<T>(&self, py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> Option<T> {
        match panics::caught(work) {
            Ok(Ok(value)) => Some(value),
            Ok(Err(error)) => {
                self.service.end(py, Some(error));
                None
            }
            Err(Panicked(text)) => {
                self.server.panicked(py, text);
                None
            }
        }
    }

    fn seek(&self, py: Python<'_>, task: &mut Task) -> PyResult<Next> {
        loop {
            let next = match self.hub().next(0, task.done.take()) {
                Wake::Request(exchange) => self.begin(py, task, exchange)?,
                Wake::Nothing => self.park(py, &task.me, &self.parked),
                Wake::Ended => {
                    self.service.end(py, None);
                    Next::End
                }
                Wake::Chores => {
                    self.server.do_chores(py, self.hub().take_chores());
                    Next::Seek
                }
                Wake::Signal => {
                    py.check_signals()?;
                    Next::Seek
                }
                Wake::Ready(_) => Next::Seek, // no exchange attends here
            };
            if next != Next::Seek {
                return Ok(next);
            }
        }
    }

    fn begin(&self, py: Python<'_>, task: &mut Task, exchange: Box<Exchange>) -> PyResult<Next> {
        task.holders = holders_of(task.me.bind(py));
        self.running.borrow_mut().insert(exchange.slot(), task.me.clone_ref(py));
        task.slot = Some(exchange.slot());
        match self.server.begin(py, exchange) {
            Ok(mut call) => match self.server.before(py, &mut call) {
                Ok(()) => {
                    task.call = Some(call);
                    Ok(Next::Call)
                }
                Err(error) => self.end(py, task, call, Err(error)),
            },
            Err((exchange, Ok(()))) => {
                self.forget(task);
                self.settle(py, task, exchange, false)
            }
            Err((exchange, Err(error))) => {
                self.hub().give_back(exchange);
                Err(error)
            }
        }
    }

    /// The application has returned.
    fn end(&self, py: Python<'_>, task: &mut Task, call: Begun, outcome: PyResult<Option<End>>) -> PyResult<Next> {
        let has_limit = self.hub().config().request_timeout > 0;
        let mut was_late = false;
        let exchange = self.server.end(py, call, outcome, |engine, slot| {
            was_late = has_limit && engine.is_late_at(slot);
            engine.conclude_call(slot);
        });
        self.forget(task);
        self.settle(py, task, exchange, was_late)
    }

    /// Goes on with the next request if this greenlet is as a new one is.
    fn settle(&self, py: Python<'_>, task: &mut Task, exchange: Box<Exchange>, was_late: bool) -> PyResult<Next> {
        let me = task.me.bind(py);
        if was_late || self.library.is_touched(me, &task.untouched)? {
            self.give_back(exchange);
            return Ok(Next::End);
        }
        // One that has waited is held by others now than before: the numbers do not compare.
        let waited = self.begun.get() != me.as_ptr() as usize;
        if !waited && holders_of(me) == task.holders {
            task.done = Some(exchange);
            return Ok(Next::Seek);
        }
        self.give_back(exchange);
        Ok(self.park(py, &task.me, &self.unsure))
    }

    /// Gives an exchange back without going on with the next request: the hub does, and opens the doors if they were closed.
    fn give_back(&self, exchange: Box<Exchange>) {
        self.hub().give_back(exchange);
        if !self.polls.get() {
            self.hub().ring();
        }
    }

    /// Gives control to the hub until there is a request.
    fn park(&self, py: Python<'_>, me: &Py<PyAny>, list: &RefCell<Vec<Py<PyAny>>>) -> Next {
        if self.service.is_over() {
            return Next::End;
        }
        list.borrow_mut().push(me.clone_ref(py));
        if self.library.wait(py).is_err() {
            // Code that has found this greenlet ends it.
            for list in [&self.parked, &self.unsure] {
                list.borrow_mut().retain(|parked| !parked.is(me));
            }
            return Next::End;
        }
        if self.dismisses.take() || self.service.is_over() { Next::End } else { Next::Seek }
    }
}
