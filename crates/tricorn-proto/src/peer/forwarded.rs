//! The client that a front end tells of in X-Forwarded-For.
use super::Trust;
use crate::message::RequestHead;
use crate::message::grammar::decimal;
use std::net::IpAddr;

/// A client as a front end names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forwarded<'a> {
    /// An address without brackets, or what stands for one (RFC 7239 section 6.3 has made-up names).
    pub name: &'a [u8],
    /// 0: it says none.
    pub port: u16,
}

/// Who asked, as a trusted front end tells: the last address in X-Forwarded-For that is not a front end's own, or the first
/// of all if they all are. `None`: it says nothing.
///
/// To be asked only for requests of trusted peers.
pub fn client_of<'a>(head: &RequestHead, bytes: &'a [u8], trust: &Trust) -> Option<Forwarded<'a>> {
    let fields = head.fields.iter().rev().filter(|field| {
        let name = field.name.of(bytes);
        name.len() == NAME.len() && name.eq_ignore_ascii_case(NAME)
    });
    let mut first = None;
    for value in fields.map(|field| field.value.of(bytes)) {
        for node in value.rsplit(|byte| *byte == b',').map(|part| node_of(part.trim_ascii())) {
            if node.name.is_empty() {
                continue;
            }
            first = Some(node);
            let address = std::str::from_utf8(node.name).ok().and_then(|text| text.parse::<IpAddr>().ok());
            if !address.is_some_and(|address| trust.allows(Some(address))) {
                return first;
            }
        }
    }
    first
}

const NAME: &[u8] = b"x-forwarded-for";

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn node_of(text: &[u8]) -> Forwarded<'_> {
    let (name, rest) = if let Some(inner) = text.strip_prefix(b"[")
        && let Some(end) = memchr::memchr(b']', inner)
    {
        (&inner[..end], &inner[end + 1..])
    } else {
        match memchr::memchr(b':', text) {
            Some(colon) if memchr::memrchr(b':', text) == Some(colon) => text.split_at(colon),
            _ => (text, b"".as_slice()),
        }
    };
    let port = rest.strip_prefix(b":").and_then(decimal).and_then(|port| u16::try_from(port).ok());
    Forwarded { name, port: port.unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::{HeadPolicy, Receiver};

    fn client(fields: &str, trust: &str) -> Option<String> {
        let mut input = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
        let mut head = RequestHead::default();
        let policy = HeadPolicy::default();
        Receiver::default().advance(&mut input, &policy, true, &mut head).expect("a good head");
        let trust = Trust::parse(trust).expect("addresses");
        client_of(&head, &input, &trust).map(|client| String::from_utf8_lossy(client.name).into_owned())
    }

    #[test]
    fn the_last_address_that_is_not_ours_is_the_client() {
        let all = "X-Forwarded-For: 203.0.113.9, 198.51.100.7, 10.0.0.2\r\n";
        assert_eq!(client(all, "10.0.0.0/8").as_deref(), Some("198.51.100.7"));
        assert_eq!(client(all, "*").as_deref(), Some("203.0.113.9"));
        assert_eq!(client(all, "127.0.0.1").as_deref(), Some("10.0.0.2"));
        assert_eq!(client("", "*"), None);
        assert_eq!(client("X-Forwarded-For: ,\r\n", "*"), None);
    }

    #[test]
    fn a_port_is_kept_apart() {
        for (text, name, port) in [
            ("203.0.113.9:4711", "203.0.113.9", 4711),
            ("[2001:db8::1]:443", "2001:db8::1", 443),
            ("[2001:db8::1]", "2001:db8::1", 0),
            ("2001:db8::1", "2001:db8::1", 0),
            ("203.0.113.9:", "203.0.113.9", 0),
            ("203.0.113.9:65536", "203.0.113.9", 0),
            ("203.0.113.9:-1", "203.0.113.9", 0),
            ("203.0.113.9:_port", "203.0.113.9", 0),
            ("[::1]80", "::1", 0),
            ("[::1", "[::1", 0),
            ("unknown", "unknown", 0),
        ] {
            assert_eq!(node_of(text.as_bytes()), Forwarded { name: name.as_bytes(), port }, "{text}");
        }
    }

    #[test]
    fn fields_follow_one_another_and_ports_do_not_count() {
        let two = "X-Forwarded-For: 203.0.113.9:4711\r\nx-forwarded-for: 10.0.0.2\r\n";
        assert_eq!(client(two, "10.0.0.2").as_deref(), Some("203.0.113.9"));
        assert_eq!(client("X-Forwarded-For: [2001:db8::1]:80\r\n", "::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(client("X-Forwarded-For: 2001:db8::1\r\n", "::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(client("X-Forwarded-For: unknown\r\n", "::1").as_deref(), Some("unknown"));
    }
}
