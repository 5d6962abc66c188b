//! Routes: how a request's is found when its application has answered, and what all of them cost, for Python.
use crate::memory::memory;
use crate::sync::lock;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex};
use tricorn_io::{Engine, MOST_ROUTES, RouteCounts, Routes, routes_bytes};

/// Finds the places of routes by their names, once for each name.
pub struct RouteNames {
    engine: Arc<Engine>,
    /// `tricorn.route`: what an application says of any request.
    ours: Py<PyString>,
    /// The route of a scope, an object with a `path` (FastAPI, Starlette), and the path of one (Litestar).
    route: Py<PyString>,
    path: Py<PyString>,
    template: Py<PyString>,
    /// By name.
    places: Mutex<Option<Py<PyDict>>>,
    /// By the object that stands for a route in its framework.
    known: Mutex<FxHashMap<usize, Known>>,
}

/// The object is kept, so that none other is taken for it.
struct Known {
    place: u16,
    _object: Py<PyAny>,
}

impl RouteNames {
    pub fn new(py: Python<'_>, engine: Arc<Engine>) -> RouteNames {
        let key = |name| PyString::intern(py, name).unbind();
        RouteNames {
            engine,
            ours: key("tricorn.route"),
            route: key("route"),
            path: key("path"),
            template: key("path_template"),
            places: Mutex::new(Some(PyDict::new(py).unbind())),
            known: Mutex::default(),
        }
    }

    #[inline]
    pub fn are_on(&self) -> bool {
        self.engine.counts_routes()
    }

    /// The place of the route in this environ; 0: it has none.
    #[inline]
    pub fn of_environ(&self, environ: &Bound<'_, PyDict>) -> u16 {
        if !self.are_on() {
            return 0;
        }
        found(environ, &self.ours).map_or(0, |name| self.place(&name))
    }

    /// The same of a scope.
    #[inline]
    pub fn of_scope(&self, scope: &Bound<'_, PyDict>) -> u16 {
        if !self.are_on() {
            return 0;
        }
        let py = scope.py();
        if let Some(name) = found(scope, &self.ours).or_else(|| found(scope, &self.template)) {
            return self.place(&name);
        }
        let Some(route) = found(scope, &self.route) else { return 0 };
        route.getattr(self.path.bind(py)).map_or(0, |name| self.place(&name))
    }

    /// Where requests count for which this object stands: its name is asked for once. One without a name has no place.
    #[inline]
    pub fn place_of<'py>(&self, object: &Bound<'py, PyAny>, name: impl FnOnce() -> Option<Bound<'py, PyAny>>) -> u16 {
        if let Some(known) = lock(&self.known).get(&(object.as_ptr() as usize)) {
            return known.place;
        }
        let Some(name) = name() else { return 0 };
        let place = self.place(&name);
        let mut known = lock(&self.known);
        if known.len() < MOST_KNOWN {
            known.insert(object.as_ptr() as usize, Known { place, _object: object.clone().unbind() });
        }
        place
    }

    /// Where requests of this name count. What is no text, or an empty one, has no place.
    pub fn place(&self, name: &Bound<'_, PyAny>) -> u16 {
        let Ok(name) = name.cast_exact::<PyString>() else { return 0 };
        let py = name.py();
        let Some(places) = lock(&self.places).as_ref().map(|places| places.bind(py).clone()) else { return 0 };
        // A dictionary of texts: to look into it runs no Python code.
        if let Ok(Some(place)) = places.get_item(name) {
            return place.extract().unwrap_or(0);
        }
        let text = name.to_str().unwrap_or_default();
        let place = if text.is_empty() { 0 } else { self.engine.place_of_route(text) };
        if places.len() < MOST_ROUTES {
            let _ = places.set_item(name, place); // it is looked up again
        }
        place
    }
}

/// What an application has of such objects, as a rule; of more the names are asked for each time.
const MOST_KNOWN: usize = 4096;

/// A value by a key that is there for good; errors are none.
#[inline]
fn found<'py>(dict: &Bound<'py, PyDict>, key: &Py<PyString>) -> Option<Bound<'py, PyAny>> {
    // SAFETY: two live objects. The result is borrowed of the dictionary, which no other code changes before it is owned.
    unsafe {
        let value = ffi::PyDict_GetItemWithError(dict.as_ptr(), key.as_ptr());
        if value.is_null() {
            ffi::PyErr_Clear();
        }
        Bound::from_borrowed_ptr_or_opt(dict.py(), value)
    }
}

/// Bytes of the pages for so many routes with a name.
#[pyfunction]
pub fn route_bytes(named: usize, workers: usize) -> usize {
    routes_bytes(named.min(MOST_ROUTES), workers)
}

/// What one route has cost, in nanoseconds.
#[pyclass(frozen, get_all, module = "tricorn._core")]
pub struct Route {
    name: String,
    requests: u64,
    errors: u64,
    time: u64,
    told: u64,
    computed: u64,
    yielded: u64,
    blocked: u64,
    delayed: u64,
    buckets: Vec<u64>,
}

impl From<RouteCounts> for Route {
    fn from(counts: RouteCounts) -> Route {
        Route {
            yielded: counts.yielded(),
            requests: counts.requests,
            errors: counts.errors,
            time: counts.time,
            told: counts.told,
            computed: counts.computed,
            blocked: counts.blocked,
            delayed: counts.delayed,
            buckets: counts.buckets.to_vec(),
            name: counts.name,
        }
    }
}

/// The pages of routes, for the arbiter. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct RoutePages {
    routes: Routes,
    _buffer: PyBuffer<u8>,
}

#[pymethods]
impl RoutePages {
    /// Makes such pages of empty memory.
    #[new]
    fn new(buffer: PyBuffer<u8>, named: usize) -> PyResult<RoutePages> {
        let address = memory(&buffer, 0, "pages of routes")?;
        // SAFETY: checked in `memory`; the buffer is exported as long as this object lives.
        let routes = unsafe { Routes::begin(address, buffer.len_bytes(), named) };
        let routes = routes.ok_or_else(|| PyValueError::new_err(format!("no room for {named} routes")))?;
        Ok(RoutePages { routes, _buffer: buffer })
    }

    /// The worker that had this slot is gone.
    fn bury(&self, slot: u64) {
        self.routes.bury(slot);
    }

    /// What all routes have cost, the one for all others last.
    fn read(&self) -> Vec<Route> {
        self.routes.read().into_iter().map(Route::from).collect()
    }
}
