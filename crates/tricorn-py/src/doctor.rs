//! What the threads of a process do, for `tricorn doctor`.
use pyo3::exceptions::{PyPermissionError, PyProcessLookupError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::time::{Duration, Instant};
use tricorn_doctor::{Doctor, Trouble};

/// Looks at a process for so many seconds, without the GIL; the report as JSON.
#[pyfunction]
pub fn doctor_look<'py>(py: Python<'py>, pid: u32, seconds: f64) -> PyResult<Bound<'py, PyBytes>> {
    let window = window(seconds)?;
    let look = py.detach(|| Doctor::open(pid)?.look(window)).map_err(raised)?;
    Ok(PyBytes::new(py, look.to_json().as_bytes()))
}

/// Walks the frames of every Python thread again and again for so many seconds: walks made, discarded, trimmed, and frames found.
/// It tells what a walk costs, and is how the reader is tried against processes that change under it.
#[pyfunction]
pub fn doctor_walk(py: Python<'_>, pid: u32, seconds: f64) -> PyResult<(u64, u64, u64, u64)> {
    let window = window(seconds)?;
    let walked = py.detach(|| {
        let mut doctor = Doctor::open(pid)?;
        let (end, mut found) = (Instant::now() + window, 0);
        while Instant::now() < end {
            for thread in doctor.python_threads() {
                found += doctor.frames_of(&thread).map_or(0, |walked| walked.frames.len() as u64);
            }
        }
        Ok((doctor.walks.made, doctor.walks.discarded, doctor.walks.trimmed, found))
    });
    walked.map_err(raised)
}

fn window(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn raised(trouble: Trouble) -> PyErr {
    let words = trouble.to_string();
    match trouble {
        Trouble::Gone(_) => PyProcessLookupError::new_err(words),
        Trouble::Forbidden(_) => PyPermissionError::new_err(words),
        Trouble::NotPython(_) => PyValueError::new_err(words),
    }
}
