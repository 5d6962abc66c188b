//! Most certificates of a client's chain: each costs a verification, and trying how they hang together.
//!
//! Their bytes are bounded by rustls, which takes no message of a handshake that is longer than 64 KiB.
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// Public hierarchies have three or four. OpenSSL's own limit is 100 (`SSL_CTX_set_verify_depth(3)`).
const MOST: usize = 10;

/// A verifier that looks at no chain which is too long.
#[derive(Debug)]
pub struct ShortChains(pub Arc<dyn ClientCertVerifier>);

/// The client has shown so many certificates.
#[derive(Debug)]
struct TooMany(usize);

impl Display for TooMany {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "its chain has {} certificates, more than {MOST}", self.0)
    }
}

impl std::error::Error for TooMany {}

impl ClientCertVerifier for ShortChains {
    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let count = others.len() + 1;
        if count > MOST {
            return Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(TooMany(count))))));
        }
        self.0.verify_client_cert(own, others, now)
    }

    fn offer_client_auth(&self) -> bool {
        self.0.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.0.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        self.0.requires_raw_public_keys()
    }
}
