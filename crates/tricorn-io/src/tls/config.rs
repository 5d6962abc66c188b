//! A bundle becomes rustls' configuration, or a sentence says what is wrong with it.
use super::bundle::{Bundle, ClientCertificates, Version};
use super::certificates::{Loaded, Report, Resolver, authorities_of};
use super::chains::ShortChains;
use super::key_log::KeyLogFile;
use super::tickets::{TICKETS, Tickets};
use aws_lc_rs::digest::{Context, SHA256};
use rustls::crypto::{CryptoProvider, aws_lc_rs as provider};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use std::sync::Arc;
use std::time::SystemTime;

/// Judges all of a bundle: what is told of each certificate, or what is wrong, and where.
pub fn check(bundle: &Bundle) -> Result<Vec<Report>, String> {
    let (_, reports) = build(bundle)?;
    Ok(reports)
}

/// IANA's names of the cipher suites there are.
pub fn suite_names() -> Vec<String> {
    provider::ALL_CIPHER_SUITES.iter().map(suite_name).collect()
}

fn suite_name(suite: &SupportedCipherSuite) -> String {
    // rustls calls those of TLS 1.3 TLS13_…, to keep them apart.
    let name = suite.suite().as_str().unwrap_or_default();
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

pub fn build(bundle: &Bundle) -> Result<(Arc<ServerConfig>, Vec<Report>), String> {
    let provider = Arc::new(CryptoProvider { cipher_suites: suites(bundle)?, ..provider::default_provider() });
    if bundle.certificates.is_empty() {
        return Err("there is no certificate".into());
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let loaded = bundle.certificates.iter().map(|identity| Loaded::of(identity, &provider, now));
    let loaded = loaded.collect::<Result<Vec<Loaded>, String>>()?;
    let reports = loaded.iter().map(|loaded| loaded.report.clone()).collect();
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(bundle)?)
        .map_err(|error| format!("tls_min_version and ciphers leave nothing to be spoken: {error}"))?;
    let builder = match verifier(bundle, provider)? {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(Resolver::new(loaded, bundle.require_sni)));
    config.alpn_protocols.clone_from(&bundle.alpn);
    // What one worker keeps the others do not have: sessions are resumed by tickets, or not at all.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    if let Some(tickets) = Tickets::new(&bundle.ticket_keys, bundle.ticket_lifetime, &digest_of_rules(bundle)) {
        config.ticketer = Arc::new(tickets);
        config.send_tls13_tickets = TICKETS;
    }
    if let Some(path) = &bundle.key_log {
        let file = KeyLogFile::open(path).map_err(|error| format!("tls_key_log: {}: {error}", path.display()))?;
        config.key_log = Arc::new(file);
    }
    Ok((Arc::new(config), reports))
}

fn suites(bundle: &Bundle) -> Result<Vec<SupportedCipherSuite>, String> {
    let Some(wanted) = &bundle.suites else { return Ok(provider::DEFAULT_CIPHER_SUITES.to_vec()) };
    let find = |name: &String| {
        let found = provider::ALL_CIPHER_SUITES.iter().find(|suite| suite_name(suite) == *name);
        found.copied().ok_or_else(|| format!("ciphers: {name} is none of {}", suite_names().join(", ")))
    };
    let suites = wanted.iter().map(find).collect::<Result<Vec<_>, String>>()?;
    if suites.is_empty() { Err(format!("ciphers: none of {} is left", suite_names().join(", "))) } else { Ok(suites) }
}

fn versions(bundle: &Bundle) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let wanted = bundle.min_version..=bundle.max_version;
    let all = [(Version::Tls13, &TLS13), (Version::Tls12, &TLS12)];
    let versions: Vec<_> =
        all.into_iter().filter(|(version, _)| wanted.contains(version)).map(|(_, rustls)| rustls).collect();
    if versions.is_empty() { Err("the lowest version of TLS is higher than the highest".into()) } else { Ok(versions) }
}

/// Who may issue certificates of clients, if they are asked for any.
fn verifier(bundle: &Bundle, provider: Arc<CryptoProvider>) -> Result<Option<Arc<dyn ClientCertVerifier>>, String> {
    if bundle.client_certificates == ClientCertificates::None {
        return Ok(None);
    }
    let Some(ca) = &bundle.ca else {
        return Err("certificates of clients are asked for (cert_reqs), but no CA is named (ca_certs)".into());
    };
    let mut roots = RootCertStore::empty();
    for authority in authorities_of(ca).map_err(|error| format!("ca_certs: {error}"))? {
        roots.add(authority).map_err(|error| format!("ca_certs: a certificate in it cannot be used: {error}"))?;
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if !bundle.crls.is_empty() {
        builder = builder.with_crls(crls(bundle)?).enforce_revocation_expiration();
    }
    if bundle.client_certificates == ClientCertificates::Optional {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder.build().map_err(|error| match error {
        VerifierBuilderError::InvalidCrl(error) => format!("tls_crl_file: a list cannot be used: {error:?}"),
        error => format!("ca_certs: {error}"),
    })?;
    Ok(Some(Arc::new(ShortChains(verifier))))
}

fn crls(bundle: &Bundle) -> Result<Vec<CertificateRevocationListDer<'static>>, String> {
    let mut all = Vec::new();
    for file in &bundle.crls {
        if file.first() == Some(&DER) {
            all.push(CertificateRevocationListDer::from(file.clone()));
            continue;
        }
        let before = all.len();
        for list in CertificateRevocationListDer::pem_slice_iter(file) {
            all.push(list.map_err(|error| format!("tls_crl_file: a list is no PEM: {error}"))?);
        }
        if all.len() == before {
            return Err(
                "tls_crl_file: a file has no list in it (a part that begins with -----BEGIN X509 CRL-----)".into()
            );
        }
    }
    Ok(all)
}

/// DER begins with a sequence, PEM with text.
const DER: u8 = 0x30;

/// By what clients are verified: sessions that other rules have let in are not resumed.
fn digest_of_rules(bundle: &Bundle) -> Vec<u8> {
    let rules = Bundle {
        client_certificates: bundle.client_certificates,
        ca: bundle.ca.clone(),
        crls: bundle.crls.clone(),
        require_sni: bundle.require_sni,
        min_version: bundle.min_version,
        ..Bundle::default()
    };
    let mut context = Context::new(&SHA256);
    context.update(&rules.encode());
    context.finish().as_ref().to_vec()
}
