//! The user name in `Authorization: Basic …` (RFC 7617).

/// The user name of an Authorization value; `None` if it is not Basic, or broken.
pub fn user(value: &[u8]) -> Option<Vec<u8>> {
    let (scheme, credentials) = value.split_at_checked(SCHEME.len())?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    let decoded = base64(credentials.trim_ascii())?;
    // "the user-id … a single colon … and the password": the user-id holds no colon.
    let end = decoded.iter().position(|&byte| byte == b':').unwrap_or(decoded.len());
    Some(decoded[..end].to_vec()).filter(|user| !user.is_empty())
}

/// RFC 4648 section 4; padding may be left out.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    let digits = &text[..text.len() - padding];
    if padding > 2 || digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let bits = group.iter().try_fold(0u32, |bits, &byte| Some(bits << 6 | sextet(byte)?))?;
        let bytes = (bits << (6 * (4 - group.len()))).to_be_bytes();
        out.extend_from_slice(&bytes[1..group.len()]);
    }
    Some(out)
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

const SCHEME: &[u8] = b"basic ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_rfc_4648_section_10() {
        for (text, decoded) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zg", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(base64(text.as_bytes()), Some(decoded.into()));
        }
        for bad in ["Z", "Zm9v===", "Zm9-", "Z=9v", "Zm9vY"] {
            assert_eq!(base64(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn the_user_is_what_stands_before_the_colon() {
        assert_eq!(user(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), Some(b"Aladdin".to_vec()));
        assert_eq!(user(b"bAsIc  QWxhZGRpbg=="), Some(b"Aladdin".to_vec()));
        for none in [&b"Bearer x"[..], b"Basic", b"Basic !", b"Basic OnB3", b""] {
            assert_eq!(user(none), None);
        }
    }
}
