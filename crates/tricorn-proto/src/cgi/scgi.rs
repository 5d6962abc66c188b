//! SCGI: a netstring of pairs that end with NUL, the first of which is CONTENT_LENGTH.
//!
//! ```text
//!   length in digits ":" *( key NUL value NUL ) ","
//! ```
use super::opening::Opening;
use super::protocol::{MAX_BYTES, Protocol, wrong};
use super::vars::{Origin, Writer};
use crate::message::Refusal;
use crate::message::grammar::decimal;

pub(super) fn open(input: &[u8], block: &mut Vec<u8>) -> Result<Opening, Box<Refusal>> {
    let start = &input[..input.len().min(DIGITS + 1)];
    let Some(colon) = start.iter().position(|byte| *byte == b':') else {
        let may_come = start.len() <= DIGITS && start.iter().all(u8::is_ascii_digit);
        return if may_come { Ok(Opening::NeedMore) } else { Err(wrong("SCGI begins with a length")) };
    };
    let length = decimal(&start[..colon]).ok_or_else(|| wrong("SCGI begins with a length"))? as usize;
    if length > MAX_BYTES {
        return Err(wrong("more than 256 KiB of vars"));
    }
    let Some((text, &comma)) = input.get(colon + 1..colon + 2 + length).and_then(<[u8]>::split_last_chunk::<1>) else {
        return Ok(Opening::NeedMore);
    };
    if comma != *b"," {
        return Err(wrong("a netstring of SCGI ends with a comma"));
    }
    let mut writer = Writer::new(block, Origin::of(Protocol::Scgi));
    let mut parts = text.split(|byte| *byte == 0);
    let (mut is_first, mut is_scgi) = (true, false);
    loop {
        match (parts.next(), parts.next()) {
            (Some(key), Some(value)) => {
                if std::mem::take(&mut is_first) && key != b"CONTENT_LENGTH" {
                    return Err(wrong("the first var of SCGI is CONTENT_LENGTH"));
                }
                is_scgi |= (key, value) == (b"SCGI", b"1");
                writer.pair(key, value)?;
            }
            // Behind the last NUL.
            (Some(b""), None) if is_scgi => return Ok(Opening::Vars(colon + 2 + length)),
            (Some(b""), None) => return Err(wrong("a var of SCGI is SCGI, with the value 1")),
            _ => return Err(wrong("a var of SCGI has no value")),
        }
    }
}

/// Digits of the longest netstring.
const DIGITS: usize = 6;

#[cfg(test)]
mod tests {
    use super::super::opening::tests::are_read_however_they_are_cut;
    use super::*;

    fn netstring(text: &str) -> Vec<u8> {
        format!("{}:{text},", text.len()).into_bytes()
    }

    #[test]
    fn vars_are_read_however_they_are_cut() {
        let whole = netstring("CONTENT_LENGTH\x004\0SCGI\x001\0EMPTY\0\0");
        let pairs = [(b"CONTENT_LENGTH".as_slice(), b"4".as_slice()), (b"SCGI", b"1"), (b"EMPTY", b"")];
        are_read_however_they_are_cut(open, &whole, |vars| assert!(vars.iter().eq(pairs)));
    }

    #[test]
    fn what_is_no_scgi_is_refused() {
        let refused = |input: &[u8]| open(input, &mut Vec::new()).is_err_and(|refusal| refusal.status() == 400);
        for input in [
            b"GET / HTTP/1.1\r\n\r\n".as_slice(),
            b":",
            b"1234567",
            b"262145:",
            b"999999:",
            &netstring("SCGI\x001\0CONTENT_LENGTH\x000\0"),
            &netstring("CONTENT_LENGTH\x000\0"),
            &netstring("CONTENT_LENGTH\x000\0SCGI\x002\0"),
            &netstring("CONTENT_LENGTH\x000\0SCGI\x001"),
            &netstring("CONTENT_LENGTH\x000\0SCGI\x001\0A\0"),
            &netstring("CONTENT_LENGTH\x000\0SCGI\x001\0\0A\0"),
            &netstring(""),
            b"1:a;",
        ] {
            assert!(refused(input), "{:?}", String::from_utf8_lossy(input));
        }
        assert!(!refused(b"262144:"));
    }
}
