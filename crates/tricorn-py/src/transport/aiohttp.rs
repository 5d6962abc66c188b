//! What aiohttp's protocol is told and asked natively: methods of Python's would cost some 5 % of a small request.
use crate::routes::RouteNames;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Keeps the place of a protocol's access logger, which its transport takes.
///
/// aiohttp logs a response when the handler is done with it, and nothing else says that to a transport. A handler that writes
/// less than its Content-Length leaves aiohttp waiting for the next request, and the client for the rest. The access log itself
/// is the server's.
#[pyclass(frozen, module = "tricorn._core")]
pub struct ResponseEnds;

#[pymethods]
impl ResponseEnds {
    /// As `aiohttp.abc.AbstractAccessLogger`, of which it counts as a subclass.
    #[new]
    fn new(_logger: &Bound<'_, PyAny>, _format: &Bound<'_, PyAny>) -> ResponseEnds {
        ResponseEnds
    }

    #[getter]
    fn enabled(&self) -> bool {
        true
    }

    /// Not called: no request comes before the transport does.
    fn log(&self, _request: &Bound<'_, PyAny>, _response: &Bound<'_, PyAny>, _time: &Bound<'_, PyAny>) {}
}

/// The transport is its protocol's access logger, where the place is kept for it.
pub fn take_place(protocol: &Bound<'_, PyAny>, transport: &Bound<'_, PyAny>) -> PyResult<()> {
    let name = intern!(protocol.py(), "access_logger");
    match protocol.getattr_opt(name)? {
        Some(logger) if logger.is_exact_instance_of::<ResponseEnds>() => protocol.setattr(name, transport),
        _ => Ok(()),
    }
}

/// Where a request of aiohttp's counts, by the route that its router has found; 0: nowhere, as where nothing is found.
pub fn place_of(names: &RouteNames, request: &Bound<'_, PyAny>) -> u16 {
    let py = request.py();
    // Two properties of the library's are functions of Python's, each of which costs as much as all the rest. What they return are
    // attributes; where those are called otherwise, the properties are asked.
    let found = attribute(request, intern!(py, "_match_info"), intern!(py, "match_info"));
    let route = found.and_then(|found| attribute(&found, intern!(py, "_route"), intern!(py, "route")));
    let Some(route) = route else { return 0 };
    names.place_of(&route, || {
        // Each refusal of the router's has a route of its own, without a resource.
        let resource = route.getattr(intern!(py, "resource")).ok().filter(|resource| !resource.is_none())?;
        resource.getattr(intern!(py, "canonical")).ok()
    })
}

fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    own: &Bound<'py, PyString>,
    public: &Bound<'py, PyString>,
) -> Option<Bound<'py, PyAny>> {
    let found = object.getattr_opt(own).ok().flatten().filter(|found| !found.is_none());
    found.or_else(|| object.getattr(public).ok())
}
