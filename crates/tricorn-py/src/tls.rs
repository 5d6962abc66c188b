//! Certificates, for the arbiter: they are judged, and put where all workers find them. No thread is started.
use crate::doors::page_over;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use tricorn_io::tls::{self, Bundle, ClientCertificates, Identity, Report, TLS_PAGE_BYTES, Version};

/// The size of the page of certificates, keys and lists.
#[pyfunction]
pub fn tls_page_bytes() -> usize {
    TLS_PAGE_BYTES
}

/// IANA's names of the cipher suites there are.
#[pyfunction]
pub fn suite_names() -> Vec<String> {
    tls::suite_names()
}

/// Judges a bundle: what is told of each certificate. Raises `ValueError` with a sentence for what is wrong.
#[pyfunction]
pub fn check_tls<'py>(bundle: &Bound<'py, PyDict>) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let py = bundle.py();
    let reports = tls::check(&read(bundle)?).map_err(PyValueError::new_err)?;
    let told = |Report { label, names, serial, not_after, key, warnings }: Report| {
        let told = PyDict::new(py);
        told.set_item("label", label)?;
        told.set_item("names", names)?;
        told.set_item("serial", serial)?;
        told.set_item("not_after", not_after)?;
        told.set_item("key", key)?;
        told.set_item("warnings", warnings)?;
        Ok(told)
    };
    reports.into_iter().map(told).collect()
}

/// Judges a bundle, and puts it into the page. On `ValueError` the page is as before.
#[pyfunction]
pub fn publish_tls(page: PyBuffer<u8>, bundle: &Bound<'_, PyDict>) -> PyResult<()> {
    tls::publish(&page_over(&page)?, &read(bundle)?).map_err(PyValueError::new_err)
}

fn read(bundle: &Bound<'_, PyDict>) -> PyResult<Bundle> {
    let identity = |(label, chain, key, ocsp)| Identity { label, chain, key, ocsp };
    Ok(Bundle {
        certificates: get::<Vec<_>>(bundle, "certificates")?.into_iter().map(identity).collect(),
        ca: get(bundle, "ca")?,
        crls: get(bundle, "crls")?,
        client_certificates: match get::<String>(bundle, "client_certificates")?.as_str() {
            "none" => ClientCertificates::None,
            "optional" => ClientCertificates::Optional,
            "required" => ClientCertificates::Required,
            other => return Err(PyValueError::new_err(format!("bundle: client_certificates: {other}"))),
        },
        min_version: version(bundle, "min_version")?,
        max_version: version(bundle, "max_version")?,
        suites: get(bundle, "suites")?,
        alpn: get::<Vec<String>>(bundle, "alpn")?.into_iter().map(String::into_bytes).collect(),
        require_sni: get(bundle, "require_sni")?,
        ticket_keys: get(bundle, "ticket_keys")?,
        ticket_lifetime: get(bundle, "ticket_lifetime")?,
        key_log: get::<Option<PathBuf>>(bundle, "key_log")?,
    })
}

fn version(bundle: &Bound<'_, PyDict>, name: &str) -> PyResult<Version> {
    match get::<String>(bundle, name)?.as_str() {
        "1.2" => Ok(Version::Tls12),
        "1.3" => Ok(Version::Tls13),
        other => Err(PyValueError::new_err(format!("bundle: {name}: {other}"))),
    }
}

fn get<'py, T: for<'x> FromPyObject<'x, 'py, Error = PyErr>>(bundle: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = bundle.get_item(name)?.ok_or_else(|| PyKeyError::new_err(format!("bundle: {name}")))?;
    value.extract().map_err(|error| PyValueError::new_err(format!("bundle: {name}: {error}")))
}
