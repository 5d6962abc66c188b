//! The route of a request: the method, and the route that its application tells (`scoreboard/routes.rs`).
//!
//! If it tells none, the path without what names one thing of many: `GET /orders/4711/items?page=2` is
//! `GET /orders/{}/items`.

/// The pieces of a route's name, without an allocation.
fn pieces<'a>(line: &'a [u8], mut emit: impl FnMut(&'a [u8])) {
    let mut parts = line.splitn(2, |byte| *byte == b' ');
    emit(parts.next().unwrap_or_default());
    let target = parts.next().unwrap_or_default();
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
    for (index, segment) in path.split(|byte| *byte == b'/').enumerate() {
        emit(if index == 0 { b" " } else { b"/" });
        emit(if is_name(segment) { b"{}" } else { segment });
    }
}

/// Digits, hexadecimal digits among which is one of the ten, or long and with a digit: numbers, UUIDs, tokens.
fn is_name(segment: &[u8]) -> bool {
    let has_digit = segment.iter().any(u8::is_ascii_digit);
    let is_number = segment.iter().all(u8::is_ascii_digit);
    let is_hexadecimal = segment.len() >= 8 && segment.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    has_digit && (is_number || is_hexadecimal || segment.len() >= 20)
}

/// FNV-1a of the name. Never 0.
pub fn hash(line: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    pieces(line, |piece| {
        for byte in piece {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    });
    hash.max(1)
}

/// The hash of a route that the application has told. Never 0.
pub fn hash_of_named(line: &[u8], name: u64) -> u64 {
    (hash(method(line)) ^ name.rotate_left(1)).max(1)
}

pub fn with_method(line: &[u8], name: &str) -> String {
    format!("{} {name}", String::from_utf8_lossy(method(line)))
}

fn method(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().unwrap_or_default()
}

pub fn name(line: &[u8]) -> String {
    let mut name = Vec::new();
    pieces(line, |piece| name.extend_from_slice(piece));
    String::from_utf8_lossy(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_one_of_many_is_left_out() {
        for (line, route) in [
            ("GET /orders/4711/items?page=2", "GET /orders/{}/items"),
            ("POST /", "POST /"),
            ("GET /v2/users", "GET /v2/users"),
            ("GET /u/8d3f21a0-7d0e-4f5c-9d53-0f2f3f6f3f11", "GET /u/{}"),
            ("GET /facade/decade", "GET /facade/decade"),
            ("OPTIONS *", "OPTIONS *"),
            ("", " "),
        ] {
            assert_eq!(name(line.as_bytes()), route, "{line}");
            assert_eq!(hash(line.as_bytes()), hash(route.as_bytes()), "{line}: a route is its own");
        }
        assert_ne!(hash(b"GET /a"), hash(b"GET /b"));
    }
}
