//! Reads the response that an application's own protocol writes, and tells where it ends (RFC 9112 sections 2 and 6).
//!
//! A library that brings a protocol of its own (an `asyncio.Protocol`) knows only bytes. What it writes is taken apart
//! here, and said again by the reply machine: the connection, its framing and its reuse stay the server's.
//!
//! ```text
//!   Head ──1xx──> Head
//!    ├──101─────────────────────────────────────> Tunnel: bytes of another protocol, until the end
//!    ├──HEAD, 204, 304, length 0────────────────> Done
//!    ├──Content-Length──> Length ──all of it────> Done
//!    ├──chunked──> Size ─> Data ─> DataEnd ─┐
//!    │              ^└──0──> Trailers ──────┼───> Done
//!    │              └───────────────────────┘
//!    └──neither─────────> UntilClose ──closed───> Done
//! ```
//!
//! The writer is the application's side, not a peer: it is held to its framing, so that nothing it writes by mistake can be
//! taken for the response to another request. Names and values are for the reply machine to check.
use crate::message::Method;
use crate::message::grammar::{decimal, hex_digit, list, trim_ows, trim_ows_start};
use memchr::memchr;
use memchr::memmem::Finder;
use std::ops::Range;
use std::sync::LazyLock;

/// Most bytes of a head, or of a line of the chunked coding, that are waited for.
pub const MAX_HEAD: usize = 1024 * 1024;

/// What a step over the bytes has brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All bytes are taken, and nothing is to be done.
    More,
    /// An interim response: its status. Its fields are `ResponseParser::fields`.
    Interim(u16),
    /// The head of the final response, as `status_line` and `fields` have it.
    Head,
    /// These of the bytes given belong to the body.
    Body(Range<usize>),
    /// The response is complete.
    End,
    /// These of the bytes given are of another protocol, after 101.
    Tunnel(Range<usize>),
}

/// How the writer's end of the connection left the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Not begun.
    Unsaid,
    /// Complete, since its end is the connection's.
    Complete,
    /// Something is missing.
    Cut,
}

/// What was written is no response to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoResponse(pub &'static str);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    Head,
    /// The head was reported; what follows is `ResponseParser::body`.
    Length(u64),
    Size,
    Data(u64),
    DataEnd,
    Trailers,
    UntilClose,
    Tunnel,
    /// Complete, and not reported yet.
    Ends,
    #[default]
    Done,
}

/// Where a field has its name and its value.
#[derive(Debug, Clone, Copy)]
struct Field {
    name: (u32, u32),
    value: (u32, u32),
}

/// Reused from request to request.
#[derive(Debug, Default)]
pub struct ResponseParser {
    phase: Phase,
    method: Method,
    /// The head that was read last; before that as much of it as has come, or of a line of the chunked coding.
    text: Vec<u8>,
    /// Where the first line of `text` ends.
    line: usize,
    /// The fields of `text`, in their order.
    fields: Vec<Field>,
    /// `text` is complete, and gives way to the next.
    spent: bool,
}

impl ResponseParser {
    /// The response to a request with this method is to follow.
    pub fn begin(&mut self, method: Method) {
        self.text.clear();
        self.fields.clear();
        (self.phase, self.method, self.line, self.spent) = (Phase::Head, method, 0, false);
    }

    /// Takes a step over bytes that were written: how many of them it took, and what they are.
    ///
    /// # Errors
    /// They are not what the framing of the response lets follow. Nothing more can be read.
    pub fn advance(&mut self, input: &[u8]) -> Result<(usize, Part), NoResponse> {
        let mut at = 0;
        while let Phase::Size | Phase::DataEnd | Phase::Trailers = self.phase {
            if at == input.len() {
                return Ok((at, Part::More));
            }
            at += self.line(&input[at..])?;
        }
        let rest = input.len() - at;
        match self.phase {
            Phase::Ends => {
                self.phase = Phase::Done;
                return Ok((at, Part::End));
            }
            _ if rest == 0 => return Ok((at, Part::More)),
            Phase::Head => return self.head(input),
            Phase::Tunnel => return Ok((input.len(), Part::Tunnel(at..input.len()))),
            Phase::Done => return Err(NoResponse("bytes after the end of the response")),
            _ => {}
        }
        let end = at + self.body(rest);
        Ok((end, Part::Body(at..end)))
    }

    /// How many of so many bytes belong to the body.
    fn body(&mut self, available: usize) -> usize {
        let part = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(available);
        match &mut self.phase {
            Phase::Length(left) => {
                let taken = part(*left);
                *left -= taken as u64;
                if *left == 0 {
                    self.phase = Phase::Ends;
                }
                taken
            }
            Phase::Data(left) => {
                let taken = part(*left);
                *left -= taken as u64;
                if *left == 0 {
                    self.phase = Phase::DataEnd;
                }
                taken
            }
            _ => available,
        }
    }

    /// So many bytes of the body come another way than through `advance`. False, and nothing is changed, where the framing
    /// has no place for them.
    pub fn skip(&mut self, count: u64) -> bool {
        match self.phase {
            Phase::Length(left) if count <= left => {
                self.phase = if count == left { Phase::Ends } else { Phase::Length(left - count) };
                true
            }
            Phase::UntilClose => true,
            _ => false,
        }
    }

    /// The body has a length, and not all of it was written.
    pub fn lacks_bytes(&self) -> bool {
        matches!(self.phase, Phase::Length(_))
    }

    /// The writer writes nothing more.
    pub fn close(&mut self) -> Left {
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Head if self.text.is_empty() || self.spent => Left::Unsaid,
            Phase::UntilClose | Phase::Tunnel | Phase::Ends | Phase::Done => Left::Complete,
            _ => Left::Cut,
        }
    }

    /// `200 OK`, of the head that was reported last.
    pub fn status_line(&self) -> &[u8] {
        let line = &self.text[..self.line.saturating_sub(CRLF.len())];
        &line[VERSION.min(line.len())..]
    }

    /// Name and value of each field of the head that was reported last.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let of = |(start, end): (u32, u32)| &self.text[start as usize..end as usize];
        self.fields.iter().map(move |field| (of(field.name), of(field.value)))
    }

    /// Whether the connection may be used again (RFC 9112 section 9.3), as far as the head that was reported last says.
    pub fn persists(&self) -> bool {
        let (mut closes, mut keeps) = (false, !self.text.starts_with(b"HTTP/1.0"));
        for (name, value) in self.fields() {
            if name.eq_ignore_ascii_case(b"connection") {
                closes |= list(value).any(|option| option.eq_ignore_ascii_case(b"close"));
                keeps |= list(value).any(|option| option.eq_ignore_ascii_case(b"keep-alive"));
            }
        }
        keeps && !closes
    }

    fn head(&mut self, input: &[u8]) -> Result<(usize, Part), NoResponse> {
        if std::mem::take(&mut self.spent) {
            self.text.clear();
        }
        let before = self.text.len();
        // As a rule it comes in one piece, and is gone over once.
        let whole = if before == 0 { index(&input[..input.len().min(MAX_HEAD + 3)], &mut self.fields) } else { None };
        let end = match whole {
            Some((line, end)) => {
                self.text.extend_from_slice(&input[..end]);
                self.line = line;
                end
            }
            None => {
                self.fields.clear();
                let Some(end) = self.find(input, &HEAD_END)? else { return Ok((input.len(), Part::More)) };
                self.line = index(&self.text, &mut self.fields).map_or(end, |(line, _)| line);
                end
            }
        };
        self.spent = true;
        let status = self.status().ok_or(NoResponse("no status line"))?;
        if status < 200 && status != 101 {
            return Ok((end - before, Part::Interim(status)));
        }
        self.phase = self.framing(status)?;
        Ok((end - before, Part::Head))
    }

    /// Adds the input to what has come of a text that ends so. Where it ends, if it has; then nothing is kept behind it.
    fn find(&mut self, input: &[u8], mark: &Finder<'_>) -> Result<Option<usize>, NoResponse> {
        let length = mark.needle().len();
        if let Some(at) = mark.find(input).filter(|&at| self.text.is_empty() && at < MAX_HEAD) {
            let end = at + length;
            self.text.extend_from_slice(&input[..end]);
            return Ok(Some(end));
        }
        let from = (self.text.len() + 1).saturating_sub(length);
        let room = (MAX_HEAD + 1).saturating_sub(self.text.len());
        self.text.extend_from_slice(&input[..input.len().min(room)]);
        match mark.find(&self.text[from..]) {
            Some(at) => {
                let end = from + at + length;
                self.text.truncate(end);
                Ok(Some(end))
            }
            None if self.text.len() > MAX_HEAD => Err(NoResponse("a head without an end")),
            None => Ok(None),
        }
    }

    /// The status of the head that was reported last.
    pub fn status(&self) -> Option<u16> {
        let (version, rest) = self.text.split_at_checked(VERSION)?;
        if !version.starts_with(b"HTTP/1.") {
            return None;
        }
        let digits = rest.get(..3).filter(|_| matches!(rest.get(3), Some(b' ' | b'\r')))?;
        decimal(digits).and_then(|status| u16::try_from(status).ok()).filter(|&status| status >= 100)
    }

    /// RFC 9112 section 6.3: how the end of this response's body is told.
    fn framing(&self, status: u16) -> Result<Phase, NoResponse> {
        if status == 101 {
            return Ok(Phase::Tunnel);
        }
        let (mut length, mut chunked) = (None, false);
        for (name, value) in self.fields() {
            if name.eq_ignore_ascii_case(b"content-length") {
                let known = decimal(value).ok_or(NoResponse("a Content-Length that is no number"))?;
                if length.replace(known).is_some_and(|before| before != known) {
                    return Err(NoResponse("two lengths"));
                }
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                chunked = list(value).last().is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
                if !chunked {
                    return Err(NoResponse("a Transfer-Encoding other than chunked"));
                }
            }
        }
        Ok(match length {
            _ if self.method == Method::Head || matches!(status, 204 | 304) => Phase::Ends,
            _ if chunked => Phase::Size,
            Some(0) => Phase::Ends,
            Some(length) => Phase::Length(length),
            None => Phase::UntilClose,
        })
    }

    /// A line of the chunked coding (RFC 9112 section 7.1), or as much of it as has come: how many bytes that is.
    fn line(&mut self, input: &[u8]) -> Result<usize, NoResponse> {
        if std::mem::take(&mut self.spent) {
            self.text.clear();
            self.fields.clear();
            self.line = 0;
        }
        let before = self.text.len();
        let Some(end) = self.find(input, &LINE_END)? else { return Ok(input.len()) };
        let line = &self.text[..end - CRLF.len()];
        self.phase = match self.phase {
            Phase::DataEnd if line.is_empty() => Phase::Size,
            Phase::Trailers if line.is_empty() => Phase::Ends,
            Phase::Trailers => Phase::Trailers,
            Phase::Size => match chunk_size(line).ok_or(NoResponse("a chunk without a size"))? {
                0 => Phase::Trailers,
                size => Phase::Data(size),
            },
            _ => return Err(NoResponse("a chunk that is longer than its size")),
        };
        self.text.clear();
        Ok(end - before)
    }
}

/// Goes over a head: where its first line ends, and where it does itself. `None`: it is not complete.
///
/// A line without a colon is a name, which the reply machine refuses. Behind an empty line that is not the end no field is
/// looked for.
fn index(text: &[u8], fields: &mut Vec<Field>) -> Option<(usize, usize)> {
    fields.clear();
    fields.reserve(8); // once for a connection, as a rule
    let first = memchr(b'\n', text)? + 1;
    let (mut begin, mut after_crlf, mut is_field) = (first, text[..first].ends_with(CRLF), true);
    loop {
        let rest = &text[begin..];
        let length = memchr(b'\n', rest)?;
        let line = rest[..length].strip_suffix(b"\r");
        if after_crlf && line.is_some_and(<[u8]>::is_empty) {
            return Some((first, begin + CRLF.len()));
        }
        after_crlf = line.is_some();
        let line = line.unwrap_or(&rest[..length]);
        is_field &= !line.is_empty();
        if is_field {
            fields.push(field(begin, line));
        }
        begin += length + 1;
    }
}

#[inline]
fn field(begin: usize, line: &[u8]) -> Field {
    let colon = memchr(b':', line).unwrap_or(line.len());
    let rest = trim_ows_start(line.get(colon + 1..).unwrap_or_default());
    let start = line.len() - rest.len();
    let end = start + trim_ows(rest).len();
    // No head is longer than `MAX_HEAD`.
    let at = |place: usize| (begin + place) as u32;
    Field { name: (at(0), at(colon)), value: (at(start), at(end)) }
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|&byte| byte == b';').next().map(trim_ows)?;
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    digits.iter().try_fold(0, |size: u64, &byte| Some(size << 4 | u64::from(hex_digit(byte)?)))
}

const CRLF: &[u8] = b"\r\n";
static LINE_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(CRLF));
static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\r\n\r\n"));
/// `HTTP/1.1 `
const VERSION: usize = 9;
