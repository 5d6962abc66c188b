//! A `bytes` object that the core fills from the socket: a large body reaches the application without being copied.
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::any::Any;
use std::mem::MaybeUninit;
use tricorn_io::{Body, BodyBuffer, Received, Stream};

/// The object is ours alone, and no Python code has seen it, until `into_bytes`.
pub struct BytesBuffer {
    object: Py<PyBytes>,
    /// Its contents; `capacity` bytes, of which the first `length` are initialised.
    start: *mut u8,
    capacity: usize,
    length: usize,
}

// SAFETY: the memory belongs to an object that only this value refers to; dropping the object without the GIL is deferred
// by pyo3.
unsafe impl Send for BytesBuffer {}
// SAFETY: shared references only read what is initialised.
unsafe impl Sync for BytesBuffer {}

impl BytesBuffer {
    /// A buffer for `capacity` bytes; the calling thread holds the GIL. `None` if there is no memory.
    pub fn make(capacity: usize) -> Option<Box<dyn BodyBuffer>> {
        Python::attach(|py| {
            // SAFETY: a null pointer asks for a new object with uninitialised contents, which may be written to as long as
            // no other code has a reference to the object (bytesobject.h); its contents are `capacity` bytes long.
            let (object, start) = unsafe {
                let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), capacity as ffi::Py_ssize_t);
                let Some(object) = Bound::from_owned_ptr_or_opt(py, object) else {
                    // It must not meet the next call: a value is returned, not the error.
                    drop(PyErr::take(py));
                    return None;
                };
                let object = object.cast_into_unchecked::<PyBytes>();
                let start = ffi::PyBytes_AsString(object.as_ptr()).cast::<u8>();
                (object.unbind(), start)
            };
            Some(Box::new(BytesBuffer { object, start, capacity, length: 0 }) as Box<dyn BodyBuffer>)
        })
    }

    /// The finished object. Fails if it was not filled to its end, which the core rules out.
    pub fn into_bytes(self, py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
        if self.length < self.capacity {
            return Err(PyRuntimeError::new_err("a body is incomplete (defect of tricorn)"));
        }
        Ok(self.object.into_bound(py))
    }

    fn spare(&mut self) -> &mut [MaybeUninit<u8>] {
        // SAFETY: inside the object's contents; no other code has a reference.
        unsafe {
            let start = self.start.add(self.length).cast::<MaybeUninit<u8>>();
            std::slice::from_raw_parts_mut(start, self.capacity - self.length)
        }
    }
}

impl BodyBuffer for BytesBuffer {
    fn filled(&self) -> &[u8] {
        // SAFETY: the first `length` bytes are initialised.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }

    fn append(&mut self, bytes: &[u8]) {
        let count = bytes.len().min(self.capacity - self.length);
        for (to, from) in self.spare().iter_mut().zip(bytes) {
            to.write(*from);
        }
        self.length += count;
    }

    fn receive(&mut self, stream: &Stream, room: usize) -> Received {
        let spare = self.spare();
        let room = room.min(spare.len());
        let count = stream.read_into(&mut spare[..room])?;
        self.length += count;
        Ok(count)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The bytes of a body, or of its first part, in memory.
pub fn bytes_of(py: Python<'_>, body: Body) -> PyResult<Bound<'_, PyBytes>> {
    match body {
        Body::Empty => Ok(PyBytes::new(py, b"")),
        Body::Memory(bytes) => Ok(PyBytes::new(py, &bytes)),
        Body::Foreign(buffer) => buffer.into_any().downcast::<BytesBuffer>().map_err(|_| misplaced())?.into_bytes(py),
        Body::Spooled(_) => Err(misplaced()),
    }
}

fn misplaced() -> PyErr {
    PyRuntimeError::new_err("a body is not in memory, where it should be (defect of tricorn)")
}
