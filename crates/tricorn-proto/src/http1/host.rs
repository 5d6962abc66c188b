//! `uri-host [ ":" port ]` (RFC 9110 section 7.2, RFC 3986 section 3.2.2).
use super::grammar::{REG_NAME, is};

/// Whether this can be the value of a Host field. The empty value is valid: a URI without an authority has it.
#[inline]
pub(super) fn is_host_port(value: &[u8]) -> bool {
    if value.first() == Some(&b'[') {
        return is_literal_port(value);
    }
    let mut rest = value;
    while let [byte, tail @ ..] = rest {
        match byte {
            b':' => return is_port(tail),
            b'%' => match tail {
                [high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                    rest = after;
                }
                _ => return false,
            },
            &byte if is(byte, REG_NAME) => rest = tail,
            _ => return false,
        }
    }
    true
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
    use super::is_host_port;

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
