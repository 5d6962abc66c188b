//! What is known of a session once its handshake is over.
use rustls::{CipherSuite, HandshakeKind, ProtocolVersion};
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The number of the version on the wire: 0x0304 is TLS 1.3.
    pub version: u16,
    /// IANA's number of the cipher suite.
    pub suite: u16,
    /// The name that the client asked for.
    pub name: Option<Box<str>>,
    /// The protocol that both speak.
    pub alpn: Option<Box<[u8]>>,
    /// Our certificate in DER, for the name that the client asked for. A session that is resumed was begun with this one, or with one before it:
    /// the client is not shown it again.
    pub own: Option<Arc<[u8]>>,
    /// The client's certificate and those that lead to its issuer, in DER. It was verified.
    pub chain: Vec<Box<[u8]>>,
    pub is_resumed: bool,
}

impl Facts {
    /// As mod_ssl and Python's `ssl` name it.
    pub fn version_name(&self) -> &'static str {
        if self.version == u16::from(ProtocolVersion::TLSv1_3) { "TLSv1.3" } else { "TLSv1.2" }
    }

    /// As OpenSSL names it, and with it mod_ssl and Python's `ssl`.
    pub fn cipher(&self) -> &'static str {
        let found = CIPHERS.iter().find(|(suite, ..)| u16::from(*suite) == self.suite);
        found.map_or("", |(_, name, _)| name)
    }

    /// The bits of its key.
    pub fn cipher_bits(&self) -> u32 {
        let found = CIPHERS.iter().find(|(suite, ..)| u16::from(*suite) == self.suite);
        found.map_or(0, |(.., bits)| *bits)
    }

    pub(super) fn is_resumption(kind: Option<HandshakeKind>) -> bool {
        kind == Some(HandshakeKind::Resumed)
    }
}

const CIPHERS: [(CipherSuite, &str, u32); 9] = [
    (CipherSuite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", 256),
    (CipherSuite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", 128),
    (CipherSuite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384", 256),
    (CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256", 128),
    (CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305", 256),
];
