//! A head line by line, the slow path: resumes where it stopped, and says what is wrong with the first bad line.
//!
//! A peer may send its head a byte at a time; each byte is looked at once. Everything here depends only on the lines
//! seen so far, so that how the bytes were split over reads never changes the verdict.
use super::limits::{Bounds, Leniency};
use super::{field_line, request_line};
use crate::message::{Refusal, RefusalKind};
use memchr::{memchr, memrchr};

/// How far an incomplete head was looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scan {
    /// Where the request line begins: 0, or 2 after an empty line.
    start: u8,
    /// Where the line being read begins.
    line: u32,
    /// No LF stands before this, other than those of finished lines.
    seen: u32,
    /// Where the field being read begins; before `line` when it is folded.
    field: u32,
    fields: u32,
    past_request_line: bool,
}

/// What is to be checked of each line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// The grammar and the limits.
    All,
    /// Only the limits, and folded lines count as part of their field: for heads that will be rewritten first.
    Limits,
}

impl Scan {
    /// Of a head whose request line begins at `start`.
    pub(super) fn from(start: u8) -> Scan {
        let line = u32::from(start);
        Scan { start, line, seen: line, ..Scan::default() }
    }

    pub(super) fn start(&self) -> usize {
        usize::from(self.start)
    }

    pub(super) fn has_begun(&self) -> bool {
        self.seen != 0
    }

    /// Goes through the lines that have come since. Returns where the head ends; `None`: not yet.
    #[cold]
    pub(super) fn advance(
        &mut self,
        input: &[u8],
        bounds: &Bounds,
        leniency: &Leniency,
        check: Check,
    ) -> Result<Option<usize>, Box<Refusal>> {
        loop {
            let (line, seen) = (self.line as usize, self.seen as usize);
            let Some(newline) = memchr(b'\n', &input[seen..]).map(|at| seen + at) else {
                self.seen = input.len() as u32;
                self.check_length(&input[line..], bounds, check)?;
                return Ok(None);
            };
            let text = &input[line..newline];
            self.check_length(text, bounds, check)?;
            let Some(text) = text.strip_suffix(b"\r") else {
                return Err(self.bare_lf());
            };
            let next = (newline + 1) as u32;
            if text.is_empty() && self.past_request_line {
                return Ok(Some(newline + 1));
            }
            if check == Check::All {
                self.check_text(input, text, leniency)?;
            }
            self.count(text, check);
            (self.line, self.seen) = (next, next);
        }
    }

    /// Counts the line just read.
    fn count(&mut self, text: &[u8], check: Check) {
        if !self.past_request_line {
            self.past_request_line = true;
        } else if !self.continues(text, check) {
            self.fields += 1;
            self.field = self.line;
        }
    }

    fn continues(&self, text: &[u8], check: Check) -> bool {
        check == Check::Limits && self.fields > 0 && matches!(text, [b' ' | b'\t', ..])
    }

    /// `text` is a line, or as much of it as has come, with whatever CR ends it.
    fn check_length(&self, text: &[u8], bounds: &Bounds, check: Check) -> Result<(), Box<Refusal>> {
        let length = text.strip_suffix(b"\r").unwrap_or(text).len();
        if !self.past_request_line {
            return match length > bounds.request_line {
                true => Err(line_too_long(length, bounds.request_line)),
                false => Ok(()),
            };
        }
        if length == 0 {
            return Ok(());
        }
        let folded = self.continues(text, check);
        if !folded && self.fields as usize >= bounds.fields {
            return Err(head_too_large("limit request headers fields"));
        }
        let end = self.line as usize + length;
        let start = if folded { self.field } else { self.line } as usize;
        if end - start + CRLF > bounds.field_size || end > bounds.head {
            return Err(head_too_large("limit request headers fields size"));
        }
        Ok(())
    }

    fn check_text(&self, input: &[u8], text: &[u8], leniency: &Leniency) -> Result<(), Box<Refusal>> {
        if !self.past_request_line {
            return match request_line::parse(text, leniency) {
                Ok(_) => Ok(()),
                Err(flaw) => Err(request_line::refuse(text, flaw)),
            };
        }
        if self.fields > 0 && matches!(text, [b' ' | b'\t', ..]) {
            return Err(folded(previous_line(input, self.line as usize)));
        }
        field_line::split(text).map(|_| ())
    }

    fn bare_lf(&self) -> Box<Refusal> {
        let kind = match self.past_request_line {
            false => RefusalKind::RequestLine,
            true => RefusalKind::Header,
        };
        Refusal::from_bytes(kind, b"bare LF as line terminator")
    }
}

/// The line that ends where the one at `line` begins, without its CRLF.
fn previous_line(input: &[u8], line: usize) -> &[u8] {
    let text = input.get(..line.saturating_sub(CRLF)).unwrap_or_default();
    let start = memrchr(b'\n', text).map_or(0, |newline| newline + 1);
    &text[start..]
}

/// RFC 9112 section 5.2: "A server that receives an obs-fold in a request message that is not within a message/http
/// container MUST either reject the message by sending a 400 (Bad Request) … or replace each received obs-fold".
fn folded(field: &[u8]) -> Box<Refusal> {
    let name = field.split(|&byte| byte == b':').next().unwrap_or_default();
    Refusal::from_bytes(RefusalKind::ObsoleteFolding, &name.to_ascii_uppercase())
}

fn line_too_long(length: usize, limit: usize) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::RequestLineTooLong, format!("{length} > {limit}")))
}

fn head_too_large(what: &str) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::HeadTooLarge, what))
}

const CRLF: usize = 2;
