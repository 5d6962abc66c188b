//! uwsgi: a header of four bytes, and pairs.
//!
//! ```text
//!   modifier1 (1 byte), size (2, little-endian), modifier2 (1), *( length (2, little-endian) key, length (2) value )
//! ```
use super::opening::Opening;
use super::protocol::{Protocol, wrong};
use super::vars::{Origin, Writer};
use crate::message::{Refusal, RefusalKind};

pub(super) fn open(input: &[u8], block: &mut Vec<u8>) -> Result<Opening, Box<Refusal>> {
    let Some((&[modifier, low, high, _], rest)) = input.split_first_chunk() else { return Ok(Opening::NeedMore) };
    let mounted = match modifier {
        REQUEST => false,
        MOUNTED => true,
        other => return Err(Box::new(Refusal::new(RefusalKind::Modifier, other.to_string()))),
    };
    let size = usize::from(u16::from_le_bytes([low, high]));
    let Some(mut pairs) = rest.get(..size) else { return Ok(Opening::NeedMore) };
    let mut writer = Writer::new(block, Origin { mounted, ..Origin::of(Protocol::Uwsgi) });
    while !pairs.is_empty() {
        let (key, after) = text(pairs)?;
        let (value, after) = text(after)?;
        writer.pair(key, value)?;
        pairs = after;
    }
    Ok(Opening::Vars(HEADER + size))
}

fn text(bytes: &[u8]) -> Result<(&[u8], &[u8]), Box<Refusal>> {
    let (length, rest) = bytes.split_first_chunk().ok_or_else(cut_off)?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length))).ok_or_else(cut_off)
}

#[cold]
fn cut_off() -> Box<Refusal> {
    wrong("a var of uwsgi is longer than its block")
}

const HEADER: usize = 4;
/// A request (WSGI in uWSGI's own table).
const REQUEST: u8 = 0;
/// The same, with SCRIPT_NAME at the beginning of PATH_INFO.
const MOUNTED: u8 = 30;

#[cfg(test)]
mod tests {
    use super::super::opening::tests::are_read_however_they_are_cut;
    use super::*;

    fn packet(modifier: u8, pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut body = Vec::new();
        for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
            body.extend_from_slice(&(text.len() as u16).to_le_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        let [low, high] = (body.len() as u16).to_le_bytes();
        [&[modifier, low, high, 0], body.as_slice()].concat()
    }

    #[test]
    fn vars_are_read_however_they_are_cut() {
        let whole = packet(30, &[("REQUEST_METHOD", "GET"), ("EMPTY", "")]);
        are_read_however_they_are_cut(open, &whole, |vars| {
            assert!(vars.origin.mounted);
            assert!(vars.iter().eq([(b"REQUEST_METHOD".as_slice(), b"GET".as_slice()), (b"EMPTY", b"")]));
        });
    }

    #[test]
    fn other_modifiers_are_not_implemented_and_lengths_must_fit() {
        let status = |input: &[u8]| open(input, &mut Vec::new()).map_err(|refusal| refusal.status());
        assert_eq!(status(&packet(5, &[])), Err(501));
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), Err(501));
        for pairs in [b"\x01\0".as_slice(), b"\x05\0abcd", b"\x01\0a", b"\x01\0a\x02\0b", b"\x01", b"\0\0\0\0"] {
            let input = [&[0, pairs.len() as u8, 0, 0], pairs].concat();
            assert_eq!(status(&input), Err(400), "{pairs:?}");
        }
        assert_eq!(status(&[0, 0, 0, 0]), Ok(Opening::Vars(4)), "what is missing is seen in the head");
    }
}
