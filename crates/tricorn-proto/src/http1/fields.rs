//! A whole head at once, the good path: the request line by hand, the fields by httparse (SIMD), one walk over them.
//!
//! This file never says what is wrong with a line: it says `None` (broken, too long, or not complete), and `lines`
//! finds the words. What it accepts, `lines` accepts: the fuzz target `head` holds them together.
use super::framing::FramingFields;
use super::limits::Bounds;
use super::request_line;
use super::scheme::SchemeClaim;
use super::{HeadPolicy, HeaderMap};
use crate::message::{Field, Known, Refusal, RefusalKind, RequestHead, Span, Version};
use memchr::memchr;

/// The bytes of a head and how they are to be read.
pub(crate) struct Source<'a> {
    pub input: &'a [u8],
    /// Where the request line begins.
    pub start: usize,
    pub policy: &'a HeadPolicy,
    pub bounds: Bounds,
    pub trusted: bool,
}

/// Reads the head at `source.start`. Returns where it ends; `None` if it is incomplete or breaks the grammar or a limit.
#[inline]
pub(super) fn read(source: &Source<'_>, head: &mut RequestHead) -> Result<Option<usize>, Box<Refusal>> {
    head.clear();
    let Some(fields_start) = read_request_line(source, head) else {
        return Ok(None);
    };
    let mut few = [httparse::EMPTY_HEADER; FEW];
    match httparse::parse_headers(&source.input[fields_start..], &mut few) {
        Ok(httparse::Status::Complete((length, headers))) => walk(source, head, fields_start, length, headers),
        Err(httparse::Error::TooManyHeaders) => read_many(source, head, fields_start),
        Ok(httparse::Status::Partial) | Err(_) => Ok(None),
    }
}

/// Most requests have fewer fields than this; setting up room for more costs all of them.
const FEW: usize = 16;
const MANY: usize = 128;

#[cold]
fn read_many(source: &Source<'_>, head: &mut RequestHead, start: usize) -> Result<Option<usize>, Box<Refusal>> {
    let mut many = [httparse::EMPTY_HEADER; MANY];
    let mut more = Vec::new();
    let room = if source.bounds.fields <= MANY {
        &mut many[..]
    } else {
        more.resize(source.bounds.fields, httparse::EMPTY_HEADER);
        &mut more[..]
    };
    match httparse::parse_headers(&source.input[start..], room) {
        Ok(httparse::Status::Complete((length, headers))) => walk(source, head, start, length, headers),
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

/// One walk over the fields. A broken line is the first thing to be wrong with a head, so what the fields mean is
/// judged while they are walked but told only when all lines have proved sound.
#[inline]
fn walk(
    source: &Source<'_>,
    head: &mut RequestHead,
    start: usize,
    length: usize,
    headers: &[httparse::Header<'_>],
) -> Result<Option<usize>, Box<Refusal>> {
    let (input, end) = (source.input, start + length);
    let mut lines = Lines { sound: true, line: start, input, field_size: source.bounds.field_size };
    let mut meaning = Meaning::new(source, start, end);
    head.fields.reserve(headers.len());
    for header in headers {
        let (name, value) = (place(input, header.name.as_bytes()), place(input, header.value));
        lines.next(name.start as usize);
        let known = Known::classify(header.name.as_bytes());
        if meaning.note(header, name, known, head.version) {
            head.fields.push(Field { name, value, known });
        }
    }
    lines.next(end - 2);
    // The bound of the head counts up to the end of its last field, as in `lines`.
    let fits = headers.len() <= source.bounds.fields && end <= source.bounds.head + 4;
    if !lines.sound || !fits || !input[..end].ends_with(b"\r\n") {
        return Ok(None);
    }
    meaning.verdict?;
    head.dropped = meaning.dropped;
    head.scheme = meaning.scheme.0.unwrap_or_default();
    head.scheme_is_told = meaning.scheme.0.is_some();
    meaning.facts.decide(head, input)?;
    Ok(Some(end))
}

/// RFC 9112 section 2.2: "a recipient MAY recognize a single LF as a line terminator". httparse does; we do not, for
/// the peer in front of us may not.
struct Lines<'a> {
    sound: bool,
    /// Where the line before the next one begins.
    line: usize,
    input: &'a [u8],
    field_size: usize,
}

impl Lines<'_> {
    /// A line begins at `at`: judges the one that ended there.
    #[inline]
    fn next(&mut self, at: usize) {
        // A value holds no CR, so this CR can only be the line's own.
        self.sound &= self.input[at - 2] == b'\r' && at - self.line <= self.field_size;
        self.line = at;
    }
}

/// What the fields say, apart from how they are written.
struct Meaning<'a> {
    source: &'a Source<'a>,
    facts: FramingFields,
    scheme: SchemeClaim,
    /// No field is told apart by `scheme` whose length has no bit here.
    scheme_lengths: u64,
    underscores: Underscores<'a>,
    /// The first name that was left out.
    dropped: Span,
    /// The first thing that is wrong.
    verdict: Result<(), Box<Refusal>>,
}

impl<'a> Meaning<'a> {
    #[inline]
    fn new(source: &'a Source<'a>, start: usize, end: usize) -> Meaning<'a> {
        Meaning {
            source,
            facts: FramingFields::default(),
            scheme: SchemeClaim::default(),
            scheme_lengths: if source.trusted { SchemeClaim::lengths(source.policy) } else { 0 },
            underscores: Underscores::new(source.input, start, end),
            dropped: Span::default(),
            verdict: Ok(()),
        }
    }

    /// Whether the application may see the field.
    #[inline]
    fn note(&mut self, header: &httparse::Header<'_>, name: Span, known: Known, version: Version) -> bool {
        if known != Known::Other && self.verdict.is_ok() {
            self.verdict = self.facts.note(known, header.value, version);
        }
        let may_tell_scheme = self.scheme_lengths >> (header.name.len() & 63) & 1 != 0;
        if may_tell_scheme && self.verdict.is_ok() {
            let name = header.name.as_bytes();
            self.verdict = self.scheme.note(self.source.policy, name, header.value);
        }
        !self.underscores.any_in(name) || self.may_pass(name)
    }

    #[cold]
    fn may_pass(&mut self, name: Span) -> bool {
        match may_pass(self.source, name) {
            Ok(true) => return true,
            Ok(false) if self.dropped.is_empty() => self.dropped = name,
            Ok(false) => {}
            Err(refusal) if self.verdict.is_ok() => self.verdict = Err(refusal),
            Err(_) => {}
        }
        false
    }
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
    Span { start: start as u32, end: end as u32 }
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
        Underscores { head, next: memchr(b'_', &head[start..]).map_or(end, |at| start + at) }
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
/// said. So a name with an underscore needs a reason to be let through (gunicorn's `header_map`, CVE-2024-1135's kin). Where
/// applications see names as they came, `Dangerous` is the policy: nothing is merged there.
#[cold]
pub(crate) fn may_pass(source: &Source<'_>, name: Span) -> Result<bool, Box<Refusal>> {
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
