//! A whole head at once, the good path: the request line by hand, the fields by httparse (SIMD), one walk over them.
//!
//! This file never says what is wrong with a line: it says `None` (broken, too long, or not complete), and `lines`
//! finds the words. What it accepts, `lines` accepts: the fuzz target `head` holds them together.
use super::framing::Facts;
use super::limits::Bounds;
use super::request_line;
use super::scheme::Told;
use super::{Field, HeadPolicy, HeaderMap, Known, Refusal, RefusalKind, RequestHead, Span};
use memchr::memchr;

/// The bytes of a head and how they are to be read.
pub(super) struct Source<'a> {
    pub input: &'a [u8],
    /// Where the request line begins.
    pub start: usize,
    pub policy: &'a HeadPolicy,
    pub bounds: Bounds,
    pub trusted: bool,
}

/// Reads the head at `source.start`. Returns where it ends; `None` if it is incomplete or breaks the grammar or a limit.
#[inline]
pub(super) fn read(
    source: &Source<'_>,
    head: &mut RequestHead,
) -> Result<Option<usize>, Box<Refusal>> {
    head.clear();
    let Some(fields_start) = read_request_line(source, head) else {
        return Ok(None);
    };
    let mut few = [httparse::EMPTY_HEADER; FEW];
    match httparse::parse_headers(&source.input[fields_start..], &mut few) {
        Ok(httparse::Status::Complete((length, headers))) => {
            walk(source, head, fields_start, length, headers)
        }
        Err(httparse::Error::TooManyHeaders) => read_many(source, head, fields_start),
        Ok(httparse::Status::Partial) | Err(_) => Ok(None),
    }
}

/// Most requests have fewer fields than this; setting up room for more costs all of them.
const FEW: usize = 16;
const MANY: usize = 128;

#[cold]
fn read_many(
    source: &Source<'_>,
    head: &mut RequestHead,
    start: usize,
) -> Result<Option<usize>, Box<Refusal>> {
    let mut many = [httparse::EMPTY_HEADER; MANY];
    let mut more = Vec::new();
    let room = if source.bounds.fields <= MANY {
        &mut many[..]
    } else {
        more.resize(source.bounds.fields, httparse::EMPTY_HEADER);
        &mut more[..]
    };
    match httparse::parse_headers(&source.input[start..], room) {
        Ok(httparse::Status::Complete((length, headers))) => {
            walk(source, head, start, length, headers)
        }
        Ok(httparse::Status::Partial) | Err(_) => Ok(None),
    }
}

/// Returns where the fields begin.
#[inline]
fn read_request_line(source: &Source<'_>, head: &mut RequestHead) -> Option<usize> {
    let (input, start) = (source.input, source.start);
    let newline = start + memchr(b'\n', &input[start..])?;
    let line = input[start..newline].strip_suffix(b"\r")?;
    if line.len() > source.bounds.request_line {
        return None;
    }
    let parsed = request_line::parse(line, &source.policy.leniency).ok()?;
    let span = |range: std::ops::Range<usize>| span(start + range.start, start + range.end);
    head.kind = parsed.kind;
    head.version = parsed.version;
    head.method = span(0..parsed.method);
    head.target = span(parsed.target);
    head.path = span(parsed.path);
    head.query = span(parsed.query);
    head.protocol = span(parsed.protocol);
    Some(newline + 1)
}

#[inline]
fn walk(
    source: &Source<'_>,
    head: &mut RequestHead,
    start: usize,
    length: usize,
    headers: &[httparse::Header<'_>],
) -> Result<Option<usize>, Box<Refusal>> {
    let end = start + length;
    if !lines_are_sound(source, start, end, headers) {
        return Ok(None);
    }
    let mut facts = Facts::default();
    let mut scheme = Told::default();
    let mut underscores = Underscores::new(source.input, start, end);
    head.fields.reserve(headers.len());
    for header in headers {
        let (name, value) = (header.name.as_bytes(), header.value);
        let known = Known::classify(name);
        if known != Known::Other {
            facts.note(known, value, head.version)?;
        }
        if source.trusted {
            scheme.note(source.policy, name, value)?;
        }
        let name = place(source.input, name);
        if underscores.any_in(name) && !may_pass(source, name)? {
            continue;
        }
        head.fields.push(Field {
            name,
            value: place(source.input, value),
            known,
        });
    }
    head.scheme = scheme.0.unwrap_or_default();
    facts.decide(head, source.input)?;
    Ok(Some(end))
}

/// RFC 9112 section 2.2: "a recipient MAY recognize a single LF as a line terminator". httparse does; we do not, for
/// the peer in front of us may not. Also bounds the number and the size of the fields.
#[inline]
fn lines_are_sound(
    source: &Source<'_>,
    start: usize,
    end: usize,
    headers: &[httparse::Header<'_>],
) -> bool {
    let bounds = &source.bounds;
    let mut line = start;
    // The head's bound counts up to the end of the last field, as in `lines`.
    let mut sound = headers.len() <= bounds.fields && end <= bounds.head + 4;
    let after_first = headers
        .iter()
        .skip(1)
        .map(|header| place(source.input, header.name.as_bytes()));
    let starts = after_first.map(|name| name.start as usize);
    // The empty line is the last one; a head without any field has nothing but it.
    let last = end.checked_sub(2).filter(|&last| last > start);
    for next in starts.chain(last) {
        // A value holds no CR, so this CR can only be the line's own.
        sound &= source.input.get(next - 2) == Some(&b'\r') && next - line <= bounds.field_size;
        line = next;
    }
    sound && source.input.get(line..end) == Some(b"\r\n")
}

/// Where `part`, a piece of `whole`, stands in it.
#[inline]
fn place(whole: &[u8], part: &[u8]) -> Span {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    span(start, start + part.len())
}

/// Heads are shorter than `MAX_HEAD`, so that offsets fit.
#[inline]
fn span(start: usize, end: usize) -> Span {
    Span {
        start: start as u32,
        end: end as u32,
    }
}

/// Finds underscores lazily: most heads hold few, and most of those stand in values.
struct Underscores<'a> {
    head: &'a [u8],
    next: usize,
}

impl<'a> Underscores<'a> {
    #[inline]
    fn new(input: &'a [u8], start: usize, end: usize) -> Underscores<'a> {
        let head = &input[..end];
        Underscores {
            head,
            next: memchr(b'_', &head[start..]).map_or(end, |at| start + at),
        }
    }

    /// Names must be asked about in their order.
    #[inline]
    fn any_in(&mut self, name: Span) -> bool {
        let start = name.start as usize;
        if self.next < start {
            self.next = memchr(b'_', &self.head[start..]).map_or(self.head.len(), |at| start + at);
        }
        self.next < name.end as usize
    }
}

/// `X-Forwarded-For` and `X_Forwarded_For` are one name in a WSGI environ: a client could overwrite what the front end
/// said. So a name with an underscore needs a reason to be let through (gunicorn's `header_map`, CVE-2024-1135's kin).
#[cold]
fn may_pass(source: &Source<'_>, name: Span) -> Result<bool, Box<Refusal>> {
    let upper = name.of(source.input).to_ascii_uppercase();
    let allowed = |listed: &Vec<u8>| listed.as_slice() == b"*" || *listed == upper;
    if source.trusted && source.policy.forwarder_headers.iter().any(allowed) {
        return Ok(true);
    }
    match source.policy.leniency.header_map {
        HeaderMap::Dangerous => Ok(true),
        HeaderMap::Drop => Ok(false),
        HeaderMap::Refuse => Err(Refusal::from_bytes(RefusalKind::HeaderName, &upper)),
    }
}
