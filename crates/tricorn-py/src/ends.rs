//! The addresses of a connection; `client` and `server` of a scope: made for its first request, then kept with it.
use crate::session;
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::net::SocketAddr;
use tricorn_io::{Attachment, Engine, Exchange, Peer};
use tricorn_proto::peer::client_of;

/// The ends of a connection, as pairs of a host and a port.
pub struct Addresses {
    /// `None` for clients of a unix socket.
    pub client: Option<Py<PyTuple>>,
    /// `None` where nothing is known.
    pub server: Option<Py<PyTuple>>,
    /// The client's address in text, for the access log.
    pub remote: Box<[u8]>,
    /// What is told of a client that speaks TLS.
    pub session: Option<Py<PyDict>>,
}

/// The ends of this exchange's connection.
pub fn of<'a>(py: Python<'_>, engine: &Engine, exchange: &'a mut Exchange) -> PyResult<&'a Addresses> {
    if exchange.client.attachment.as_ref().is_none_or(|kept| !kept.is::<Addresses>()) {
        exchange.client.attachment = Some(Box::new(make(py, engine, exchange)?) as Attachment);
    }
    known(exchange)
        .ok_or_else(|| pyo3::exceptions::PyRuntimeError::new_err("a connection lost its ends (defect of tricorn)"))
}

/// Those that were made before.
pub fn known(exchange: &Exchange) -> Option<&Addresses> {
    exchange.client.attachment.as_ref().and_then(|kept| kept.downcast_ref::<Addresses>())
}

/// The client that a trusted front end tells of; port 0 where it says none.
pub fn forwarded<'py>(py: Python<'py>, engine: &Engine, exchange: &Exchange) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let request = &*exchange.request;
    if let Some(claims) = request.claims() {
        let client = claims.client.as_ref();
        return client.map(|client| (&client.name, client.port).into_pyobject(py)).transpose();
    }
    let client = client_of(&request.head, request.head_bytes(), &engine.config().policy.trust);
    client.map(|client| (latin1(py, client.name)?, client.port).into_pyobject(py)).transpose()
}

/// The server as trusted front ends know it; if they only say a port, with the host that the connection has.
#[cold]
pub fn claimed_server<'py>(
    py: Python<'py>,
    name: Option<&[u8]>,
    port: u16,
    own: Option<&Py<PyTuple>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let name = match (name, own) {
        (Some(name), _) => latin1(py, name)?.into_any(),
        (None, Some(own)) => own.bind(py).get_item(0)?,
        (None, None) => latin1(py, b"localhost")?.into_any(),
    };
    (name, port).into_pyobject(py)
}

/// Those of any connection, to be kept.
pub fn make(py: Python<'_>, engine: &Engine, exchange: &Exchange) -> PyResult<Addresses> {
    let pair = |address: SocketAddr| -> PyResult<Py<PyTuple>> {
        let host = latin1(py, address.ip().to_string().as_bytes())?;
        Ok((host, address.port()).into_pyobject(py)?.unbind())
    };
    let client = peer_address(exchange);
    let remote = client.map(|address| address.ip().to_string()).unwrap_or_default();
    let server = match (local_address(engine, exchange), exchange.lane.local_path()) {
        (Some(address), _) => Some(pair(address)?),
        (None, Some(path)) => Some((String::from_utf8_lossy(&path), py.None()).into_pyobject(py)?.unbind()),
        (None, None) => None,
    };
    let session = exchange.facts().map(|facts| session::extension(py, facts)).transpose()?;
    Ok(Addresses { client: client.map(pair).transpose()?, server, remote: remote.into_bytes().into(), session })
}

/// The client's address; clients of a unix socket have none.
pub fn peer_address(exchange: &Exchange) -> Option<SocketAddr> {
    match exchange.client.peer {
        Peer::Internet(address) => Some(canonical(address)),
        Peer::Unix => None,
    }
}

/// The socket's own address; a listener bound to one address needs no system call.
pub fn local_address(engine: &Engine, exchange: &Exchange) -> Option<SocketAddr> {
    let bound = engine.listener_address(exchange.client.listener)?;
    if bound.ip().is_unspecified() {
        return exchange.lane.local_address().map(canonical).or(Some(bound));
    }
    Some(canonical(bound))
}

/// A v4 address that came in through a v6 socket is a v4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
