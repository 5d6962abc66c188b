//! Version 2: a signature, two ends in binary, and typed values (section 2.2).
use super::announced::{Announced, Ends, Opening};
use super::values::{Values, wrong};
use crate::message::Refusal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// The signature, version and command, family and protocol, length of the rest.
const FIXED: usize = 16;
/// The longest rest that is waited for: several times what balancers send, a certificate included.
const LONGEST: usize = 4096;

pub fn read(bytes: &[u8]) -> Result<Opening, Box<Refusal>> {
    let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED>() else { return Ok(Opening::NeedMore) };
    let (version, command) = (fixed[12] >> 4, fixed[12] & 0x0f);
    if version != 2 {
        return Err(wrong(format!("version {version}, expected 2")));
    }
    if command > 1 {
        return Err(wrong(format!("command {command}, expected LOCAL (0) or PROXY (1)")));
    }
    let length = usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > LONGEST {
        return Err(wrong(format!("{length} bytes, expected at most {LONGEST}")));
    }
    let Some(rest) = rest.get(..length) else { return Ok(Opening::NeedMore) };
    let (ends, values) = match (command, fixed[13] >> 4, fixed[13] & 0x0f) {
        (0, _, _) | (_, 0, _) | (_, _, 0) => (Ends::Own, Values::default()), // to be passed over as they are
        (_, family, 1) => {
            let (ends, values) = ends(family, rest)?;
            (ends, Values::read(fixed, &rest[..rest.len() - values.len()], values)?)
        }
        (_, _, protocol) => return Err(wrong(format!("transport protocol {protocol}, expected a stream (1)"))),
    };
    let end = FIXED + length;
    Ok(Opening::Header(Box::new(Announced { version, ends, values, bytes: bytes[..end].into() }), end))
}

/// The two ends, and what stands behind them.
fn ends(family: u8, bytes: &[u8]) -> Result<(Ends, &[u8]), Box<Refusal>> {
    let (found, values) = match family {
        1 => internet::<4>(bytes, |ip| Ipv4Addr::from(ip).into()),
        2 => internet::<16>(bytes, |ip| Ipv6Addr::from(ip).into()),
        // Two paths of 108 bytes, which are nothing here: files of another machine.
        3 => bytes.split_at_checked(216).map(|(_, values)| (Ends::Unix, values)),
        _ => return Err(wrong(format!("address family {family}, expected INET (1), INET6 (2) or UNIX (3)"))),
    }
    .ok_or_else(|| wrong(format!("{} bytes are no two addresses of family {family}", bytes.len())))?;
    Ok((found, values))
}

/// Source, destination, and their ports.
fn internet<const N: usize>(bytes: &[u8], ip: impl Fn([u8; N]) -> IpAddr) -> Option<(Ends, &[u8])> {
    let (source, bytes) = bytes.split_first_chunk::<N>()?;
    let (destination, bytes) = bytes.split_first_chunk::<N>()?;
    let (from, bytes) = bytes.split_first_chunk()?;
    let (to, values) = bytes.split_first_chunk()?;
    let end = |address: &[u8; N], port: &[u8; 2]| SocketAddr::new(ip(*address), u16::from_be_bytes(*port));
    Some((Ends::Internet { source: end(source, from), destination: end(destination, to) }, values))
}

#[cfg(test)]
pub mod tests {
    use super::super::{Accepts, open};
    use super::*;
    use crate::message::RefusalKind;

    pub const TCP4: u8 = 0x11;
    pub const ENDS: [u8; 12] = [192, 0, 2, 7, 198, 51, 100, 1, 0xdc, 0x04, 0x01, 0xbb];

    /// A header: version and command, family and protocol, what follows.
    pub fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("a length").to_be_bytes();
        [SIGNATURE, &[command, family], &length, rest].concat()
    }

    pub fn announced(bytes: &[u8]) -> Announced {
        match open(&[bytes, b"GET / HTTP/1.1\r\n"].concat(), Accepts::V2) {
            Ok(Opening::Header(header, length)) => {
                assert_eq!((length, &*header.bytes, header.version), (bytes.len(), bytes, 2));
                *header
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn refused(bytes: &[u8]) -> String {
        let refusal = open(bytes, Accepts::Both).expect_err("a fault");
        assert_eq!((refusal.kind, refusal.status()), (RefusalKind::ProxyHeader, 400));
        refusal.detail
    }

    #[test]
    fn a_header_tells_both_ends() {
        let internet = |source: &str, destination: &str| Ends::Internet {
            source: source.parse().expect("an address"),
            destination: destination.parse().expect("an address"),
        };
        let told = announced(&header(0x21, TCP4, &ENDS));
        assert_eq!(told.ends, internet("192.0.2.7:56324", "198.51.100.1:443"));
        assert_eq!(told.values, Values::default());
        let six =
            [Ipv6Addr::LOCALHOST.octets(), "2001:db8::1".parse::<Ipv6Addr>().expect("an address").octets()].concat();
        let told = announced(&header(0x21, 0x21, &[six.as_slice(), &[0, 80, 1, 187]].concat()));
        assert_eq!(told.ends, internet("[::1]:80", "[2001:db8::1]:443"));
        assert_eq!(announced(&header(0x21, 0x31, &[b'/'; 216])).ends, Ends::Unix);
    }

    #[test]
    fn what_is_not_passed_on_has_its_own_ends() {
        // A health check; a family or a protocol that the balancer does not tell.
        for (command, family) in [(0x20, 0x00), (0x20, TCP4), (0x21, 0x00), (0x21, 0x10)] {
            for rest in [b"".as_slice(), &ENDS, b"anything"] {
                assert_eq!(announced(&header(command, family, rest)).ends, Ends::Own, "{command:x} {family:x}");
            }
        }
    }

    #[test]
    fn every_part_of_a_header_waits_for_the_rest() {
        let whole = header(0x21, TCP4, &ENDS);
        for length in 0..whole.len() {
            assert_eq!(open(&whole[..length], Accepts::Both), Ok(Opening::NeedMore), "{length}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(refused(&header(0x11, TCP4, &ENDS)), "version 1, expected 2");
        assert_eq!(refused(&header(0x22, TCP4, &ENDS)), "command 2, expected LOCAL (0) or PROXY (1)");
        assert_eq!(refused(&header(0x21, 0x12, &ENDS)), "transport protocol 2, expected a stream (1)");
        assert_eq!(refused(&header(0x21, 0x41, &ENDS)), "address family 4, expected INET (1), INET6 (2) or UNIX (3)");
        assert_eq!(refused(&header(0x21, TCP4, &ENDS[..11])), "11 bytes are no two addresses of family 1");
        assert_eq!(refused(&header(0x21, 0x31, &[0; 215])), "215 bytes are no two addresses of family 3");
        let long = [SIGNATURE, &[0x21, TCP4, 0x10, 0x01]].concat();
        assert_eq!(refused(&long), "4097 bytes, expected at most 4096", "before they have come");
    }
}
