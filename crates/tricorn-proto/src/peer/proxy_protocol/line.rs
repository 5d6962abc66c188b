//! Version 1: a line that people can read (section 2.1).
use super::announced::{Announced, Ends, Opening};
use super::values::Values;
use crate::message::{Refusal, RefusalKind};
use std::net::{IpAddr, SocketAddr};

pub const MAGIC: &[u8] = b"PROXY ";
/// The longest line that the specification allows, with its CRLF.
const LONGEST: usize = 107;

pub fn read(bytes: &[u8]) -> Result<Opening, Box<Refusal>> {
    let window = &bytes[..bytes.len().min(LONGEST)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        return if window.len() < LONGEST { Ok(Opening::NeedMore) } else { Err(wrong(window)) };
    };
    let line = window[..end].strip_suffix(b"\r").ok_or_else(|| wrong(&window[..end]))?;
    let ends = ends(line).ok_or_else(|| wrong(line))?;
    let bytes = bytes[..=end].into();
    Ok(Opening::Header(Box::new(Announced { version: 1, ends, values: Values::default(), bytes }), end + 1))
}

#[cold]
fn wrong(line: &[u8]) -> Box<Refusal> {
    Refusal::from_bytes(RefusalKind::ProxyLine, line)
}

/// `PROXY TCP4 source destination port port`, with one space between two words; what follows UNKNOWN is not looked at.
fn ends(line: &[u8]) -> Option<Ends> {
    let line = str::from_utf8(line.strip_prefix(MAGIC)?).ok()?;
    if line == "UNKNOWN" || line.starts_with("UNKNOWN ") {
        return Some(Ends::Own);
    }
    let mut words = line.split(' ');
    let family = words.next()?;
    let mut address = || -> Option<IpAddr> {
        let word = words.next()?;
        match family {
            "TCP4" => word.parse().ok().map(IpAddr::V4),
            "TCP6" => word.parse().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, destination) = (address()?, address()?);
    let mut port = || port(words.next()?);
    let ends =
        Ends::Internet { source: SocketAddr::new(source, port()?), destination: SocketAddr::new(destination, port()?) };
    words.next().is_none().then_some(ends)
}

/// Decimal, without leading zeros.
fn port(word: &str) -> Option<u16> {
    let is_plain = word.bytes().all(|byte| byte.is_ascii_digit()) && (word == "0" || !word.starts_with('0'));
    if is_plain { word.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::super::{Accepts, open};
    use super::*;

    fn told(line: &str) -> Option<(String, usize)> {
        match open(line.as_bytes(), Accepts::Both) {
            Ok(Opening::Header(header, length)) => {
                assert_eq!(header.version, 1);
                let ends = match header.ends {
                    Ends::Internet { source, destination } => {
                        format!("{} {source} {destination}", header.ends.family())
                    }
                    _ => header.ends.family().to_owned(),
                };
                Some((ends, length))
            }
            Ok(_) => None,
            Err(refusal) => {
                assert_eq!((refusal.kind, refusal.status()), (RefusalKind::ProxyLine, 400));
                None
            }
        }
    }

    #[test]
    fn a_line_tells_both_ends() {
        let line = "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";
        assert_eq!(told(&format!("{line}GET /")), Some(("TCP4 192.0.2.7:56324 198.51.100.1:443".into(), line.len())));
        let line = "PROXY TCP6 2001:db8::7 2001:db8::1 0 65535\r\n";
        assert_eq!(told(line), Some(("TCP6 [2001:db8::7]:0 [2001:db8::1]:65535".into(), line.len())));
    }

    #[test]
    fn of_an_unknown_connection_its_own_ends_count() {
        assert_eq!(told("PROXY UNKNOWN\r\n"), Some(("UNKNOWN".into(), 15)));
        let longest = "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n";
        assert_eq!(told(longest), Some(("UNKNOWN".into(), longest.len())));
    }

    #[test]
    fn every_part_of_a_line_waits_for_the_rest() {
        let line = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";
        for length in 0..line.len() {
            assert_eq!(open(&line[..length], Accepts::V1), Ok(Opening::NeedMore), "{length}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let wrong = [
            "PROXY \r\n",
            "PROXY TCP4\r\n",
            "PROXY  TCP4 192.0.2.7 198.51.100.1 56324 443\r\n",
            "PROXY TCP5 192.0.2.7 198.51.100.1 56324 443\r\n",
            "PROXY tcp4 192.0.2.7 198.51.100.1 56324 443\r\n",
            "PROXY UNKNOWNS\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443 \r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443 1\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 056324 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 +1 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 65536 443\r\n",
            "PROXY TCP4 192.0.02.7 198.51.100.1 1 443\r\n",
            "PROXY TCP4 2001:db8::7 2001:db8::1 1 443\r\n",
            "PROXY TCP6 192.0.2.7 198.51.100.1 1 443\r\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\n",
            "PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\r\n",
        ];
        for line in wrong {
            assert_eq!(told(line), None, "{line:?}");
            assert!(open(line.as_bytes(), Accepts::V1).is_err(), "{line:?}");
        }
        assert!(open(&[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 93]].concat(), Accepts::V1).is_err(), "107 bytes, no end");
        assert_eq!(open(&[b"PROXY UNKNOWN ".as_slice(), &[b'x'; 92]].concat(), Accepts::V1), Ok(Opening::NeedMore));
    }
}
