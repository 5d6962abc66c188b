//! Memory that processes share, as buffers that Python has mapped.
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::atomic::AtomicU64;
use tricorn_io::{Ledger, Routes, SESSION_BYTES, Sessions, shared_words};

/// The ledger in a buffer that outlives it.
pub fn ledger_of(buffer: &PyBuffer<u8>) -> PyResult<Ledger> {
    let address = memory(buffer, 0, "ledger")?;
    // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and the caller keeps it as long as the ledger.
    let ledger = unsafe { Ledger::over(address, buffer.len_bytes()) };
    ledger.ok_or_else(|| PyValueError::new_err("no ledger is that short"))
}

/// The pages of routes in a buffer that outlives them.
pub fn routes_of(buffer: &PyBuffer<u8>) -> PyResult<Routes> {
    let address = memory(buffer, 0, "pages of routes")?;
    // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and the caller keeps it as long as the pages.
    let routes = unsafe { Routes::over(address, buffer.len_bytes()) };
    routes.ok_or_else(|| PyValueError::new_err("these are no pages of routes"))
}

/// The table of sessions in a buffer that outlives it.
pub fn sessions_of(buffer: &PyBuffer<u8>) -> PyResult<Sessions> {
    let address = memory(buffer, SESSION_BYTES, "table of sessions")?;
    // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and the caller keeps it as long as the table.
    let sessions = unsafe { Sessions::over(address, buffer.len_bytes()) };
    sessions.ok_or_else(|| PyValueError::new_err("no table of sessions is that short"))
}

/// The words of a buffer that outlives them.
pub fn words_of(buffer: &PyBuffer<u8>, wanted: usize, name: &str) -> PyResult<&'static [AtomicU64]> {
    let address = memory(buffer, wanted, name)?;
    // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and the caller keeps it as long as the words.
    Ok(unsafe { shared_words(address, buffer.len_bytes() / 8) })
}

/// The first byte of a buffer that is shared by processes.
pub fn memory(buffer: &PyBuffer<u8>, wanted: usize, name: &str) -> PyResult<*mut u8> {
    let address = buffer.buf_ptr().cast::<u8>();
    if buffer.readonly() || buffer.len_bytes() < wanted || address.align_offset(8) != 0 {
        return Err(PyValueError::new_err(format!(
            "the {name} must be writable, aligned to 8 bytes and at least {wanted} bytes long"
        )));
    }
    Ok(address)
}
