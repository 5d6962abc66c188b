//! The extension module `tricorn._core`.
use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {}
