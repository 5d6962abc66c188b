//! The file by which a worker and the arbiter talk of reports and stacks, for Python.
use crate::given::nanoseconds;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::os::fd::{IntoRawFd, RawFd};

/// The file of this descriptor, which stays the caller's.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Reports(tricorn_io::Reports);

#[pymethods]
impl Reports {
    #[new]
    fn new(fd: RawFd) -> Reports {
        Reports(tricorn_io::Reports::new(fd))
    }

    /// Makes such a file. Returns its descriptor, which is the caller's.
    #[staticmethod]
    fn create() -> PyResult<RawFd> {
        Ok(tricorn_io::Reports::create().map_err(std::io::Error::from)?.into_raw_fd())
    }

    /// Forgets stacks, and has faulthandler write where they belong.
    fn forget_stacks(&self) -> PyResult<()> {
        Ok(self.0.forget_stacks().map_err(std::io::Error::from)?)
    }

    /// The stacks of threads, at most so many bytes.
    fn stacks<'py>(&self, py: Python<'py>, most: usize) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.stacks(most))
    }

    /// The stacks of what waits; empty: Python has not come to it.
    fn waiting<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.waiting())
    }

    /// In the worker: writes the stacks of what waits.
    fn write_waiting(&self, text: &[u8]) -> PyResult<()> {
        Ok(self.0.write_waiting(text).map_err(std::io::Error::from)?)
    }

    /// Orders a profile; 0 seconds: ends the one that goes on. Returns the order's number.
    fn order(&self, seconds: f64, rate: u64, most: u64) -> PyResult<u64> {
        Ok(self.0.order(nanoseconds(seconds), rate, most).map_err(std::io::Error::from)?)
    }

    /// The last report on slow requests; empty: there is none yet.
    fn slow<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.slow())
    }

    /// The last report for the order of this number, which may go on; empty: there is none.
    fn profile<'py>(&self, py: Python<'py>, number: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.profile(number))
    }
}
