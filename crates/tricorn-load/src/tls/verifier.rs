//! Whose certificates are taken.
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Signatures are checked in any case: it costs what it costs other clients.
#[derive(Debug)]
pub struct Verifier {
    whom: Whom,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum Whom {
    Any,
    /// Those that an authority has signed, and those that were named themselves.
    ///
    /// webpki takes no certificate of an authority for that of a server. One that signed itself, as `openssl req -x509` makes
    /// it, is both: OpenSSL trusts it if it is named, and so does this.
    Trusted {
        /// `None`: there is no authority among those that were named.
        authorities: Option<Arc<WebPkiServerVerifier>>,
        named: Vec<CertificateDer<'static>>,
    },
}

impl Verifier {
    pub fn any(provider: Arc<CryptoProvider>) -> Verifier {
        Verifier { whom: Whom::Any, provider }
    }

    pub fn trusted(
        authorities: RootCertStore,
        named: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Verifier, String> {
        let authorities = if authorities.is_empty() {
            None
        } else {
            let built = WebPkiServerVerifier::builder_with_provider(authorities.into(), Arc::clone(&provider)).build();
            Some(built.map_err(|error| error.to_string())?)
        };
        Ok(Verifier { whom: Whom::Trusted { authorities, named }, provider })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Whom::Trusted { authorities, named } = &self.whom else { return Ok(ServerCertVerified::assertion()) };
        if named.iter().any(|named| named == certificate) {
            verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        match authorities {
            Some(authorities) => authorities.verify_server_cert(certificate, between, name, ocsp, now),
            None => Err(CertificateError::UnknownIssuer.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
