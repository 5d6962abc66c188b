//! What happens to a transport: a request begins, its connection has news, its protocol has written.
use super::connection::{Reading, State, Transport};
use super::outcome::Outcome;
use super::reading;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use tricorn_io::{Departure, Effects, Exchange, Readiness};
use tricorn_proto::message::Framing;

/// A request begins: the protocol is given its head, and what has come of its body.
pub fn begin(slf: &Bound<'_, Transport>, mut exchange: Box<Exchange>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let ground = &this.ground;
    let bytes = reading::first_bytes(py, this, &mut exchange)?;
    let told = match ground.tell_before(py, &exchange, this.peer) {
        Ok(told) => told,
        Err((error, told)) => {
            this.not_asked(py, exchange, error, told);
            return Ok(());
        }
    };
    ground.attend(&exchange, slf.clone().into_any().unbind());
    let partial = exchange.is_partial();
    {
        let mut state = this.state();
        let mut parser = std::mem::take(&mut state.parser);
        parser.begin(exchange.request.head.kind);
        let reading = match (partial, exchange.request.head.expect_continue) {
            (false, _) => Reading::Done,
            (true, true) => Reading::Asked,
            (true, false) => Reading::Open,
        };
        let chunked = exchange.request.head.framing == Framing::Chunked;
        *state = State { active: ground.shared.active(exchange), parser, reading, chunked, told, ..State::default() };
    }
    reading::give(py, this, &bytes);
    if partial { reading::read(slf) } else { Ok(()) }
}

/// Something has happened to the connection.
pub fn on_readiness(slf: &Bound<'_, Transport>, readiness: Readiness) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let effects = this.state().active.on(&this.ground.shared.engine, readiness);
    let Effects { readable, writable, departure, refusal } = effects;
    if let Some(refusal) = refusal {
        this.refuse(py, &refusal);
        return Ok(());
    }
    match departure {
        Some(Departure::Broken | Departure::Overdue) => {
            this.client_left(py);
            return Ok(());
        }
        // A protocol that is told of the end of its input closes its transport: it is told when the client has left.
        Some(Departure::HalfClosed) | None => {}
    }
    if writable {
        this.resume_writing(py)?;
    }
    if readable { reading::read(slf) } else { Ok(()) }
}

/// The protocol has written.
pub fn after_write(slf: &Bound<'_, Transport>, outcome: Outcome) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    match outcome {
        Outcome::Goes => Ok(()),
        Outcome::Behind => this.pause_writing(py),
        Outcome::GivesWay => {
            this.pause_writing(py)?;
            this.ground.shared.call_soon(&slf.getattr(intern!(py, "_caught_up"))?, None)
        }
        Outcome::MayRead => reading::read_soon(slf),
        Outcome::Gone => {
            this.client_left(py);
            Ok(())
        }
        Outcome::Closes => {
            this.close_stream(py);
            Ok(())
        }
        Outcome::Complete => this.complete(py),
        Outcome::Wrong(why) => {
            this.failed(py, PyRuntimeError::new_err(why), false, None);
            Ok(())
        }
    }
}
