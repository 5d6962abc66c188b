//! Pieces of a reply's body out of Python's `bytes`, whatever the gateway: the head goes with the first one. And who keeps
//! Python's bytes and texts until they are sent.
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ops::Range;
use std::os::fd::OwnedFd;
use tricorn_io::{Engine, Exchange, IsLast, Sent, SharedBytes};
use tricorn_proto::response::{End, HeadInputs};

/// From this size on a piece is sent without the GIL: copying it into the kernel takes longer than a switch.
const WITHOUT_GIL: usize = 64 * 1024;

/// Some of the bytes of an object.
pub struct Piece<'a, 'py> {
    owner: &'a Bound<'py, PyBytes>,
    bytes: &'a [u8],
}

impl<'a, 'py> Piece<'a, 'py> {
    pub fn all(owner: &'a Bound<'py, PyBytes>) -> Piece<'a, 'py> {
        Piece { owner, bytes: owner.as_bytes() }
    }

    /// These of them; the range is within them.
    pub fn part(owner: &'a Bound<'py, PyBytes>, range: Range<usize>) -> Piece<'a, 'py> {
        Piece { owner, bytes: &owner.as_bytes()[range] }
    }

    /// Sends a piece of which more are to come (see `Engine::write`). `body_length`: of the whole body, where that is known.
    pub fn write(&self, engine: &Engine, exchange: &mut Exchange, body_length: Option<u64>) -> Sent {
        let bytes = self.bytes;
        // Only the first piece has a head before it.
        let texts = (!exchange.request.reply.head_sent()).then(|| (exchange.wall.clone(), engine.told_load(exchange)));
        let inputs = texts
            .as_ref()
            .map_or_else(HeadInputs::default, |(wall, load)| engine.head_inputs(wall, load.as_deref(), body_length));
        if bytes.len() >= WITHOUT_GIL || exchange.is_long_to_compress(bytes.len()) {
            let kept = self.kept();
            return self.owner.py().detach(|| engine.write(exchange, &inputs, bytes, || kept));
        }
        engine.write(exchange, &inputs, bytes, || self.kept())
    }

    /// Sends a piece that is all the rest of the body, and ends the reply.
    pub fn write_last(&self, engine: &Engine, exchange: &mut Exchange) -> End {
        let (wall, load, bytes) = (exchange.wall.clone(), engine.told_load(exchange), self.bytes);
        let inputs = engine.head_inputs(&wall, load.as_deref(), Some(bytes.len() as u64));
        if bytes.len() >= WITHOUT_GIL || exchange.is_long_to_compress(bytes.len()) {
            let kept = self.kept();
            return self.owner.py().detach(|| exchange.write_last(&inputs, bytes, || kept));
        }
        exchange.write_last(&inputs, bytes, || self.kept())
    }

    /// An owner of the same bytes, for what the socket does not take at once.
    pub fn kept(&self) -> SharedBytes {
        Box::new(SharedObject {
            address: self.bytes.as_ptr(),
            length: self.bytes.len(),
            _owner: self.owner.clone().into_any().unbind(),
        })
    }
}

/// Sends a part of a file by the kernel: an offset, and a length. `body_length` as for [`Piece::write`]. Neither the GIL is held
/// meanwhile, nor is a disk waited for.
pub fn write_file(
    py: Python<'_>,
    (engine, exchange): (&Engine, &mut Exchange),
    file: OwnedFd,
    part: (u64, u64),
    body_length: Option<u64>,
    is_last: IsLast,
) -> Sent {
    let (wall, load) = (exchange.wall.clone(), engine.told_load(exchange));
    let inputs = engine.head_inputs(&wall, load.as_deref(), body_length);
    py.detach(|| engine.write_file(exchange, &inputs, file, part, is_last))
}

/// An owner of the UTF-8 of a string.
pub fn kept_text(text: &Bound<'_, PyString>) -> SharedBytes {
    // It was asked for before, so that it is there.
    let data = text.to_str().unwrap_or_default();
    Box::new(SharedObject { address: data.as_ptr(), length: data.len(), _owner: text.clone().into_any().unbind() })
}

/// Keeps a `bytes` or `str` alive for a thread that sends some of it later.
struct SharedObject {
    _owner: Py<PyAny>,
    address: *const u8,
    length: usize,
}

// SAFETY: such objects, and the UTF-8 that a string keeps, are immutable and live as long as the owner; the owner itself is
// only dropped, which pyo3 defers where the GIL is not held.
unsafe impl Send for SharedObject {}
// SAFETY: as above.
unsafe impl Sync for SharedObject {}

impl AsRef<[u8]> for SharedObject {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: address and length are of some of what the owner keeps.
        unsafe { std::slice::from_raw_parts(self.address, self.length) }
    }
}
