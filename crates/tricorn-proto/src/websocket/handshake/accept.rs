//! Sec-WebSocket-Key and Sec-WebSocket-Accept (RFC 6455 section 4.2.2).
use sha1_smol::Sha1;

/// The client's nonce, as it wrote it: 16 bytes in base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 24]);

impl Key {
    /// 22 digits and the padding that 16 bytes have.
    pub fn read(value: &[u8]) -> Option<Key> {
        let key: [u8; 24] = value.try_into().ok()?;
        let (digits, padding) = key.split_at(22);
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        (padding == b"==" && digits.iter().all(is_digit)).then_some(Key(key))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The value of Sec-WebSocket-Accept: it proves that the key was read by a server that speaks WebSocket.
pub fn accept(key: &Key) -> [u8; 28] {
    let mut sha1 = Sha1::new();
    sha1.update(&key.0);
    sha1.update(GUID);
    base64(&sha1.digest().bytes())
}

/// RFC 4648 section 4, of 20 bytes.
fn base64(bytes: &[u8; 20]) -> [u8; 28] {
    let mut out = [b'='; 28];
    for (group, text) in bytes.chunks(3).zip(out.chunks_mut(4)) {
        let mut bits = [0u8; 4];
        bits[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(bits);
        for (place, letter) in text.iter_mut().enumerate().take(group.len() + 1) {
            *letter = DIGITS[(bits >> (18 - 6 * place) & 63) as usize];
        }
    }
    out
}

const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_6455_and_rfc_8441() {
        let key = Key::read(b"dGhlIHNhbXBsZSBub25jZQ==").unwrap();
        assert_eq!(&accept(&key), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn base64_of_twenty_bytes() {
        assert_eq!(&base64(&[0; 20]), b"AAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        assert_eq!(&base64(&[255; 20]), b"//////////////////////////8=");
        assert_eq!(&base64(b"foobarfoobarfoobarfo"), b"Zm9vYmFyZm9vYmFyZm9vYmFyZm8=");
    }

    #[test]
    fn a_key_is_sixteen_bytes_in_base64() {
        for bad in [
            "",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZQ===",
            "dGhlIHNhbXBsZSBub25jZ===",
            "dGhlIHNhbXBsZSBub25jZQAA",
            "dGhlIHNhbXBsZSBub25j-_==",
            "dGhlIHNhbXBsZSBub25j ===",
            "=GhlIHNhbXBsZSBub25jZQ==",
            "dGhlIHNhbXBsZSBub25jZQA=",
        ] {
            assert_eq!(Key::read(bad.as_bytes()), None, "{bad}");
        }
    }
}
