//! The call as Python sees it (`tricorn.gateway.call` has its promises in words).
use super::body;
use super::call::{Call, Event, Written};
use super::{ground, head};
use crate::pieces::Piece;
use crate::session;
use crate::text::latin1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use std::net::IpAddr;
use std::os::fd::{IntoRawFd, RawFd};
use tricorn_proto::message::{Framing, Method, Scheme};
use tricorn_proto::peer::client_of;
use tricorn_proto::response::End;

#[pymethods]
impl Call {
    #[getter]
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(|_, exchange| self.ground.heads().line(py, exchange))
    }

    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.with(|_, exchange| self.ground.heads().fields(py, exchange))
    }

    #[getter]
    fn scheme<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.with(|_, exchange| {
            Ok(match exchange.request.head.scheme {
                Scheme::Http => intern!(py, "http").clone(),
                Scheme::Https => intern!(py, "https").clone(),
            })
        })
    }

    #[getter]
    fn peer(&self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        self.with(|_, exchange| {
            let ends = ground::kept(exchange).map(|kept| &kept.ends);
            Ok(ends.and_then(|ends| ends.client.as_ref()).map(|client| client.clone_ref(py)))
        })
    }

    #[getter]
    fn is_trusted(&self) -> PyResult<bool> {
        self.with(|_, exchange| Ok(exchange.client.trusted))
    }

    #[getter]
    fn forwarded<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.with(|_, exchange| {
            if !exchange.client.trusted {
                return Ok(None);
            }
            let request = &*exchange.request;
            if let Some(claims) = request.claims() {
                // Without a claim it is the peer: nothing else is believed then.
                let peer = || exchange.client.peer.ip().map(|ip| ip.to_canonical().to_string());
                let client = claims.client.as_ref().map(|client| client.name.clone()).or_else(peer);
                return client.map(|client| latin1(py, client.as_bytes())).transpose();
            }
            let client =
                client_of(&request.head, request.head_bytes(), &self.ground.shared.engine.config().policy.trust);
            // What stands there need not be an address. tornado has no place for a port.
            let name = client.map(|client| client.name);
            let name = name.filter(|name| str::from_utf8(name).is_ok_and(|text| text.parse::<IpAddr>().is_ok()));
            name.map(|name| latin1(py, name)).transpose()
        })
    }

    /// The request is answered by the object of this bound method. Its class names the route (`route_metrics`): tornado keeps no pattern.
    fn name_route(&self, method: &Bound<'_, PyAny>) {
        let py = method.py();
        let Ok(handler) = method.getattr(intern!(py, "__self__")) else { return };
        let kind = handler.get_type();
        let route = self.ground.shared.routes.place_of(&kind, || name_of(&kind));
        if let Some(exchange) = self.state().active.exchange_mut() {
            exchange.timing.route = route;
        }
    }

    #[getter]
    fn has_body(&self) -> PyResult<bool> {
        self.with(|_, exchange| Ok(exchange.is_partial() || !exchange.request.body.is_empty()))
    }

    #[getter]
    fn length(&self) -> PyResult<Option<u64>> {
        self.with(|_, exchange| {
            Ok(match exchange.request.head.framing {
                Framing::None => Some(0),
                Framing::Length(length) => Some(length),
                Framing::Chunked => None,
            })
        })
    }

    fn read<'py>(slf: &Bound<'py, Call>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        body::read(slf)
    }

    fn start(
        slf: &Bound<'_, Call>,
        status: u16,
        reason: &Bound<'_, PyString>,
        fields: &Bound<'_, PyAny>,
        chunk: &Bound<'_, PyBytes>,
    ) -> PyResult<u8> {
        let this = slf.get();
        let sent = this.working(|end, exchange| {
            let reply = &mut exchange.request.reply;
            head::set(reply, status, reason, fields)?;
            let promised = reply.content_length();
            let length = chunk.as_bytes().len() as u64;
            let is_bare = exchange.request.head.kind == Method::Head || matches!(status, 204 | 205 | 304);
            if !is_bare && promised.is_some_and(|promised| length > promised) {
                return Ok(Written::Excess);
            }
            let is_whole = is_bare || promised == Some(length);
            exchange.foresee_close_unread(is_whole);
            if is_whole {
                exchange.answered();
                *end = Some(Piece::all(chunk).write_last(&this.ground.shared.engine, exchange));
                exchange.flush(); // the handler may go on
                return Ok(if exchange.is_gone() { Written::Gone } else { Written::Accepted });
            }
            Ok(Piece::all(chunk).write(&this.ground.shared.engine, exchange, None).into())
        })?;
        Call::written(slf, sent)
    }

    fn write(slf: &Bound<'_, Call>, chunk: &Bound<'_, PyBytes>) -> PyResult<u8> {
        let this = slf.get();
        let length = chunk.as_bytes().len() as u64;
        let sent = this.working(|end, exchange| {
            let reply = &exchange.request.reply;
            if !reply.head_sent() {
                return Err(PyRuntimeError::new_err("write was called before start"));
            }
            let left = match (*end, reply.content_length()) {
                (Some(_), _) => Some(0),
                (None, promised) => promised.map(|promised| promised.saturating_sub(reply.body_taken())),
            };
            match left {
                Some(left) if length > left => Ok(Written::Excess),
                _ if length == 0 => Ok(Written::Accepted),
                _ => Ok(Piece::all(chunk).write(&this.ground.shared.engine, exchange, None).into()),
            }
        })?;
        Call::written_piece(slf, sent, length as usize)
    }

    fn end(&self, py: Python<'_>) -> PyResult<u64> {
        let Some((mut exchange, end)) = self.take_with_end() else { return Ok(0) };
        let mut missing = 0;
        if !exchange.is_elsewhere() {
            if exchange.timing.answered == 0 {
                exchange.answered(); // before the last of it is sent
            }
            if let End::Short { missing: bytes } = end.unwrap_or_else(|| exchange.end())
                && !exchange.is_gone()
            {
                missing = bytes;
            }
        }
        self.conclude(py, exchange);
        Ok(missing)
    }

    fn abort(&self, py: Python<'_>) {
        let Some(mut exchange) = self.take() else { return };
        exchange.abort();
        self.conclude(py, exchange);
    }

    fn refuse(&self, py: Python<'_>, status: u16, message: &str) {
        let Some(mut exchange) = self.take() else { return };
        exchange.give_up(status, message);
        self.conclude(py, exchange);
    }

    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.failed(py, PyErr::from_value(error))
    }

    /// What is known of the client's session, if it speaks TLS.
    #[getter]
    fn tls<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.with(|_, exchange| exchange.facts().map(|facts| session::described(py, facts)).transpose())
    }

    fn take_socket<'py>(&self, py: Python<'py>) -> PyResult<(RawFd, Bound<'py, PyBytes>, Option<Bound<'py, PyDict>>)> {
        self.with(|_, exchange| {
            let told = match exchange.facts() {
                Some(facts) => {
                    let socket = exchange.lane.descriptor().duplicate().map_err(std::io::Error::from)?;
                    Some(session::of_taken(py, facts, socket.into_raw_fd())?)
                }
                None => None,
            };
            let taken = self.ground.shared.engine.let_go(exchange)?;
            Ok((taken.socket.into_raw_fd(), PyBytes::new(py, &taken.unread), told))
        })
    }

    /// The loop's other callbacks had their turn.
    fn caught_up(slf: &Bound<'_, Call>) {
        let is_stalled = slf.get().state().active.is_stalled();
        if !is_stalled {
            slf.get().tell(slf.py(), Event::Writable);
        }
    }

    /// The client was found to have left; in a turn of its own.
    fn left(slf: &Bound<'_, Call>) -> PyResult<()> {
        Call::client_left(slf)
    }

    /// The event is complete after which the stream is to end; in a turn of its own.
    fn closed(&self, py: Python<'_>) -> PyResult<()> {
        self.close_stream(py)
    }

    /// The client was found to have closed its sending side; in a turn of its own.
    fn hung_up(slf: &Bound<'_, Call>) {
        slf.get().tell(slf.py(), Event::HangUp);
    }
}

/// The name of a handler's class; none of what tornado answers where no route is.
fn name_of<'py>(kind: &Bound<'py, PyType>) -> Option<Bound<'py, PyAny>> {
    let (module, name) = (kind.module().ok()?, kind.qualname().ok()?);
    let (module, name) = (module.to_str().ok()?, name.to_str().ok()?);
    let is_one = module != "builtins" && name != "ErrorHandler";
    is_one.then(|| PyString::new(kind.py(), &format!("{module}.{name}")).into_any())
}
