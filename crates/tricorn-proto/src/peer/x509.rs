//! Certificates (RFC 5280), as far as a server tells of them: names, serial number, dates, key. Nothing is verified here.
//!
//! What is no certificate is `None`: a library for TLS has judged before those that are used.
use std::fmt::Write as _;
use std::net::IpAddr;

/// What is told of a certificate; it points into its DER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate<'c> {
    /// Big-endian, without a leading zero.
    pub serial: &'c [u8],
    pub issuer: Name<'c>,
    pub subject: Name<'c>,
    /// Seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    pub key: Key,
    /// Subject alternative names, in their order; those of other kinds are left out.
    pub names: Vec<AltName<'c>>,
}

/// A certificate as PEM (RFC 7468).
pub fn pem(der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(der.len() * 4 / 3 + der.len() / 48 + 64);
    text.push_str("-----BEGIN CERTIFICATE-----\n");
    for line in der.chunks(48) {
        for group in line.chunks(3) {
            let bits = group.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
            for digit in 0..4 {
                let index = (bits >> (18 - 6 * digit)) as usize & 63;
                text.push(if digit <= group.len() { char::from(DIGITS[index]) } else { '=' });
            }
        }
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// The kind of a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// Of so many bits.
    Rsa(usize),
    /// On the curve of this name.
    Ec(&'static str),
    Ed25519,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AltName<'c> {
    Dns(&'c str),
    Email(&'c str),
    Address(IpAddr),
}

/// A distinguished name: the contents of its DER.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Name<'c>(&'c [u8]);

impl<'c> Certificate<'c> {
    pub fn parse(der: &'c [u8]) -> Option<Certificate<'c>> {
        let mut outer = Reader(der).enter(SEQUENCE)?;
        let mut body = outer.enter(SEQUENCE)?;
        body.skip_if(EXPLICIT_0); // version
        let serial = strip_zeros(body.take(INTEGER)?);
        body.take(SEQUENCE)?; // algorithm of the signature
        let issuer = Name(body.take(SEQUENCE)?);
        let mut validity = body.enter(SEQUENCE)?;
        let (not_before, not_after) = (validity.time()?, validity.time()?);
        let subject = Name(body.take(SEQUENCE)?);
        let key = public_key(body.enter(SEQUENCE)?)?;
        body.skip_if(IMPLICIT_1); // unique identifiers
        body.skip_if(IMPLICIT_2);
        let names = match body.enter(EXPLICIT_3) {
            Some(mut extensions) => alternative_names(extensions.enter(SEQUENCE)?)?,
            None => Vec::new(),
        };
        Some(Certificate { serial, issuer, subject, not_before, not_after, key, names })
    }

    /// The serial number in hexadecimal digits.
    pub fn serial_text(&self) -> String {
        hex(self.serial)
    }

    /// The names of hosts that it is for: alternative names, or else the common name.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = (self.names.iter())
            .filter_map(|name| match name {
                AltName::Dns(name) => Some(name.to_ascii_lowercase()),
                AltName::Address(address) => Some(address.to_string()),
                AltName::Email(_) => None,
            })
            .collect();
        if self.names.is_empty() {
            hosts.extend(self.subject.common_name().map(|name| name.to_ascii_lowercase()));
        }
        hosts
    }
}

/// As operators know keys: `RSA 2048`, `ECDSA P-256`.
impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Rsa(bits) => write!(f, "RSA {bits}"),
            Key::Ec(curve) => write!(f, "ECDSA {curve}"),
            Key::Ed25519 => f.write_str("Ed25519"),
            Key::Other => f.write_str("unknown"),
        }
    }
}

impl<'c> Name<'c> {
    /// The name as a string (RFC 4514): the most specific part first.
    pub fn text(&self) -> String {
        let mut parts: Vec<String> = self.relative_names().map(relative_name).collect();
        parts.reverse();
        parts.join(",")
    }

    /// The last common name.
    pub fn common_name(&self) -> Option<String> {
        let attributes = self.relative_names().flat_map(attributes);
        let found = attributes.filter(|(oid, _)| *oid == COMMON_NAME).last();
        found.and_then(|(_, value)| value.text())
    }

    fn relative_names(&self) -> impl Iterator<Item = &'c [u8]> + use<'c> {
        let mut rest = Reader(self.0);
        std::iter::from_fn(move || rest.take(SET))
    }
}

/// The attributes of one part of a name.
fn attributes(set: &[u8]) -> impl Iterator<Item = (&[u8], Value<'_>)> {
    let mut rest = Reader(set);
    std::iter::from_fn(move || {
        let mut attribute = rest.enter(SEQUENCE)?;
        let oid = attribute.take(OID)?;
        let whole = attribute.0;
        let (tag, bytes) = attribute.next()?;
        Some((oid, Value { tag, bytes, whole }))
    })
}

fn relative_name(set: &[u8]) -> String {
    let attribute = |(oid, value): (&[u8], Value<'_>)| {
        let known = ATTRIBUTES.iter().find(|(known, _)| *known == oid).map(|(_, name)| *name);
        match (known, value.text()) {
            (Some(name), Some(text)) => format!("{name}={}", escaped(&text)),
            // RFC 4514 section 2.4: what has no known form is told as its DER.
            (name, _) => format!("{}=#{}", name.map_or_else(|| dotted(oid), str::to_owned), hex(value.whole)),
        }
    };
    let mut parts: Vec<String> = attributes(set).map(attribute).collect();
    parts.reverse();
    parts.join("+")
}

struct Value<'c> {
    tag: u8,
    bytes: &'c [u8],
    /// With tag and length.
    whole: &'c [u8],
}

impl Value<'_> {
    /// `None`: it is no text.
    fn text(&self) -> Option<String> {
        match self.tag {
            UTF8 => std::str::from_utf8(self.bytes).ok().map(str::to_owned),
            PRINTABLE | IA5 | NUMERIC | VISIBLE => {
                self.bytes.is_ascii().then(|| self.bytes.iter().map(|byte| char::from(*byte)).collect())
            }
            TELETEX => Some(self.bytes.iter().map(|byte| char::from(*byte)).collect()),
            BMP => {
                let units = self.bytes.chunks(2).map(|unit| Some(u16::from_be_bytes(unit.try_into().ok()?)));
                String::from_utf16(&units.collect::<Option<Vec<_>>>()?).ok()
            }
            _ => None,
        }
    }
}

/// RFC 4514 section 2.4.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let last = text.chars().count().saturating_sub(1);
    for (index, letter) in text.chars().enumerate() {
        match letter {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => out.extend(['\\', letter]),
            '#' if index == 0 => out.push_str("\\#"),
            ' ' if index == 0 || index == last => out.push_str("\\ "),
            '\0'..='\x1f' | '\x7f' => {
                let _ = write!(out, "\\{:02X}", letter as u32);
            }
            _ => out.push(letter),
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn dotted(oid: &[u8]) -> String {
    let mut arcs: Vec<u64> = Vec::new();
    let mut arc: u64 = 0;
    for byte in oid {
        arc = arc.wrapping_shl(7) | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if arcs.is_empty() {
                let first = (arc / 40).min(2);
                arcs.push(first);
                arc -= first * 40;
            }
            arcs.push(std::mem::take(&mut arc));
        }
    }
    arcs.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

fn strip_zeros(mut bytes: &[u8]) -> &[u8] {
    while let [0, rest @ ..] = bytes
        && !rest.is_empty()
    {
        bytes = rest;
    }
    bytes
}

fn public_key(mut info: Reader<'_>) -> Option<Key> {
    let mut algorithm = info.enter(SEQUENCE)?;
    let oid = algorithm.take(OID)?;
    // The first byte of a bit string says how many of its last bits are unused.
    let bits = info.take(BIT_STRING)?.get(1..)?;
    Some(match oid {
        RSA => {
            let modulus = strip_zeros(Reader(bits).enter(SEQUENCE)?.take(INTEGER)?);
            let unused = modulus.first().map_or(0, |first| first.leading_zeros() as usize);
            Key::Rsa(modulus.len() * 8 - unused)
        }
        EC => {
            let curve = algorithm.take(OID);
            let named = CURVES.iter().find(|(oid, _)| Some(*oid) == curve);
            named.map_or(Key::Other, |(_, name)| Key::Ec(name))
        }
        ED25519 => Key::Ed25519,
        _ => Key::Other,
    })
}

/// Those of the kinds that are told.
fn alternative_names(mut extensions: Reader<'_>) -> Option<Vec<AltName<'_>>> {
    while let Some(mut extension) = extensions.enter(SEQUENCE) {
        if extension.take(OID)? != SUBJECT_ALT_NAME {
            continue;
        }
        extension.skip_if(BOOLEAN); // critical
        let mut names = Reader(extension.take(OCTET_STRING)?).enter(SEQUENCE)?;
        let mut found = Vec::new();
        while !names.0.is_empty() {
            let (tag, bytes) = names.next()?;
            let text = || std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
            let name = match tag {
                SAN_EMAIL => text().map(AltName::Email),
                SAN_DNS => text().map(AltName::Dns),
                SAN_ADDRESS => address(bytes).map(AltName::Address),
                _ => None,
            };
            found.extend(name);
        }
        return Some(found);
    }
    Some(Vec::new())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// DER values, one behind another.
#[derive(Clone, Copy)]
struct Reader<'c>(&'c [u8]);

impl<'c> Reader<'c> {
    /// Tag and contents of the next one.
    fn next(&mut self) -> Option<(u8, &'c [u8])> {
        let (tag, rest) = self.0.split_first()?;
        let (first, rest) = rest.split_first()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            // X.690 section 10.1: the length in the fewest bytes; four are more than any certificate has.
            0x81..=0x84 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (contents, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((*tag, contents))
    }

    /// Contents of the next one, if it has this tag.
    fn take(&mut self, tag: u8) -> Option<&'c [u8]> {
        if self.0.first() == Some(&tag) { self.next().map(|(_, contents)| contents) } else { None }
    }

    fn enter(&mut self, tag: u8) -> Option<Reader<'c>> {
        self.take(tag).map(Reader)
    }

    fn skip_if(&mut self, tag: u8) {
        self.take(tag);
    }

    /// A point in time, in seconds since 1970.
    fn time(&mut self) -> Option<i64> {
        let (tag, text) = self.next()?;
        let digits = text.strip_suffix(b"Z")?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let number = |digits: &[u8]| digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        let (year, rest) = match (tag, digits.len()) {
            // RFC 5280 section 4.1.2.5.1: two digits stand for 1950 to 2049.
            (UTC_TIME, 12) => {
                let year = number(&digits[..2]);
                (year + if year < 50 { 2000 } else { 1900 }, &digits[2..])
            }
            (GENERALIZED_TIME, 14) => (number(&digits[..4]), &digits[4..]),
            _ => return None,
        };
        let part = |index: usize| number(&rest[index * 2..index * 2 + 2]);
        let days = days_of(year, part(0), part(1))?;
        Some(((days * 24 + part(2)) * 60 + part(3)) * 60 + part(4))
    }
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin with March have their leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, month) = (year.div_euclid(400), (month + 9) % 12);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const UTF8: u8 = 0x0c;
const NUMERIC: u8 = 0x12;
const PRINTABLE: u8 = 0x13;
const TELETEX: u8 = 0x14;
const IA5: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VISIBLE: u8 = 0x1a;
const BMP: u8 = 0x1e;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const IMPLICIT_1: u8 = 0x81;
const IMPLICIT_2: u8 = 0x82;
const EXPLICIT_0: u8 = 0xa0;
const EXPLICIT_3: u8 = 0xa3;
const SAN_EMAIL: u8 = 0x81;
const SAN_DNS: u8 = 0x82;
const SAN_ADDRESS: u8 = 0x87;

const SUBJECT_ALT_NAME: &[u8] = b"\x55\x1d\x11";
const COMMON_NAME: &[u8] = b"\x55\x04\x03";
const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
const EC: &[u8] = b"\x2a\x86\x48\xce\x3d\x02\x01";
const ED25519: &[u8] = b"\x2b\x65\x70";

const CURVES: [(&[u8], &str); 3] = [
    (b"\x2a\x86\x48\xce\x3d\x03\x01\x07", "P-256"),
    (b"\x2b\x81\x04\x00\x22", "P-384"),
    (b"\x2b\x81\x04\x00\x23", "P-521"),
];

/// The names of attributes (RFC 4514 section 3), and those that OpenSSL has besides.
const ATTRIBUTES: [(&[u8], &str); 14] = [
    (COMMON_NAME, "CN"),
    (b"\x55\x04\x04", "SN"),
    (b"\x55\x04\x05", "serialNumber"),
    (b"\x55\x04\x06", "C"),
    (b"\x55\x04\x07", "L"),
    (b"\x55\x04\x08", "ST"),
    (b"\x55\x04\x09", "STREET"),
    (b"\x55\x04\x0a", "O"),
    (b"\x55\x04\x0b", "OU"),
    (b"\x55\x04\x0c", "title"),
    (b"\x55\x04\x2a", "GN"),
    (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x19", "DC"),
    (b"\x09\x92\x26\x89\x93\xf2\x2c\x64\x01\x01", "UID"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", "emailAddress"),
];

#[cfg(test)]
#[path = "x509_tests.rs"]
mod tests;
