//! What is told of the session of a client that speaks TLS with this server: made once for a connection, and kept with it.
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::os::fd::RawFd;
use tricorn_io::tls::Facts;
use tricorn_proto::peer::x509::{AltName, Certificate, pem};

/// Keys of the environ, as mod_ssl names them.
#[cold]
pub fn environ(py: Python<'_>, facts: &Facts) -> PyResult<Py<PyDict>> {
    let told = PyDict::new(py);
    let set = |key: &str, value: &str| told.set_item(key, value);
    set("HTTPS", "on")?;
    set("SSL_PROTOCOL", facts.version_name())?;
    set("SSL_CIPHER", facts.cipher())?;
    set("SSL_TLS_SNI", facts.name.as_deref().unwrap_or_default())?;
    set("SSL_SESSION_RESUMED", if facts.is_resumed { "Resumed" } else { "Initial" })?;
    if let Some(own) = &facts.own {
        set("SSL_SERVER_CERT", &pem(own))?;
    }
    let Some((client, others)) = facts.chain.split_first() else {
        set("SSL_CLIENT_VERIFY", "NONE")?;
        return Ok(told.unbind());
    };
    set("SSL_CLIENT_VERIFY", "SUCCESS")?;
    set("SSL_CLIENT_CERT", &pem(client))?;
    for (index, other) in others.iter().enumerate() {
        set(&format!("SSL_CLIENT_CERT_CHAIN_{index}"), &pem(other))?;
    }
    if let Some(certificate) = Certificate::parse(client) {
        set("SSL_CLIENT_S_DN", &wsgi(&certificate.subject.text()))?;
        set("SSL_CLIENT_S_DN_CN", &wsgi(&certificate.subject.common_name().unwrap_or_default()))?;
        set("SSL_CLIENT_I_DN", &wsgi(&certificate.issuer.text()))?;
        set("SSL_CLIENT_M_SERIAL", &certificate.serial_text())?;
        let (mut hosts, mut emails) = (0.., 0..);
        for name in &certificate.names {
            match name {
                AltName::Dns(name) => set(&format!("SSL_CLIENT_SAN_DNS_{}", hosts.next().unwrap_or(0)), name)?,
                AltName::Email(name) => set(&format!("SSL_CLIENT_SAN_Email_{}", emails.next().unwrap_or(0)), name)?,
                AltName::Address(_) => {}
            }
        }
    }
    Ok(told.unbind())
}

/// A string of an environ: each character stands for a byte (PEP 3333, "Unicode Issues").
fn wsgi(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

/// The extension `tls` of a scope (ASGI TLS extension, version 0.2).
#[cold]
pub fn extension(py: Python<'_>, facts: &Facts) -> PyResult<Py<PyDict>> {
    let told = PyDict::new(py);
    told.set_item("server_cert", facts.own.as_deref().map(pem))?;
    told.set_item("client_cert_chain", PyTuple::new(py, facts.chain.iter().map(|der| pem(der)))?)?;
    let name = facts.chain.first().and_then(|der| Certificate::parse(der)).map(|client| client.subject.text());
    told.set_item("client_cert_name", name)?;
    told.set_item("client_cert_error", py.None())?;
    told.set_item("tls_version", facts.version)?;
    told.set_item("cipher_suite", facts.suite)?;
    Ok(told.unbind())
}

/// What libraries ask for that know Python's `ssl`: version, cipher as `SSLSocket.cipher` has it, protocol, name asked for, and the client's
/// certificate in DER.
#[cold]
pub fn described<'py>(py: Python<'py>, facts: &Facts) -> PyResult<Bound<'py, PyDict>> {
    let told = PyDict::new(py);
    told.set_item("version", facts.version_name())?;
    told.set_item("cipher", (facts.cipher(), facts.version_name(), facts.cipher_bits()))?;
    told.set_item("alpn", facts.alpn.as_deref().map(String::from_utf8_lossy))?;
    told.set_item("server_name", facts.name.as_deref())?;
    told.set_item("peer_certificate", facts.chain.first().map(|der| PyBytes::new(py, der)))?;
    Ok(told)
}

/// The same for an application that takes the connection, and the names of its ends: the socket that it gets has others. `socket`: a
/// descriptor of the connection, for Python to close.
#[cold]
pub fn of_taken<'py>(py: Python<'py>, facts: &Facts, socket: RawFd) -> PyResult<Bound<'py, PyDict>> {
    let names = py.import(TAKEN_SOCKET)?.call_method1("names", (socket,))?;
    let told = described(py, facts)?;
    told.set_item("names", names)?;
    Ok(told)
}

/// Where sockets are made for Python.
pub const TAKEN_SOCKET: &str = "tricorn.gateway.taken_socket";
