//! The handler of a signal that ends a worker: no debugger stops in it.
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Calls a method without a trace function, which is put back afterwards unless it is a debugger's.
///
/// After `breakpoint()` pdb has a handler of its own for SIGINT, which traces whatever is called next. With Ctrl-C that is
/// the handler of the signal that the arbiter sends: it would wait at a prompt in the server, and nothing would end.
#[pyclass(frozen, module = "tricorn._core")]
pub struct SignalHandler {
    method: Py<PyAny>,
}

#[pymethods]
impl SignalHandler {
    #[new]
    fn new(method: Py<PyAny>) -> SignalHandler {
        SignalHandler { method }
    }

    /// The object of the method, as of a bound one.
    #[getter]
    fn __self__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.method.bind(py).getattr("__self__")
    }

    #[pyo3(signature = (*arguments))]
    fn __call__(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        // `input()` looks for signals though one has raised an exception already.
        let pending = PyErr::take(py);
        let result = self.call_untraced(py, arguments);
        match pending {
            Some(error) if result.is_ok() => Err(error),
            _ => result,
        }
    }
}

impl SignalHandler {
    fn call_untraced(&self, py: Python<'_>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let sys = py.import("sys")?;
        let trace = sys.call_method0("gettrace")?;
        if trace.is_none() {
            return self.method.call1(py, arguments);
        }
        sys.call_method1("settrace", (py.None(),))?;
        let result = self.method.call1(py, arguments);
        if !is_debugger(&trace)? {
            sys.call_method1("settrace", (trace,))?;
        }
        result
    }
}

/// Whether a trace function is of pdb, or of what is made of `bdb.Bdb`.
fn is_debugger(trace: &Bound<'_, PyAny>) -> PyResult<bool> {
    let modules = trace.py().import("sys")?.getattr("modules")?;
    match (modules.call_method1("get", ("bdb",))?.getattr_opt("Bdb")?, trace.getattr_opt("__self__")?) {
        (Some(debugger), Some(owner)) => owner.is_instance(&debugger),
        _ => Ok(false),
    }
}
