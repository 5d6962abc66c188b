//! Records of TLS as bytes: where one ends, what is an alert, how many there are, and how they are made.
use rustls::unbuffered::{EncodeError, EncodeTlsData, InsufficientSizeError};
use rustls::{Error, PeerMisbehaved};
use std::io::IoSlice;

/// Most plaintext of a record.
pub const RECORD: usize = 16 * 1024;
/// Most records that are opened at a time: small ones take 0.2 µs each, and an update of the keys ten times that.
pub const TOGETHER: u32 = 128;
/// The first byte of no record.
pub const NO_TYPE: u8 = 0xff;
/// Most records without content in a row, of an application or of TLS itself; as in OpenSSL (MAX_EMPTY_RECORDS) and BoringSSL
/// (kMaxEmptyRecords, kMaxKeyUpdates).
const HOLLOW: u32 = 32;
/// A record without content may be an update of the keys: as much work as so many others.
const OWN: u32 = 8;

/// Records that were opened since the handshake.
#[derive(Debug, Default)]
pub struct Tally {
    /// Since that was asked, by the work that they are.
    opened: u32,
    /// The last of them, those without content.
    hollow: u32,
}

impl Tally {
    /// These records were opened, the last of them with so many bytes of content if there were any. An error if the peer has sent too many
    /// without: they are as much work as others. rustls counts empty records and updates of the keys, each until one of the other
    /// kind comes.
    pub fn note(&mut self, records: &[u8], content: usize) -> Result<(), Error> {
        let (count, _) = leading(records, u32::MAX);
        let empty = count.saturating_sub(u32::from(content > 0));
        self.opened = self.opened.saturating_add(count).saturating_add(empty.saturating_mul(OWN));
        let hollow = self.hollow.saturating_add(empty);
        self.hollow = if content > 0 { 0 } else { hollow };
        if hollow <= HOLLOW { Ok(()) } else { Err(PeerMisbehaved::TooManyEmptyFragments.into()) }
    }

    /// How many records were opened since this was asked the last time, by the work that they are.
    #[inline]
    pub fn take(&mut self) -> u32 {
        std::mem::take(&mut self.opened)
    }
}

/// Whether this record is an alert: by its type, or of TLS 1.3, which hides that, by its length. Applications' data is no part of what is
/// asked about.
pub fn is_alert(record: &[u8]) -> bool {
    match record.first() {
        Some(&ALERT) => true,
        Some(&APPLICATION_DATA) => record.len() == SEALED_ALERT,
        _ => false,
    }
}

const ALERT: u8 = 21;
/// A fatal alert, decode_error, in a record that is not encrypted.
pub const TOO_LONG: [u8; 7] = [ALERT, 3, 3, 0, 2, 2, 50];
const APPLICATION_DATA: u8 = 23;
/// Header, level and description, the type, tag.
const SEALED_ALERT: usize = HEADER + 2 + 1 + 16;
/// Type, version, length.
pub const HEADER: usize = 5;

/// How many whole records lie at the beginning of these bytes, and where the next one begins: of up to `most` of them, and if there are no
/// more than these, all bytes.
pub fn leading(bytes: &[u8], most: u32) -> (u32, usize) {
    let (mut count, mut at) = (0, 0);
    while let Some(&[_, _, _, high, low]) = bytes.get(at..at + HEADER) {
        let end = at + HEADER + usize::from(u16::from_be_bytes([high, low]));
        if end > bytes.len() {
            break;
        }
        if count == most {
            return (count, at);
        }
        (count, at) = (count + 1, end);
    }
    (count, bytes.len())
}

/// Has a message of TLS itself encoded.
pub fn encode(mut encoder: EncodeTlsData<'_, rustls::server::ServerConnectionData>, owed: &mut Vec<u8>) {
    let start = owed.len();
    loop {
        match encoder.encode(&mut owed[start..]) {
            Ok(_) | Err(EncodeError::AlreadyEncoded) => return,
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                owed.resize(start + required_size, 0);
            }
        }
    }
}

/// Seals the bytes of all slices, up to so many, record by record. How many bytes, and how long the records are.
pub fn seal_all(
    parts: &[IoSlice<'_>],
    most: usize,
    record: &mut Vec<u8>,
    wire: &mut [u8],
    mut encrypt: impl FnMut(&[u8], &mut [u8]) -> Result<usize, String>,
) -> Result<(usize, usize), String> {
    let (mut plain, mut sealed) = (0, 0);
    record.clear();
    for part in parts {
        let mut part = &part[..part.len().min(most - plain - record.len())];
        while !part.is_empty() {
            // A whole record is sealed from where it lies, smaller pieces are gathered.
            if record.is_empty() && part.len() >= RECORD {
                let (whole, rest) = part.split_at(RECORD);
                sealed += encrypt(whole, &mut wire[sealed..])?;
                (plain, part) = (plain + RECORD, rest);
                continue;
            }
            let (piece, rest) = part.split_at(part.len().min(RECORD - record.len()));
            record.extend_from_slice(piece);
            part = rest;
            if record.len() == RECORD {
                sealed += encrypt(record, &mut wire[sealed..])?;
                plain += RECORD;
                record.clear();
            }
        }
    }
    if !record.is_empty() {
        sealed += encrypt(record, &mut wire[sealed..])?;
        plain += record.len();
        record.clear();
    }
    Ok((plain, sealed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lengths: &[u16]) -> Vec<u8> {
        let record = |length: &u16| [&[23, 3, 3][..], &length.to_be_bytes(), &vec![0; usize::from(*length)]].concat();
        lengths.iter().flat_map(record).collect()
    }

    #[test]
    fn whole_records_are_found_up_to_so_many() {
        let bytes = records(&[3, 0, 500, 17]);
        assert_eq!(leading(&bytes, 9), (4, bytes.len()));
        assert_eq!(leading(&bytes, 2), (2, 8 + 5));
        assert_eq!(
            leading(&bytes[..bytes.len() - 1], 9),
            (3, bytes.len() - 1),
            "what is no record yet goes with the others"
        );
        assert_eq!(leading(&bytes[..bytes.len() - 1], 3), (3, bytes.len() - 1));
        assert_eq!(leading(&[23, 3, 3, 0], 9), (0, 4));
    }

    #[test]
    fn records_without_content_may_follow_one_another_for_a_while() {
        let mut tally = Tally::default();
        let empty = records(&[17]);
        for _ in 0..3 {
            for _ in 0..HOLLOW {
                assert!(tally.note(&empty, 0).is_ok());
            }
            assert!(tally.note(&empty, 1).is_ok(), "one with content");
        }
        for _ in 0..HOLLOW {
            assert!(tally.note(&empty, 0).is_ok());
        }
        assert!(tally.note(&records(&[17, 18]), 1).is_err(), "one more, before the content");
        assert_eq!(tally.take(), 4 * HOLLOW * (1 + OWN) + 3 + (2 + OWN));
        assert_eq!(tally.take(), 0);
    }
}
