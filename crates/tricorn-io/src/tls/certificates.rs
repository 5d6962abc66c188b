//! Who we are: certificates with their keys out of PEM, and which of them a client is shown.
use super::bundle::Identity;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, SignatureAlgorithm};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tricorn_proto::peer::x509::{Certificate, Key};

/// What is told of a certificate that was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub label: String,
    /// The names it is for.
    pub names: Vec<String>,
    /// In hexadecimal digits.
    pub serial: String,
    /// Seconds since 1970.
    pub not_after: i64,
    pub key: String,
    /// That it ends is not among them: the arbiter looks at `not_after` again and again.
    pub warnings: Vec<String>,
}

/// A certificate that is right, as far as can be told without its issuer.
#[derive(Debug)]
pub struct Loaded {
    own: Own,
    pub report: Report,
}

/// One of our certificates with its key.
#[derive(Debug, Clone)]
struct Own {
    key: Arc<CertifiedKey>,
    /// The certificate alone, which every connection has.
    der: Arc<[u8]>,
}

/// RSA keys of more bits make handshakes slow: one of 4096 takes five times as long as one of 2048.
const LONG: usize = 3072;

impl Loaded {
    /// `now`: seconds since 1970.
    pub fn of(identity: &Identity, provider: &CryptoProvider, now: i64) -> Result<Loaded, String> {
        let Identity { label, chain, key, ocsp } = identity;
        let chain: Vec<CertificateDer<'static>> =
            certificates_of(chain).map_err(|error| format!("{label}: {error}"))?;
        let Some(first) = chain.first() else {
            return Err(format!("{label}: there is no certificate in it (a part that begins with {CERTIFICATE})"));
        };
        let Some(certificate) = Certificate::parse(first) else {
            return Err(format!("{label}: its first certificate cannot be read"));
        };
        let (report, der) = (report(label, &certificate, now), Arc::from(first.as_ref()));
        let key = private_key(key).map_err(|error| format!("{label}: {error}"))?;
        let mut key = CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
                format!("{label}: the private key is not that of the certificate")
            }
            error => format!("{label}: the private key cannot be used: {error}"),
        })?;
        key.ocsp.clone_from(ocsp);
        Ok(Loaded { own: Own { key: Arc::new(key), der }, report })
    }
}

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

fn certificates_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("a certificate in it is no PEM: {error}"))
}

/// The certificates of CAs.
pub fn authorities_of(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = certificates_of(pem)?;
    if found.is_empty() {
        Err(format!("there is no certificate in it (a part that begins with {CERTIFICATE})"))
    } else {
        Ok(found)
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| {
        let is_encrypted = contains(pem, b"BEGIN ENCRYPTED PRIVATE KEY") || contains(pem, b"Proc-Type: 4,ENCRYPTED");
        if is_encrypted {
            "its private key is encrypted; write one that is not by: openssl pkey -in KEY -out NEW".into()
        } else {
            format!("there is no private key that can be read ({error}); expected PEM of PKCS#8, PKCS#1 or SEC1")
        }
    })
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

fn report(label: &str, certificate: &Certificate<'_>, now: i64) -> Report {
    let mut warnings = Vec::new();
    if certificate.not_before > now {
        warnings.push("it is not valid yet".into());
    }
    if let Key::Rsa(bits) = certificate.key
        && bits > LONG
    {
        warnings.push(format!("its RSA key of {bits} bits makes handshakes slow; an ECDSA key is faster"));
    }
    if certificate.names.is_empty() {
        warnings.push("it has no alternative names, without which most clients do not accept it".into());
    }
    Report {
        label: label.to_owned(),
        names: certificate.hosts(),
        serial: certificate.serial_text(),
        not_after: certificate.not_after,
        key: certificate.key.to_string(),
        warnings,
    }
}

thread_local! {
    /// What the resolver was asked in the handshake that this thread is at: rustls tells a server nothing of it afterwards.
    static ASKED: RefCell<Asked> = const { RefCell::new(Asked { name: None, own: None }) };
}

/// The name that a client asked for, and what it was shown.
#[derive(Debug, Default)]
pub struct Asked {
    pub name: Option<Box<str>>,
    /// In DER.
    pub own: Option<Arc<[u8]>>,
}

/// Takes what the resolver was asked by this thread since this was called last.
pub fn take_asked() -> Asked {
    ASKED.take()
}

/// Which certificate a client is shown.
#[derive(Debug)]
pub struct Resolver {
    all: Vec<Own>,
    /// By name, and by what follows the first label of a wildcard; ECDSA before RSA.
    exact: HashMap<String, Vec<usize>>,
    wildcards: HashMap<String, Vec<usize>>,
    require_name: bool,
}

impl Resolver {
    pub fn new(loaded: Vec<Loaded>, require_name: bool) -> Resolver {
        let (mut exact, mut wildcards): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        let mut all: Vec<Own> = Vec::new();
        for (index, Loaded { own, report }) in loaded.into_iter().enumerate() {
            for name in report.names {
                match name.strip_prefix("*.") {
                    Some(rest) => wildcards.entry(rest.to_owned()).or_default().push(index),
                    None => exact.entry(name).or_default().push(index),
                }
            }
            all.push(own);
        }
        let is_rsa =
            |index: &usize| all.get(*index).is_some_and(|own| own.key.key.algorithm() == SignatureAlgorithm::RSA);
        for found in exact.values_mut().chain(wildcards.values_mut()) {
            found.sort_by_key(is_rsa);
        }
        Resolver { all, exact, wildcards, require_name }
    }

    fn choose(&self, hello: &ClientHello<'_>) -> Option<&Own> {
        let can_sign = |own: &&Own| own.key.key.choose_scheme(hello.signature_schemes()).is_some();
        let name = hello.server_name().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let of_name = name.as_deref().and_then(|name| {
            self.exact.get(name).or_else(|| self.wildcards.get(name.split_once('.').map(|(_, rest)| rest)?))
        });
        match of_name {
            Some(found) => {
                let mut found = found.iter().filter_map(|index| self.all.get(*index));
                found.clone().find(can_sign).or_else(|| found.next())
            }
            None if self.require_name => None,
            None => self.all.iter().find(can_sign).or(self.all.first()),
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let own = self.choose(&hello);
        ASKED.set(Asked { name: hello.server_name().map(Into::into), own: own.map(|own| own.der.clone()) });
        own.map(|own| own.key.clone())
    }
}
