//! What aiohttp's protocol is told and asked natively: methods of Python's would cost some 5 % of a small request.
use crate::routes::RouteNames;
use crate::sync::lock;
use pyo3::intern;
use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::Mutex;

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

/// Where requests count, by the route that aiohttp's router has found: its name is asked for once.
#[derive(Default)]
pub struct KnownRoutes(Mutex<FxHashMap<usize, Known>>);

/// The object is kept, so that none other is taken for it.
struct Known {
    place: u16,
    _route: Py<PyAny>,
}

impl KnownRoutes {
    /// The place of this request; 0: it has none, as where nothing is found.
    pub fn place(&self, names: &RouteNames, request: &Bound<'_, PyAny>) -> u16 {
        let py = request.py();
        let route = request.getattr(intern!(py, "match_info")).and_then(|found| found.getattr(intern!(py, "route")));
        let Ok(route) = route else { return 0 };
        let address = route.as_ptr() as usize;
        if let Some(known) = lock(&self.0).get(&address) {
            return known.place;
        }
        // Each refusal of the router's has a route of its own, without a resource.
        let resource = route.getattr(intern!(py, "resource")).ok().filter(|resource| !resource.is_none());
        let Some(name) = resource.and_then(|resource| resource.getattr(intern!(py, "canonical")).ok()) else {
            return 0;
        };
        let place = names.place(&name);
        let mut known = lock(&self.0);
        if known.len() < MOST_KNOWN {
            known.insert(address, Known { place, _route: route.unbind() });
        }
        place
    }
}

/// What an application has of routes, as a rule; of more the names are asked for each time.
const MOST_KNOWN: usize = 4096;
