//! What is asked of aiohttp's objects natively: methods of Python's would cost some 2 % of a small request.
use crate::routes::RouteNames;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

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
