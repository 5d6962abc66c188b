//! A piece of a body, from the application to its client. The means: the engine, and how the call waits.
use super::wait::Wait;
use crate::pieces::Piece;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tricorn_io::{Engine, Exchange, Sent};

/// A piece of a body as PEP 3333 wants it.
#[inline]
pub fn bytes_of<'py>(piece: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    piece.cast::<PyBytes>().cloned().map_err(|_| {
        let kind = piece.get_type();
        PyTypeError::new_err(format!("the application must yield bytes, not {kind} ({piece:?})"))
    })
}

/// Sends a piece of a body whose length is not known, and waits while the client is too far behind. Raises what is thrown
/// into a greenlet that waits.
pub fn send(
    py: Python<'_>,
    means: (&Engine, &Wait),
    exchange: &mut Exchange,
    piece: &Bound<'_, PyBytes>,
) -> PyResult<Sent> {
    send_part(py, means, exchange, piece, None)
}

#[inline]
pub fn send_part(
    py: Python<'_>,
    means: (&Engine, &Wait),
    exchange: &mut Exchange,
    piece: &Bound<'_, PyBytes>,
    body_length: Option<u64>,
) -> PyResult<Sent> {
    let (engine, wait) = means;
    exchange.foresee_close(engine.config(), false);
    let sent = Piece::all(piece).write(engine, exchange, body_length);
    match sent {
        Sent::OverMark => wait.for_room(py, engine, exchange),
        Sent::Accepted => wait.goes_on(py, exchange, piece.as_bytes().len()).map(|()| Sent::Accepted),
        Sent::Gone => Ok(Sent::Gone),
    }
}
