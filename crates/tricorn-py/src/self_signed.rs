//! Self-signed certificates, for `tricorn dev-cert` and for measurements over TLS.
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, Error, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 24 * 60 * 60;

/// Returns a server certificate for these names and addresses, and its private key (PKCS #8), both PEM.
///
/// `key` is `ecdsa` (P-256) or `rsa` (2048 bits). Raises `ValueError` for a name that no certificate can have. The GIL is
/// released meanwhile: an RSA key takes tens of milliseconds.
#[pyfunction]
pub fn self_signed(py: Python<'_>, names: Vec<String>, days: u32, key: &str) -> PyResult<(String, String)> {
    let rsa = match key {
        "ecdsa" => false,
        "rsa" => true,
        other => return Err(PyValueError::new_err(format!("a key is ecdsa or rsa, not {other}"))),
    };
    py.detach(|| make(names, days, rsa)).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn make(names: Vec<String>, days: u32, rsa: bool) -> Result<(String, String), Error> {
    let key = match rsa {
        true => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?,
        false => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?,
    };
    let common_name = names.first().cloned().unwrap_or_default();
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = date_time_ymd(1970, 1, 1) + since_epoch;
    params.not_after = params.not_before + Duration::from_secs(u64::from(days) * DAY);
    // Explicit, since clients that check by the book refuse a leaf that may be an issuer (RFC 5280, section 4.2.1.9).
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}
