//! What a front end says in vars (uwsgi, SCGI, FastCGI), as applications are told.
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tricorn_proto::cgi::Vars;

/// The front end's own vars as keys of the environ. Those with a dot are keys of WSGI and of servers, and are left out.
#[cold]
pub fn fill_environ(environ: &Bound<'_, PyDict>, vars: &Vars<'_>) -> PyResult<()> {
    let py = environ.py();
    for (key, value) in vars.own() {
        let of_body = key == b"CONTENT_TYPE" || key == b"CONTENT_LENGTH";
        if !of_body && !key.contains(&b'.') {
            environ.set_item(latin1(py, key)?, latin1(py, value)?)?;
        }
    }
    Ok(())
}

/// The same in a scope, which says no more of a request than ASGI has keys for: all of them in `extensions["tricorn"]["vars"]`.
#[cold]
pub fn told<'py>(py: Python<'py>, vars: &Vars<'_>) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    for (key, value) in vars.own() {
        told.set_item(latin1(py, key)?, latin1(py, value)?)?;
    }
    Ok(told)
}

/// What they say in place of the request's head. `root`: the mount point of the operator.
#[cold]
pub fn fill_scope(scope: &Bound<'_, PyDict>, vars: &Vars<'_>, root: &str) -> PyResult<()> {
    let py = scope.py();
    let (script, path) = vars.paths();
    let (script, path) = (String::from_utf8_lossy(script), String::from_utf8_lossy(&path));
    let script = if script.is_empty() { root } else { &script };
    let is_below = path.strip_prefix(script).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_whole = script == root && (root.is_empty() || is_below);
    scope.set_item("root_path", script)?;
    scope.set_item("path", if is_whole { path.into_owned() } else { format!("{script}{path}") })?;
    if let Some(query) = vars.get(b"QUERY_STRING") {
        scope.set_item("query_string", PyBytes::new(py, query))?;
    }
    if let Some((name, port)) = vars.server() {
        let port = std::str::from_utf8(port).ok().and_then(|port| port.parse::<u16>().ok());
        scope.set_item("server", (latin1(py, name)?, port))?;
    }
    if let Some(version) = vars.get(b"SERVER_PROTOCOL").and_then(version) {
        scope.set_item("http_version", PyString::new(py, version))?;
    }
    Ok(())
}

/// The version as ASGI has it.
fn version(protocol: &[u8]) -> Option<&'static str> {
    match protocol {
        b"HTTP/1.0" => Some("1.0"),
        b"HTTP/1.1" => Some("1.1"),
        b"HTTP/2.0" | b"HTTP/2" => Some("2"),
        b"HTTP/3.0" | b"HTTP/3" => Some("3"),
        _ => None,
    }
}
