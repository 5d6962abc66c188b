//! The chunked transfer coding and its trailer section (RFC 9112 section 7.1).
//!
//! ```text
//!   Size ──n > 0──> Data ──all of it──> DataEnd ──CRLF──> Size
//!     └───0───> Trailers ──empty line──> (end)
//! ```
use super::limits::{Bounds, MAX_CHUNK_EXTENSIONS};
use super::{HeadPolicy, HeaderMap, Progress, Step, field_line};
use crate::message::grammar::{FIELD_VALUE, QDTEXT, TCHAR, hex_digit, is};
use crate::message::{Refusal, RefusalKind};
use memchr::memchr;

/// Name and value of each trailer field.
pub type Trailers = Vec<(Vec<u8>, Vec<u8>)>;

/// Reads one chunked body; `Default` is its beginning.
#[derive(Debug, Default)]
pub struct Decoder {
    phase: Phase,
    /// Of the chunk being read.
    remaining: u64,
    /// Of all chunks so far, this one included.
    total: u64,
    /// How much of the line being read holds no LF.
    seen: u32,
    /// Bytes of chunk extensions so far.
    extensions: u32,
    trailers: u16,
    trailer_bytes: u32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Size,
    Data,
    DataEnd,
    Trailers,
}

impl Decoder {
    /// Takes one step over `input`, all bytes not consumed so far.
    pub fn advance(
        &mut self,
        input: &[u8],
        policy: &HeadPolicy,
        trailers: &mut Trailers,
    ) -> Result<Progress, Box<Refusal>> {
        let bounds = policy.limits.bounds();
        let mut at = 0;
        loop {
            let rest = &input[at..];
            match self.phase {
                Phase::Data if rest.is_empty() => return Ok(need_more(at)),
                Phase::Data => return Ok(self.data(at, rest.len())),
                Phase::DataEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        self.phase = Phase::Size;
                        at += 2;
                    }
                    [_, _, ..] => {
                        return Err(Refusal::from_bytes(RefusalKind::ChunkTerminator, &rest[..2]));
                    }
                    _ => return Ok(need_more(at)),
                },
                Phase::Size => match self.line(rest, &bounds)? {
                    None => return Ok(need_more(at)),
                    Some(length) => {
                        self.size(&rest[..length], policy)?;
                        at += length;
                    }
                },
                Phase::Trailers => match self.line(rest, &bounds)? {
                    None => return Ok(need_more(at)),
                    Some(length) => {
                        at += length;
                        if length == EMPTY_LINE {
                            return Ok(Progress { consumed: at, step: Step::End });
                        }
                        self.trailer(&rest[..length - 2], &bounds, policy, trailers)?;
                    }
                },
            }
        }
    }

    fn data(&mut self, at: usize, available: usize) -> Progress {
        let length = self.remaining.min(available as u64);
        self.remaining -= length;
        if self.remaining == 0 {
            self.phase = Phase::DataEnd;
        }
        let end = at + length as usize;
        Progress { consumed: end, step: Step::Body(at..end) }
    }

    /// Length of the line at the start of `rest`, CRLF included; `None` if it has not come in full.
    fn line(&mut self, rest: &[u8], bounds: &Bounds) -> Result<Option<usize>, Box<Refusal>> {
        let seen = (self.seen as usize).min(rest.len());
        let newline = memchr(b'\n', &rest[seen..]).map(|at| seen + at);
        let text = &rest[..newline.unwrap_or(rest.len())];
        let length = text.strip_suffix(b"\r").unwrap_or(text).len();
        if length + 2 > bounds.field_size {
            return Err(self.line_too_long(bounds));
        }
        let Some(newline) = newline else {
            self.seen = rest.len() as u32;
            return Ok(None);
        };
        self.seen = 0;
        if length == newline {
            return Err(self.bare_lf(text));
        }
        Ok(Some(newline + 1))
    }

    fn line_too_long(&self, bounds: &Bounds) -> Box<Refusal> {
        let limit = bounds.field_size;
        Box::new(match self.phase {
            Phase::Trailers => Refusal::new(RefusalKind::HeadTooLarge, "limit request headers fields size"),
            _ => Refusal::new(RefusalKind::ChunkSize, format!("line over {limit} bytes with no terminator")),
        })
    }

    /// A lone LF after a chunk extension is where some parsers end the line and some do not.
    fn bare_lf(&self, text: &[u8]) -> Box<Refusal> {
        match self.phase {
            Phase::Trailers => Refusal::from_bytes(RefusalKind::Header, b"bare LF as line terminator"),
            _ => Refusal::from_bytes(RefusalKind::ChunkSize, &[text, b"\n"].concat()),
        }
    }

    /// `chunk-size [ chunk-ext ] CRLF`
    fn size(&mut self, line: &[u8], policy: &HeadPolicy) -> Result<(), Box<Refusal>> {
        let line = &line[..line.len() - 2];
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let (size, extension) = line.split_at(digits);
        // "recipients MUST anticipate potentially large hexadecimal numerals and prevent parsing errors due to integer
        // conversion overflows": 16 digits are 64 bits.
        let extended = matches!(extension.trim_ascii_start(), [b';', ..]);
        if !(1..=MAX_DIGITS).contains(&digits) || !(extension.is_empty() || extended) {
            let text = line.split(|&byte| byte == b';').next().unwrap_or_default();
            return Err(Refusal::from_bytes(RefusalKind::ChunkSize, text));
        }
        if !extension.is_empty() {
            self.extension(extension)?;
        }
        let digit = |&byte: &u8| u64::from(hex_digit(byte).unwrap_or_default());
        self.remaining = size.iter().fold(0, |size, byte| size << 4 | digit(byte));
        // The size of a chunk tells what is to come: one that leads over the limit is not waited for.
        self.total = self.total.saturating_add(self.remaining);
        policy.limits.check_body(self.total)?;
        self.phase = if self.remaining == 0 { Phase::Trailers } else { Phase::Data };
        Ok(())
    }

    #[cold]
    fn extension(&mut self, extension: &[u8]) -> Result<(), Box<Refusal>> {
        self.extensions = self.extensions.saturating_add(extension.len() as u32);
        if self.extensions > MAX_CHUNK_EXTENSIONS {
            let text = format!("more than {MAX_CHUNK_EXTENSIONS} bytes of them in one body");
            return Err(Box::new(Refusal::new(RefusalKind::ChunkExtension, text)));
        }
        match is_chunk_ext(extension) {
            true => Ok(()),
            false => {
                let text = "invalid chunk extension";
                Err(Box::new(Refusal::new(RefusalKind::ChunkExtension, text)))
            }
        }
    }

    fn trailer(
        &mut self,
        line: &[u8],
        bounds: &Bounds,
        policy: &HeadPolicy,
        trailers: &mut Trailers,
    ) -> Result<(), Box<Refusal>> {
        self.trailers += 1;
        self.trailer_bytes = self.trailer_bytes.saturating_add(line.len() as u32 + 2);
        if usize::from(self.trailers) > bounds.fields {
            let text = "limit request headers fields";
            return Err(Box::new(Refusal::new(RefusalKind::HeadTooLarge, text)));
        }
        if self.trailer_bytes as usize > bounds.head {
            let text = "limit request trailer section size";
            return Err(Box::new(Refusal::new(RefusalKind::HeadTooLarge, text)));
        }
        let (name, value) = field_line::split(line)?;
        if may_trail(name, policy)? {
            trailers.push((name.to_vec(), value.to_vec()));
        }
        Ok(())
    }
}

/// Whether a trailer field may be passed on; some names are refused.
pub(crate) fn may_trail(name: &[u8], policy: &HeadPolicy) -> Result<bool, Box<Refusal>> {
    let refuse = || Refusal::from_bytes(RefusalKind::HeaderName, &name.to_ascii_uppercase());
    if FORBIDDEN_TRAILERS.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden)) {
        return Err(refuse());
    }
    match policy.leniency.header_map {
        HeaderMap::Drop if name.contains(&b'_') => Ok(false),
        HeaderMap::Refuse if name.contains(&b'_') => Err(refuse()),
        _ => Ok(true),
    }
}

/// `chunk-ext = *( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`, where
/// `chunk-ext-val = token / quoted-string`.
fn is_chunk_ext(text: &[u8]) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let name = match skip_ows(rest) {
            [b';', after @ ..] => token(skip_ows(after)),
            _ => return false,
        };
        let Some(after) = name else { return false };
        rest = after;
        if let [b'=', value @ ..] = skip_ows(after) {
            let value = skip_ows(value);
            let value_end = match value {
                [b'"', quoted @ ..] => quoted_end(quoted),
                _ => token(value),
            };
            let Some(after) = value_end else { return false };
            rest = after;
        }
    }
    true
}

fn skip_ows(mut text: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = text {
        text = rest;
    }
    text
}

/// What follows the token at the start of `text`.
fn token(text: &[u8]) -> Option<&[u8]> {
    let length = text.iter().take_while(|&&byte| is(byte, TCHAR)).count();
    (length > 0).then(|| &text[length..])
}

/// What follows the closing quote; `text` begins after the opening one.
fn quoted_end(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        match text {
            [b'"', rest @ ..] => return Some(rest),
            // quoted-pair = "\" ( HTAB / SP / VCHAR / obs-text )
            [b'\\', escaped, rest @ ..] if is(*escaped, FIELD_VALUE) => text = rest,
            [byte, rest @ ..] if is(*byte, QDTEXT) => text = rest,
            _ => return None,
        }
    }
}

fn need_more(consumed: usize) -> Progress {
    Progress { consumed, step: Step::NeedMore }
}

const MAX_DIGITS: usize = 16;
const EMPTY_LINE: usize = 2;

/// RFC 9110 section 6.5.1: fields that frame, route or authenticate a message, or say how to read it, have no place
/// after it. gunicorn refuses the first six.
static FORBIDDEN_TRAILERS: [&[u8]; 13] = [
    b"host",
    b"content-length",
    b"transfer-encoding",
    b"trailer",
    b"authorization",
    b"te",
    b"proxy-authorization",
    b"connection",
    b"expect",
    b"cookie",
    b"content-encoding",
    b"content-type",
    b"content-range",
];
