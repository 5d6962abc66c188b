//! Who stands at one end of a hop: `192.0.2.1`, `192.0.2.1:80`, `[2001:db8::1]:80`, `unknown`, `_hidden` (RFC 7239 section 6).
use crate::message::grammar::decimal;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// An address as it is written everywhere, or the name that stands for one.
    pub name: String,
    /// 0: it says none.
    pub port: u16,
}

impl Node {
    /// RFC 7239 section 6: node = nodename [ ":" node-port ].
    pub(super) fn strict(text: &[u8]) -> Option<Node> {
        let text = std::str::from_utf8(text).ok()?;
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
                (address.parse::<Ipv6Addr>().ok()?.to_string(), port)
            }
            None => {
                let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
                (nodename(name)?, port)
            }
        };
        let port = port.map_or(Some(0), node_port)?;
        Some(Node { name, port })
    }

    /// The same, and IPv6 addresses without brackets, as X-Forwarded-For has them.
    pub(super) fn lenient(text: &[u8]) -> Option<Node> {
        let bare = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
        bare.map(|address| Node { name: address.to_string(), port: 0 }).or_else(|| Node::strict(text))
    }
}

fn nodename(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Some(address.to_string());
    }
    (text.eq_ignore_ascii_case("unknown") || is_obfuscated(text)).then(|| text.to_owned())
}

/// An obfuscated port tells nothing: it is 0.
fn node_port(text: &str) -> Option<u16> {
    if is_obfuscated(text) {
        return Some(0);
    }
    decimal(text.as_bytes()).filter(|_| text.len() <= 5).and_then(|port| u16::try_from(port).ok())
}

/// `"_" 1*( ALPHA / DIGIT / "." / "_" / "-" )`
fn is_obfuscated(text: &str) -> bool {
    let rest = text.strip_prefix('_').unwrap_or_default();
    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_those_of_the_rfc() {
        for (text, name, port) in [
            ("192.0.2.43", "192.0.2.43", 0),
            ("192.0.2.43:47011", "192.0.2.43", 47011),
            ("[2001:db8:cafe::17]", "2001:db8:cafe::17", 0),
            ("[2001:DB8::17]:47011", "2001:db8::17", 47011),
            ("unknown", "unknown", 0),
            ("_gazonk", "_gazonk", 0),
            ("192.0.2.43:_obf.1", "192.0.2.43", 0),
        ] {
            let node = Node { name: name.into(), port };
            assert_eq!(Node::strict(text.as_bytes()), Some(node), "{text}");
        }
        for text in [
            "",
            "example.com",
            "_",
            "_a b",
            "192.0.2.256",
            "2001:db8::1",
            "[::1",
            "[::1]80",
            "1.2.3.4:",
            "1.2.3.4:123456",
            "1.2.3.4:65536",
            "\u{e9}",
        ] {
            assert_eq!(Node::strict(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Node::lenient(b"2001:db8::1").map(|node| node.name).as_deref(), Some("2001:db8::1"));
    }
}
