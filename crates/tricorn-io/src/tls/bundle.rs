//! What TLS doors need, as the arbiter has read it from files; and the same as bytes, for the page that workers share.
//!
//! The bytes are numbers of four bytes and strings with such a length before them, in the order of the fields.
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

#[derive(Clone, PartialEq, Eq)]
pub struct Bundle {
    /// The first is that of clients that ask for no name, or for an unknown one.
    pub certificates: Vec<Identity>,
    /// Who issues certificates of clients, in PEM.
    pub ca: Option<Vec<u8>>,
    /// Lists of revoked ones, in PEM or DER.
    pub crls: Vec<Vec<u8>>,
    pub client_certificates: ClientCertificates,
    pub min_version: Version,
    pub max_version: Version,
    /// IANA's names; `None`: all there are.
    pub suites: Option<Vec<String>>,
    /// What is spoken, the favourite first.
    pub alpn: Vec<Vec<u8>>,
    /// A client that asks for no name, or an unknown one, is refused.
    pub require_sni: bool,
    /// The newest first, which seals; the others open what they have sealed. None: no session is resumed.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Seconds.
    pub ticket_lifetime: u32,
    /// A file for the secrets of sessions, for tools that look into them.
    pub key_log: Option<PathBuf>,
}

/// A certificate with its key.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// What messages call it: the name of its file.
    pub label: String,
    /// PEM: the certificate, then those that lead to its issuer.
    pub chain: Vec<u8>,
    /// PEM.
    pub key: Vec<u8>,
    /// A response of the issuer's, in DER, that it is not revoked.
    pub ocsp: Option<Vec<u8>>,
}

/// Whether clients are asked for a certificate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    #[default]
    None,
    /// One that is shown must be right.
    Optional,
    Required,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    Tls12,
    Tls13,
}

impl Default for Bundle {
    fn default() -> Bundle {
        Bundle {
            certificates: Vec::new(),
            ca: None,
            crls: Vec::new(),
            client_certificates: ClientCertificates::None,
            min_version: Version::Tls12,
            max_version: Version::Tls13,
            suites: None,
            alpn: vec![b"http/1.1".to_vec()],
            require_sni: false,
            ticket_keys: Vec::new(),
            ticket_lifetime: 0,
            key_log: None,
        }
    }
}

/// Keys are not shown.
impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let labels: Vec<&str> = self.certificates.iter().map(|identity| identity.label.as_str()).collect();
        write!(f, "Bundle({labels:?})")
    }
}

const FORMAT: u32 = 1;

impl Bundle {
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = Writer(Vec::new());
        writer.number(FORMAT);
        writer.list(&self.certificates, |writer, identity| {
            writer.bytes(identity.label.as_bytes());
            writer.bytes(&identity.chain);
            writer.bytes(&identity.key);
            writer.option(identity.ocsp.as_deref());
        });
        writer.option(self.ca.as_deref());
        writer.list(&self.crls, |writer, crl| writer.bytes(crl));
        writer.number(match self.client_certificates {
            ClientCertificates::None => 0,
            ClientCertificates::Optional => 1,
            ClientCertificates::Required => 2,
        });
        for version in [self.min_version, self.max_version] {
            writer.number(u32::from(version == Version::Tls13));
        }
        writer.number(u32::from(self.suites.is_some()));
        writer.list(self.suites.as_deref().unwrap_or_default(), |writer, name| writer.bytes(name.as_bytes()));
        writer.list(&self.alpn, |writer, name| writer.bytes(name));
        writer.number(u32::from(self.require_sni));
        writer.list(&self.ticket_keys, |writer, key| writer.bytes(key));
        writer.number(self.ticket_lifetime);
        let path = self.key_log.as_ref().map(|path| path.as_os_str().as_bytes());
        writer.option(path);
        writer.0
    }

    /// `None`: another version of the program has written it, or it is torn.
    pub fn decode(bytes: &[u8]) -> Option<Bundle> {
        let mut reader = Reader(bytes);
        if reader.number()? != FORMAT {
            return None;
        }
        let identity = |reader: &mut Reader<'_>| {
            Some(Identity {
                label: reader.text()?,
                chain: reader.bytes()?,
                key: reader.bytes()?,
                ocsp: reader.option()?,
            })
        };
        let version = |reader: &mut Reader<'_>| match reader.number()? {
            0 => Some(Version::Tls12),
            1 => Some(Version::Tls13),
            _ => None,
        };
        let bundle = Bundle {
            certificates: reader.list(identity)?,
            ca: reader.option()?,
            crls: reader.list(Reader::bytes)?,
            client_certificates: match reader.number()? {
                0 => ClientCertificates::None,
                1 => ClientCertificates::Optional,
                2 => ClientCertificates::Required,
                _ => return None,
            },
            min_version: version(&mut reader)?,
            max_version: version(&mut reader)?,
            suites: {
                let is_given = reader.number()? != 0;
                Some(reader.list(Reader::text)?).filter(|_| is_given)
            },
            alpn: reader.list(Reader::bytes)?,
            require_sni: reader.number()? != 0,
            ticket_keys: reader.list(|reader| reader.bytes()?.try_into().ok())?,
            ticket_lifetime: reader.number()?,
            key_log: reader.option()?.map(|path| PathBuf::from(OsString::from_vec(path))),
        };
        reader.0.is_empty().then_some(bundle)
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// What is longer than four bytes say fits no page either.
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
    }

    fn option(&mut self, bytes: Option<&[u8]>) {
        self.number(u32::from(bytes.is_some()));
        self.bytes(bytes.unwrap_or_default());
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Writer, &T)) {
        self.number(u32::try_from(items.len()).unwrap_or(u32::MAX));
        items.iter().for_each(|item| write(self, item));
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*number))
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let length = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?).ok()
    }

    fn option(&mut self) -> Option<Option<Vec<u8>>> {
        let is_some = self.number()? != 0;
        Some(Some(self.bytes()?).filter(|_| is_some))
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.number()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bundle() -> Bundle {
        let identity =
            |label: &str, ocsp| Identity { label: label.into(), chain: b"chain".to_vec(), key: b"key".to_vec(), ocsp };
        Bundle {
            certificates: vec![identity("a.pem", None), identity("b.pem", Some(Vec::new()))],
            ca: Some(b"ca".to_vec()),
            crls: vec![b"one".to_vec(), Vec::new()],
            client_certificates: ClientCertificates::Optional,
            min_version: Version::Tls13,
            max_version: Version::Tls13,
            suites: Some(vec!["TLS13_AES_128_GCM_SHA256".into()]),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            require_sni: true,
            ticket_keys: vec![[1; 32], [2; 32]],
            ticket_lifetime: 7,
            key_log: Some("/tmp/keys".into()),
        }
    }

    #[test]
    fn a_bundle_comes_back_as_it_was() {
        for bundle in [bundle(), Bundle::default()] {
            assert!(Bundle::decode(&bundle.encode()) == Some(bundle));
        }
    }

    #[test]
    fn a_torn_one_is_refused() {
        let whole = bundle().encode();
        for length in 0..whole.len() {
            assert_eq!(Bundle::decode(&whole[..length]), None, "{length} of {}", whole.len());
        }
        assert_eq!(Bundle::decode(&[&whole[..], b"x"].concat()), None);
        assert_eq!(Bundle::decode(&[&[9], &whole[1..]].concat()), None, "another format");
    }

    #[test]
    fn keys_are_not_shown() {
        assert_eq!(format!("{:?}", bundle()), "Bundle([\"a.pem\", \"b.pem\"])");
    }
}
