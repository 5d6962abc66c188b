//! Why there is no session, or no more of one.
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};
use tricorn_figures::scoreboard::handshakes::Reason;

/// A handshake that failed, or a record that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    /// rustls' words.
    pub detail: String,
}

impl Failure {
    pub fn new(reason: Reason, detail: impl Into<String>) -> Failure {
        Failure { reason, detail: detail.into() }
    }

    pub(super) fn of(error: &Error) -> Failure {
        use PeerIncompatible as Wrong;
        let reason = match error {
            Error::PeerIncompatible(
                Wrong::ServerDoesNotSupportTls12Or13
                | Wrong::ServerTlsVersionIsDisabledByOurConfig
                // What TLS 1.0 does not have is missed before its version is looked at.
                | Wrong::SignatureAlgorithmsExtensionRequired
                | Wrong::SupportedVersionsExtensionRequired
                | Wrong::Tls12NotOffered
                | Wrong::Tls12NotOfferedOrEnabled,
            ) => Reason::Version,
            Error::PeerIncompatible(_) => Reason::Cipher,
            Error::NoApplicationProtocol => Reason::Protocol,
            Error::General(text) if text == NO_CERTIFICATE => Reason::Name,
            Error::NoCertificatesPresented | Error::InvalidCertificate(_) => Reason::Certificate,
            Error::AlertReceived(_) => Reason::Alert,
            Error::InvalidMessage(InvalidMessage::UnknownProtocolVersion) => Reason::Version,
            Error::InvalidMessage(_)
            | Error::InappropriateMessage { .. }
            | Error::InappropriateHandshakeMessage { .. }
            | Error::PeerMisbehaved(_)
            | Error::PeerSentOversizedRecord
            | Error::DecryptError => Reason::Garbage,
            _ => Reason::Internal,
        };
        Failure { reason, detail: explained(error) }
    }

    /// The client's certificate was looked at and not accepted.
    pub fn is_of_certificate(&self) -> bool {
        self.reason == Reason::Certificate
    }
}

/// What rustls says when the resolver has no certificate for a client.
pub(super) const NO_CERTIFICATE: &str = "no server certificate chain resolved";

fn explained(error: &Error) -> String {
    match error {
        Error::NoCertificatesPresented => "it showed no certificate".into(),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => "its certificate has an unknown issuer".into(),
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "its certificate has expired".into()
        }
        Error::InvalidCertificate(CertificateError::Revoked) => "its certificate was revoked".into(),
        Error::InvalidCertificate(CertificateError::Other(error)) => error.to_string(),
        Error::AlertReceived(AlertDescription::UnknownCA) => "it does not know who issued our certificate".into(),
        Error::General(text) if text == NO_CERTIFICATE => "it asked for no name, or for one that is unknown".into(),
        _ => error.to_string(),
    }
}
