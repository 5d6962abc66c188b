//! Addresses as Python strings, kept with the connection.
use crate::ends::{local_address, peer_address};
use crate::session;
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tricorn_io::{Attachment, Engine, Exchange};

/// `REMOTE_ADDR`, `REMOTE_PORT`, `SERVER_NAME`, `SERVER_PORT`; empty for what a unix socket does not have.
pub struct Names {
    pub remote: Py<PyString>,
    pub remote_port: Py<PyString>,
    /// `None` where the environ's template has the right ones already.
    pub server: Option<(Py<PyString>, Py<PyString>)>,
    /// What is told of a client that speaks TLS.
    pub session: Option<Py<PyDict>>,
}

/// The connection's names: made for its first request, then kept with it.
pub fn names<'a>(py: Python<'_>, engine: &Engine, exchange: &'a mut Exchange) -> PyResult<&'a Names> {
    if exchange.client.attachment.as_ref().is_none_or(|kept| !kept.is::<Names>()) {
        let names = make(py, engine, exchange)?;
        exchange.client.attachment = Some(Box::new(names) as Attachment);
    }
    exchange
        .client
        .attachment
        .as_ref()
        .and_then(|kept| kept.downcast_ref::<Names>())
        .ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("a connection lost its names (defect of tricorn)"))
}

fn make(py: Python<'_>, engine: &Engine, exchange: &Exchange) -> PyResult<Names> {
    let (remote, remote_port) = peer_address(exchange)
        .map(|address| (address.ip().to_string(), address.port().to_string()))
        .unwrap_or_default();
    let server = local_address(engine, exchange)
        .map(|address| -> PyResult<_> {
            let name = latin1(py, address.ip().to_string().as_bytes())?.unbind();
            let port = latin1(py, address.port().to_string().as_bytes())?.unbind();
            Ok((name, port))
        })
        .transpose()?;
    Ok(Names {
        remote: latin1(py, remote.as_bytes())?.unbind(),
        remote_port: latin1(py, remote_port.as_bytes())?.unbind(),
        server,
        session: exchange.facts().map(|facts| session::environ(py, facts)).transpose()?,
    })
}
