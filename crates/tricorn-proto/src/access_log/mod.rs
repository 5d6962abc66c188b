//! The access log: gunicorn's format, compiled once, or JSON; rendered per request from plain data.
//!
//! Whatever a client can put into a line is escaped (`escape`), so that it cannot end the line, leave its quotes, or
//! hide what came after: a log line says what happened, not what the client wants it to say.
mod atom;
mod basic_auth;
mod escape;
mod json;
mod outcome;
mod record;

pub use basic_auth::user;
pub use escape::push as escape;
pub use outcome::Outcome;
pub use record::{CallTime, Record};

use atom::Atom;

#[derive(Debug, Clone)]
pub struct Format(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Text(Text),
    Json { request_id: bool },
}

/// A compiled `access_log_format`.
#[derive(Debug, Clone, Default)]
struct Text {
    segments: Vec<Segment>,
    /// Names of atoms that do not exist.
    unknown: Vec<String>,
    /// Lines have the colour of their status, for a terminal.
    painted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Text(Vec<u8>),
    Atom(Atom),
    /// `%(a)-20s`: padded to at least this width.
    Padded {
        atom: Atom,
        width: usize,
        left: bool,
    },
}

/// gunicorn's default `access_log_format`.
pub const DEFAULT: &str = r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s""#;

impl Format {
    /// Compiles `%(h)s … %({header}i)s`. An atom that is unknown is `-` in each line, as gunicorn has it.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut format = Text::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            format.text(before);
            rest = match after.strip_prefix('%') {
                Some(after) => {
                    format.text("%");
                    after
                }
                None => format.atom(after)?,
            };
        }
        format.text(rest);
        Ok(Format(Kind::Text(format)))
    }

    /// The same with the colour of the status class; JSON has none.
    pub fn painted(mut self) -> Format {
        if let Kind::Text(text) = &mut self.0 {
            text.painted = true;
        }
        self
    }

    /// One JSON object per line; with the member `request_id` if requests have ids.
    pub fn json(request_id: bool) -> Format {
        Format(Kind::Json { request_id })
    }

    /// A sentence that names the atoms that are unknown, if there are some, and those that exist.
    pub fn complaint(&self) -> Option<String> {
        match &self.0 {
            Kind::Text(Text { unknown, .. }) if !unknown.is_empty() => {
                let names: Vec<_> = unknown.iter().map(|name| format!("%({name})s")).collect();
                Some(format!("unknown atoms are logged as -: {}; known are {}", names.join(", "), Atom::known()))
            }
            _ => None,
        }
    }

    /// Appends one line, newline included.
    pub fn render(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        match &self.0 {
            Kind::Text(format) => format.render(record, out),
            Kind::Json { request_id } => json::render(record, *request_id, out),
        }
        out.push(b'\n');
    }
}

impl Text {
    fn render(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        let colour = if self.painted { colour(record.status) } else { b"" };
        out.extend_from_slice(colour);
        for segment in &self.segments {
            match segment {
                Segment::Text(text) => out.extend_from_slice(text),
                Segment::Atom(atom) => atom.render(record, out),
                Segment::Padded { atom, width, left } => {
                    let start = out.len();
                    atom.render(record, out);
                    pad(out, start, *width, *left);
                }
            }
        }
        if !colour.is_empty() {
            out.extend_from_slice(RESET);
        }
    }

    fn text(&mut self, text: &str) {
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Text(before)) => before.extend_from_slice(text.as_bytes()),
            _ => self.segments.push(Segment::Text(text.into())),
        }
    }

    /// Compiles what follows a percent sign, `(name)s`, and returns what follows that.
    fn atom<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let (name, after) = text
            .strip_prefix('(')
            .and_then(|text| text.split_once(')'))
            .ok_or_else(|| format!("access log format: expected %(atom)s or %% at {:?}", shown(text)))?;
        let atom = Atom::parse(name).unwrap_or_else(|| {
            self.unknown.push(name.to_string());
            Atom::Nothing
        });
        let (left, after) = match after.strip_prefix('-') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let (width, after) = after.split_at(digits);
        let after = after
            .strip_prefix(['s', 'd', 'i'])
            .ok_or_else(|| format!("access log format: expected s after %({name}), got {:?}", shown(after)))?;
        self.segments.push(match width {
            "" => Segment::Atom(atom),
            width => {
                let width = width.parse().ok().filter(|&width| width <= MAX_WIDTH).ok_or_else(|| {
                    format!("access log format: %({name}) is to be {width} wide; expected at most {MAX_WIDTH}")
                })?;
                Segment::Padded { atom, width, left }
            }
        });
        Ok(after)
    }
}

/// The escape sequence (ECMA-48, SGR) of a status class.
fn colour(status: u16) -> &'static [u8] {
    match status / 100 {
        2 => b"\x1b[32m",
        3 => b"\x1b[36m",
        4 => b"\x1b[33m",
        5 => b"\x1b[31m",
        _ => b"",
    }
}

const RESET: &[u8] = b"\x1b[0m";

/// As much of the rest as helps in an error.
fn shown(text: &str) -> String {
    text.chars().take(20).collect()
}

fn pad(out: &mut Vec<u8>, start: usize, width: usize, left: bool) {
    let missing = width.saturating_sub(out.len() - start);
    let at = if left { out.len() } else { start };
    out.splice(at..at, std::iter::repeat_n(b' ', missing));
}

/// A wider column than this is a slip of the keyboard.
const MAX_WIDTH: usize = 1024;
