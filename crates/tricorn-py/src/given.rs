//! What Python gives to a core, by name.
use pyo3::exceptions::{PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tricorn_io::clock::SECOND;

/// Looks options up and names the one that is missing or of the wrong type.
pub struct Options<'a, 'py>(pub &'a Bound<'py, PyDict>);

impl<'a, 'py> Options<'a, 'py> {
    pub fn get<T: for<'x> FromPyObject<'x, 'py, Error = PyErr>>(&self, name: &str) -> PyResult<T> {
        let value = self.0.get_item(name)?.ok_or_else(|| PyKeyError::new_err(format!("core option {name}")))?;
        value.extract::<T>().map_err(|error| PyValueError::new_err(format!("core option {name}: {error}")))
    }

    /// An option that may be missing, which turns off what it is about.
    pub fn optional<T: for<'x> FromPyObject<'x, 'py, Error = PyErr> + Default>(&self, name: &str) -> PyResult<T> {
        if self.0.contains(name)? { self.get(name) } else { Ok(T::default()) }
    }

    /// A setting in seconds, as nanoseconds.
    pub fn seconds(&self, name: &str) -> PyResult<u64> {
        let seconds: f64 = self.get(name)?;
        Ok(nanoseconds(seconds))
    }

    pub fn optional_seconds(&self, name: &str) -> PyResult<u64> {
        self.optional(name).map(nanoseconds)
    }

    /// A pipe from or to the arbiter, duplicated; -1 or nothing: there is none.
    pub fn pipe(&self, name: &str) -> PyResult<Option<Arc<OwnedFd>>> {
        let fd: i32 = if self.0.contains(name)? { self.get(name)? } else { -1 };
        if fd < 0 {
            return Ok(None);
        }
        let pipe = tricorn_io::duplicate(fd)
            .map_err(|error| PyOSError::new_err(format!("core option {name}: descriptor {fd}: {error}")))?;
        Ok(Some(Arc::new(pipe)))
    }
}

pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds.max(0.0) * SECOND as f64) as u64
}
