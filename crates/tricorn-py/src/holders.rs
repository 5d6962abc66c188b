//! Who holds an object: what an application may have kept is not used again.
use pyo3::ffi;
use pyo3::prelude::*;

/// Whether an object has no holders but these, which are all ours.
#[cfg(not(Py_GIL_DISABLED))]
pub fn is_ours_alone<T>(object: &Py<T>, holders: isize) -> bool {
    // SAFETY: the object is alive, and the GIL is held by every caller (they own `Bound`s beside it).
    unsafe { ffi::Py_REFCNT(object.as_ptr()) as isize == holders }
}

/// Reference counts are split between threads here and say nothing.
#[cfg(Py_GIL_DISABLED)]
pub fn is_ours_alone<T>(_object: &Py<T>, _holders: isize) -> bool {
    false
}
