//! UTF-8 (RFC 3629) over any split, wrong at the first byte that cannot belong to it (RFC 6455 section 8.1).

/// How far the text came; `Default` is its beginning.
#[derive(Debug, Clone, Copy, Default)]
pub struct Utf8 {
    /// The bytes so far of a code point that is not complete.
    partial: [u8; 4],
    length: u8,
}

/// The text is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotUtf8;

/// Whether a whole text is UTF-8. Most are ASCII, for which looking is several times as fast.
#[inline]
pub fn is_utf8(text: &[u8]) -> bool {
    text.is_ascii() || std::str::from_utf8(text).is_ok()
}

impl Utf8 {
    /// Looks at the next piece of the text.
    #[inline]
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), NotUtf8> {
        while self.length > 0 {
            let [first, rest @ ..] = bytes else { return Ok(()) };
            self.push_byte(*first)?;
            bytes = rest;
        }
        if bytes.is_ascii() {
            return Ok(());
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                let tail = &bytes[error.valid_up_to()..];
                self.partial[..tail.len()].copy_from_slice(tail);
                self.length = tail.len() as u8;
                Ok(())
            }
            Err(_) => Err(NotUtf8),
        }
    }

    /// The text is over: no code point may be cut off.
    #[inline]
    pub fn end(&mut self) -> Result<(), NotUtf8> {
        if std::mem::take(&mut self.length) == 0 { Ok(()) } else { Err(NotUtf8) }
    }

    /// One more byte of a code point that has begun: it is complete, still possible, or wrong.
    fn push_byte(&mut self, byte: u8) -> Result<(), NotUtf8> {
        let length = usize::from(self.length);
        self.partial[length] = byte;
        match std::str::from_utf8(&self.partial[..=length]) {
            Ok(_) => self.length = 0,
            // A possible beginning has three bytes at most, so that there is always room for one more.
            Err(error) if error.error_len().is_none() => self.length += 1,
            Err(_) => return Err(NotUtf8),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes are looked at before the text is known to be wrong; `None`: it is right.
    fn wrong_after(text: &[u8]) -> Option<usize> {
        let mut utf8 = Utf8::default();
        for (index, byte) in text.iter().enumerate() {
            if utf8.push(&[*byte]).is_err() {
                return Some(index + 1);
            }
        }
        utf8.end().err().map(|NotUtf8| text.len() + 1)
    }

    #[test]
    fn wrong_at_the_first_impossible_byte() {
        for (text, wrong) in [
            (&b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"[..], None),
            (b"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xee\x80\x80\xed\x9f\xbf", None),
            (b"\x80", Some(1)),
            (b"\xc0\x80", Some(1)),
            (b"\xc1", Some(1)),
            (b"\xe0\x9f", Some(2)),
            (b"\xed\xa0\x80", Some(2)),
            (b"\xf0\x8f", Some(2)),
            (b"\xf4\x90", Some(2)),
            (b"\xf5", Some(1)),
            (b"\xff", Some(1)),
            (b"\xe2\x82a", Some(3)),
            (b"\xe2\x82", Some(3)),
            (b"\xf0\x9f\x98", Some(4)),
        ] {
            assert_eq!(wrong_after(text), wrong, "{text:x?}");
        }
    }

    #[test]
    fn every_code_point_is_right_in_every_split() {
        let step = if cfg!(miri) { 7919 } else { 7 };
        for letter in (0..=0x10_ffff).step_by(step).filter_map(char::from_u32) {
            let text = format!("{letter}a{letter}");
            for cut in 0..=text.len() {
                let mut utf8 = Utf8::default();
                utf8.push(&text.as_bytes()[..cut]).unwrap();
                utf8.push(&text.as_bytes()[cut..]).unwrap();
                assert_eq!(utf8.end(), Ok(()));
            }
        }
    }

    #[test]
    fn it_agrees_with_the_standard_library_on_all_short_texts() {
        let bytes: Vec<u8> =
            vec![0, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xed, 0xf0, 0xf4, 0xf5];
        let count = bytes.len();
        for number in (0..count.pow(4)).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let text = [0, 1, 2, 3].map(|place| bytes[number / count.pow(place) % count]);
            assert_eq!(wrong_after(&text).is_none(), std::str::from_utf8(&text).is_ok(), "{text:x?}");
        }
    }
}
