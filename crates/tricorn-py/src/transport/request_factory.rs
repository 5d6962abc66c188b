//! How a transport comes to know its protocol's object for a request.
use super::connection::Transport;
use pyo3::intern;
use pyo3::prelude::*;

/// Makes requests that their transports know, which ask them for their routes. A signal of aiohttp's would cost more.
#[pyclass(frozen, module = "tricorn._core")]
pub struct RequestFactory {
    /// `aiohttp.web.Server.request_factory`.
    make: Py<PyAny>,
}

#[pymethods]
impl RequestFactory {
    #[new]
    fn new(make: Py<PyAny>) -> RequestFactory {
        RequestFactory { make }
    }

    fn make<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        payload: &Bound<'py, PyAny>,
        protocol: &Bound<'py, PyAny>,
        writer: &Bound<'py, PyAny>,
        task: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let request = self.make.bind(py).call1((message, payload, protocol, writer, task))?;
        let transport = protocol.getattr(intern!(py, "transport"))?;
        if let Ok(transport) = transport.cast_exact::<Transport>() {
            transport.get().state().request = Some(request.clone().unbind());
        }
        Ok(request)
    }
}
