//! What a balancer has announced of a connection (PROXY protocol), as applications are told.
use crate::text::latin1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::net::SocketAddr;
use tricorn_proto::peer::proxy_protocol::{Announced, Certificate, Ends, TlsFacts};

/// Keys of the environ: gunicorn's, and mod_ssl's for what the client has agreed on with the balancer.
#[cold]
pub fn fill_environ(environ: &Bound<'_, PyDict>, announced: &Announced) -> PyResult<()> {
    let set = |key: &str, text: &[u8]| environ.set_item(key, latin1(environ.py(), text)?);
    if let Ends::Internet { destination, .. } = announced.ends {
        set("PROXY_PROTOCOL", announced.ends.family().as_bytes())?;
        set("PROXY_ADDR", destination.ip().to_string().as_bytes())?;
        set("PROXY_PORT", destination.port().to_string().as_bytes())?;
    }
    if let Some(id) = &announced.values.unique_id {
        set("PROXY_UNIQUE_ID", id)?;
    }
    let Some(tls) = &announced.values.tls else { return Ok(()) };
    set("HTTPS", b"on")?;
    let known =
        [("SSL_PROTOCOL", &tls.version), ("SSL_CIPHER", &tls.cipher), ("SSL_TLS_SNI", &announced.values.authority)];
    for (key, text) in known {
        if let Some(text) = text {
            set(key, text.as_bytes())?;
        }
    }
    set("SSL_CLIENT_VERIFY", verdict(tls.certificate.as_ref()).as_bytes())?;
    if let Some(name) = tls.certificate.as_ref().and_then(|certificate| certificate.common_name.as_ref()) {
        set("SSL_CLIENT_S_DN_CN", name.as_bytes())?;
    }
    Ok(())
}

fn verdict(certificate: Option<&Certificate>) -> &'static str {
    match certificate {
        None => "NONE",
        Some(Certificate { is_verified: true, .. }) => "SUCCESS",
        Some(_) => "FAILED",
    }
}

/// `extensions["tricorn"]["proxy"]` of a scope.
#[cold]
pub fn scope<'py>(py: Python<'py>, announced: &Announced) -> PyResult<Bound<'py, PyDict>> {
    let bytes = |value: &Option<Vec<u8>>| value.as_ref().map(|value| PyBytes::new(py, value));
    let (source, destination) = match announced.ends {
        Ends::Internet { source, destination } => (Some(pair(source)), Some(pair(destination))),
        Ends::Own | Ends::Unix => (None, None),
    };
    let values = &announced.values;
    let told = PyDict::new(py);
    told.set_item("version", announced.version)?;
    told.set_item("family", announced.ends.family())?;
    told.set_item("source", source)?;
    told.set_item("destination", destination)?;
    told.set_item("alpn", bytes(&values.alpn))?;
    told.set_item("authority", values.authority.as_deref())?;
    told.set_item("unique_id", bytes(&values.unique_id))?;
    told.set_item("tls", values.tls.as_ref().map(|tls| facts(py, tls)).transpose()?)?;
    let custom = PyDict::new(py);
    for (kind, value) in &values.custom {
        custom.set_item(kind, PyBytes::new(py, value))?;
    }
    told.set_item("custom", custom)?;
    Ok(told)
}

fn pair(address: SocketAddr) -> (String, u16) {
    (address.ip().to_canonical().to_string(), address.port())
}

fn facts<'py>(py: Python<'py>, tls: &TlsFacts) -> PyResult<Bound<'py, PyDict>> {
    let facts = PyDict::new(py);
    facts.set_item("version", tls.version.as_deref())?;
    facts.set_item("cipher", tls.cipher.as_deref())?;
    facts.set_item("client_verify", verdict(tls.certificate.as_ref()))?;
    let certificate = tls.certificate.as_ref();
    facts.set_item("client_cn", certificate.and_then(|certificate| certificate.common_name.as_deref()))?;
    let whole = certificate.and_then(|certificate| certificate.whole.as_ref());
    facts.set_item("client_cert", whole.map(|der| PyBytes::new(py, der)))?;
    Ok(facts)
}
