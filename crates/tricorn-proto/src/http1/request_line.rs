//! The request line: `method SP request-target SP HTTP-version` (RFC 9112 section 3).
use super::limits::Leniency;
use crate::message::grammar::is_token;
use crate::message::host;
use crate::message::refusal::python_repr;
use crate::message::{Method, Refusal, RefusalKind, Version};
use std::ops::Range;

/// A request line that passed every check. The ranges count from the line's first byte.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestLine {
    pub kind: Method,
    /// Where the method ends; it begins at 0.
    pub method: usize,
    pub target: Range<usize>,
    pub path: Range<usize>,
    pub query: Range<usize>,
    pub protocol: Range<usize>,
    pub version: Version,
}

/// What is wrong with a line; the words are found later, off the good path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    Line,
    Method,
    Version,
}

/// RFC 9112 section 3: "Recipients typically parse the request-line into its component parts by splitting on
/// whitespace". We split at single SP into exactly three: a parser that is more lenient than its neighbour desyncs.
#[inline]
pub(crate) fn parse(line: &[u8], leniency: &Leniency) -> Result<RequestLine, Flaw> {
    let mut parsed = parse_any_version(line, leniency)?;
    parsed.version = check_version(&line[parsed.protocol.clone()], leniency)?;
    Ok(parsed)
}

/// The same, without a look at the version.
#[inline]
pub(crate) fn parse_any_version(line: &[u8], leniency: &Leniency) -> Result<RequestLine, Flaw> {
    let method = method_end(line).ok_or(Flaw::Line)?;
    let start = method + 1;
    let target = scan_target(line, start)?;
    let protocol = target.end + 1..line.len();
    let kind = check_method(&line[..method], leniency)?;
    let (path, query) = split_target(line, &target, kind).ok_or(Flaw::Line)?;
    let version = Version::default();
    Ok(RequestLine { kind, method, target: start..target.end, path, query, protocol, version })
}

/// The refusal of a line on which `parse` found `flaw`.
#[cold]
pub(crate) fn refuse(line: &[u8], flaw: Flaw) -> Box<Refusal> {
    let mut parts = line.splitn(3, |&byte| byte == b' ');
    match flaw {
        Flaw::Line => Refusal::from_bytes(RefusalKind::RequestLine, line),
        Flaw::Method => Refusal::from_bytes(RefusalKind::Method, parts.next().unwrap_or_default()),
        Flaw::Version => {
            let protocol = parts.nth(2).unwrap_or_default();
            let shown = match digits(protocol) {
                Some((major, minor)) => format!("({major}, {minor})"),
                None => python_repr(&Refusal::from_bytes(RefusalKind::Version, protocol).detail),
            };
            Box::new(Refusal::new(RefusalKind::Version, shown))
        }
    }
}

#[inline]
fn method_end(line: &[u8]) -> Option<usize> {
    match line {
        [b'G', b'E', b'T', b' ', ..] => Some(3),
        [b'P', b'O', b'S', b'T', b' ', ..] => Some(4),
        _ => memchr::memchr(b' ', line),
    }
}

struct Target {
    start: usize,
    end: usize,
    /// Of the first question mark before any fragment, if there is one.
    question: Option<usize>,
    /// Of the first number sign.
    fragment: Option<usize>,
}

/// One pass: its end (the next SP), where its query and its fragment begin, and that it is printable ASCII.
#[inline]
fn scan_target(line: &[u8], start: usize) -> Result<Target, Flaw> {
    let mut target = Target { start, end: start, question: None, fragment: None };
    for (offset, &byte) in line[start..].iter().enumerate() {
        match byte {
            b' ' if offset > 0 => {
                target.end = start + offset;
                return Ok(target);
            }
            b'?' if target.question.is_none() && target.fragment.is_none() => {
                target.question = Some(start + offset);
            }
            b'#' if target.fragment.is_none() => target.fragment = Some(start + offset),
            // RFC 9112 section 3.2: printable ASCII; all else must be percent-encoded.
            byte if byte.is_ascii_graphic() => {}
            _ => break,
        }
    }
    Err(first_flaw(line, start))
}

/// The target is broken; but a broken method is named first, as gunicorn does, if there are three parts.
#[cold]
fn first_flaw(line: &[u8], start: usize) -> Flaw {
    let three = memchr::memchr(b' ', &line[start..]).is_some();
    if three && !is_token(&line[..start - 1]) { Flaw::Method } else { Flaw::Line }
}

#[inline]
fn check_method(method: &[u8], leniency: &Leniency) -> Result<Method, Flaw> {
    Ok(match method {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"OPTIONS" => Method::Options,
        b"CONNECT" => Method::Connect,
        b"POST" | b"PUT" | b"PATCH" | b"DELETE" => Method::Other,
        other => return unusual_method(other, leniency),
    })
}

#[cold]
fn unusual_method(method: &[u8], leniency: &Leniency) -> Result<Method, Flaw> {
    if !is_token(method) {
        return Err(Flaw::Method);
    }
    // gunicorn's restriction, which every method registered with IANA satisfies.
    let odd = |&byte: &u8| byte.is_ascii_lowercase() || byte == b'#';
    let usual = (3..=20).contains(&method.len()) && !method.iter().any(odd);
    if !usual && !leniency.unconventional_method {
        return Err(Flaw::Method);
    }
    // RFC 9110 section 9.1: "The method token is case-sensitive". Only the operator may say otherwise; the receiver
    // upper-cases the bytes in place.
    let known = |text: &[u8]| leniency.casefold_method && method.eq_ignore_ascii_case(text);
    Ok(match () {
        () if known(b"GET") => Method::Get,
        () if known(b"HEAD") => Method::Head,
        () if known(b"OPTIONS") => Method::Options,
        () if known(b"CONNECT") => Method::Connect,
        () => Method::Other,
    })
}

/// The path and the query of a target in one of the four forms of RFC 9112 section 3.2.
#[inline]
fn split_target(line: &[u8], target: &Target, method: Method) -> Option<(Range<usize>, Range<usize>)> {
    let (start, whole) = (target.start, &line[..target.end]);
    let path_end = target.question.or(target.fragment).unwrap_or(target.end);
    let path = match (method, whole.get(start)?) {
        // "authority-form … is only used for CONNECT requests"
        (Method::Connect, _) => {
            return is_authority_form(&whole[start..]).then_some((0..0, 0..0));
        }
        (_, b'/') => start..path_end,
        // "asterisk-form … is only used for a server-wide OPTIONS request"
        (Method::Options, b'*') if whole.len() == start + 1 => start..path_end,
        _ => absolute_form(&whole[..path_end], start)?,
    };
    let query_end = target.fragment.unwrap_or(target.end);
    let query = match target.question {
        Some(question) => question + 1..query_end,
        None => 0..0,
    };
    Some((path, query))
}

/// Where the path of `scheme://authority[/path]` stands in the line.
///
/// It never begins where the target does, which is how an absolute form is known later (`FramingFields::decide`).
#[cold]
fn absolute_form(whole: &[u8], start: usize) -> Option<Range<usize>> {
    let absolute = host::Absolute::of(whole.get(start..)?)?;
    // RFC 9110 section 4.2.1: "A recipient that processes such a URI reference [with an empty host] MUST reject it
    // as invalid." Section 4.2.4: userinfo is an error too; it is no host[:port], so it ends here.
    let is_named = absolute.authority.first().is_some_and(|&byte| byte != b':');
    if !is_named || !host::is_host_port(absolute.authority) {
        return None;
    }
    let end = start + absolute.authority_at + absolute.authority.len();
    // RFC 9110 section 4.2.3: "an empty path component is equivalent to an absolute path of "/"". The slash before the
    // authority stands for it, since spans point into the request.
    let slash = start + absolute.authority_at - 1;
    Some(if end == whole.len() { slash..slash + 1 } else { end..whole.len() })
}

/// RFC 9112 section 3.2.3: authority-form = uri-host ":" port
fn is_authority_form(target: &[u8]) -> bool {
    let port = target.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let host = target.len() - port;
    port > 0 && host > 1 && target[host - 1] == b':' && host::is_host_port(target)
}

/// RFC 9112 section 2.3: HTTP-version = HTTP-name "/" DIGIT "." DIGIT. "HTTP-version is case-sensitive."
#[inline]
fn check_version(protocol: &[u8], leniency: &Leniency) -> Result<Version, Flaw> {
    match protocol {
        b"HTTP/1.1" => Ok(Version::Http11),
        b"HTTP/1.0" => Ok(Version::Http10),
        other => unusual_version(other, leniency),
    }
}

/// RFC 9110 section 2.5: a higher minor version is treated as the highest one known.
#[cold]
fn unusual_version(protocol: &[u8], leniency: &Leniency) -> Result<Version, Flaw> {
    match digits(protocol) {
        Some(('1', _)) => Ok(Version::Http11),
        Some(('0', _)) if leniency.unconventional_version => Ok(Version::Http10),
        Some(_) if leniency.unconventional_version => Ok(Version::Http11),
        _ => Err(Flaw::Version),
    }
}

fn digits(protocol: &[u8]) -> Option<(char, char)> {
    match protocol.strip_prefix(b"HTTP/")? {
        [major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            Some((*major as char, *minor as char))
        }
        _ => None,
    }
}
