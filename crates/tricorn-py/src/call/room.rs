//! What happens to a call's connection from outside: bytes and room come, the client leaves, time is over.
use super::call::{ACCEPTED, BEHIND, Call, GONE, give_up};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use tricorn_io::{Due, Exchange, Patience, Sent, Timer, What};
use tricorn_proto::exchange::End;
use tricorn_proto::http1::Refusal;

#[derive(Default)]
pub struct State {
    /// While the request is under way, and nobody works on it.
    pub exchange: Option<Box<Exchange>>,
    /// Whom to tell what happens.
    pub listener: Option<Py<PyAny>>,
    /// Of `before`, for `after`.
    pub token: Option<Py<PyAny>>,
    /// All of the answer was written with its head.
    pub end: Option<End>,
    pub attended: bool,
    /// The client is too far behind to be sent more.
    pub patience: Option<Patience>,
    /// The client's sending side was seen to be closed while its body was still to be read.
    pub hung_up: bool,
    /// Ends the call some time after the client has closed its sending side.
    pub timer: Option<Py<PyAny>>,
}

/// What is to be told when the state is unlocked.
#[derive(Default)]
struct Todo {
    left: bool,
    hung_up: bool,
    readable: bool,
    writable: bool,
    refusal: Option<Refusal>,
}

/// Something has happened to the connection.
pub fn stirred(slf: &Bound<'_, Call>, what: What) -> PyResult<()> {
    let (call, py) = (slf.get(), slf.py());
    let mut todo = Todo::default();
    stir(call, what, &mut todo);
    if let Some(refusal) = todo.refusal {
        return refuse(slf, &refusal);
    }
    if todo.left {
        return client_left(slf);
    }
    if todo.hung_up {
        hang_up(slf)?;
    }
    for (name, is_due) in [(intern!(py, "on_readable"), todo.readable), (intern!(py, "on_writable"), todo.writable)] {
        let listener = call.state().listener.as_ref().filter(|_| is_due).map(|listener| listener.clone_ref(py));
        if let Some(listener) = listener {
            tell(call, listener.bind(py), name);
        }
    }
    Ok(())
}

fn stir(call: &Call, what: What, todo: &mut Todo) {
    let engine = &call.ground.engine;
    let mut guard = call.state();
    let state = &mut *guard;
    let Some(exchange) = &mut state.exchange else { return };
    if what.broken {
        exchange.client_left();
    }
    if what.hangup && exchange.is_partial() && !what.broken {
        state.hung_up = true; // what it sent before may all be there
    } else if what.hangup {
        (todo.left, todo.hung_up) = (what.broken, !what.broken);
    }
    let due = if what.expired { engine.take_due(exchange) } else { Due::default() };
    if state.patience.is_some()
        && (what.writable || due.has(Timer::Room) || what.broken)
        && let Some(sent) = engine.wait_for_room(exchange, &mut state.patience)
    {
        todo.left |= sent == Sent::Gone;
        todo.writable = true;
    }
    if due.has(Timer::Body) && !todo.left {
        todo.refusal = exchange.body_is_late(engine.config());
    }
    todo.readable = exchange.awaits_body() && (what.readable || what.hangup || due.has(Timer::Body));
}

/// The client has to catch up: from now on it is looked whether it has. What the write comes to.
pub fn wait(slf: &Bound<'_, Call>) -> PyResult<u8> {
    let call = slf.get();
    let engine = &call.ground.engine;
    let mut state = call.state();
    if state.patience.is_some() {
        return Ok(BEHIND);
    }
    let State { exchange: Some(exchange), patience, .. } = &mut *state else { return Ok(GONE) };
    match engine.wait_for_room(exchange, patience) {
        None => Ok(BEHIND),
        Some(Sent::Gone) => {
            drop(state);
            leave_soon(slf)?;
            Ok(GONE)
        }
        Some(_) => Ok(ACCEPTED),
    }
}

/// The client has closed its sending side: most that do have left, some wait for their answer.
pub fn hang_up(slf: &Bound<'_, Call>) -> PyResult<()> {
    let (call, py) = (slf.get(), slf.py());
    let listener = {
        let state = call.state();
        if state.exchange.is_none() || state.timer.is_some() {
            return Ok(());
        }
        state.listener.as_ref().map(|listener| listener.clone_ref(py))
    };
    let timer = call.ground.call_later(py, &slf.getattr(intern!(py, "left"))?)?;
    call.state().timer = Some(timer);
    if let Some(listener) = listener {
        tell(call, listener.bind(py), intern!(py, "on_hangup"));
    }
    Ok(())
}

/// The client has left: the call is over, and its listener told so.
pub fn client_left(slf: &Bound<'_, Call>) -> PyResult<()> {
    finish(slf, |exchange| exchange.abort())
}

/// The same in a turn of its own, since the listener is in the midst of something.
pub fn leave_soon(slf: &Bound<'_, Call>) -> PyResult<()> {
    slf.get().ground.call_soon(slf.py(), &slf.getattr(intern!(slf.py(), "left"))?)
}

/// `hang_up` in a turn of its own.
pub fn hang_up_soon(slf: &Bound<'_, Call>) -> PyResult<()> {
    slf.get().ground.call_soon(slf.py(), &slf.getattr(intern!(slf.py(), "hung_up"))?)
}

/// The request's body is not as it should be, or does not come: an answer, if there is none yet, and the end.
pub fn refuse(slf: &Bound<'_, Call>, refusal: &Refusal) -> PyResult<()> {
    let engine = &slf.get().ground.engine;
    finish(slf, |exchange| {
        engine.count_refused(exchange, refusal);
        give_up(exchange, refusal.status(), &refusal.message());
    })
}

/// The request is over `request_timeout`.
pub fn is_late(slf: &Bound<'_, Call>) -> PyResult<()> {
    let (call, py) = (slf.get(), slf.py());
    let listener = call.state().listener.as_ref().map(|listener| listener.clone_ref(py));
    let limit = call.ground.engine.request_timeout();
    let error = py.import("tricorn.errors")?.getattr("RequestTimeout")?.call1((limit,))?;
    call.failed(py, PyErr::from_value(error))?;
    if let Some(listener) = listener {
        tell(call, listener.bind(py), intern!(py, "on_gone"));
    }
    Ok(())
}

fn finish(slf: &Bound<'_, Call>, last: impl FnOnce(&mut Exchange)) -> PyResult<()> {
    let (call, py) = (slf.get(), slf.py());
    let (exchange, listener) = {
        let mut state = call.state();
        (state.exchange.take(), state.listener.as_ref().map(|listener| listener.clone_ref(py)))
    };
    let Some(mut exchange) = exchange else { return Ok(()) };
    last(&mut exchange);
    call.conclude(py, exchange)?;
    if let Some(listener) = listener {
        tell(call, listener.bind(py), intern!(py, "on_gone"));
    }
    Ok(())
}

/// What a listener raises is logged.
fn tell(call: &Call, listener: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) {
    if let Err(error) = listener.call_method0(name) {
        call.ground.reporter.error(listener.py(), format!("Exception in {name}"), error);
    }
}
