//! From the plan to rustls' configuration.
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, NamedGroup, RootCertStore, SupportedCipherSuite, SupportedProtocolVersion};
use std::sync::Arc;

use crate::plan::{self, Version};
use crate::tls::tickets::Tickets;
use crate::tls::verifier::Verifier;

/// What the sessions with an origin have in common.
#[derive(Debug, Clone)]
pub struct Tls {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
}

impl Tls {
    /// `connections`: how many there may be, each of which takes a ticket. `is_http2`: HTTP/2 is offered, and nothing else.
    ///
    /// # Errors
    /// A sentence: a file cannot be read, or what was asked for does not fit together.
    pub fn new(plan: &plan::Tls, name: &str, connections: usize, is_http2: bool) -> Result<Tls, String> {
        let server = ServerName::try_from(name.to_string())
            .map_err(|_| format!("{name:?} is no name of a server: expected a host name or an IP address"))?;
        let mut provider = default_provider();
        if !plan.post_quantum {
            provider.kx_groups.retain(|group| group.name() != NamedGroup::X25519MLKEM768);
        }
        provider.cipher_suites = suites(plan, &provider.cipher_suites)?;
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(&versions(plan)?).map_err(|error| error.to_string())?.dangerous();
        let verifier = if plan.verify {
            let (authorities, named) = authorities(plan.ca_file.as_deref())?;
            Verifier::trusted(authorities, named, provider)?
        } else {
            Verifier::any(provider)
        };
        let builder = builder.with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match (&plan.cert_file, &plan.key_file) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), key) => {
                // As a rule of PEM files, the key may stand beside its certificate.
                let key_file = key.as_ref().unwrap_or(certificate);
                let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| unread(key_file, "key", &error))?;
                let made = builder.with_client_auth_cert(certificates(certificate)?, key);
                made.map_err(|error| format!("{certificate} and {key_file} are no certificate with its key: {error}"))?
            }
            (None, Some(key)) => return Err(format!("{key} is a key without a certificate: --cert FILE names it")),
        };
        config.alpn_protocols = vec![if is_http2 { HTTP2.to_vec() } else { b"http/1.1".to_vec() }];
        config.resumption =
            if plan.resumes { Resumption::store(Arc::new(Tickets::new(connections))) } else { Resumption::disabled() };
        Ok(Tls { config: Arc::new(config), name: server })
    }

    /// The same, for a connection that is not part of a run: it takes no ticket, and leaves none.
    pub fn apart(&self) -> Tls {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::disabled();
        Tls { config: Arc::new(config), name: self.name.clone() }
    }
}

/// IANA's name of a cipher suite. rustls calls those of TLS 1.3 TLS13_…, to keep them apart.
pub fn suite_name(suite: SupportedCipherSuite) -> String {
    suite.suite().as_str().unwrap_or_default().replace("TLS13_", "TLS_")
}

fn suites(plan: &plan::Tls, all: &[SupportedCipherSuite]) -> Result<Vec<SupportedCipherSuite>, String> {
    if plan.suites.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |name: &String| {
        let found = all.iter().find(|suite| suite_name(**suite) == *name);
        found.copied().ok_or_else(|| {
            let names: Vec<String> = all.iter().map(|suite| suite_name(*suite)).collect();
            format!("{name} is no cipher suite that is known here: expected {}", names.join(", "))
        })
    };
    plan.suites.iter().map(find).collect()
}

fn versions(plan: &plan::Tls) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    match (plan.min, plan.max) {
        (Version::Tls12, Version::Tls12) => Ok(vec![&TLS12]),
        (Version::Tls12, Version::Tls13) => Ok(vec![&TLS13, &TLS12]),
        (Version::Tls13, Version::Tls13) => Ok(vec![&TLS13]),
        (Version::Tls13, Version::Tls12) => Err("no version of TLS is at least 1.3 and at most 1.2".into()),
    }
}

/// Those of the file, or the system's; and the certificates of the file.
fn authorities(file: Option<&str>) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), String> {
    let mut store = RootCertStore::empty();
    let Some(file) = file else {
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = store.add_parsable_certificates(found.certs);
        return if added > 0 { Ok((store, Vec::new())) } else { Err(NO_AUTHORITIES.into()) };
    };
    let named = certificates(file)?;
    // One that is no authority can still be the server's own certificate.
    store.add_parsable_certificates(named.iter().cloned());
    Ok((store, named))
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| unread(file, "certificate", &error))?;
    if read.is_empty() { Err(unread(file, "certificate", &PemError::NoItemsFound)) } else { Ok(read) }
}

fn unread(file: &str, what: &str, error: &PemError) -> String {
    match error {
        PemError::Io(error) => format!("{file}: {}", crate::address::plain(error)),
        PemError::NoItemsFound => format!("{file} has no {what}: expected PEM, as in -----BEGIN …-----"),
        other => format!("{file} is no {what} in PEM: {other}"),
    }
}

/// The name for ALPN (RFC 9113 section 3.2).
pub const HTTP2: &[u8] = b"h2";
const NO_AUTHORITIES: &str = "this machine has no certificates of authorities (Debian: ca-certificates), so no server's \
                              certificate can be checked. Name the authority (--cacert FILE), or check none (-k)";

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(plan: plan::Tls) -> String {
        Tls::new(&plan, "localhost", 1, false).unwrap_err()
    }

    #[test]
    fn what_cannot_be_used_is_said() {
        let plan = plan::Tls::default;
        let missing = failed(plan::Tls { ca_file: Some("/nowhere/ca.pem".into()), ..plan() });
        assert_eq!(missing, "/nowhere/ca.pem: No such file or directory");
        let empty = failed(plan::Tls { ca_file: Some("/dev/null".into()), ..plan() });
        assert_eq!(empty, "/dev/null has no certificate: expected PEM, as in -----BEGIN …-----");
        let alone = plan::Tls { verify: false, key_file: Some("k.pem".into()), ..plan() };
        assert_eq!(failed(alone), "k.pem is a key without a certificate: --cert FILE names it");
        let crossed = failed(plan::Tls { verify: false, min: Version::Tls13, max: Version::Tls12, ..plan() });
        assert_eq!(crossed, "no version of TLS is at least 1.3 and at most 1.2");
        let unnamed = Tls::new(&plan::Tls { verify: false, ..plan() }, "a b", 1, false).unwrap_err();
        assert_eq!(unnamed, "\"a b\" is no name of a server: expected a host name or an IP address");
    }

    #[test]
    fn suites_are_offered_by_their_names() {
        let offered = |suites: &[&str]| {
            let suites = suites.iter().map(|name| (*name).to_string()).collect();
            let plan = plan::Tls { verify: false, suites, ..plan::Tls::default() };
            let tls = Tls::new(&plan, "localhost", 1, false)?;
            Ok::<_, String>(tls.config.crypto_provider().cipher_suites.iter().map(|suite| suite_name(*suite)).collect())
        };
        let wanted = ["TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
        assert_eq!(offered(&wanted).as_deref(), Ok(&wanted.map(String::from)[..]));
        assert_eq!(offered(&[]).map(|all: Vec<String>| all.len()), Ok(9));
        let unknown = offered(&["AES128-SHA"]).unwrap_err();
        assert!(
            unknown.starts_with("AES128-SHA is no cipher suite that is known here: expected TLS_AES_256_"),
            "{unknown}"
        );
    }

    #[test]
    fn the_post_quantum_group_can_be_left_out() {
        let groups = |post_quantum| {
            let plan = plan::Tls { verify: false, post_quantum, ..plan::Tls::default() };
            let tls = Tls::new(&plan, "localhost", 1, false).unwrap();
            tls.config.crypto_provider().kx_groups.iter().map(|group| group.name()).collect::<Vec<_>>()
        };
        assert_eq!(groups(true)[0], NamedGroup::X25519MLKEM768);
        assert_eq!(groups(false)[0], NamedGroup::X25519);
    }
}
