//! The head of a response (RFC 9113 section 8.3.2).
use tricorn_proto::http2::Violation;

/// Takes the fields of a header block.
#[derive(Debug, Default)]
pub struct Head {
    status: Option<u16>,
    length: Option<u64>,
    location: Option<String>,
    has_fields: bool,
    /// The first rule that a field breaks.
    violation: Option<Violation>,
}

/// A final response that has begun.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Of a redirect.
    pub location: Option<String>,
    /// Bytes of content that are still to come. None: the end of the stream ends it.
    left: Option<u64>,
}

impl Head {
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Err(violation) = self.take(name, value) {
            self.violation.get_or_insert(violation);
        }
    }

    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        let digits = std::str::from_utf8(value).ok().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
        match name {
            b":status" if self.has_fields => return Err(Violation::PseudoOrder),
            b":status" if self.status.is_some() => return Err(Violation::PseudoTwice),
            b":status" => {
                self.status = digits.filter(|digits| digits.len() == 3).and_then(|digits| digits.parse().ok())
            }
            [b':', ..] => return Err(Violation::PseudoUnknown),
            [] => return Err(Violation::FieldName),
            name if name.iter().any(u8::is_ascii_uppercase) => return Err(Violation::FieldName),
            b"connection" | b"transfer-encoding" => return Err(Violation::ConnectionField),
            b"content-length" => {
                let length = digits.and_then(|digits| digits.parse().ok()).ok_or(Violation::ContentLength)?;
                if self.length.is_some_and(|held| held != length) {
                    return Err(Violation::ContentLength);
                }
                self.length = Some(length);
            }
            b"location" => self.location = Some(String::from_utf8_lossy(value).into_owned()),
            _ => {}
        }
        self.has_fields |= name != b":status";
        Ok(())
    }

    /// The fields are trailers.
    pub fn end(self) -> Result<(), Violation> {
        match self.status {
            Some(_) => Err(Violation::PseudoTrailer),
            None => self.violation.map_or(Ok(()), Err),
        }
    }

    /// The response that begins, or None for an interim one. `has_content`: the request was not HEAD.
    pub fn begin(self, has_content: bool) -> Result<Option<Response>, Violation> {
        if let Some(violation) = self.violation {
            return Err(violation);
        }
        match self.status {
            // Section 8.6: "HTTP/2 removes support for the 101 (Switching Protocols) informational status code".
            None | Some(..100 | 101) => Err(Violation::PseudoMissing),
            Some(100..200) => Ok(None),
            Some(status) => {
                let left = if has_content && !matches!(status, 204 | 304) { self.length } else { Some(0) };
                let location = self.location.filter(|_| status / 100 == 3);
                Ok(Some(Response { status, location, left }))
            }
        }
    }
}

impl Response {
    /// Takes a piece of the content.
    pub fn take(&mut self, length: usize) -> Result<(), Violation> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(length as u64).ok_or(Violation::ContentLength)?;
        }
        Ok(())
    }

    /// Section 8.1.1: the sum of the DATA frames has to equal the content-length.
    pub fn is_complete(&self) -> bool {
        matches!(self.left, None | Some(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(fields: &[(&str, &str)], has_content: bool) -> Result<Option<Response>, Violation> {
        let mut head = Head::default();
        fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        head.begin(has_content)
    }

    #[test]
    fn content_has_to_have_the_length_that_was_announced() {
        let mut response = begin(&[(":status", "200"), ("content-length", "5")], true).unwrap().unwrap();
        assert_eq!((response.take(4), response.is_complete()), (Ok(()), false));
        assert_eq!((response.take(1), response.is_complete()), (Ok(()), true));
        assert_eq!(response.take(1), Err(Violation::ContentLength));
        let mut unannounced = begin(&[(":status", "200")], true).unwrap().unwrap();
        assert!(unannounced.take(1 << 20).is_ok() && unannounced.is_complete());
    }

    #[test]
    fn some_responses_have_no_content_whatever_their_length_says() {
        for (status, has_content) in [("200", false), ("304", true), ("204", true)] {
            let mut response = begin(&[(":status", status), ("content-length", "5")], has_content).unwrap().unwrap();
            assert_eq!((response.is_complete(), response.take(1)), (true, Err(Violation::ContentLength)), "{status}");
        }
    }

    #[test]
    fn interim_responses_and_redirects() {
        assert_eq!(begin(&[(":status", "103"), ("link", "x")], true), Ok(None));
        let location = |status| begin(&[(":status", status), ("location", "/b")], true).unwrap().unwrap().location;
        assert_eq!((location("302").as_deref(), location("201")), (Some("/b"), None));
    }

    #[test]
    fn heads_that_are_malformed() {
        for (fields, violation) in [
            (&[("server", "x")][..], Violation::PseudoMissing),
            (&[(":status", "2000")], Violation::PseudoMissing),
            (&[(":status", "+20")], Violation::PseudoMissing),
            (&[(":status", "099")], Violation::PseudoMissing),
            (&[(":status", "101")], Violation::PseudoMissing),
            (&[(":status", "200"), (":status", "200")], Violation::PseudoTwice),
            (&[("server", "x"), (":status", "200")], Violation::PseudoOrder),
            (&[(":status", "200"), (":path", "/")], Violation::PseudoUnknown),
            (&[(":status", "200"), ("Server", "x")], Violation::FieldName),
            (&[(":status", "200"), ("connection", "close")], Violation::ConnectionField),
            (&[(":status", "200"), ("content-length", "5"), ("content-length", "6")], Violation::ContentLength),
            (&[(":status", "200"), ("content-length", "+5")], Violation::ContentLength),
        ] {
            assert_eq!(begin(fields, true), Err(violation), "{fields:?}");
        }
    }

    #[test]
    fn trailers_have_no_pseudo_header_fields() {
        let end = |name: &str| {
            let mut head = Head::default();
            head.field(name.as_bytes(), b"200");
            head.end()
        };
        assert_eq!(end("grpc-status"), Ok(()));
        assert_eq!(end(":status"), Err(Violation::PseudoTrailer));
        assert_eq!(end(":path"), Err(Violation::PseudoUnknown));
    }
}
