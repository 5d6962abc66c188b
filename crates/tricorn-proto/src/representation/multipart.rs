//! Several ranges in one response: multipart/byteranges (RFC 9110 section 14.6).
//!
//! ```text
//!   CRLF --boundary CRLF Content-Type: … CRLF Content-Range: … CRLF CRLF  bytes      for each part
//!   CRLF --boundary-- CRLF
//! ```
use super::range::{Part, content_range};

/// What stands around the parts.
#[derive(Debug)]
pub struct Multipart {
    boundary: String,
    heads: Vec<(Vec<u8>, Part)>,
}

impl Multipart {
    /// `unique`: bits that no file knows beforehand, so that the boundary stands in none. `content_type`: of the representation.
    pub fn new(unique: u128, content_type: &[u8], parts: &[Part], total: u64) -> Multipart {
        let boundary = format!("{unique:032x}");
        let heads = parts.iter().enumerate().map(|(nr, &part)| {
            let mut head = Vec::with_capacity(160);
            if nr > 0 {
                head.extend_from_slice(b"\r\n");
            }
            head.extend_from_slice(b"--");
            head.extend_from_slice(boundary.as_bytes());
            if !content_type.is_empty() {
                head.extend_from_slice(b"\r\nContent-Type: ");
                head.extend_from_slice(content_type);
            }
            head.extend_from_slice(b"\r\nContent-Range: ");
            head.extend_from_slice(content_range(part, total).as_bytes());
            head.extend_from_slice(b"\r\n\r\n");
            (head, part)
        });
        Multipart { heads: heads.collect(), boundary }
    }

    /// The value of Content-Type.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// The parts, each with what stands before it.
    pub fn parts(&self) -> impl Iterator<Item = (&[u8], Part)> {
        self.heads.iter().map(|(head, part)| (head.as_slice(), *part))
    }

    /// What stands behind the last part.
    pub fn end(&self) -> Vec<u8> {
        format!("\r\n--{}--\r\n", self.boundary).into_bytes()
    }

    /// Bytes of the whole body.
    pub fn length(&self) -> u64 {
        let lengths = self.heads.iter().flat_map(|(head, part)| [head.len() as u64, part.length]);
        let parts = lengths.fold(0, u64::saturating_add);
        parts.saturating_add(self.end().len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stand_between_boundaries() {
        let parts = [Part { start: 0, length: 2 }, Part { start: 9, length: 1 }];
        let multipart = Multipart::new(0xabc, b"text/plain", &parts, 10);
        let content = b"0123456789";
        let mut body = Vec::new();
        for (head, part) in multipart.parts() {
            body.extend_from_slice(head);
            body.extend_from_slice(&content[part.start as usize..(part.start + part.length) as usize]);
        }
        body.extend_from_slice(&multipart.end());
        let boundary = "00000000000000000000000000000abc";
        let expected = format!(
            "--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n\
             --{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 9-9/10\r\n\r\n9\r\n--{boundary}--\r\n"
        );
        assert_eq!(String::from_utf8_lossy(&body), expected);
        assert_eq!(multipart.length(), body.len() as u64);
        assert_eq!(multipart.content_type(), format!("multipart/byteranges; boundary={boundary}"));
    }

    #[test]
    fn parts_of_an_unknown_type_have_none() {
        let multipart = Multipart::new(1, b"", &[Part { start: 0, length: 1 }], 10);
        let (head, _) = multipart.parts().next().expect("a part");
        assert_eq!(head, b"--00000000000000000000000000000001\r\nContent-Range: bytes 0-0/10\r\n\r\n");
    }

    #[test]
    fn the_longest_parts_have_a_length() {
        let multipart = Multipart::new(1, b"", &[Part { start: 0, length: u64::MAX }], u64::MAX);
        assert_eq!(multipart.length(), u64::MAX);
    }
}
