//! The client that a front end tells of in X-Forwarded-For.
use super::Trust;
use crate::message::RequestHead;
use std::net::IpAddr;

/// Who asked, as a trusted front end tells: the last address in X-Forwarded-For that is not a front end's own, or the first
/// of all if they all are. `None`: it says nothing. What stands there need not be an address (RFC 7239 section 6.3 has
/// made-up names); a port is taken off.
///
/// To be asked only for requests of trusted peers.
pub fn client_of<'a>(head: &RequestHead, bytes: &'a [u8], trust: &Trust) -> Option<&'a [u8]> {
    let fields = head.fields.iter().rev().filter(|field| {
        let name = field.name.of(bytes);
        name.len() == NAME.len() && name.eq_ignore_ascii_case(NAME)
    });
    let mut first = None;
    for value in fields.map(|field| field.value.of(bytes)) {
        for host in value.rsplit(|byte| *byte == b',').map(|part| host_of(part.trim_ascii())) {
            if host.is_empty() {
                continue;
            }
            first = Some(host);
            let address = std::str::from_utf8(host).ok().and_then(|text| text.parse::<IpAddr>().ok());
            if !address.is_some_and(|address| trust.allows(Some(address))) {
                return first;
            }
        }
    }
    first
}

const NAME: &[u8] = b"x-forwarded-for";

/// Without a port: `192.0.2.1:80`, `[2001:db8::1]:80`.
fn host_of(text: &[u8]) -> &[u8] {
    if let Some(rest) = text.strip_prefix(b"[") {
        return rest.iter().position(|byte| *byte == b']').map_or(text, |end| &rest[..end]);
    }
    let mut colons = text.iter().enumerate().filter(|(_, byte)| **byte == b':');
    match (colons.next(), colons.next()) {
        (Some((at, _)), None) => &text[..at],
        _ => text,
    }
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
        client_of(&head, &input, &trust).map(|host| String::from_utf8_lossy(host).into_owned())
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
    fn fields_follow_one_another_and_ports_are_taken_off() {
        let two = "X-Forwarded-For: 203.0.113.9:4711\r\nx-forwarded-for: 10.0.0.2\r\n";
        assert_eq!(client(two, "10.0.0.2").as_deref(), Some("203.0.113.9"));
        assert_eq!(client("X-Forwarded-For: [2001:db8::1]:80\r\n", "::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(client("X-Forwarded-For: 2001:db8::1\r\n", "::1").as_deref(), Some("2001:db8::1"));
        assert_eq!(client("X-Forwarded-For: unknown\r\n", "::1").as_deref(), Some("unknown"));
    }
}
