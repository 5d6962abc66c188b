//! What all calls of one event loop share, whatever its gateway makes of them: where they begin, and how each of them ends.
use super::beginning::Beginning;
use super::call_table::CallTable;
use crate::report::{Line, Reporter, as_environ};
use crate::routes::RouteNames;
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard};
use tricorn_io::clock::SECOND;
use tricorn_io::{Active, Exchange, Grace, HubHandle, Streak};
use tricorn_proto::message::Known;

/// What the worker gave a gateway to call.
pub struct Callbacks {
    pub event_loop: Py<PyAny>,
    pub on_error: Py<PyAny>,
    pub on_notice: Option<Py<PyAny>>,
    /// Called before the application is told of a request; the value it returns is `after`'s token.
    pub before: Option<Py<PyAny>>,
    /// Called when a response is complete.
    pub after: Option<Py<PyAny>>,
    /// Seconds between a client's half-close and the end of its request.
    pub grace: f64,
    /// The operator has given it: it holds for those too who read event streams.
    pub grace_is_given: bool,
}

/// What the end of a request leaves.
pub struct Over {
    /// The call that was attended, to be let go when nothing is locked.
    pub call: Option<Py<PyAny>>,
    /// There are chores that the server is not about to take.
    pub has_chores: bool,
}

/// Everything happens on the loop's thread; the locks are for Python code that lets go of an object elsewhere.
pub struct Shared {
    pub engine: HubHandle,
    pub reporter: Reporter,
    pub event_loop: Py<PyAny>,
    pub before: Option<Py<PyAny>>,
    after: Option<Py<PyAny>>,
    grace: Grace,
    /// The calls that are told what happens to their connections.
    pub calls: CallTable,
    pub beginning: Beginning,
    pub routes: RouteNames,
    scratch: Mutex<Vec<u8>>,
    streak: Mutex<Streak>,
}

/// What the `pre_request` hook was called with, and what it returned.
#[derive(Default)]
pub struct Told {
    /// `None`: the hook has made a scope of its own, within its token.
    pub scope: Option<Py<PyDict>>,
    pub token: Option<Py<PyAny>>,
}

/// The client's address in text.
#[derive(Clone, Copy)]
pub enum Remote<'a> {
    Is(&'a [u8]),
    /// As it is kept with the exchange.
    Of(fn(&Exchange) -> &[u8]),
}

/// What a request leaves for the log and the hooks.
pub struct Ending<'a> {
    pub remote: Remote<'a>,
    /// In place of the reply's own status.
    pub status: Option<u16>,
    /// Bytes sent behind the head, if the reply has not counted them.
    pub sent: Option<u64>,
    /// The application was called.
    pub called: bool,
    pub told: Told,
}

impl Shared {
    pub fn new(py: Python<'_>, callbacks: &Callbacks, engine: HubHandle) -> Shared {
        let copy = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.clone_ref(py));
        Shared {
            reporter: Reporter::new(
                engine.engine().clone(),
                callbacks.on_error.clone_ref(py),
                copy(&callbacks.on_notice),
            ),
            routes: RouteNames::new(py, engine.engine().clone()),
            engine,
            event_loop: callbacks.event_loop.clone_ref(py),
            before: copy(&callbacks.before),
            after: copy(&callbacks.after),
            grace: Grace {
                nanos: (callbacks.grace.max(0.0) * SECOND as f64) as u64,
                for_events: callbacks.grace_is_given,
            },
            calls: CallTable::default(),
            beginning: Beginning::default(),
            scratch: Mutex::default(),
            streak: Mutex::default(),
        }
    }

    pub fn scratch(&self) -> MutexGuard<'_, Vec<u8>> {
        lock(&self.scratch)
    }

    pub fn grace(&self) -> Grace {
        self.grace
    }

    pub fn grace_seconds(&self) -> f64 {
        self.grace.nanos as f64 / SECOND as f64
    }

    /// Whether something is called when a response is complete.
    pub fn has_after(&self) -> bool {
        self.after.is_some()
    }

    /// A request that begins.
    #[inline]
    pub fn active(&self, exchange: Box<Exchange>) -> Active {
        // The server of the loop gives way between requests.
        *lock(&self.streak) = Streak::default();
        Active::new(exchange, self.grace)
    }

    /// From now on this call is told what happens to its connection.
    pub fn attend(&self, exchange: &Exchange, call: Py<PyAny>) {
        self.calls.put(exchange.slot(), call);
        self.engine.attend(exchange);
    }

    /// Calls a function in the loop's next turn.
    pub fn call_soon(&self, function: &Bound<'_, PyAny>, argument: Option<Py<PyAny>>) -> PyResult<()> {
        let py = function.py();
        let call_soon = intern!(py, "call_soon");
        match argument {
            Some(argument) => self.event_loop.call_method1(py, call_soon, (function, argument)),
            None => self.event_loop.call_method1(py, call_soon, (function,)),
        }
        .map(drop)
    }

    /// A call has read or sent so many bytes and had to wait for nothing. Whether it is to give way to the loop's other callbacks.
    #[inline]
    pub fn goes_on(&self, bytes: usize) -> bool {
        let mut streak = lock(&self.streak);
        streak.goes_on(bytes);
        streak.is_over()
    }

    /// Whether the caller is to give way; that it does is taken for granted.
    #[inline]
    pub fn gives_way(&self) -> bool {
        lock(&self.streak).gives_way()
    }

    /// Whether the next call that asks is to give way.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        lock(&self.streak).is_over()
    }

    /// The request is over: the log, the hooks, and the connection for the next request.
    pub fn end(&self, py: Python<'_>, mut exchange: Box<Exchange>, ending: Ending<'_>) -> Over {
        self.engine.conclude_call(exchange.slot());
        exchange.conclude();
        self.engine.split_call(&mut exchange);
        if let (Some(scope), 0) = (&ending.told.scope, exchange.timing.route) {
            exchange.timing.route = self.routes.of_scope(scope.bind(py));
        }
        self.log(py, &exchange, &ending);
        if self.has_after() {
            exchange.flush(); // a callback may take long, and the client should not wait for it
        }
        self.after(py, &exchange, &ending);
        let call = self.calls.take(exchange.slot());
        let has_chores = self.beginning.give_back(&self.engine, exchange);
        Over { call, has_chores }
    }

    /// A line in the access log; `%({key}e)s` looks into the scope, then for what a WSGI environ would have.
    fn log(&self, py: Python<'_>, exchange: &Exchange, ending: &Ending<'_>) {
        if !self.reporter.tells() {
            return;
        }
        let Ending { remote, sent, called, ref told, .. } = *ending;
        let remote = match remote {
            Remote::Is(remote) => remote,
            Remote::Of(exchanges) => exchanges(exchange),
        };
        let status = match (ending.status, exchange.is_elsewhere()) {
            (Some(status), _) => status,
            (None, false) => exchange.request.reply.status_code(),
            (None, true) if exchange.request.head.fields.iter().any(|field| field.known == Known::Upgrade) => 101,
            (None, true) => return, // what was answered over the socket is not known here
        };
        let environ = |key: &str| {
            let value = told.scope.as_ref().and_then(|scope| scope.bind(py).get_item(key).ok().flatten());
            match value {
                Some(value) => value.str().ok().map(|text| text.to_string_lossy().into_owned().into_bytes()),
                None => as_environ(exchange, remote, key),
            }
        };
        self.reporter.access(exchange, &Line { remote, status, sent, called, environ: &environ });
    }

    /// Calls `after(scope, token, status, headers, sent, micros)`; without the scope, if the hook has none.
    fn after(&self, py: Python<'_>, exchange: &Exchange, ending: &Ending<'_>) {
        let Some(after) = &self.after else { return };
        match &ending.told {
            Told { scope: Some(scope), token } => {
                self.reporter.after(py, exchange, ending.sent, |(status, headers, sent, micros)| {
                    after.call1(py, (scope, token, status, headers, sent, micros))
                });
            }
            Told { scope: None, token: Some(token) } => {
                self.reporter.after(py, exchange, ending.sent, |(status, headers, sent, micros)| {
                    after.call1(py, (token, status, headers, sent, micros))
                });
            }
            Told { scope: None, token: None } => {}
        }
    }
}
