//! Text of a client, made harmless for a line of the log.

/// Appends `text`: quotes and backslashes with a backslash before them, whatever is not printable ASCII as `\xHH`.
#[inline]
pub fn push(out: &mut Vec<u8>, text: &[u8]) {
    if text.iter().fold(true, |plain, &byte| plain & is_plain(byte)) {
        out.extend_from_slice(text);
    } else {
        push_escaped(out, text);
    }
}

#[inline]
pub(super) fn is_plain(byte: u8) -> bool {
    (b' '..0x7f).contains(&byte) & (byte != b'"') & (byte != b'\\')
}

#[cold]
fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    out.reserve(text.len() * 2);
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte if is_plain(byte) => out.push(byte),
            byte => {
                let digit = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
                out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push;

    #[test]
    fn what_could_forge_a_line_is_escaped() {
        for (text, escaped) in [
            (&b"plain /text"[..], "plain /text"),
            (b"a\"b", "a\\\"b"),
            (b"a\\", "a\\\\"),
            (b"a\r\nb\0\x1b[2J\x7f", "a\\x0d\\x0ab\\x00\\x1b[2J\\x7f"),
            (b"\xc3\xa9", "\\xc3\\xa9"),
        ] {
            let mut out = Vec::new();
            push(&mut out, text);
            assert_eq!(out, escaped.as_bytes());
        }
    }
}
