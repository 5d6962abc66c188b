//! The operator's loosenings of the field grammar: folded lines are joined, spaces before a colon taken off.
//!
//! Both rewrite the bytes of a complete head in place, keeping its length (what is won becomes trailing space of the
//! value, which means nothing), so that the strict grammar reads the result and nothing is told twice.
use super::limits::Leniency;
use crate::message::grammar::trim_ows;

/// Rewrites a complete head: request line, fields, empty line.
#[cold]
pub(super) fn normalise(head: &mut [u8], leniency: &Leniency) {
    let Some(mut start) = line_end(head, 0) else {
        return;
    };
    let mut scratch = Vec::new();
    while let Some(end) = field_end(head, start, leniency.obsolete_folding) {
        rewrite(&mut head[start..end], leniency, &mut scratch);
        start = end;
    }
}

/// Where the line at `start` ends, its LF included.
fn line_end(head: &[u8], start: usize) -> Option<usize> {
    memchr::memchr(b'\n', head.get(start..)?).map(|at| start + at + 1)
}

/// Where the field at `start` ends, the lines folded to it included.
fn field_end(head: &[u8], start: usize, folding: bool) -> Option<usize> {
    let mut end = line_end(head, start)?;
    while folding && matches!(head.get(end), Some(b' ' | b'\t')) {
        end = line_end(head, end)?;
    }
    Some(end)
}

fn rewrite(field: &mut [u8], leniency: &Leniency, scratch: &mut Vec<u8>) {
    scratch.clear();
    for (index, line) in field.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let line = line.strip_suffix(b"\r\n").unwrap_or(line);
        match index {
            0 => first_line(line, leniency, scratch),
            _ => {
                // RFC 9112 section 5.2: "replace each received obs-fold with one or more SP octets".
                while let [.., b' ' | b'\t'] = scratch.as_slice() {
                    scratch.pop();
                }
                scratch.push(b' ');
                scratch.extend_from_slice(trim_ows(line));
            }
        }
    }
    let Some(room) = field.len().checked_sub(LINE_END.len()).filter(|&room| room >= scratch.len()) else {
        return;
    };
    field[..scratch.len()].copy_from_slice(scratch);
    field[scratch.len()..room].fill(b' ');
    field[room..].copy_from_slice(LINE_END);
}

/// `Name : value` becomes `Name: value`; a line that is no field is kept for the grammar to refuse.
fn first_line(line: &[u8], leniency: &Leniency, scratch: &mut Vec<u8>) {
    let colon = memchr::memchr(b':', line).filter(|_| leniency.strip_header_spaces);
    let Some(colon) = colon else {
        return scratch.extend_from_slice(line);
    };
    let mut name = &line[..colon];
    while let [rest @ .., b' ' | b'\t'] = name {
        name = rest;
    }
    scratch.extend_from_slice(name);
    scratch.extend_from_slice(&line[colon..]);
}

const LINE_END: &[u8] = b"\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    fn normalised(head: &str, obsolete_folding: bool, strip_header_spaces: bool) -> String {
        let mut bytes = head.as_bytes().to_vec();
        let leniency = Leniency { obsolete_folding, strip_header_spaces, ..Leniency::default() };
        normalise(&mut bytes, &leniency);
        assert_eq!(bytes.len(), head.len());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn folded_lines_are_joined_by_one_space() {
        let head = "GET / HTTP/1.1\r\nA: b \r\n\t c\r\n  d\r\nE: f\r\n\r\n";
        let joined = "GET / HTTP/1.1\r\nA: b c d       \r\nE: f\r\n\r\n";
        assert_eq!(normalised(head, true, false), joined);
        assert_eq!(normalised(head, false, true), head);
    }

    #[test]
    fn spaces_before_the_colon_are_taken_off() {
        let head = "GET / HTTP/1.1\r\nA \t: b\r\n\r\n";
        assert_eq!(normalised(head, false, true), "GET / HTTP/1.1\r\nA: b  \r\n\r\n");
    }

    #[test]
    fn a_line_that_is_no_field_is_left_to_the_grammar() {
        for head in ["GET / HTTP/1.1\r\n x: y\r\n\r\n", "GET / HTTP/1.1\r\nnope\r\n\r\n"] {
            assert_eq!(normalised(head, true, true), head);
        }
    }
}
