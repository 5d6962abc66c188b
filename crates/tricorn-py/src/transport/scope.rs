//! The scope of a request for the hooks (ASGI HTTP specification, "HTTP Connection Scope").
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::net::SocketAddr;
use tricorn_io::Exchange;
use tricorn_proto::message::target::percent_decode;
use tricorn_proto::message::{Scheme, Version};

/// The version as ASGI has it.
fn version(version: Version) -> &'static str {
    match version {
        Version::Http10 => "1.0",
        Version::Http11 | Version::Uwsgi | Version::Scgi | Version::FastCgi(_) => "1.1",
        Version::Http2 => "2",
    }
}

/// What a hook is told of a request, whose client has this address.
pub fn scope_of<'py>(py: Python<'py>, exchange: &Exchange, client: Option<SocketAddr>) -> PyResult<Bound<'py, PyDict>> {
    let (head, bytes) = (&exchange.request.head, exchange.request.head_bytes());
    let scope = PyDict::new(py);
    scope.set_item("type", "http")?;
    scope.set_item("http_version", version(head.version))?;
    scope.set_item("method", latin1(py, head.method.of(bytes))?)?;
    scope.set_item("scheme", if head.scheme == Scheme::Https { "https" } else { "http" })?;
    let mut path = Vec::new();
    percent_decode(head.path.of(bytes), &mut path);
    scope.set_item("path", String::from_utf8_lossy(&path))?;
    scope.set_item("raw_path", PyBytes::new(py, head.path.of(bytes)))?;
    scope.set_item("query_string", PyBytes::new(py, head.query.of(bytes)))?;
    scope.set_item("root_path", "")?;
    let claimed = exchange.request.claims().and_then(|claims| claims.client.as_ref());
    let client = claimed
        .map(|client| (client.name.clone(), client.port))
        .or_else(|| client.map(|client| (client.ip().to_string(), client.port())));
    scope.set_item("client", client)?;
    let headers = PyList::empty(py);
    for field in &head.fields {
        let name = PyBytes::new(py, &field.name.of(bytes).to_ascii_lowercase());
        headers.append((name, PyBytes::new(py, field.value.of(bytes))))?;
    }
    scope.set_item("headers", headers)?;
    Ok(scope)
}
