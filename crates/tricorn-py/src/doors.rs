//! What differs from listener to listener: TLS, who announces connections by the PROXY protocol, and what front ends speak.
use crate::given::Options;
use crate::memory::words_of;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use tricorn_io::tls::{Page, Source, TLS_PAGE_BYTES};
use tricorn_io::{Door, FrontEnd, ProxyProtocol, TlsDoors};
use tricorn_proto::cgi::Protocol;
use tricorn_proto::peer::Trust;
use tricorn_proto::peer::proxy_protocol::Accepts;

/// The settings of listeners that say nothing else.
pub fn proxy_protocol(options: &Options<'_, '_>) -> PyResult<Option<Box<ProxyProtocol>>> {
    let mode: Option<String> = options.optional("proxy_protocol")?;
    let required = options.optional("proxy_protocol_required")?;
    announced(options, mode.as_deref().unwrap_or("off"), required)
}

fn announced(options: &Options<'_, '_>, mode: &str, required: bool) -> PyResult<Option<Box<ProxyProtocol>>> {
    let accepts = match mode {
        "off" => return Ok(None),
        "v1" => Accepts::V1,
        "v2" => Accepts::V2,
        "auto" => Accepts::Both,
        other => return Err(PyValueError::new_err(format!("core option proxy_protocol: {other}"))),
    };
    let allow: String = options.get("proxy_allow_ips")?;
    let allow = Trust::parse(&allow).map_err(PyValueError::new_err)?;
    Ok(Some(Box::new(ProxyProtocol { accepts, allow, required })))
}

/// A listener: whether its clients speak TLS, what it says itself of the PROXY protocol, and what front ends speak there.
type Given = (bool, Option<String>, Option<bool>, Option<String>);

pub fn doors(options: &Options<'_, '_>) -> PyResult<Vec<Door>> {
    let mode: Option<String> = options.optional("proxy_protocol")?;
    let required: bool = options.optional("proxy_protocol_required")?;
    let door = |(tls, own_mode, own_required, protocol): Given| {
        let mode = own_mode.as_deref().or(mode.as_deref()).unwrap_or("off");
        let proxy_protocol = announced(options, mode, own_required.unwrap_or(required))?;
        let front_end = protocol.map(|name| front_end(options, &name)).transpose()?;
        Ok(Door { tls, proxy_protocol, front_end })
    };
    options.optional::<Vec<Given>>("doors")?.into_iter().map(door).collect()
}

fn front_end(options: &Options<'_, '_>, name: &str) -> PyResult<Box<FrontEnd>> {
    let protocol = match name {
        "uwsgi" => Protocol::Uwsgi,
        "scgi" => Protocol::Scgi,
        "fastcgi" => Protocol::FastCgi,
        other => return Err(PyValueError::new_err(format!("core option doors: {other}"))),
    };
    let allow: String = options.get("uwsgi_allow_ips")?;
    Ok(Box::new(FrontEnd { protocol, allow: Trust::parse(&allow).map_err(PyValueError::new_err)? }))
}

/// The page of certificates that the arbiter has made, if there is one.
pub fn tls_page(options: &Bound<'_, PyDict>) -> PyResult<Option<PyBuffer<u8>>> {
    match options.get_item("tls_page")? {
        Some(page) if !page.is_none() => Ok(Some(PyBuffer::get(&page)?)),
        _ => Ok(None),
    }
}

/// What doors with TLS need. The page outlives them.
pub fn tls_doors(
    options: &Bound<'_, PyDict>,
    doors: &[Door],
    page: Option<&PyBuffer<u8>>,
) -> PyResult<Option<Box<TlsDoors>>> {
    if !doors.iter().any(|door| door.tls) {
        return Ok(None);
    }
    let options = Options(options);
    let Some(page) = page else {
        return Err(PyValueError::new_err("core option tls_page: a listener speaks TLS, and there is none"));
    };
    let source = Source::new(page_over(page)?)
        .map_err(|error| PyValueError::new_err(format!("core option tls_page: {error}")))?;
    Ok(Some(Box::new(TlsDoors {
        source: Arc::new(source),
        handshake_timeout: options.seconds("tls_handshake_timeout")?,
        pending_handshakes: options.get("tls_pending_handshakes")?,
        buffer_total: options.get("tls_buffer_total")?,
        redirect: options.optional("tls_redirect")?,
    })))
}

/// The page in a buffer that outlives it.
pub fn page_over(buffer: &PyBuffer<u8>) -> PyResult<Page> {
    let words = words_of(buffer, TLS_PAGE_BYTES, "page of certificates")?;
    Page::over(words).ok_or_else(|| PyValueError::new_err("no page of certificates is that short"))
}
