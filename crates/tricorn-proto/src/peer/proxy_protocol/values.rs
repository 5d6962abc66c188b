//! The typed values of version 2 (sections 2.2.1 to 2.2.8).
use super::crc32c;
use crate::message::{Refusal, RefusalKind};

/// What a balancer tells beside the addresses. A type that is not known is passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Values {
    /// The protocol that was agreed upon (ALPN).
    pub alpn: Option<Vec<u8>>,
    /// The name that the client asked for (SNI).
    pub authority: Option<String>,
    pub unique_id: Option<Vec<u8>>,
    /// The client spoke TLS with the balancer.
    pub tls: Option<TlsFacts>,
    /// Values of types that are free for any use (0xE0 to 0xEF).
    pub custom: Vec<(u8, Vec<u8>)>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// As OpenSSL names it: `TLSv1.3`.
    pub version: Option<String>,
    pub cipher: Option<String>,
    /// The client's certificate, if it has shown one on this connection or in the session before.
    pub certificate: Option<Certificate>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// The balancer has verified it.
    pub is_verified: bool,
    pub common_name: Option<String>,
    /// DER.
    pub whole: Option<Vec<u8>>,
}

const ALPN: u8 = 0x01;
const AUTHORITY: u8 = 0x02;
const CRC32C: u8 = 0x03;
const UNIQUE_ID: u8 = 0x05;
const SSL: u8 = 0x20;
const SSL_VERSION: u8 = 0x21;
const SSL_CN: u8 = 0x22;
const SSL_CIPHER: u8 = 0x23;
const SSL_CLIENT_CERT: u8 = 0x28;
const CUSTOM: std::ops::RangeInclusive<u8> = 0xe0..=0xef;

/// Bits of the first byte of SSL.
const CLIENT_SSL: u8 = 1;
const CLIENT_CERT_CONN: u8 = 2;
const CLIENT_CERT_SESS: u8 = 4;

const LONGEST_ID: usize = 128;

impl Values {
    /// `fixed` and `ends`: what stands before them, for the checksum.
    pub(super) fn read(fixed: &[u8], ends: &[u8], bytes: &[u8]) -> Result<Values, Box<Refusal>> {
        let mut values = Values::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let (kind, value);
            (kind, value, rest) = next(rest)?;
            match kind {
                ALPN => values.alpn = Some(value.to_vec()),
                AUTHORITY => values.authority = Some(text(value, "the authority")?),
                UNIQUE_ID if value.len() > LONGEST_ID => {
                    return Err(wrong(format!("a unique id of {} bytes, expected at most {LONGEST_ID}", value.len())));
                }
                // HAProxy sends an empty one where its configuration makes none.
                UNIQUE_ID => values.unique_id = (!value.is_empty()).then(|| value.to_vec()),
                SSL => values.tls = tls(value)?,
                CRC32C => check([fixed, ends, &bytes[..at + 3], &[0; 4], rest], value)?,
                kind if CUSTOM.contains(&kind) => values.custom.push((kind, value.to_vec())),
                _ => {}
            }
        }
        Ok(values)
    }
}

#[cold]
pub(super) fn wrong(what: impl Into<String>) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::ProxyHeader, what))
}

/// A type, its value, and what follows.
type Cut<'b> = (u8, &'b [u8], &'b [u8]);

fn next(bytes: &[u8]) -> Result<Cut<'_>, Box<Refusal>> {
    let cut = || wrong("its last value is cut off");
    let ([kind, high, low], rest) = bytes.split_first_chunk::<3>().ok_or_else(cut)?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([*high, *low]))).ok_or_else(cut)?;
    Ok((*kind, value, rest))
}

/// The sum is over the whole header, with zeros in its own place.
fn check(pieces: [&[u8]; 5], sum: &[u8]) -> Result<(), Box<Refusal>> {
    if sum == crc32c::of(&pieces).to_be_bytes() { Ok(()) } else { Err(wrong("its checksum is another one")) }
}

fn text(value: &[u8], what: &str) -> Result<String, Box<Refusal>> {
    let is_plain = |text: &&str| !text.chars().any(char::is_control);
    let text = str::from_utf8(value).ok().filter(is_plain);
    text.map(str::to_owned).ok_or_else(|| wrong(format!("{what} is no text")))
}

fn tls(value: &[u8]) -> Result<Option<TlsFacts>, Box<Refusal>> {
    let Some(([client, verify @ ..], mut rest)) = value.split_first_chunk::<5>() else {
        return Err(wrong("the values of TLS are cut off"));
    };
    let mut facts = TlsFacts::default();
    let mut certificate = Certificate { is_verified: verify.iter().all(|byte| *byte == 0), ..Certificate::default() };
    while !rest.is_empty() {
        let (kind, value);
        (kind, value, rest) = next(rest)?;
        match kind {
            SSL_VERSION => facts.version = Some(text(value, "the version of TLS")?),
            SSL_CIPHER => facts.cipher = Some(text(value, "the cipher")?),
            SSL_CN => certificate.common_name = Some(text(value, "the common name")?),
            SSL_CLIENT_CERT => certificate.whole = Some(value.to_vec()),
            _ => {}
        }
    }
    facts.certificate = (client & (CLIENT_CERT_CONN | CLIENT_CERT_SESS) != 0).then_some(certificate);
    Ok((client & CLIENT_SSL != 0).then_some(facts))
}

#[cfg(test)]
mod tests {
    use super::super::binary::tests::{ENDS, TCP4, announced, header, refused};
    use super::*;

    fn value(kind: u8, bytes: &[u8]) -> Vec<u8> {
        [&[kind], (bytes.len() as u16).to_be_bytes().as_slice(), bytes].concat()
    }

    fn with(values: &[Vec<u8>]) -> Vec<u8> {
        header(0x21, TCP4, &[ENDS.as_slice(), &values.concat()].concat())
    }

    #[test]
    fn values_that_are_known_are_kept() {
        let told = announced(&with(&[
            value(AUTHORITY, b"example.org"),
            value(0x04, &[0; 5]), // NOOP
            value(UNIQUE_ID, b"\0\xff1"),
            value(ALPN, b"http/1.1"),
            value(0xe3, b"ours"),
            value(0x30, b"netns"),
        ]))
        .values;
        assert_eq!(told.authority.as_deref(), Some("example.org"));
        assert_eq!(told.unique_id.as_deref(), Some(b"\0\xff1".as_slice()));
        assert_eq!(told.alpn.as_deref(), Some(b"http/1.1".as_slice()));
        assert_eq!((told.custom, told.tls), (vec![(0xe3, b"ours".to_vec())], None));
        assert_eq!(announced(&with(&[value(UNIQUE_ID, b"")])).values.unique_id, None);
    }

    #[test]
    fn facts_of_tls_and_of_the_clients_certificate() {
        let ssl = |client: u8, verify: u8, values: &[Vec<u8>]| {
            let bytes = [&[client, 0, 0, 0, verify], values.concat().as_slice()].concat();
            announced(&with(&[value(SSL, &bytes)])).values.tls
        };
        let named =
            [value(SSL_VERSION, b"TLSv1.3"), value(SSL_CIPHER, b"TLS_AES_128_GCM_SHA256"), value(SSL_CN, b"joe")];
        let facts = ssl(CLIENT_SSL | CLIENT_CERT_CONN, 0, &named).expect("TLS");
        assert_eq!(facts.version.as_deref(), Some("TLSv1.3"));
        assert_eq!(facts.cipher.as_deref(), Some("TLS_AES_128_GCM_SHA256"));
        let certificate = facts.certificate.expect("a certificate");
        assert_eq!((certificate.is_verified, certificate.common_name.as_deref()), (true, Some("joe")));
        let failed = ssl(CLIENT_SSL | CLIENT_CERT_SESS, 18, &[value(SSL_CLIENT_CERT, b"\x30\x82")]).expect("TLS");
        let certificate = failed.certificate.expect("a certificate");
        assert_eq!((certificate.is_verified, certificate.whole.as_deref()), (false, Some(b"\x30\x82".as_slice())));
        assert_eq!(ssl(CLIENT_SSL, 0, &[]), Some(TlsFacts::default()));
        assert_eq!(ssl(0, 0, &named), None, "the client spoke no TLS");
    }

    #[test]
    fn a_checksum_is_checked_wherever_it_stands() {
        let sealed = |sum: u32| with(&[value(ALPN, b"h2"), value(CRC32C, &sum.to_be_bytes()), value(0x04, b"")]);
        let right = crc32c::of(&[&sealed(0)]);
        assert!(announced(&sealed(right)).values.alpn.is_some());
        assert_eq!(refused(&sealed(right ^ 1)), "its checksum is another one");
        assert_eq!(refused(&with(&[value(CRC32C, b"abc")])), "its checksum is another one");
    }

    #[test]
    fn values_that_are_cut_off_or_no_text_are_refused() {
        for bytes in [b"\x02".as_slice(), b"\x02\0", b"\x02\0\x04abc"] {
            assert_eq!(refused(&with(&[bytes.to_vec()])), "its last value is cut off");
        }
        assert_eq!(refused(&with(&[value(SSL, &[1, 0, 0, 0])])), "the values of TLS are cut off");
        assert_eq!(refused(&with(&[value(SSL, &[1, 0, 0, 0, 0, SSL_CN, 0, 9])])), "its last value is cut off");
        assert_eq!(refused(&with(&[value(AUTHORITY, b"\xff")])), "the authority is no text");
        assert_eq!(refused(&with(&[value(AUTHORITY, b"a\r\nb")])), "the authority is no text");
        assert_eq!(refused(&with(&[value(UNIQUE_ID, &[0; 129])])), "a unique id of 129 bytes, expected at most 128");
    }
}
