//! `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2.2).
use super::grammar::{REG_NAME, is};

/// `scheme "://" authority`, the beginning of a request target in absolute form (RFC 9112 section 3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Absolute<'a> {
    /// The port of a URI that names none.
    default_port: &'static [u8],
    pub authority: &'a [u8],
    /// Where it begins in the target.
    pub authority_at: usize,
}

impl<'a> Absolute<'a> {
    /// `None` for another form, or a scheme that is not served here.
    pub(crate) fn of(target: &'a [u8]) -> Option<Absolute<'a>> {
        let colon = memchr::memchr(b':', target)?;
        let (scheme, rest) = target.split_at(colon);
        let default_port: &'static [u8] = match scheme {
            scheme if scheme.eq_ignore_ascii_case(b"http") => b"80",
            scheme if scheme.eq_ignore_ascii_case(b"https") => b"443",
            _ => return None,
        };
        let rest = rest.strip_prefix(b"://")?;
        let end = rest.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(rest.len());
        Some(Absolute { default_port, authority: &rest[..end], authority_at: colon + 3 })
    }

    /// Whether a Host field names the same host and port. Letters of a host have no case (RFC 3986 section 3.2.2), and
    /// a port that is empty or left out is the scheme's (section 6.2.3).
    pub(crate) fn is_at(&self, host: &[u8]) -> bool {
        let (one, other) = (split_port(self.authority), split_port(host));
        one.0.eq_ignore_ascii_case(other.0) && self.port(one.1) == self.port(other.1)
    }

    /// A port without what does not tell it from others: `0080` is 80.
    fn port<'p>(&self, port: &'p [u8]) -> &'p [u8] {
        let port = if port.is_empty() { self.default_port } else { port };
        let zeros = port.iter().take_while(|&&byte| byte == b'0').count();
        &port[zeros..]
    }
}

/// Host and port of what `is_host_port` has accepted; the port is empty if there is none.
pub(crate) fn split_port(value: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b':', value) {
        // A colon before the bracket belongs to an IP literal.
        Some(colon) if !value[colon..].contains(&b']') => (&value[..colon], &value[colon + 1..]),
        _ => (value, b""),
    }
}

/// Whether this can be the value of a Host field. The empty value is valid: a URI without an authority has it.
#[inline]
pub(crate) fn is_host_port(value: &[u8]) -> bool {
    if value.first() == Some(&b'[') {
        return is_literal_port(value);
    }
    let mut rest = value;
    loop {
        let plain = rest.iter().take_while(|&&byte| is(byte, REG_NAME)).count();
        match &rest[plain..] {
            [] => return true,
            [b':', port @ ..] => return is_port(port),
            [b'%', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest = after,
            _ => return false,
        }
    }
}

/// port = *DIGIT
fn is_port(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_digit)
}

/// IP-literal = "[" ( IPv6address / IPvFuture ) "]"; zone identifiers (RFC 6874) have no place in a Host field.
#[cold]
fn is_literal_port(value: &[u8]) -> bool {
    let Some(end) = memchr::memchr(b']', value) else {
        return false;
    };
    let (literal, after) = (&value[1..end], &value[end + 1..]);
    let port_fits = match after {
        [] => true,
        [b':', port @ ..] => is_port(port),
        _ => false,
    };
    port_fits && (is_ipv6(literal) || is_ip_future(literal))
}

fn is_ipv6(literal: &[u8]) -> bool {
    std::str::from_utf8(literal).is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok())
}

/// IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )
fn is_ip_future(literal: &[u8]) -> bool {
    let [b'v' | b'V', rest @ ..] = literal else {
        return false;
    };
    let Some(dot) = memchr::memchr(b'.', rest) else {
        return false;
    };
    let (version, address) = (&rest[..dot], &rest[dot + 1..]);
    let letter = |&byte: &u8| is(byte, REG_NAME) || byte == b':';
    !version.is_empty()
        && version.iter().all(u8::is_ascii_hexdigit)
        && !address.is_empty()
        && address.iter().all(letter)
}

#[cfg(test)]
mod tests {
    use super::{Absolute, is_host_port};

    #[test]
    fn absolute_forms_are_those_of_http() {
        let authority = |target: &'static str| Absolute::of(target.as_bytes()).map(|absolute| absolute.authority);
        for (target, found) in [
            ("http://a", "a"),
            ("HTTPS://a:1/b", "a:1"),
            ("http://a?b/c", "a"),
            ("http://a#b/c", "a"),
            ("http://[::1]:80/b", "[::1]:80"),
            ("http:///b", ""),
        ] {
            assert_eq!(authority(target), Some(found.as_bytes()), "{target}");
        }
        for target in ["/a://b", "ftp://a/b", "http:/a", "http:a", "a:80", "*", "://a", "httpx://a", ""] {
            assert_eq!(authority(target), None, "{target}");
        }
    }

    #[test]
    fn a_host_is_the_same_whatever_its_case_and_with_or_without_the_default_port() {
        let is_at = |target: &str, host: &str| Absolute::of(target.as_bytes()).unwrap().is_at(host.as_bytes());
        for (target, host) in [
            ("http://a/", "a"),
            ("http://Example.ORG/", "eXAMPLE.org"),
            ("http://a/", "a:80"),
            ("http://a:80/", "a"),
            ("http://a:/", "a:0080"),
            ("https://a/", "a:443"),
            ("http://[::1]/", "[::1]:80"),
            ("http://[::A]:8000/", "[::a]:8000"),
        ] {
            assert!(is_at(target, host), "{target} {host}");
        }
        for (target, host) in [
            ("http://good/", "evil"),
            ("http://a/", ""),
            ("http://a/", "a:443"),
            ("https://a/", "a:80"),
            ("http://a:1/", "a:2"),
            ("http://a:8000/", "a:800"),
            ("http://a/", "a."),
            ("http://[::1]/", "[::2]"),
            ("http://[::1]:80/", "[::1"),
        ] {
            assert!(!is_at(target, host), "{target} {host}");
        }
    }

    #[test]
    fn hosts_are_names_addresses_and_literals_with_an_optional_port() {
        for good in [
            "",
            "a",
            "example.com",
            "example.com:",
            "example.com:8000",
            "127.0.0.1:80",
            "[::1]",
            "[::1]:8000",
            "[::ffff:1.2.3.4]",
            "[v1.fe80::a+en1]",
            "a_b.c-d~",
            "x%20y",
            "a,b",
            ":80",
        ] {
            assert!(is_host_port(good.as_bytes()), "{good:?}");
        }
        for bad in [
            "a b",
            "a/b",
            "a@b",
            "a:b",
            "a:80:80",
            "[::1",
            "::1",
            "[::1]x",
            "[::g]",
            "[]",
            "[fe80::1%eth0]",
            "a?b",
            "a#b",
            "a\\b",
            "a%2",
            "a%zz",
            "<a>",
            "a\"",
            "\u{e9}",
            "a:80 ",
            "[v.a]",
            "[vx.a]",
            "[v1.]",
        ] {
            assert!(!is_host_port(bad.as_bytes()), "{bad:?}");
        }
    }
}
