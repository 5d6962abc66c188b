//! Percent-decoding of a request target's path (RFC 3986 section 2.1).
use super::grammar::hex_digit;

/// Whether `percent_decode` would change anything.
#[inline]
pub fn needs_decoding(path: &[u8]) -> bool {
    memchr::memchr(b'%', path).is_some()
}

/// Appends `path` with its percent-escapes decoded. What is no escape (`%`, `%zz`) is kept as it is, as Python's
/// `unquote_to_bytes` does; `+` is kept too, it means a space only in forms.
pub fn percent_decode(path: &[u8], out: &mut Vec<u8>) {
    out.reserve(path.len());
    let mut rest = path;
    while let Some(at) = memchr::memchr(b'%', rest) {
        let (before, from) = rest.split_at(at);
        out.extend_from_slice(before);
        match decode_one(from) {
            Some(byte) => {
                out.push(byte);
                rest = &from[3..];
            }
            None => {
                out.push(b'%');
                rest = &from[1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

fn decode_one(escape: &[u8]) -> Option<u8> {
    let high = hex_digit(*escape.get(1)?)?;
    let low = hex_digit(*escape.get(2)?)?;
    Some(high << 4 | low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_once_and_anything_else_is_kept() {
        for (path, decoded) in [
            (&b"/a"[..], &b"/a"[..]),
            (b"/a%20b", b"/a b"),
            (b"/%e2%82%AC", b"/\xe2\x82\xac"),
            (b"/%2520", b"/%20"),
            (b"/%", b"/%"),
            (b"/%4", b"/%4"),
            (b"/%zz%41", b"/%zzA"),
            (b"/%%41", b"/%A"),
            (b"/a+b", b"/a+b"),
            (b"%00", b"\0"),
        ] {
            let mut out = Vec::new();
            percent_decode(path, &mut out);
            assert_eq!(out, decoded);
            assert_eq!(needs_decoding(path), path.contains(&b'%'));
        }
    }
}
