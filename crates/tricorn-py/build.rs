//! Makes `cfg(Py_GIL_DISABLED)` known: whether this is built for a free-threaded Python.
fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
