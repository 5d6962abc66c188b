//! FastCGI: records, of which one request at a time is made (FastCGI Specification 1.0).
//!
//! ```text
//!   record  = version (1 byte), type (1), request id (2), length (2), padding (1), 0, content, padding
//!   request = BEGIN_REQUEST *( PARAMS ) empty PARAMS *( STDIN ) empty STDIN
//! ```
//!
//! [`open`] reads up to the empty PARAMS, and [`Stdin`] what follows. What belongs to no request, or to one that is refused, is passed over.
use super::opening::{Opening, Scan};
use super::protocol::{MAX_BYTES, Protocol, wrong};
use super::records::{CANNOT_MULTIPLEX, COMPLETE, HEADER, UNKNOWN_ROLE, VERSION, end_request, record};
use super::vars::{Origin, Writer};
use crate::message::{Refusal, RefusalKind};
use std::ops::Range;

const BEGIN_REQUEST: u8 = 1;
const ABORT_REQUEST: u8 = 2;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const GET_VALUES: u8 = 9;
const GET_VALUES_RESULT: u8 = 10;
const UNKNOWN_TYPE: u8 = 11;

const RESPONDER: u16 = 1;
const KEEP_CONN: u8 = 1;

/// The beginning of a record.
#[derive(Debug, Clone, Copy)]
struct Header {
    kind: u8,
    id: u16,
    length: u16,
    padding: u8,
}

impl Header {
    /// `None`: more of it must come.
    fn read(input: &[u8]) -> Result<Option<Header>, Box<Refusal>> {
        if input.first().is_some_and(|version| *version != VERSION) {
            return Err(wrong("a record of FastCGI has version 1"));
        }
        let Some(&[_, kind, high, low, long, short, padding, _]) = input.first_chunk() else { return Ok(None) };
        let (id, length) = (u16::from_be_bytes([high, low]), u16::from_be_bytes([long, short]));
        Ok(Some(Header { kind, id, length, padding }))
    }

    /// Bytes of the record.
    fn size(self) -> usize {
        HEADER + usize::from(self.length) + usize::from(self.padding)
    }
}

pub(super) fn open(input: &[u8], scan: &mut Scan, block: &mut Vec<u8>) -> Result<Opening, Box<Refusal>> {
    loop {
        let rest = input.get(scan.at..).unwrap_or_default();
        let Some(header) = Header::read(rest)? else { return Ok(Opening::NeedMore) };
        let end = scan.at + header.size();
        if end > MAX_BYTES {
            return Err(wrong("more than 256 KiB of vars"));
        }
        let Some(content) = rest.get(HEADER..header.size()).map(|content| &content[..usize::from(header.length)])
        else {
            return Ok(Opening::NeedMore);
        };
        let own = scan.begun.filter(|begun| begun.id == header.id);
        let answer = match (header.kind, own) {
            (BEGIN_REQUEST, None) if header.id != 0 => match begin(header.id, content, scan.begun)? {
                Ok(origin) => {
                    (scan.at, scan.begun) = (end, Some(origin));
                    continue;
                }
                Err(answer) => answer,
            },
            (PARAMS, Some(_)) if header.length > 0 => Vec::new(),
            (PARAMS, Some(origin)) => {
                write_vars(&input[..end], origin, block)?;
                return Ok(Opening::Vars(end));
            }
            // Its client has left before it was read.
            (ABORT_REQUEST, Some(origin)) => {
                *scan = Scan::default();
                return Ok(Opening::Aside(end, end_request(origin.id, COMPLETE)));
            }
            (_, Some(_)) => return Err(wrong("PARAMS follow BEGIN_REQUEST")),
            (GET_VALUES, None) if header.id == 0 => values(content)?,
            (kind, None) if header.id == 0 => record(UNKNOWN_TYPE, 0, &[kind, 0, 0, 0, 0, 0, 0, 0]),
            (_, None) => Vec::new(),
        };
        if scan.begun.is_none() {
            return Ok(Opening::Aside(end, answer));
        }
        // Among the records of a request it stays where it is.
        scan.at = end;
        if !answer.is_empty() {
            return Ok(Opening::Aside(0, answer));
        }
    }
}

/// A request begins, or is answered that it does not: `under_way` comes first.
fn begin(id: u16, content: &[u8], under_way: Option<Origin>) -> Result<Result<Origin, Vec<u8>>, Box<Refusal>> {
    let Some(&[high, low, flags, ..]) = content.first_chunk::<8>() else {
        return Err(wrong("BEGIN_REQUEST has a role and flags"));
    };
    if under_way.is_some() {
        return Ok(Err(end_request(id, CANNOT_MULTIPLEX)));
    }
    if u16::from_be_bytes([high, low]) != RESPONDER {
        return Ok(Err(end_request(id, UNKNOWN_ROLE)));
    }
    Ok(Ok(Origin { id, keep: flags & KEEP_CONN != 0, ..Origin::of(Protocol::FastCgi) }))
}

/// The content of all PARAMS of this request is one run of pairs.
fn write_vars(input: &[u8], origin: Origin, block: &mut Vec<u8>) -> Result<(), Box<Refusal>> {
    let (mut content, mut rest) = (Vec::new(), input);
    while let Some(header) = Header::read(rest)? {
        let Some(record) = rest.get(..header.size()) else { break };
        if (header.kind, header.id) == (PARAMS, origin.id) {
            content.extend_from_slice(&record[HEADER..HEADER + usize::from(header.length)]);
        }
        rest = &rest[header.size()..];
    }
    let mut writer = Writer::new(block, origin);
    each_pair(&content, |key, value| writer.pair(key, value))
}

/// Lengths have one byte, or four if the first bit is set.
fn each_pair<'c>(
    mut content: &'c [u8],
    mut take: impl FnMut(&'c [u8], &'c [u8]) -> Result<(), Box<Refusal>>,
) -> Result<(), Box<Refusal>> {
    let cut_off = || wrong("a var of FastCGI is longer than its PARAMS");
    while !content.is_empty() {
        let (key, rest) = length(content).ok_or_else(cut_off)?;
        let (value, rest) = length(rest).ok_or_else(cut_off)?;
        let (key, rest) = rest.split_at_checked(key).ok_or_else(cut_off)?;
        let (value, rest) = rest.split_at_checked(value).ok_or_else(cut_off)?;
        take(key, value)?;
        content = rest;
    }
    Ok(())
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return Some((usize::from(*first), rest));
    }
    let (&[a, b, c, d], rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes([a & 0x7f, b, c, d]) as usize, rest))
}

/// The answer to GET_VALUES: requests come one after another. How many connections there may be is for the other settings to say.
fn values(content: &[u8]) -> Result<Vec<u8>, Box<Refusal>> {
    let mut asks = false;
    each_pair(content, |key, _| {
        asks |= key == MULTIPLEXES;
        Ok(())
    })?;
    let pair = [&[MULTIPLEXES.len() as u8, 1], MULTIPLEXES, b"0"].concat();
    Ok(record(GET_VALUES_RESULT, 0, if asks { &pair } else { b"" }))
}

const MULTIPLEXES: &[u8] = b"FCGI_MPXS_CONNS";

/// What bytes behind PARAMS amount to. The numbers say how many of them are done with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    NeedMore(usize),
    /// This range of the bytes, up to the end of those that are done with.
    Bytes(Range<usize>),
    End(usize),
}

/// Reads the content of one request out of STDIN records.
#[derive(Debug, Default)]
pub struct Stdin {
    id: u16,
    /// Content of the record that is being read.
    left: u16,
    /// What is passed over then.
    skip: u32,
    /// The empty record has come.
    ended: bool,
    /// Another request has begun, and is refused.
    second: u16,
}

impl Stdin {
    pub fn new(id: u16) -> Stdin {
        Stdin { id, ..Stdin::default() }
    }

    /// Takes one step over `input`, all bytes not consumed so far. `remaining`: of the length that was announced.
    pub fn advance(&mut self, input: &[u8], remaining: &mut u64) -> Result<Content, Box<Refusal>> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if self.left > 0 {
                let count = rest.len().min(usize::from(self.left));
                if count == 0 {
                    return Ok(Content::NeedMore(at));
                }
                self.left -= count as u16;
                *remaining = remaining.checked_sub(count as u64).ok_or_else(|| length_differs("longer"))?;
                return Ok(Content::Bytes(at..at + count));
            }
            let skipped = rest.len().min(self.skip as usize);
            self.skip -= skipped as u32;
            at += skipped;
            if self.ended {
                return match *remaining {
                    _ if self.skip > 0 => Ok(Content::NeedMore(at)),
                    0 => Ok(Content::End(at)),
                    _ => Err(length_differs("shorter")),
                };
            }
            let Some(header) = Header::read(&input[at..])? else {
                return Ok(Content::NeedMore(at));
            };
            at += HEADER;
            self.take(header)?;
        }
    }

    fn take(&mut self, header: Header) -> Result<(), Box<Refusal>> {
        self.skip = u32::from(header.padding);
        match header.kind {
            STDIN if header.id == self.id => {
                self.left = header.length;
                self.ended = header.length == 0;
            }
            ABORT_REQUEST if header.id == self.id => return Err(wrong("ABORT_REQUEST: the client has left")),
            BEGIN_REQUEST | PARAMS if header.id == self.id => return Err(wrong("STDIN follows PARAMS")),
            kind => {
                self.skip += u32::from(header.length);
                if kind == BEGIN_REQUEST && header.id != 0 {
                    self.second = header.id;
                }
            }
        }
        Ok(())
    }

    /// The next byte is the first of a record, and the empty one has not come.
    pub fn is_between_records(&self) -> bool {
        self.left == 0 && self.skip == 0 && !self.ended
    }

    /// What is answered to another request that has begun meanwhile, told once.
    pub fn take_answer(&mut self) -> Option<Vec<u8>> {
        let id = std::mem::take(&mut self.second);
        (id != 0).then(|| end_request(id, CANNOT_MULTIPLEX))
    }
}

#[cold]
fn length_differs(how: &str) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::Vars, format!("STDIN is {how} than CONTENT_LENGTH")))
}

#[cfg(test)]
mod tests {
    use super::super::vars::Vars;
    use super::*;

    fn padded(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
        let mut record = record(kind, id, content);
        record[6] = padding;
        record.extend(std::iter::repeat_n(0xff, padding.into()));
        record
    }

    fn began(id: u16, role: u8, flags: u8) -> Vec<u8> {
        record(BEGIN_REQUEST, id, &[0, role, flags, 0, 0, 0, 0, 0])
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (key, value) in pairs {
            for text in [key, value] {
                match u8::try_from(text.len()) {
                    Ok(short @ ..128) => out.push(short),
                    _ => out.extend_from_slice(&(text.len() as u32 | 1 << 31).to_be_bytes()),
                }
            }
            out.extend_from_slice(key.as_bytes());
            out.extend_from_slice(value.as_bytes());
        }
        out
    }

    /// What all of it comes to, for as long as something is aside: the answers, and the last opening.
    fn opened(input: &[u8]) -> (Vec<u8>, Result<Opening, u16>, Vec<u8>) {
        let (mut input, mut scan) = (input.to_vec(), Scan::default());
        let (mut answers, mut block) = (Vec::new(), Vec::new());
        loop {
            match open(&input, &mut scan, &mut block) {
                Ok(Opening::Aside(count, answer)) => {
                    input.drain(..count);
                    answers.extend_from_slice(&answer);
                }
                other => return (answers, other.map_err(|refusal| refusal.status()), block),
            }
        }
    }

    #[test]
    fn vars_are_read_however_records_are_cut() {
        let long = "v".repeat(300);
        let vars = pairs(&[("REQUEST_METHOD", "GET"), ("LONG", &long), ("EMPTY", "")]);
        let (first, second) = vars.split_at(17);
        let whole = [
            began(7, 1, KEEP_CONN),
            padded(PARAMS, 7, first, 3),
            padded(PARAMS, 7, second, 0),
            padded(PARAMS, 7, b"", 5),
        ]
        .concat();
        let mut scan = Scan::default();
        for length in 0..=whole.len() {
            let mut block = Vec::new();
            let opening = open(&whole[..length], &mut scan, &mut block).expect("it is right");
            if length < whole.len() {
                assert_eq!((opening, block.len()), (Opening::NeedMore, 0));
                continue;
            }
            assert_eq!(opening, Opening::Vars(whole.len()));
            let vars = Vars::of(&block).expect("a block");
            assert_eq!((vars.origin.id, vars.origin.keep), (7, true));
            let keys = vars.iter().map(|(key, value)| (key, value.len()));
            assert!(keys.eq([(b"REQUEST_METHOD".as_slice(), 3), (b"LONG", 300), (b"EMPTY", 0)]));
        }
    }

    #[test]
    fn what_is_no_request_is_answered_or_passed_over() {
        let request = [began(1, 1, 0), record(PARAMS, 1, &pairs(&[("A", "1")])), record(PARAMS, 1, b"")].concat();
        let asked = pairs(&[("FCGI_MAX_CONNS", ""), ("FCGI_MPXS_CONNS", "")]);
        for (aside, answer) in [
            (record(GET_VALUES, 0, &asked), record(GET_VALUES_RESULT, 0, b"\x0f\x01FCGI_MPXS_CONNS0")),
            (record(GET_VALUES, 0, b""), record(GET_VALUES_RESULT, 0, b"")),
            (record(77, 0, b"?"), record(UNKNOWN_TYPE, 0, &[77, 0, 0, 0, 0, 0, 0, 0])),
            (began(2, 2, 0), end_request(2, UNKNOWN_ROLE)),
            (padded(STDIN, 9, b"late", 4), Vec::new()),
            (record(ABORT_REQUEST, 9, b""), Vec::new()),
            ([began(3, 1, 0), record(ABORT_REQUEST, 3, b"")].concat(), end_request(3, COMPLETE)),
        ] {
            let (answers, opening, block) = opened(&[&aside[..], &request].concat());
            assert_eq!((answers, opening), (answer, Ok(Opening::Vars(request.len()))), "{aside:?}");
            assert_eq!(Vars::of(&block).map(|vars| vars.origin.id), Some(1));
        }
        let between = [began(1, 1, 0), began(2, 1, 0), record(PARAMS, 2, b"x"), request[16..].to_vec()].concat();
        let (answers, opening, _) = opened(&between);
        assert_eq!((answers, opening), (end_request(2, CANNOT_MULTIPLEX), Ok(Opening::Vars(between.len()))));
    }

    #[test]
    fn what_is_no_fastcgi_is_refused() {
        let of = |content: &[u8]| [began(1, 1, 0), record(PARAMS, 1, content), record(PARAMS, 1, b"")].concat();
        for input in [
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            record(BEGIN_REQUEST, 1, b"\0\x01"),
            [began(1, 1, 0), began(1, 1, 0)].concat(),
            [began(1, 1, 0), record(STDIN, 1, b"")].concat(),
            of(b"\x05"),
            of(b"\x80\0\0"),
            of(b"\x01\x02ab"),
            of(b"\xff\xff\xff\xff\x00"),
            of(b"\0\x01a"),
            record(GET_VALUES, 0, b"\x05"),
        ] {
            assert_eq!(opened(&input).1, Err(400), "{input:?}");
        }
        let large = vec![b'a'; 65_000];
        let many = [began(1, 1, 0), record(PARAMS, 1, &large).repeat(5)].concat();
        assert_eq!(opened(&many).1, Err(400));
    }

    /// The content of what comes behind PARAMS, byte by byte, or the status; and what is left.
    fn read(input: &[u8], length: u64) -> Result<(Vec<u8>, bool), u16> {
        let (mut stdin, mut remaining) = (Stdin::new(1), length);
        let (mut content, mut unread) = (Vec::new(), Vec::new());
        for byte in input {
            unread.push(*byte);
            loop {
                match stdin.advance(&unread, &mut remaining).map_err(|refusal| refusal.status())? {
                    Content::Bytes(range) => {
                        content.extend_from_slice(&unread[range.clone()]);
                        unread.drain(..range.end);
                    }
                    Content::End(_) => return Ok((content, true)),
                    Content::NeedMore(count) => {
                        unread.drain(..count);
                        break;
                    }
                }
            }
        }
        Ok((content, false))
    }

    #[test]
    fn content_is_what_stands_in_records_of_the_request() {
        let input = [
            padded(STDIN, 1, b"ab", 6),
            padded(STDIN, 2, b"other", 1),
            began(2, 1, 0),
            record(8, 1, b"data"),
            record(STDIN, 1, b"cde"),
            padded(STDIN, 1, b"", 3),
        ]
        .concat();
        assert_eq!(read(&input, 5), Ok((b"abcde".to_vec(), true)));
        assert_eq!(read(&input[..input.len() - 1], 5), Ok((b"abcde".to_vec(), false)));
        assert_eq!((read(&input, 4), read(&input, 6)), (Err(400), Err(400)));
        assert_eq!(read(&record(STDIN, 1, b""), 0), Ok((Vec::new(), true)));
        assert_eq!(read(&record(ABORT_REQUEST, 1, b""), 5), Err(400));
        assert_eq!(read(&began(1, 1, 0), 5), Err(400));
        assert_eq!(read(b"GET", 5), Err(400));
    }

    #[test]
    fn a_second_request_is_refused_once() {
        let mut stdin = Stdin::new(1);
        assert!(stdin.advance(&began(2, 1, 0), &mut 0).is_ok());
        assert_eq!(stdin.take_answer(), Some(end_request(2, CANNOT_MULTIPLEX)));
        assert_eq!(stdin.take_answer(), None);
    }
}
