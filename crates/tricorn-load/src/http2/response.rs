//! The head of a response (RFC 9113 section 8.3.2).

/// Takes the fields of a header block.
#[derive(Debug, Default)]
pub struct Head {
    status: Option<u16>,
    length: Option<u64>,
    location: Option<String>,
    has_fields: bool,
    is_malformed: bool,
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
        match name {
            b":status" => {
                let status = match value {
                    [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => std::str::from_utf8(value).ok(),
                    _ => None,
                };
                self.is_malformed |= self.has_fields || self.status.is_some();
                self.status = status.and_then(|digits| digits.parse().ok());
            }
            // Section 8.3: others "MUST be treated as malformed"; 8.2.1: so are names in upper case, and 8.2.2: fields
            // of a connection.
            [] | [b':', ..] | b"connection" | b"transfer-encoding" => self.is_malformed = true,
            name => {
                self.has_fields = true;
                self.is_malformed |= name.iter().any(u8::is_ascii_uppercase);
                match name {
                    b"content-length" => {
                        let length = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                        self.is_malformed |= length.is_none() || self.length.is_some_and(|held| Some(held) != length);
                        self.length = length;
                    }
                    b"location" => self.location = Some(String::from_utf8_lossy(value).into_owned()),
                    _ => {}
                }
            }
        }
    }

    /// Whether it may end a response as its trailers.
    pub fn is_trailers(&self) -> bool {
        self.status.is_none() && !self.is_malformed
    }

    /// The response that begins, or None for an interim one. `has_content`: the request was not HEAD.
    pub fn begin(self, has_content: bool) -> Result<Option<Response>, Malformed> {
        match self.status {
            _ if self.is_malformed => Err(Malformed),
            // Section 8.6: "HTTP/2 removes support for the 101 (Switching Protocols) informational status code".
            None | Some(101) => Err(Malformed),
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
    pub fn take(&mut self, length: usize) -> Result<(), Malformed> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(length as u64).ok_or(Malformed)?;
        }
        Ok(())
    }

    /// Section 8.1.1: the sum of the DATA frames has to equal the content-length.
    pub fn is_complete(&self) -> bool {
        matches!(self.left, None | Some(0))
    }
}

/// What came is no HTTP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(fields: &[(&str, &str)], has_content: bool) -> Result<Option<Response>, Malformed> {
        let mut head = Head::default();
        fields.iter().for_each(|(name, value)| head.field(name.as_bytes(), value.as_bytes()));
        head.begin(has_content)
    }

    #[test]
    fn content_has_to_have_the_length_that_was_announced() {
        let mut response = begin(&[(":status", "200"), ("content-length", "5")], true).unwrap().unwrap();
        assert_eq!((response.take(4), response.is_complete()), (Ok(()), false));
        assert_eq!((response.take(1), response.is_complete()), (Ok(()), true));
        assert_eq!(response.take(1), Err(Malformed));
        let mut unannounced = begin(&[(":status", "200")], true).unwrap().unwrap();
        assert!(unannounced.take(1 << 20).is_ok() && unannounced.is_complete());
    }

    #[test]
    fn some_responses_have_no_content_whatever_their_length_says() {
        for (status, has_content) in [("200", false), ("304", true), ("204", true)] {
            let mut response = begin(&[(":status", status), ("content-length", "5")], has_content).unwrap().unwrap();
            assert_eq!((response.is_complete(), response.take(1)), (true, Err(Malformed)), "{status}");
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
        for fields in [
            &[("server", "x")][..],
            &[(":status", "2000")],
            &[(":status", "101")],
            &[(":status", "200"), (":status", "200")],
            &[("server", "x"), (":status", "200")],
            &[(":status", "200"), (":path", "/")],
            &[(":status", "200"), ("Server", "x")],
            &[(":status", "200"), ("connection", "close")],
            &[(":status", "200"), ("content-length", "5"), ("content-length", "6")],
            &[(":status", "200"), ("content-length", "+x")],
        ] {
            assert_eq!(begin(fields, true), Err(Malformed), "{fields:?}");
        }
    }
}
